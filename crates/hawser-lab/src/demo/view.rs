//! Who looks at the demo while it runs: a terminal, a file, or nobody.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveToPreviousLine, Show};
use crossterm::style::Color;
use crossterm::terminal::{Clear, ClearType};
use crossterm::{execute, queue};

use super::chart;

/// What is going on. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// One transfer over link 1, without a tunnel.
    Single,
    /// Over both.
    Bonded,
    /// Link 1 swallows everything.
    Cut,
    /// Link 1 is back.
    Back,
}

impl Phase {
    /// In a few words, the colour of its bars, and the mark below where they begin.
    pub(super) const fn look(self) -> (&'static str, Color, char) {
        match self {
            Self::Single => ("link 1 alone, no tunnel", Color::Blue, '1'),
            Self::Bonded => ("bonded", Color::Green, '2'),
            Self::Cut => ("bonded, link 1 silently cut", Color::Yellow, '×'),
            Self::Back => ("bonded, link 1 back", Color::Green, '↑'),
        }
    }
}

/// A step of the demo. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Now {
    pub phase: Phase,
    /// Time shown so far.
    pub at: Duration,
    /// How long this step took.
    pub step: Duration,
    /// What the server received in it, in Mbit/s.
    pub received: f64,
    /// Each link's name, and what it brought towards the server, headers and all, in Mbit/s.
    pub links: Vec<(String, f64)>,
}

/// Somebody who looks, and is told each step that is over.
pub(super) type View = dyn FnMut(&Now);

/// The view for standard output: a chart on a terminal, else plain lines, one a second.
pub(super) fn for_stdout() -> Box<View> {
    if io::stdout().is_terminal() {
        let mut chart = Chart::default();
        return Box::new(move |now: &Now| chart.step(now));
    }
    let mut told = None;
    Box::new(move |now: &Now| {
        let second = Some((now.phase, now.at.as_secs()));
        if told != second {
            told = second;
            // Where nobody reads any more there is nobody to tell.
            let _ = writeln!(io::stdout(), "{}", line(now));
        }
    })
}

fn line(now: &Now) -> String {
    let links: Vec<String> = now.links.iter().map(|(name, mbps)| format!("{name} {mbps:.1}")).collect();
    let (at, received, (words, ..)) = (now.at.as_secs_f64(), now.received, now.phase.look());
    format!("{at:5.1} s  {received:6.1} Mbit/s  {}  ({words})", links.join("  "))
}

/// A chart that is drawn again in its place. Starts empty; one owner.
#[derive(Default)]
struct Chart {
    history: Vec<Now>,
    lines: u16,
}

impl Chart {
    fn step(&mut self, now: &Now) {
        self.history.push(now.clone());
        let width = crossterm::terminal::size().map_or(chart::USUAL_WIDTH, |(columns, _)| columns);
        // A terminal that is gone is no reason to stop.
        let _ = self.draw(&chart::lines(&self.history, now, width.into()));
    }

    fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        queue!(out, Hide)?;
        if self.lines > 0 {
            queue!(out, MoveToPreviousLine(self.lines))?;
        }
        for line in lines {
            queue!(out, Clear(ClearType::CurrentLine))?;
            writeln!(out, "{line}")?;
        }
        self.lines = u16::try_from(lines.len()).unwrap_or(0);
        out.flush()
    }
}

/// Shows the cursor again, which a chart hides; harmless without one.
pub(crate) fn restore_terminal() {
    if io::stdout().is_terminal() {
        // A terminal that is gone needs no cursor.
        let _ = execute!(io::stdout(), Show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_step() {
        let now = Now {
            phase: Phase::Cut,
            at: Duration::from_millis(14_250),
            step: Duration::from_millis(250),
            received: 27.04,
            links: vec![("link1".to_owned(), 0.0), ("link2".to_owned(), 29.6)],
        };
        assert_eq!(line(&now), " 14.2 s    27.0 Mbit/s  link1 0.0  link2 29.6  (bonded, link 1 silently cut)");
    }
}
