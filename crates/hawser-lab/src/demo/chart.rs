//! The demo's chart as lines of text.
//!
//! ```text
//!   80 ┤            ▂▃▅▇▇▇
//!   40 ┤ ▅▇▇▇▇▇▇▇▇▇▇██████
//!    0 └──────────────────
//!        1              2×     1 alone, 2 bonded, × cut, ↑ back
//! ```

use crossterm::style::Stylize;

use super::script::{CAPACITY_MBPS, SHOWN};
use super::view::{Now, Phase};

/// Columns of a terminal that does not tell.
pub(super) const USUAL_WIDTH: u16 = 80;
/// Rows of the bars.
const ROWS: usize = 10;
/// Columns beside the bars: the scale.
const SCALE: usize = 6;
/// The most columns the bars take.
const MOST_COLUMNS: usize = 100;
/// The fewest.
const FEWEST_COLUMNS: usize = 20;
/// Columns of a link's own bar at capacity.
const LINK_BAR: f64 = 40.0;
/// From empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The chart of all steps up to now, for a terminal of this many columns.
pub(super) fn lines(history: &[Now], now: &Now, width: usize) -> Vec<String> {
    let count = width.saturating_sub(SCALE + 1).clamp(FEWEST_COLUMNS, MOST_COLUMNS);
    let (columns, (words, ..)) = (columns(history, count), now.phase.look());
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

/// The mean rate and the last phase of each column that has begun.
fn columns(history: &[Now], count: usize) -> Vec<(f64, Phase)> {
    let mut columns: Vec<(f64, f64, Phase)> = Vec::new();
    for now in history {
        let middle = now.at.saturating_sub(now.step / 2);
        let column = ((middle.as_secs_f64() / SHOWN.as_secs_f64()) * count as f64) as usize;
        let column = column.min(count - 1);
        while columns.len() <= column {
            columns.push((0.0, 0.0, now.phase));
        }
        let seconds = now.step.as_secs_f64();
        let (bits, time, phase) = &mut columns[column];
        *bits += now.received * seconds;
        *time += seconds;
        *phase = now.phase;
    }
    columns.into_iter().map(|(bits, time, phase)| (if time > 0.0 { bits / time } else { 0.0 }, phase)).collect()
}

/// One row of the bars, the lowest being 0.
fn bars(columns: &[(f64, Phase)], row: usize) -> String {
    let per_row = CAPACITY_MBPS / ROWS as f64;
    let top = per_row * (row + 1) as f64;
    let scale = if row % 2 == 1 { format!("{top:4.0} ┤") } else { "     │".to_owned() };
    let cells = columns.iter().map(|&(mbps, phase)| {
        let eighths = ((mbps / per_row - row as f64) * 8.0).round().clamp(0.0, 8.0) as usize;
        EIGHTHS[eighths].to_string().with(phase.look().1).to_string()
    });
    scale + &cells.collect::<String>()
}

/// Below the axis: where a phase begins.
fn events(columns: &[(f64, Phase)]) -> String {
    let mut before = None;
    let mark = |&(_, phase): &(f64, Phase)| {
        let begins = before.replace(phase) != Some(phase);
        if begins { phase.look().2 } else { ' ' }
    };
    columns.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn now(at_ms: u64, received: f64, phase: Phase) -> Now {
        let links = vec![("link1".to_owned(), received)];
        Now { phase, at: Duration::from_millis(at_ms), step: Duration::from_millis(250), received, links }
    }

    /// Text as a reader sees it, without colours.
    fn plain(line: &str) -> String {
        let mut text = String::new();
        let mut inside = false;
        for c in line.chars() {
            match c {
                '\u{1b}' => inside = true,
                'm' if inside => inside = false,
                _ if !inside => text.push(c),
                _ => {}
            }
        }
        text
    }

    #[test]
    fn bars_are_as_high_as_what_was_received() {
        let history = [now(250, 40.0, Phase::Single), now(500, 80.0, Phase::Bonded)];
        let drawn: Vec<String> = lines(&history, &history[1], 107).iter().map(|line| plain(line)).collect();
        assert_eq!(drawn.len(), 1 + ROWS + 2 + 1);
        let heights: Vec<usize> = [SCALE, SCALE + 1]
            .map(|column| drawn[1..=ROWS].iter().filter(|line| line.chars().nth(column) == Some('█')).count())
            .into();
        let total = SHOWN.as_millis() as usize;
        // Steps of 250 ms fall into neighbouring columns of 100 where all takes 25 s.
        assert_eq!((heights, total), (vec![ROWS / 2, ROWS], 25_000));
        assert_eq!(drawn[ROWS + 2].trim_end(), "      12");
    }

    #[test]
    fn no_line_is_wider_than_a_usual_terminal() {
        let last = now(25_000, 80.0, Phase::Back);
        let history: Vec<Now> = (1..=100).map(|step| now(step * 250, 80.0, Phase::Bonded)).collect();
        for line in lines(&history, &last, USUAL_WIDTH.into()) {
            let line = plain(&line);
            assert!(line.chars().count() <= USUAL_WIDTH.into(), "{line}");
        }
    }
}
