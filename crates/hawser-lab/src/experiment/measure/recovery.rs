//! How long goodput takes to come back after what happened to the links.
//!
//! 1. What it was is the mean over the second before the first event; what remained, the mean over the run's last
//!    second.
//! 2. It is back once the mean over the quarter second that follows is 90 % of the lesser of the two.
//! 3. After a handover, the longest time without a byte is how long it took.
//! 4. Between the first event and the last, and from there on: the longest time without a byte, and pings that were
//!    lost.
//! 5. After each event: goodput once there was time to adapt. After the last: when a second brings what two brought
//!    before.

use crate::experiment::{Findings, Line};
use crate::scenario::{Event, Happening};

/// The line that is read here: goodput in steps of 10 ms, which workloads give for this alone.
pub const FINE: &str = "goodput_fine_mbps";
/// The line of pings lost, which a ping gives for this alone.
pub const LOST: &str = "ping_lost_fine";
/// Milliseconds in a second.
const MILLI: f64 = 1e3;
/// Seconds before the first event, and at the end. Source: docs/scenarios.md, `recovery_ms`.
const BEFORE_S: f64 = 1.0;
/// Goodput that counts as back. Source: as above.
const BACK: f64 = 0.9;
/// Seconds over which it must be: longer than what a burst from a reordering buffer lasts.
const WINDOW_S: f64 = 0.25;
/// Goodput that counts as what it was, the seconds over which it must be, and those that it is held against. Source: as
/// above.
const WHOLE: f64 = 0.95;
const WHOLE_S: f64 = 1.0;
const WAS_S: f64 = 2.0;
/// After an event there is so much time to adapt; goodput is that of the second which follows. Source: as above.
const ADAPTED_S: f64 = 3.0;
/// A ping that was on its way as something happened was sent this long before: a round trip and a full queue.
const ON_ITS_WAY_S: f64 = 0.12;

/// Step 4, of pings, where events happened.
pub fn lost(line: Option<&Line>, events: &[Event]) -> Findings {
    let mut findings = Findings::default();
    let (Some(line), Some(first), Some(last)) = (line, events.first(), events.last()) else { return findings };
    let (first, last) = (line.index(first.at.as_secs_f64() - ON_ITS_WAY_S), line.index(last.at.as_secs_f64()));
    let sum = |from: usize, to: usize| line.values[from..to.max(from)].iter().sum::<f64>();
    findings.put("lost_pings", sum(first, last));
    findings.put("lost_pings_back", sum(last, line.values.len()));
    findings
}

/// Steps 1 to 5, of goodput, where events happened and the line is there.
pub fn recovery(line: Option<&Line>, events: &[Event]) -> Findings {
    let mut findings = Findings::default();
    let (Some(line), Some(first), Some(last)) = (line, events.first(), events.last()) else { return findings };
    let away = last.at.saturating_sub(first.at).as_secs_f64();
    let [first, last] = [first, last].map(|event| event.at.as_secs_f64());
    let end = line.values.len() as f64 * line.step_s;
    let until = if events.len() > 1 { last } else { end };
    let recovered = line.recovered_after(first, last);
    let handovers = events.iter().filter(|event| matches!(event.what, Happening::Handover { .. }));
    let gaps = handovers.map(|event| line.longest_gap(event.at.as_secs_f64(), f64::INFINITY));
    let is_told = first > WAS_S && end > last;
    let figures = [
        ("recovery_ms", recovered),
        ("outage_ms", recovered.map(|seconds| away + seconds)),
        ("handover_ms", gaps.reduce(f64::max)),
        ("gap_ms", is_told.then(|| line.longest_gap(first, until))),
        ("gap_back_ms", is_told.then(|| line.longest_gap(last, end))),
        ("back_ms", is_told.then(|| line.back_after(first, last))),
    ];
    figures.iter().for_each(|(name, seconds)| findings.put_some(name, seconds.map(|seconds| seconds * MILLI)));
    for event in events {
        let from = event.at.as_secs_f64() + ADAPTED_S;
        if from + 1.0 <= end {
            findings.put(format!("then_{}_mbps", event.name), line.mean(line.index(from), line.index(from + 1.0)));
        }
    }
    findings
}

