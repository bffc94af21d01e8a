//! The table of paths, and that of links.

use std::cmp::{Ordering, Reverse};

use hawser_portal::api::{Condition, LinkStatus, PathState, PathStatus, Status};
use ratatui::style::Style;

use super::columns::{Column, rate};
use super::model::{Model, Order, Table};
use super::series::{Key, Rates};
use super::theme::Theme;
use crate::cmd::table::{Align, bytes};

/// A path with its rates. Plain view.
pub struct PathRow<'a> {
    peer: &'a str,
    path: &'a PathStatus,
    rates: Option<&'a Rates>,
    /// Its part of what the peer's paths carried last; none where they carried nothing.
    share: Option<f64>,
}

/// The paths' columns.
pub fn path_columns<'a>() -> [Column<PathRow<'a>>; 14] {
    [
        Column { heading: "peer", align: Align::Left, width: 12, from: 110, cell: |row, _, _| plain(row.peer) },
        Column { heading: "path", align: Align::Left, width: 14, from: 0, cell: |row, _, _| plain(&row.path.name) },
        Column {
            heading: "interface",
            align: Align::Left,
            width: 10,
            from: 140,
            cell: |row, _, _| maybe(&row.path.interface),
        },
        Column {
            heading: "endpoint",
            align: Align::Left,
            width: 22,
            from: 130,
            cell: |row, _, _| maybe(&row.path.endpoint),
        },
        Column {
            heading: "transport",
            align: Align::Left,
            width: 9,
            from: 160,
            cell: |row, _, _| plain(&row.path.transport),
        },
        Column {
            heading: "state",
            align: Align::Left,
            width: 10,
            from: 0,
            cell: |row, theme, _| state(row.path, theme),
        },
        Column {
            heading: "rtt",
            align: Align::Right,
            width: 9,
            from: 0,
            cell: |row, _, _| (rtt(row.path), Style::new()),
        },
        Column { heading: "loss", align: Align::Right, width: 6, from: 0, cell: |row, theme, _| loss(row.path, theme) },
        Column {
            heading: "share",
            align: Align::Right,
            width: 5,
            from: 100,
            cell: |row, _, _| (share(row), Style::new()),
        },
        Column {
            heading: "window",
            align: Align::Right,
            width: 10,
            from: 190,
            cell: |row, _, _| plain(&bytes(row.path.cwnd_bytes)),
        },
        Column {
            heading: "mtu",
            align: Align::Right,
            width: 5,
            from: 180,
            cell: |row, _, _| plain(&row.path.mtu.to_string()),
        },
        Column {
            heading: "received",
            align: Align::Right,
            width: 12,
            from: 0,
            cell: |row, _, _| (received(row.rates), Style::new()),
        },
        Column {
            heading: "sent",
            align: Align::Right,
            width: 12,
            from: 0,
            cell: |row, _, _| (sent(row.rates), Style::new()),
        },
        Column {
            heading: "both",
            align: Align::Left,
            width: 0,
            from: 0,
            cell: |row, theme, width| spark(row.rates, theme, width),
        },
    ]
}

/// What paths are sorted by; the first is the portal's own order.
const PATH_KEYS: [&str; 7] = ["", "path", "state", "rtt", "loss", "received", "sent"];

/// A link with its rates. Plain view.
pub struct LinkRow<'a> {
    link: &'a LinkStatus,
    rates: Option<&'a Rates>,
    /// Its paths that carry data, and all of them.
    active: (usize, usize),
}

/// The links' columns.
pub fn link_columns<'a>() -> [Column<LinkRow<'a>>; 7] {
    [
        Column { heading: "link", align: Align::Left, width: 14, from: 0, cell: |row, _, _| plain(&row.link.name) },
        Column {
            heading: "active",
            align: Align::Left,
            width: 10,
            from: 0,
            cell: |row, _, _| (active(row), Style::new()),
        },
        Column {
            heading: "this month",
            align: Align::Right,
            width: 20,
            from: 0,
            cell: |row, theme, _| month(row.link, theme),
        },
        Column {
            heading: "at most",
            align: Align::Right,
            width: 12,
            from: 110,
            cell: |row, _, _| (at_most(row.link), Style::new()),
        },
        Column {
            heading: "received",
            align: Align::Right,
            width: 12,
            from: 0,
            cell: |row, _, _| (received(row.rates), Style::new()),
        },
        Column {
            heading: "sent",
            align: Align::Right,
            width: 12,
            from: 0,
            cell: |row, _, _| (sent(row.rates), Style::new()),
        },
        Column {
            heading: "both",
            align: Align::Left,
            width: 0,
            from: 100,
            cell: |row, theme, width| spark(row.rates, theme, width),
        },
    ]
}

impl Table {
    /// How many ways there are to sort it.
    pub fn keys(self) -> usize {
        match self {
            Self::Paths => PATH_KEYS.len(),
            Self::Flows => super::flows::FLOW_KEYS.len(),
        }
    }
}

/// The heading that paths are sorted by.
pub fn sorted(order: Order) -> Option<&'static str> {
    PATH_KEYS.get(order.by).copied().filter(|heading| !heading.is_empty())
}

