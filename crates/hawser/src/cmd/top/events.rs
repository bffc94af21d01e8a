//! The table of what happened, the newest first.

use hawser_portal::api::{Event, EventKind};
use ratatui::style::Style;

use super::columns::Column;
use super::model::Model;
use super::theme::Theme;
use crate::cmd::table::duration;

/// Milliseconds in a second.
const MILLIS: f64 = 1_000.0;

/// An event with its age. Plain view.
pub struct EventRow<'a> {
    event: &'a Event,
    age_s: f64,
}

/// The events' columns.
pub fn event_columns<'a>() -> [Column<EventRow<'a>>; 5] {
    [
        Column::right("ago", 14, 0, |row, _, _| (duration(row.age_s), Style::new())),
        Column::left("event", 20, 0, |row, theme, _| what(row.event, theme)),
        Column::left("peer", 12, 110, |row, _, _| (row.event.peer.clone(), Style::new())),
        Column::left("path", 14, 0, |row, _, _| (row.event.path.clone(), Style::new())),
        Column::left("cause", 0, 0, |row, _, _| (row.event.cause.clone(), Style::new())),
    ]
}

/// What happened to the peers that are shown, and to the portal.
pub fn event_rows(model: &Model) -> Vec<EventRow<'_>> {
    let Some((events, now_unix_ms)) = &model.shown().events else { return Vec::new() };
    let shown = |event: &&Event| event.peer.is_empty() || model.peer.as_ref().is_none_or(|peer| *peer == event.peer);
    let age = |event: &Event| now_unix_ms.saturating_sub(event.time_unix_ms) as f64 / MILLIS;
    events.events.iter().rev().filter(shown).map(|event| EventRow { event, age_s: age(event) }).collect()
}

/// What happened, and how often in a row.
fn what(event: &Event, theme: &Theme) -> (String, Style) {
    use EventKind::{CapReached, Cut, Degraded, Fade, LinkDown, Refused, SessionEnded};
    let style = match event.kind {
        Cut | LinkDown | Refused | SessionEnded | CapReached => theme.wrong(),
        Degraded | Fade => theme.doubtful(),
        _ => Style::new(),
    };
    let count = if event.count > 1 { format!(" x{}", event.count) } else { String::new() };
    (format!("{}{count}", event.kind), style)
}
