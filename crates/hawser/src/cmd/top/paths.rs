//! The table of paths.

use std::cmp::{Ordering, Reverse};

use hawser_portal::api::{Condition, PathState, PathStatus};
use ratatui::style::Style;

use super::columns::{Column, plain, received, sent, spark};
use super::model::{Model, Order, Table};
use super::series::{Key, Rates};
use super::theme::Theme;
use crate::cmd::table::bytes;

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
        Column::left("peer", 12, 110, |row, _, _| plain(row.peer)),
        Column::left("path", 14, 0, |row, _, _| plain(&row.path.name)),
        Column::left("interface", 10, 140, |row, _, _| maybe(&row.path.interface)),
        Column::left("endpoint", 22, 130, |row, _, _| maybe(&row.path.endpoint)),
        Column::left("transport", 9, 160, |row, _, _| plain(&row.path.transport)),
        Column::left("state", 10, 0, |row, theme, _| state(row.path, theme)),
        Column::right("rtt", 9, 0, |row, _, _| (rtt(row.path), Style::new())),
        Column::right("loss", 6, 0, |row, theme, _| loss(row.path, theme)),
        Column::right("share", 5, 100, |row, _, _| (share(row), Style::new())),
        Column::right("window", 10, 190, |row, _, _| plain(&bytes(row.path.cwnd_bytes))),
        Column::right("mtu", 5, 180, |row, _, _| plain(&row.path.mtu.to_string())),
        Column::right("received", 12, 0, |row, _, _| (received(row.rates), Style::new())),
        Column::right("sent", 12, 0, |row, _, _| (sent(row.rates), Style::new())),
        Column::left("both", 0, 0, |row, theme, width| spark(row.rates, theme, width)),
    ]
}

/// What paths are sorted by; the first is the portal's own order.
const PATH_KEYS: [&str; 7] = ["", "path", "state", "rtt", "loss", "received", "sent"];

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

/// From this loss on it is marked, in per cent: a loss-based flow inside the tunnel halves its rate at less, and
/// repairs cost.
const MUCH_LOSS_PCT: f64 = 2.0;

fn loss(path: &PathStatus, theme: &Theme) -> (String, Style) {
    let style = if path.loss_pct >= MUCH_LOSS_PCT { theme.wrong() } else { Style::new() };
    (format!("{:.1} %", path.loss_pct), style)
}

fn share(row: &PathRow<'_>) -> String {
    row.share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}
