//! Who looks at the demo while it runs: a terminal, which has a chart, a file, or nobody.
//!
//! ```text
//!   80 ┤            ▂▃▅▇▇▇
//!   40 ┤ ▅▇▇▇▇▇▇▇▇▇▇██████
//!    0 └──────────────────
//!        1              2×     1 alone, 2 bonded, × cut, ↑ back
//! ```

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveToPreviousLine, Show};
use crossterm::style::{Color, Stylize};
use crossterm::terminal::{Clear, ClearType};
use crossterm::{execute, queue};

use super::{CAPACITY_MBPS, SHOWN, STEP};

/// Columns of a terminal that does not tell.
const USUAL_WIDTH: u16 = 80;
/// Rows of the bars.
const ROWS: usize = 10;
/// Columns beside the bars: the scale.
const SCALE: usize = 6;
/// The most columns that the bars take, as many as there are steps, and the fewest.
const MOST_COLUMNS: usize = 100;
const FEWEST_COLUMNS: usize = 20;
/// Columns of a link's own bar at capacity.
const LINK_BAR: f64 = 40.0;
/// From empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is going on. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    words: &'static str,
    /// Of its bars.
    color: Color,
    /// Below where it begins.
    mark: char,
}

pub(super) const SINGLE: Phase = Phase { words: "link 1 alone, no tunnel", color: Color::Blue, mark: '1' };
pub(super) const BONDED: Phase = Phase { words: "bonded", color: Color::Green, mark: '2' };
pub(super) const CUT: Phase = Phase { words: "bonded, link 1 silently cut", color: Color::Yellow, mark: '×' };
pub(super) const BACK: Phase = Phase { words: "bonded, link 1 back", color: Color::Green, mark: '↑' };

/// A step of the demo. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Now {
    pub phase: Phase,
    /// Time shown so far.
    pub at: Duration,
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
        let (mut history, mut drawn) = (Vec::new(), 0);
        return Box::new(move |now: &Now| {
            history.push(now.clone());
            let width = crossterm::terminal::size().map_or(USUAL_WIDTH, |(columns, _)| columns);
            let lines = chart(&history, now, width.into());
            // A terminal that is gone is no reason to stop.
            let _ = draw(&lines, drawn);
            drawn = u16::try_from(lines.len()).unwrap_or(0);
        });
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
    let (at, received, words) = (now.at.as_secs_f64(), now.received, now.phase.words);
    format!("{at:5.1} s  {received:6.1} Mbit/s  {}  ({words})", links.join("  "))
}

