//! How long goodput takes to come back after what happened to the links.
//!
//! 1. What it was is the mean over the second before the first event; what remained, the mean over the run's last second.
//! 2. It is back once the mean over the quarter second that follows is 90 % of the lesser of the two.
//! 3. After a handover, the longest time without a byte is how long it took.

use crate::experiment::{Findings, Line};
use crate::scenario::{Event, Happening};

/// The line that is read here: goodput in steps of 10 ms, which workloads give for this alone.
pub const FINE: &str = "goodput_fine_mbps";
/// Seconds before the first event, and at the end. Source: docs/scenarios.md, `recovery_ms`.
const BEFORE_S: f64 = 1.0;
/// Goodput that counts as back. Source: as above.
const BACK: f64 = 0.9;
/// Seconds over which it must be: longer than what a burst from a reordering buffer lasts.
const WINDOW_S: f64 = 0.25;
/// Milliseconds in a second.
const MILLI: f64 = 1e3;

/// Recovery and handover times, where events happened and the line is there.
pub fn recovery(line: Option<&Line>, events: &[Event]) -> Findings {
    let mut findings = Findings::default();
    let (Some(line), Some(first), Some(last)) = (line, events.first(), events.last()) else { return findings };
    let fine = Fine(line);
    if let Some(seconds) = fine.recovered_after(first.at.as_secs_f64(), last.at.as_secs_f64()) {
        findings.metrics.insert("recovery_ms".to_owned(), seconds * MILLI);
    }
    let handovers = events.iter().filter(|event| matches!(event.what, Happening::Handover { .. }));
    let gaps = handovers.map(|event| fine.longest_gap_after(event.at.as_secs_f64()) * MILLI);
    if let Some(longest) = gaps.reduce(f64::max) {
        findings.metrics.insert("handover_ms".to_owned(), longest);
    }
    findings
}

/// A line with questions that are asked in seconds.
struct Fine<'l>(&'l Line);

impl Fine<'_> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to the line's length")]
    fn index(&self, seconds: f64) -> usize {
        // What lies within a rounding error of a step's begin is in it.
        ((seconds / self.0.step_s + 1e-6).max(0.0) as usize).min(self.0.values.len())
    }

    #[expect(clippy::cast_precision_loss, reason = "steps of one run")]
    fn mean(&self, from: usize, to: usize) -> f64 {
        let values = &self.0.values[from.min(to)..to];
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    }

    /// Steps 1 and 2, in seconds; none where goodput did not come back.
    #[expect(clippy::cast_precision_loss, reason = "steps of one run")]
    fn recovered_after(&self, first: f64, last: f64) -> Option<f64> {
        let count = self.0.values.len();
        let was = self.mean(self.index(first - BEFORE_S), self.index(first));
        let remained = self.mean(count - self.index(BEFORE_S), count);
        let target = BACK * was.min(remained);
        let (from, wide) = (self.index(last), self.index(WINDOW_S).max(1));
        if target <= 0.0 || from + wide > count {
            return None;
        }
        let back = (from..=count - wide).find(|&at| self.mean(at, at + wide) >= target)?;
        Some((back - from) as f64 * self.0.step_s)
    }

    /// Step 3, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "steps of one run")]
    fn longest_gap_after(&self, at: f64) -> f64 {
        let runs = self.0.values[self.index(at)..].split(|&value| value > 0.0);
        runs.map(<[f64]>::len).max().unwrap_or(0) as f64 * self.0.step_s
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Rates, each for this many steps of 10 ms.
    fn line(parts: &[(f64, usize)]) -> Line {
        let values = parts.iter().flat_map(|&(rate, steps)| std::iter::repeat_n(rate, steps)).collect();
        Line { name: FINE.to_owned(), link: None, step_s: 0.01, values }
    }

    fn event(ms: u64, what: Happening) -> Event {
        Event { name: String::new(), at: Duration::from_millis(ms), link: "wifi".to_owned(), what }
    }

    fn found(line: &Line, events: &[Event], metric: &str) -> Option<f64> {
        recovery(Some(line), events).metrics.get(metric).copied().map(f64::round)
    }

    /// Name, rates with their steps, events, and the time expected.
    type Row<'a> = (&'a str, &'a [(f64, usize)], &'a [Event], Option<f64>);

    #[test]
    fn recovery_is_counted_from_the_last_event_to_what_was_or_what_remained() {
        let cut = || event(2000, Happening::Cut);
        let both = [cut(), event(4000, Happening::Restore)];
        let table: [Row<'_>; 7] = [
            ("all comes back", &[(10.0, 400), (0.0, 100), (10.0, 300)], &both, Some(980.0)),
            ("what remains is half", &[(10.0, 200), (0.0, 30), (5.0, 370)], &[cut()], Some(280.0)),
            ("nothing is lost", &[(10.0, 600)], &[cut()], Some(0.0)),
            ("nothing comes back", &[(10.0, 200), (0.0, 400)], &[cut()], None),
            ("nothing was there", &[(0.0, 200), (9.0, 400)], &[cut()], None),
            ("it ends before", &[(10.0, 150)], &[cut()], None),
            ("no events", &[(10.0, 600)], &[], None),
        ];
        for (name, parts, events, expected) in table {
            assert_eq!(found(&line(parts), events, "recovery_ms"), expected, "{name}");
        }
        assert!(recovery(None, &[cut()]).metrics.is_empty());
    }

    #[test]
    fn a_handover_takes_the_longest_time_without_a_byte() {
        let handover = |ms| event(ms, Happening::Handover { to: "eth".to_owned() });
        let line = line(&[(0.0, 90), (8.0, 110), (0.0, 12), (8.0, 100), (0.0, 40), (8.0, 100)]);
        let table: [(&[Event], Option<f64>); 4] = [
            (&[handover(2000)], Some(400.0)),
            (&[handover(3500)], Some(20.0)),
            (&[handover(2000), handover(3500)], Some(400.0)),
            (&[event(2000, Happening::Cut)], None),
        ];
        for (events, expected) in table {
            assert_eq!(found(&line, events, "handover_ms"), expected, "{events:?}");
        }
    }
}
