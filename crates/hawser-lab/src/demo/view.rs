//! Who looks at the demo while it runs: a terminal, a file, or nobody.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveToPreviousLine, Show};
use crossterm::terminal::{Clear, ClearType};
use crossterm::{execute, queue};

use super::chart::{self, History};

/// What is going on. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
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
    /// In a few words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Single => "link 1 alone, no tunnel",
            Self::Bonded => "bonded",
            Self::Cut => "bonded, link 1 silently cut",
            Self::Back => "bonded, link 1 back",
        }
    }
}

/// A link in the last step. Plain data.
#[derive(Clone, Debug)]
pub struct LinkNow {
    /// Its name.
    pub name: String,
    /// What it brought towards the server, headers and all.
    pub mbps: f64,
}

/// A step of the demo. Plain data.
#[derive(Clone, Debug)]
pub struct Now {
    /// What is going on.
    pub phase: Phase,
    /// Time shown so far.
    pub at: Duration,
    /// How long this step took.
    pub step: Duration,
    /// What the server received in it, in Mbit/s.
    pub received: f64,
    /// What each link brought.
    pub links: Vec<LinkNow>,
}

/// Somebody who looks.
pub trait View {
    /// A step is over.
    fn step(&mut self, now: &Now);
    /// There is nothing more to see. May be called without a step before.
    fn close(&mut self);
}

/// The view for standard output: a chart on a terminal, else lines.
#[must_use]
pub fn for_stdout() -> Box<dyn View> {
    if io::stdout().is_terminal() { Box::<Chart>::default() } else { Box::<Lines>::default() }
}

/// Nobody looks. No state.
#[derive(Debug, Default)]
pub struct Silent;

impl View for Silent {
    fn step(&mut self, _now: &Now) {}
    fn close(&mut self) {}
}

/// Plain lines, one a second. Starts before the first; one owner.
#[derive(Debug, Default)]
pub struct Lines {
    told: Option<(Phase, u64)>,
}

impl View for Lines {
    fn step(&mut self, now: &Now) {
        let second = (now.phase, now.at.as_secs());
        if self.told == Some(second) {
            return;
        }
        self.told = Some(second);
        // Where nobody reads any more there is nobody to tell.
        let _ = writeln!(io::stdout(), "{}", line(now));
    }

    fn close(&mut self) {}
}

fn line(now: &Now) -> String {
    let links: Vec<String> = now.links.iter().map(|link| format!("{} {:.1}", link.name, link.mbps)).collect();
    let (at, received) = (now.at.as_secs_f64(), now.received);
    format!("{at:5.1} s  {received:6.1} Mbit/s  {}  ({})", links.join("  "), now.phase.words())
}

/// A chart that is drawn again in its place. Starts empty; one owner.
#[derive(Debug, Default)]
pub struct Chart {
    history: History,
    lines: u16,
}

impl View for Chart {
    fn step(&mut self, now: &Now) {
        self.history.push(now);
        let width = crossterm::terminal::size().map_or(chart::USUAL_WIDTH, |(columns, _)| columns);
        // A terminal that is gone is no reason to stop.
        let _ = self.draw(&chart::lines(&self.history, now, width.into()));
    }

    fn close(&mut self) {
        restore_terminal();
        self.lines = 0;
    }
}

impl Chart {
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
pub fn restore_terminal() {
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
        let link = |name: &str, mbps| LinkNow { name: name.to_owned(), mbps };
        let now = Now {
            phase: Phase::Cut,
            at: Duration::from_millis(14_250),
            step: Duration::from_millis(250),
            received: 27.04,
            links: vec![link("link1", 0.0), link("link2", 29.6)],
        };
        assert_eq!(line(&now), " 14.2 s    27.0 Mbit/s  link1 0.0  link2 29.6  (bonded, link 1 silently cut)");
    }
}