/// Draws lines in the place of those that were drawn before.
fn draw(lines: &[String], before: u16) -> io::Result<()> {
    let mut out = io::stdout().lock();
    queue!(out, Hide)?;
    if before > 0 {
        queue!(out, MoveToPreviousLine(before))?;
    }
    for line in lines {
        queue!(out, Clear(ClearType::CurrentLine))?;
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// Shows the cursor again, which a chart hides; harmless without one.
pub(crate) fn restore_terminal() {
    if io::stdout().is_terminal() {
        // A terminal that is gone needs no cursor.
        let _ = execute!(io::stdout(), Show);
    }
}

/// The chart of all steps up to now, for a terminal of this many columns.
fn chart(history: &[Now], now: &Now, width: usize) -> Vec<String> {
    let count = width.saturating_sub(SCALE + 1).clamp(FEWEST_COLUMNS, MOST_COLUMNS);
    let (columns, words) = (columns(history, count), now.phase.words);
    let mut lines = vec![format!("{:5.1} s   {:5.1} Mbit/s received   {words}", now.at.as_secs_f64(), now.received)];
    lines.extend((0..ROWS).rev().map(|row| bars(&columns, row)));
    lines.push(format!("   0 └{}", "─".repeat(count)));
    lines.push(format!("{:SCALE$}{}", "", events(&columns)));
    lines.extend(now.links.iter().map(|(name, mbps)| {
        let length = (mbps / CAPACITY_MBPS * LINK_BAR).round().clamp(0.0, LINK_BAR) as usize;
        format!("{name:>8}  {:<40}  {mbps:5.1} Mbit/s", "█".repeat(length))
    }));
    lines
}

/// The mean rate and the last phase of each column that has begun. Each has a step at least: there are no more columns.
fn columns(history: &[Now], count: usize) -> Vec<(f64, Phase)> {
    let column = |now: &Now| {
        let middle = now.at - STEP / 2;
        (middle.as_secs_f64() / SHOWN.as_secs_f64() * count as f64) as usize
    };
    let mean = |steps: &[Now]| steps.iter().map(|now| now.received).sum::<f64>() / steps.len() as f64;
    let chunks = history.chunk_by(|one, next| column(one) == column(next));
    chunks.map(|steps| (mean(steps), steps[steps.len() - 1].phase)).collect()
}

/// One row of the bars, the lowest being 0.
fn bars(columns: &[(f64, Phase)], row: usize) -> String {
    let per_row = CAPACITY_MBPS / ROWS as f64;
    let top = per_row * (row + 1) as f64;
    let scale = if row % 2 == 1 { format!("{top:4.0} ┤") } else { "     │".to_owned() };
    let cells = columns.iter().map(|&(mbps, phase)| {
        let eighths = ((mbps / per_row - row as f64) * 8.0).round().clamp(0.0, 8.0) as usize;
        EIGHTHS[eighths].to_string().with(phase.color).to_string()
    });
    scale + &cells.collect::<String>()
}

/// Below the axis: where a phase begins.
fn events(columns: &[(f64, Phase)]) -> String {
    let mut before = None;
    let mark = |&(_, phase): &(f64, Phase)| if before.replace(phase) == Some(phase) { ' ' } else { phase.mark };
    columns.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(at_ms: u64, received: f64, phase: Phase) -> Now {
        let links = vec![("link1".to_owned(), received)];
        Now { phase, at: Duration::from_millis(at_ms), received, links }
    }

    /// The chart as a reader sees it, without colours.
    fn plain(history: &[Now], now: &Now, width: usize) -> Vec<String> {
        let seen = |(number, part): (usize, &str)| match part.split_once('m') {
            Some((_, text)) if number > 0 => text.to_owned(),
            _ => part.to_owned(),
        };
        let lines = chart(history, now, width);
        lines.iter().map(|line| line.split('\u{1b}').enumerate().map(seen).collect()).collect()
    }

    #[test]
    fn bars_are_as_high_as_what_was_received() {
        let history = [now(250, 40.0, SINGLE), now(500, 80.0, BONDED)];
        let drawn = plain(&history, &history[1], 107);
        assert_eq!(drawn.len(), 1 + ROWS + 2 + 1);
        let heights = [SCALE, SCALE + 1]
            .map(|column| drawn[1..=ROWS].iter().filter(|line| line.chars().nth(column) == Some('█')).count());
        // Steps of 250 ms fall into neighbouring columns of 100 where all takes 25 s.
        assert_eq!((heights, SHOWN.as_secs()), ([ROWS / 2, ROWS], 25));
        assert_eq!(drawn[ROWS + 2].trim_end(), "      12");
    }

    #[test]
    fn no_line_is_wider_than_a_usual_terminal() {
        let history: Vec<Now> = (1..=100).map(|step| now(step * 250, 80.0, BONDED)).collect();
        for line in plain(&history, &now(25_000, 80.0, BACK), USUAL_WIDTH.into()) {
            assert!(line.chars().count() <= USUAL_WIDTH.into(), "{line}");
        }
    }

    #[test]
    fn a_line_tells_the_step() {
        let links = vec![("link1".to_owned(), 0.0), ("link2".to_owned(), 29.6)];
        let now = Now { links, ..now(14_250, 27.04, CUT) };
        assert_eq!(line(&now), " 14.2 s    27.0 Mbit/s  link1 0.0  link2 29.6  (bonded, link 1 silently cut)");
    }
}
