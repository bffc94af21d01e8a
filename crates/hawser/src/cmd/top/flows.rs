//! The table of the largest flows.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

use hawser_portal::api::FlowStatus;
use ratatui::style::Style;

use super::columns::{Column, plain, rate};
use super::model::{Model, Order};
use crate::cmd::table::bytes;

/// The flows' columns.
pub fn flow_columns<'a>() -> [Column<&'a FlowStatus>; 10] {
    [
        Column::left("peer", 12, 110, |flow, _, _| plain(&flow.peer)),
        Column::left("flow", 6, 0, |flow, _, _| plain(&flow.protocol)),
        Column::left("local", 0, 0, |flow, _, _| (end(flow.local_address, flow.local_port), Style::new())),
        Column::left("remote", 0, 0, |flow, _, _| (end(flow.remote_address, flow.remote_port), Style::new())),
        Column::right("rule", 5, 0, |flow, _, _| (rule(flow), Style::new())),
        Column::left("scheduler", 10, 120, |flow, _, _| plain(flow.scheduler.as_deref().unwrap_or("-"))),
        Column::right("received", 12, 0, |flow, _, _| plain(&per_s(flow.rx_bytes_per_s))),
        Column::right("sent", 12, 0, |flow, _, _| plain(&per_s(flow.tx_bytes_per_s))),
        Column::right("total", 10, 130, |flow, _, _| plain(&bytes(flow.rx_bytes + flow.tx_bytes))),
        Column::left("paths", 30, 140, |flow, _, _| (paths(flow), Style::new())),
    ]
}

/// What flows are sorted by; the first is both directions together.
pub const FLOW_KEYS: [&str; 6] = ["", "received", "sent", "total", "remote", "rule"];

/// The heading that flows are sorted by.
pub fn sorted(order: Order) -> Option<&'static str> {
    FLOW_KEYS.get(order.by).copied().filter(|heading| !heading.is_empty())
}

/// The flows of the peers that are shown, in their order.
pub fn flow_rows(model: &Model) -> Vec<&FlowStatus> {
    let flows = model.shown().flows.iter().flat_map(|flows| &flows.flows);
    let shown = |flow: &&FlowStatus| model.peer.as_ref().is_none_or(|peer| *peer == flow.peer);
    let mut rows: Vec<&FlowStatus> = flows.filter(shown).collect();
    rows.sort_by(|a, b| compare(a, b, model.flows));
    if model.flows.reversed {
        rows.reverse();
    }
    rows
}

fn compare(a: &FlowStatus, b: &FlowStatus, order: Order) -> Ordering {
    let both = |flow: &FlowStatus| flow.rx_bytes_per_s + flow.tx_bytes_per_s;
    match FLOW_KEYS[order.by % FLOW_KEYS.len()] {
        "received" => b.rx_bytes_per_s.total_cmp(&a.rx_bytes_per_s),
        "sent" => b.tx_bytes_per_s.total_cmp(&a.tx_bytes_per_s),
        "total" => (b.rx_bytes + b.tx_bytes).cmp(&(a.rx_bytes + a.tx_bytes)),
        "remote" => (a.remote_address, a.remote_port).cmp(&(b.remote_address, b.remote_port)),
        "rule" => a.rule.unwrap_or(u16::MAX).cmp(&b.rule.unwrap_or(u16::MAX)),
        _ => both(b).total_cmp(&both(a)),
    }
}

fn per_s(bytes_per_s: f64) -> String {
    rate(bytes_per_s as u64)
}

/// Address and port, as URLs write them (RFC 3986 section 3.2.2).
fn end(address: IpAddr, port: Option<u16>) -> String {
    port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string())
}

fn rule(flow: &FlowStatus) -> String {
    flow.rule.map_or_else(|| "-".to_owned(), |rule| rule.to_string())
}

/// Each path with its part of the flow, the largest first. Paths of one name are told apart by where they lead.
fn paths(flow: &FlowStatus) -> String {
    let of = |path: &hawser_portal::api::FlowPathStatus| path.tx_bytes + path.rx_bytes;
    let all: u64 = flow.paths.iter().map(of).sum::<u64>().max(1);
    let mut paths: Vec<_> = flow.paths.iter().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(of(path)));
    let one = |path: &&hawser_portal::api::FlowPathStatus| {
        let twins = flow.paths.iter().filter(|other| other.name == path.name).count() > 1;
        let name = path.endpoint.as_ref().filter(|_| twins).unwrap_or(&path.name);
        format!("{name} {:.0} %", of(path) as f64 / all as f64 * 100.0)
    };
    paths.iter().map(one).collect::<Vec<_>>().join(", ")
}