/// The paths of the peers that are shown, in their order.
pub fn path_rows(model: &Model) -> Vec<PathRow<'_>> {
    let series = &model.shown().series;
    let mut rows = Vec::new();
    for peer in model.peers() {
        let rates = |path: &PathStatus| series.of(&Key::of_path(&peer.name, path));
        let both = |rates: Option<&Rates>| rates.map_or(0, |rates| rates.newest().0 + rates.newest().1);
        let all: u64 = peer.paths.iter().map(|path| both(rates(path))).sum();
        rows.extend(peer.paths.iter().map(|path| PathRow {
            peer: &peer.name,
            path,
            rates: rates(path),
            share: (all > 0).then(|| both(rates(path)) as f64 / all as f64),
        }));
    }
    sort(&mut rows, model.paths);
    rows
}

/// Figures that say more come first, whatever they are; names go by the alphabet.
fn sort(rows: &mut [PathRow<'_>], order: Order) {
    let newest = |row: &PathRow<'_>| row.rates.map_or((0, 0), Rates::newest);
    let compare = |a: &PathRow<'_>, b: &PathRow<'_>| match PATH_KEYS[order.by % PATH_KEYS.len()] {
        "path" => a.path.name.cmp(&b.path.name),
        "state" => Reverse(trouble(a.path.state)).cmp(&Reverse(trouble(b.path.state))),
        "rtt" => b.path.rtt_ms.unwrap_or(-1.0).total_cmp(&a.path.rtt_ms.unwrap_or(-1.0)),
        "loss" => b.path.loss_pct.total_cmp(&a.path.loss_pct),
        "received" => newest(b).0.cmp(&newest(a).0),
        "sent" => newest(b).1.cmp(&newest(a).1),
        _ => Ordering::Equal,
    };
    rows.sort_by(compare);
    if order.reversed {
        rows.reverse();
    }
}

/// How much of the user's attention a state wants.
fn trouble(state: PathState) -> u8 {
    match state {
        PathState::Active => 0,
        PathState::New | PathState::Validating => 1,
        PathState::Suspect => 2,
        PathState::NoRoute => 3,
        PathState::Down => 4,
    }
}

/// The configured links.
pub fn link_rows<'a>(model: &'a Model) -> Vec<LinkRow<'a>> {
    let data = model.shown();
    let links = data.status.iter().flat_map(|status| status.links.iter().map(move |link| (status, link)));
    let row = |(status, link): (&'_ Status, &'a LinkStatus)| {
        let paths = || status.peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.name == link.name);
        let active = paths().filter(|path| path.state == PathState::Active).count();
        LinkRow { link, rates: data.series.of(&Key::Link(link.name.clone())), active: (active, paths().count()) }
    };
    links.map(row).collect()
}

/// Whether links say something that their paths do not.
pub fn links_say_more(status: &Status) -> bool {
    let asked = |link: &LinkStatus| link.data_cap.is_some() || link.max_rate_mbps.is_some();
    !status.links.is_empty() && (status.peers.len() > 1 || status.links.iter().any(asked))
}

fn plain(text: &str) -> (String, Style) {
    (text.to_owned(), Style::new())
}

fn maybe(text: &Option<String>) -> (String, Style) {
    plain(text.as_deref().unwrap_or("-"))
}

fn rtt(path: &PathStatus) -> String {
    path.rtt_ms.map_or_else(|| "-".to_owned(), |rtt| format!("{rtt:.1} ms"))
}

/// A path that carries data, and not as it should, says so.
fn state(path: &PathStatus, theme: &Theme) -> (String, Style) {
    match path.live.condition {
        condition @ (Condition::Degraded | Condition::Fading) if path.state == PathState::Active => {
            (condition.to_string(), theme.doubtful())
        }
        condition @ Condition::Cut if path.state == PathState::Active => (condition.to_string(), theme.wrong()),
        _ => (path.state.to_string(), theme.state(path.state)),
    }
}

/// From this loss on it is marked, in per cent: a loss-based flow inside the tunnel halves its rate at less, and repairs cost.
const MUCH_LOSS_PCT: f64 = 2.0;

fn loss(path: &PathStatus, theme: &Theme) -> (String, Style) {
    let style = if path.loss_pct >= MUCH_LOSS_PCT { theme.wrong() } else { Style::new() };
    (format!("{:.1} %", path.loss_pct), style)
}

fn share(row: &PathRow<'_>) -> String {
    row.share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn received(rates: Option<&Rates>) -> String {
    rate(rates.map_or(0, |rates| rates.newest().0))
}

fn sent(rates: Option<&Rates>) -> String {
    rate(rates.map_or(0, |rates| rates.newest().1))
}

fn spark(rates: Option<&Rates>, theme: &Theme, width: usize) -> (String, Style) {
    (rates.map_or_else(String::new, |rates| theme.spark(rates.both(), width)), theme.bars())
}

fn active(row: &LinkRow<'_>) -> String {
    format!("{} of {}", row.active.0, row.active.1)
}

fn month(link: &LinkStatus, theme: &Theme) -> (String, Style) {
    match link.data_cap {
        None => plain("-"),
        Some(cap) => {
            let text = format!("{} / {}", bytes(cap.used_bytes), bytes(cap.cap_bytes));
            (text, if cap.reached { theme.wrong() } else { Style::new() })
        }
    }
}

fn at_most(link: &LinkStatus) -> String {
    link.max_rate_mbps.map_or_else(|| "-".to_owned(), |mbps| format!("{mbps} Mbit/s"))
}
