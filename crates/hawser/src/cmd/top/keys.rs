//! Which key does what.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::{Deed, Update};

/// The keys, as the help shows them.
pub const HELP: [(&str, &str); 9] = [
    ("q, Ctrl-C", "quit"),
    ("?", "this help, and back"),
    ("Space", "pause, and go on"),
    ("Tab", "the other table: paths, flows"),
    ("s, S", "sort the table by its next column, by the one before"),
    ("r", "reverse the order"),
    ("p, P", "the next peer alone, the one before; after the last one all"),
    ("Up, Down, k, j", "scroll the table by a line"),
    ("PageUp, PageDown", "scroll the table by ten lines"),
];
/// Lines of a page.
const PAGE: isize = 10;

/// What a terminal's event changes; none: nothing.
pub fn update(event: &Event) -> Option<Update> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => deed(key),
        Event::Resize(..) => Some(Update::Resized),
        _ => None,
    }
}

fn deed(key: &KeyEvent) -> Option<Update> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let deed = match key.code {
        KeyCode::Char('c') if control => return Some(Update::End),
        _ if control => return None,
        KeyCode::Char('q') => return Some(Update::End),
        KeyCode::Char('?' | 'h') => Deed::Help,
        KeyCode::Esc => Deed::Back,
        KeyCode::Char(' ') => Deed::Pause,
        KeyCode::Tab => Deed::NextTable,
        KeyCode::Char('s') => Deed::Sort(1),
        KeyCode::Char('S') => Deed::Sort(-1),
        KeyCode::Char('r') => Deed::Reverse,
        KeyCode::Char('p') => Deed::Peer(1),
        KeyCode::Char('P') => Deed::Peer(-1),
        KeyCode::Up | KeyCode::Char('k') => Deed::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => Deed::Scroll(1),
        KeyCode::PageUp => Deed::Scroll(-PAGE),
        KeyCode::PageDown => Deed::Scroll(PAGE),
        _ => return None,
    };
    Some(Update::Deed(deed))
}
