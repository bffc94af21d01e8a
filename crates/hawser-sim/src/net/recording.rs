//! A rate that changes as a list says, over and over: what a link was recorded to carry.
//!
//! 1. [`Recording::new`] takes steps, each a time and the rate meanwhile; after the last the first comes again.
//! 2. `at` begins it later, `scaled` makes it faster or slower.
//! 3. [`Recording::finish`] says when work is done that began at some moment, whatever the rate does meanwhile.
//!
//! Work is counted in bytes times the nanoseconds of a second, so that nothing is lost by rounding.

use hawser_core::units::{ByteCount, Rate, Time};
use std::sync::Arc;
use std::time::Duration;

/// Nanoseconds in a second: what a byte is worth in work.
pub const BYTE: u128 = 1_000_000_000;

/// A rate for a while. A plain value.
#[derive(Copy, Clone, Debug)]
struct Step {
    /// When it ends, from the start of the recording, ns.
    end: u64,
    rate: Rate,
}

/// A recorded rate. Begins at its start; shared by copying.
#[derive(Clone, Debug)]
pub struct Recording {
    steps: Arc<[Step]>,
    /// Where time zero lies in it, ns.
    offset: u64,
}

impl Recording {
    /// Of these steps; steps without a length are left out. `None` when nothing remains.
    pub fn new(steps: impl IntoIterator<Item = (Duration, Rate)>) -> Option<Self> {
        let mut end = 0;
        let filled = steps.into_iter().filter(|(length, _)| !length.is_zero());
        let steps: Arc<[Step]> = filled
            .map(|(length, rate)| {
                end += length.as_nanos() as u64;
                Step { end, rate }
            })
            .collect();
        (!steps.is_empty()).then_some(Recording { steps, offset: 0 })
    }

    /// The same, but time zero is so far in it.
    pub fn at(mut self, offset: Duration) -> Self {
        self.offset = offset.as_nanos() as u64 % self.length().as_nanos() as u64;
        self
    }

    /// The same at a multiple of the rate.
    pub fn scaled(self, factor: f64) -> Self {
        let steps = self.steps.iter().map(|step| Step { rate: step.rate.scale(factor), ..*step }).collect();
        Recording { steps, ..self }
    }

    /// How long it is until it begins again.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.steps[self.steps.len() - 1].end)
    }

    /// What it carries in the mean, over its whole length.
    pub fn mean(&self) -> Rate {
        let start = Time::ZERO;
        Rate::of(self.carries(start, start + self.length()), self.length())
    }

    /// The bytes it carries from one moment to another.
    pub fn carries(&self, from: Time, to: Time) -> ByteCount {
        ByteCount((self.work(from, to) / BYTE) as u64)
    }

    /// The same, as work.
    pub fn work(&self, from: Time, to: Time) -> u128 {
        let mut work = 0;
        for (rate, begin, end) in self.steps_from(from).take_while(|(_, begin, _)| *begin < to) {
            work += u128::from(rate.0) * end.min(to).since(begin).as_nanos();
        }
        work
    }

    /// When so much work is done; `Time::NEVER` where the recording carries nothing at all.
    pub fn finish(&self, from: Time, mut work: u128) -> Time {
        let mut idle = 0;
        for (rate, begin, end) in self.steps_from(from) {
            let possible = u128::from(rate.0) * end.since(begin).as_nanos();
            if possible >= work && rate != Rate::ZERO {
                let nanos = work.div_ceil(u128::from(rate.0));
                return begin + Duration::from_nanos(nanos as u64);
            }
            work -= possible.min(work);
            idle = if possible == 0 { idle + 1 } else { 0 };
            // A whole round of nothing: there is nothing in it.
            if idle > self.steps.len() {
                break;
            }
        }
        Time::NEVER
    }

    /// The steps from a moment on, for ever: rate, beginning, end.
    fn steps_from(&self, from: Time) -> impl Iterator<Item = (Rate, Time, Time)> + '_ {
        let length = self.length().as_nanos() as u64;
        let place = (from.as_nanos() + self.offset) % length;
        let first = self.steps.partition_point(|step| step.end <= place);
        // The moment at which this round of the recording began, counted from its own start.
        let round = from.as_nanos() + self.offset - place;
        let mut begin = from;
        (first..).map(move |index| {
            let (rounds, step) = (index / self.steps.len(), self.steps[index % self.steps.len()]);
            let end = Time::from_nanos(round + rounds as u64 * length + step.end - self.offset);
            (step.rate, std::mem::replace(&mut begin, end), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// A second each of 1000, 0 and 3000 bytes a second.
    fn three() -> Recording {
        let second = Duration::from_secs(1);
        Recording::new([(second, Rate(1_000)), (second, Rate(0)), (second, Rate(3_000))]).expect("three steps")
    }

    #[test]
    fn work_goes_on_from_step_to_step_and_waits_where_there_is_no_rate() {
        for (from, bytes, until) in
            [(0, 1_000, 1_000), (500, 500, 1_000), (500, 501, 2_001), (500, 3_500, 3_000), (2_500, 2_500, 4_000)]
        {
            let done = three().finish(ms(from), bytes * BYTE);
            let late = done.since(ms(until)) + ms(until).since(done);
            assert!(late < Duration::from_millis(1), "{bytes} bytes from {from} ms: {done:?}");
            assert!(three().carries(ms(from), done).0.abs_diff(bytes as u64) <= 1);
        }
    }

    #[test]
    fn an_offset_turns_it_and_a_factor_scales_it() {
        assert_eq!(three().mean(), Rate(1_333));
        let later = three().at(Duration::from_millis(5_500));
        assert_eq!(later.carries(ms(0), ms(500)), ByteCount(1_500));
        assert_eq!(later.carries(ms(500), ms(3_500)), ByteCount(4_000), "and goes round");
        assert_eq!(three().scaled(0.5).carries(ms(0), ms(3_000)), ByteCount(2_000));
    }

    #[test]
    fn nothing_at_all_never_ends() {
        let nothing = Recording::new([(Duration::from_secs(1), Rate(0))]).expect("a step");
        assert_eq!(nothing.finish(ms(1), BYTE), Time::NEVER);
        assert!(Recording::new([]).is_none());
    }
}
