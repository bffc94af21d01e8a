//! Rates by step: what a link carried in each second of a drive.
//!
//! 1. A step's rate flows evenly through it. It may be zero: then nothing leaves until it is more, and what waits,
//!    waits.
//! 2. `serve`: a packet has gone once its bits have flowed since it could start. Work is counted in billionths of a
//!    bit, so that packets one behind the other take exactly what the steps hold, whatever a nanosecond rounds.
//! 3. After the last step the first one comes again.

use std::sync::Arc;
use std::time::Duration;

use super::TraceError;

/// The highest rate of a step, bits a second: beyond, a packet's time rounds to nothing.
const MAX_RATE: f64 = 1e12;
/// Work of a byte: its bits, in billionths.
const BYTE_WORK: u128 = 8 * 1_000_000_000;
/// Bits a second in a Mbit/s.
const MEGABIT: f64 = 1e6;

/// Rates of steps of one length. At least one is above zero. Clones share one copy; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    step_ns: u64,
    /// Bits a second in each step.
    rates: Arc<[u64]>,
    /// Work until the end of each step.
    sums: Arc<[u128]>,
}

/// Where a replay is. Starts with nothing served; one owner.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// When the last packet was through.
    last: u64,
    /// Up to which work it was, to the billionth of a bit.
    done: u128,
}

impl Rates {
    /// Rates in Mbit/s, each for a step.
    pub(super) fn new(step: Duration, megabits: &[f64]) -> Result<Self, TraceError> {
        let rate = |(index, &megabits): (usize, &f64)| {
            let bits = (megabits * MEGABIT).round();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within its range")]
            let whole = (0.0..=MAX_RATE).contains(&bits).then_some(bits as u64);
            whole.ok_or(TraceError::NoRate { step: index + 1, megabits })
        };
        let rates = megabits.iter().enumerate().map(rate).collect::<Result<Vec<u64>, _>>()?;
        Self::of(u64::try_from(step.as_nanos()).unwrap_or(u64::MAX), rates)
    }

    fn of(step_ns: u64, rates: Vec<u64>) -> Result<Self, TraceError> {
        let add = |sum: &mut u128, rate: &u64| {
            *sum += u128::from(*rate) * u128::from(step_ns);
            Some(*sum)
        };
        let sums: Vec<u128> = rates.iter().scan(0, add).collect();
        match sums.last() {
            Some(1..) => Ok(Self { step_ns, rates: rates.into(), sums: sums.into() }),
            Some(0) | None => Err(TraceError::Nothing),
        }
    }

    /// Every rate times `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        #[expect(clippy::cast_precision_loss, reason = "a rate has fewer digits")]
        let scaled = |&rate: &u64| rate as f64 * factor;
        let scaled: Vec<f64> = self.rates.iter().map(scaled).collect();
        if !factor.is_finite() || factor <= 0.0 || scaled.iter().any(|&rate| rate > MAX_RATE) {
            return Err(TraceError::Scale { factor });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within its range")]
        let rates = scaled.iter().map(|rate| rate.round() as u64).collect();
        Self::of(self.step_ns, rates)
    }

    /// Nanoseconds until it repeats.
    pub(super) fn period(&self) -> u64 {
        self.step_ns * self.rates.len() as u64
    }

    /// Bits a second.
    #[expect(clippy::cast_precision_loss, reason = "a mean has fewer digits")]
    pub(super) fn mean(&self) -> f64 {
        self.total() as f64 / self.period() as f64
    }

    /// Whole bytes that have flowed before a time.
    pub(super) fn bytes_before(&self, nanos: u64) -> u64 {
        u64::try_from(self.work_until(nanos) / BYTE_WORK).unwrap_or(u64::MAX)
    }

    /// Work of a round.
    fn total(&self) -> u128 {
        self.sums.last().copied().unwrap_or_default()
    }

    /// Work of a round before one of its steps.
    fn work_before(&self, index: usize) -> u128 {
        index.checked_sub(1).map_or(0, |before| self.sums[before])
    }

    fn work_until(&self, nanos: u64) -> u128 {
        let (round, within) = (nanos / self.period(), nanos % self.period());
        let (index, rest) = (within / self.step_ns, within % self.step_ns);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        u128::from(round) * self.total() + self.work_before(index) + u128::from(self.rates[index]) * u128::from(rest)
    }

    /// The first nanosecond at which so much work has flowed, which is more than none.
    fn when(&self, work: u128) -> u64 {
        let (round, before) = ((work - 1) / self.total(), (work - 1) % self.total());
        // The step in which the last billionth of it flows: its rate is not zero.
        let index = self.sums.partition_point(|&sum| sum <= before);
        let rest = before + 1 - self.work_before(index);
        let within = rest.div_ceil(u128::from(self.rates[index]));
        let nanos = round * u128::from(self.period()) + u128::from(self.step_ns) * index as u128 + within;
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// When something flows, from then on.
    pub(super) fn next(&self, since: u64) -> u64 {
        let work = self.work_until(since);
        let (round, before) = (work / self.total(), work % self.total());
        let index = self.sums.partition_point(|&sum| sum <= before);
        let begins = round * u128::from(self.period()) + u128::from(self.step_ns) * index as u128;
        since.max(u64::try_from(begins).unwrap_or(u64::MAX))
    }

    /// Step 2: when a packet is through, which waits since then.
    pub(super) fn serve(&self, progress: &mut Progress, bytes: u32, since: u64) -> u64 {
        let begin = if since <= progress.last { progress.done } else { self.work_until(since) };
        let done = begin + (u128::from(bytes) * BYTE_WORK).max(1);
        *progress = Progress { last: self.when(done), done };
        progress.last
    }
}
