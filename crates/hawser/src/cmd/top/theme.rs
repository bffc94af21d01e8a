//! How things look. What colour says, words say too: without colours nothing is lost.

use std::env;

use hawser_portal::api::PathState;
use ratatui::style::{Color, Modifier, Style};

/// Bars of eight heights, and of none.
const BARS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// The same for terminals that know ASCII alone.
const ASCII_BARS: [&str; 9] = [" ", "_", ".", "-", "=", "+", "*", "#", "@"];

/// Colours and characters. Plain value.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// There are colours.
    pub colour: bool,
    /// There is nothing but ASCII.
    pub ascii: bool,
}

impl Theme {
    /// As the user's environment asks: NO_COLOR (no-color.org), and the locale's characters (locale(7)).
    pub fn of_environment() -> Self {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        Self { colour: set("NO_COLOR").is_none(), ascii: !utf8 }
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// A table's headings; of the table that keys work on, more so.
    pub fn headings(&self, focused: bool) -> Style {
        let style = Style::new().add_modifier(Modifier::REVERSED);
        if focused { style.add_modifier(Modifier::BOLD) } else { style.add_modifier(Modifier::DIM) }
    }

    /// What is to be seen first.
    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What may be overlooked.
    pub fn faint(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is wrong.
    pub fn wrong(&self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What is not as it should be.
    pub fn doubtful(&self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Sparklines.
    pub fn bars(&self) -> Style {
        self.coloured(Color::Cyan)
    }

    /// A path's state.
    pub fn state(&self, state: PathState) -> Style {
        match state {
            PathState::Active => self.coloured(Color::Green),
            PathState::New | PathState::Validating => self.faint(),
            PathState::Suspect => self.doubtful(),
            PathState::Down | PathState::NoRoute => self.wrong(),
        }
    }

    /// What stands for something that was left out.
    pub fn ellipsis(&self) -> &'static str {
        if self.ascii { "~" } else { "…" }
    }

    /// The newest values that fit in `width` columns, as bars beside the largest of them; the newest last.
    pub fn spark(&self, values: impl DoubleEndedIterator<Item = u64>, width: usize) -> String {
        let newest: Vec<u64> = values.rev().take(width).collect();
        let largest = newest.iter().copied().max().unwrap_or(0).max(1);
        let bars = if self.ascii { &ASCII_BARS } else { &BARS };
        let highest = (bars.len() - 1) as u128;
        let bar = |value: u64| bars[(u128::from(value) * highest).div_ceil(u128::from(largest)) as usize];
        let missing = " ".repeat(width - newest.len());
        missing + &newest.iter().rev().map(|value| bar(*value)).collect::<String>()
    }
}
