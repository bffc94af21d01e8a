//! The status for people: the shim and its interfaces, then each connection: its flows, and their paths.

use std::fmt::Write as _;

use hawser_shim::status::{ConnectionStatus, FlowProtocol, FlowStatus, InterfaceStatus, PathStatus, Status};

use crate::cmd::table::{Align, aligned, bytes, duration};

/// Headings of the flows' table.
const FLOWS: [(&str, Align); 11] = [
    ("", Align::Right),
    ("flow", Align::Left),
    ("interface", Align::Left),
    ("local", Align::Left),
    ("remote", Align::Left),
    ("state", Align::Left),
    ("received", Align::Right),
    ("sent", Align::Right),
    ("again", Align::Right),
    ("share", Align::Right),
    ("now", Align::Right),
];

/// The whole status as text, lines ended.
pub fn render(status: &Status) -> String {
    let Status { version, uptime_s, local, select, routes, .. } = status;
    let mut text = format!("hawser {version}, shim of {local}, up {}\n", duration(*uptime_s));
    let _ = writeln!(text, "paths by {select}, {}", some(*routes as u64, "route", "routes"));
    let addresses = |interface: &InterfaceStatus| {
        let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
        [interface.name.clone(), addresses.join("  ")]
    };
    let rows: Vec<[String; 2]> = status.interfaces.iter().map(addresses).collect();
    aligned(&mut text, [Align::Left; 2], &rows);
    if status.connections.is_empty() {
        text.push_str("\nno connections\n");
    }
    for connection in &status.connections {
        render_connection(&mut text, connection, &status.interfaces);
    }
    let counters: Vec<String> = status.counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if !counters.is_empty() {
        let _ = writeln!(text, "\ncounted: {}", counters.join(", "));
    }
    text
}

fn render_connection(text: &mut String, connection: &ConnectionStatus, interfaces: &[InterfaceStatus]) {
    let ConnectionStatus { token, role, peer, age_s, sharability, flows } = connection;
    let name = match (token, flows.first().map(|flow| flow.protocol)) {
        (Some(token), _) => format!("connection {token}"),
        (None, Some(FlowProtocol::Udp)) => "udp".to_owned(),
        (None, _) => "plain tcp".to_owned(),
    };
    let age = duration(*age_s);
    let _ = writeln!(text, "\n{name}: {role} of {peer}, since {age}, sharability {sharability}");
    let mut rows = vec![FLOWS.map(|(heading, _)| heading.to_owned())];
    rows.extend(flows.iter().zip(1..).map(|(flow, number)| cells(flow, number, interfaces)));
    aligned(text, FLOWS.map(|(_, align)| align), &rows);
    for (flow, number) in flows.iter().zip(1..) {
        let _ = writeln!(text, "  {number}: {}", path(flow));
    }
    if flows.len() > 1 {
        for (flow, number) in flows.iter().zip(1..) {
            let shares: Vec<String> = flow.shares.iter().map(|sample| format!("{:.0}", sample.share_pct)).collect();
            let _ = writeln!(text, "  {number}: share by the second in %, now last: {}", shares.join(" "));
        }
    }
}

fn cells(flow: &FlowStatus, number: usize, interfaces: &[InterfaceStatus]) -> [String; FLOWS.len()] {
    let interface = interfaces.iter().find(|interface| interface.index == flow.interface);
    [
        number.to_string(),
        flow.role.to_string(),
        interface.map_or_else(|| flow.interface.to_string(), |interface| interface.name.clone()),
        flow.local.to_string(),
        flow.remote.to_string(),
        flow.state.clone(),
        bytes(flow.rx_bytes),
        bytes(flow.tx_bytes),
        format!("{}", flow.rx_retransmissions + flow.tx_retransmissions),
        format!("{:.0} %", flow.share_pct),
        format!("{:.0} %", flow.share_now_pct),
    ]
}

/// The flow's way, in a line.
fn path(flow: &FlowStatus) -> String {
    let Some(PathStatus { hops, length, mtu, sharability, latency_ms, rtt_ms, alive }) = &flow.path else {
        let end = flow.endpoint.as_deref().unwrap_or("the peer");
        return format!("back the way that {end} chose");
    };
    let mut text = some(*length as u64, "AS", "ASes");
    if let Some(mtu) = mtu {
        let _ = write!(text, ", mtu {mtu}");
    }
    let _ = write!(text, ", sharability {sharability}");
    if let Some(latency) = latency_ms {
        let _ = write!(text, ", latency {latency:.1} ms");
    }
    if let Some(rtt) = rtt_ms {
        let _ = write!(text, ", rtt {rtt:.1} ms");
    }
    if flow.moves > 0 {
        let _ = write!(text, ", moved {}", some(flow.moves, "time", "times"));
    }
    if !alive {
        text.push_str(", dead");
    }
    let hops = if hops.is_empty() { "within the AS" } else { hops };
    format!("{text}: {hops}")
}

fn some(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