/// Questions that are asked in seconds.
impl Line {
    fn index(&self, seconds: f64) -> usize {
        // What lies within a rounding error of a step's begin is in it.
        ((seconds / self.step_s + 1e-6).max(0.0) as usize).min(self.values.len())
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        let values = &self.values[from.min(to)..to];
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    }

    /// Steps 1 and 2, in seconds; none where goodput did not come back.
    fn recovered_after(&self, first: f64, last: f64) -> Option<f64> {
        let count = self.values.len();
        let was = self.mean(self.index(first - BEFORE_S), self.index(first));
        let remained = self.mean(count - self.index(BEFORE_S), count);
        let target = Some(BACK * was.min(remained)).filter(|&target| target > 0.0)?;
        let from = self.index(last);
        Some((self.reached(from, self.index(WINDOW_S).max(1), target)? - from) as f64 * self.step_s)
    }

    /// Where a mean over this many steps is first so much; none where it never is.
    fn reached(&self, from: usize, wide: usize, target: f64) -> Option<usize> {
        (from..=self.values.len().checked_sub(wide)?).find(|&at| self.mean(at, at + wide) >= target)
    }

    /// Step 3, in seconds.
    fn longest_gap(&self, from: f64, to: f64) -> f64 {
        let runs = self.values[self.index(from)..self.index(to)].split(|&value| value > 0.0);
        runs.map(<[f64]>::len).max().unwrap_or(0) as f64 * self.step_s
    }

    /// Step 5, in seconds from the last event on; the rest of the run where it never is.
    fn back_after(&self, first: f64, last: f64) -> f64 {
        let target = WHOLE * self.mean(self.index(first - WAS_S), self.index(first));
        let from = self.index(last);
        let back = self.reached(from, self.index(WHOLE_S), target);
        (back.unwrap_or(self.values.len()) - from) as f64 * self.step_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::event;

    /// Rates, each for this many steps of 10 ms.
    fn line(parts: &[(f64, usize)]) -> Line {
        let values = parts.iter().flat_map(|&(rate, steps)| std::iter::repeat_n(rate, steps)).collect();
        Line { name: FINE.to_owned(), link: None, step_s: 0.01, values }
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
            let away = if events.len() > 1 { 2000.0 } else { 0.0 };
            assert_eq!(found(&line(parts), events, "outage_ms"), expected.map(|ms| ms + away), "{name}");
        }
        assert!(recovery(None, &[cut()]).metrics.is_empty());
    }

    #[test]
    fn gaps_and_the_way_back_are_told_apart_at_the_last_event() {
        let both = [event(3000, Happening::BlackHole), event(5000, Happening::Restore)];
        // Half of it from 3.08 s on, after a gap; from 5.44 s on a second has 95 % of all, a gap in it.
        let parts = [(10.0, 300), (0.0, 8), (5.0, 242), (0.0, 2), (10.0, 248)];
        let of = |metric: &str| found(&line(&parts), &both, metric);
        assert_eq!([of("gap_ms"), of("gap_back_ms"), of("back_ms")], [Some(80.0), Some(20.0), Some(440.0)]);
        assert_eq!(found(&line(&[(10.0, 300), (5.0, 500)]), &both, "back_ms"), Some(3000.0), "never");
        let named = |name: &str, event: Event| Event { name: name.to_owned(), ..event };
        let events = [named("lost", both[0].clone()), named("late", both[1].clone())];
        assert_eq!(found(&line(&[(10.0, 600), (5.0, 200)]), &events, "then_lost_mbps"), Some(5.0));
        assert_eq!(found(&line(&[(10.0, 800)]), &events, "then_late_mbps"), None, "the run ends before");
    }

    #[test]
    fn lost_pings_are_counted_from_just_before_the_first_event() {
        let both = [event(1000, Happening::BlackHole), event(2000, Happening::Restore)];
        let line = line(&[(1.0, 10), (0.0, 80), (1.0, 3), (0.0, 150), (1.0, 2)]);
        let metrics = lost(Some(&line), &both).metrics;
        assert_eq!((metrics["lost_pings"], metrics["lost_pings_back"]), (3.0, 2.0));
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
