//! What a year was like.

use super::account::Totals;
use super::kind::KINDS;
use super::lines::LINES;
use std::time::Duration;

/// The gaps that calls had beside faults of one kind. Empty at first.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gaps {
    /// Of each fault that had a call and no other beside it: the longest time without a packet, in either direction, s.
    pub alone: Vec<f32>,
    /// The longest beside others.
    pub worst_beside_others: f32,
}

/// The faults of one kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OfKind {
    /// How many there were.
    pub faults: u64,
    /// How many of them had another one at the same time, up to ten seconds before or after.
    pub beside_others: u64,
    /// What calls felt of them.
    pub gaps: Gaps,
}

/// The bytes of idle hours by a line: IP packets, both ways.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Idle {
    /// By line, in the order of `lines::NAMES`.
    pub bytes: [u64; LINES.len()],
    /// How long.
    pub time: Duration,
}

/// A year, or some of it. Plain data.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// By kind, in the order of [`KINDS`].
    pub kinds: Vec<OfKind>,
    /// Inner packets, by the side that they were given to.
    pub packets: [Totals; 2],
    /// What each portal dropped, by reason.
    pub drops: [Vec<(&'static str, u64)>; 2],
    /// What each line's ways (up, down) dropped at their queues, lost and black-holed; datagrams damaged.
    pub lines: [[[u64; 4]; 2]; LINES.len()],
    /// Handshake messages that vanished by themselves.
    pub handshakes_lost: u64,
    /// Datagrams that somebody else made or repeated.
    pub hostile: u64,
    /// Datagrams of sessions, and paths under keys.
    pub sealed: (u64, u64),
    /// Times that nothing was under way, and the account was closed.
    pub rests: u64,
    /// Times that a line was whole while somebody called, and that was looked at.
    pub looks: u64,
    /// What nights without calls sent: all of them, and the minutes of them in which nothing was wrong, nor lately.
    pub idle: [Idle; 2],
    /// Live bytes on the heap each morning.
    pub memory: Vec<i64>,
    /// The most bytes that a portal's trains, and its resequencer, had at a look.
    pub most: [u64; 2],
}

impl Report {
    /// An empty one, with room for what `days` bring: what is measured must not grow.
    pub fn for_days(days: u64) -> Self {
        let room = |per_day: f64| ((per_day + 1.0) * days as f64 * 1.2) as usize + 100;
        let kinds = KINDS.iter().map(|row| {
            let gaps = Gaps { alone: Vec::with_capacity(room(row.per_day)), worst_beside_others: 0.0 };
            OfKind { gaps, ..OfKind::default() }
        });
        Report { kinds: kinds.collect(), memory: Vec::with_capacity(room(1.0)), ..Report::default() }
    }

    /// How many faults there were.
    pub fn faults(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.faults).sum()
    }

    /// By how many bytes a day memory grew, by least squares over all mornings; zero for fewer than two.
    pub fn slope(&self) -> f64 {
        let count = self.memory.len() as f64;
        let mean = |of: &dyn Fn(usize) -> f64| (0..self.memory.len()).map(of).sum::<f64>() / count.max(1.0);
        let (day, bytes) = (mean(&|day| day as f64), mean(&|day| self.memory[day] as f64));
        let shared = mean(&|at| (at as f64 - day) * (self.memory[at] as f64 - bytes));
        let spread = mean(&|at| (at as f64 - day).powi(2));
        if spread > 0.0 { shared / spread } else { 0.0 }
    }
}

impl Gaps {
    /// The longest, the median, and how many were longer than a second.
    pub fn summary(&self) -> (f32, f32, usize) {
        let mut sorted = self.alone.clone();
        sorted.sort_by(f32::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        (sorted.last().copied().unwrap_or(0.0), median, sorted.iter().filter(|gap| **gap > 1.0).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_found_and_gaps_are_summed_up() {
        let report = |memory: &[i64]| Report { memory: memory.to_vec(), ..Report::default() };
        assert_eq!(report(&[5, 5, 5, 5]).slope(), 0.0);
        assert_eq!(report(&[10, 13, 16, 19]).slope(), 3.0);
        assert_eq!(report(&[]).slope(), 0.0);
        let gaps = Gaps { alone: vec![0.1, 3.0, 0.2, 1.5, 0.04], worst_beside_others: 9.0 };
        assert_eq!(gaps.summary(), (3.0, 0.2, 2));
    }
}
