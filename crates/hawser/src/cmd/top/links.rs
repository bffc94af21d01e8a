//! The table of links.

use hawser_portal::api::{LinkStatus, PathState, Status};
use ratatui::style::Style;

use super::columns::{Column, plain, received, sent, spark};
use super::model::Model;
use super::series::{Key, Rates};
use super::theme::Theme;
use crate::cmd::table::bytes;

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
        Column::left("link", 14, 0, |row, _, _| plain(&row.link.name)),
        Column::left("active", 10, 0, |row, _, _| (active(row), Style::new())),
        Column::right("this month", 20, 0, |row, theme, _| month(row.link, theme)),
        Column::right("at most", 12, 110, |row, _, _| (at_most(row.link), Style::new())),
        Column::right("received", 12, 0, |row, _, _| (received(row.rates), Style::new())),
        Column::right("sent", 12, 0, |row, _, _| (sent(row.rates), Style::new())),
        Column::left("both", 0, 100, |row, theme, width| spark(row.rates, theme, width)),
    ]
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
