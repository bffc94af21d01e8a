//! Recorded links: what one could carry when.
//!
//! 1. [`Trace::parse`]: delivery opportunities in the format of mahimahi (`opportunities`).
//! 2. [`Trace::rates`]: a rate by step, as [`Recording`] has them for several links of a drive (`rates`, `recording`).
//! 3. [`Trace::scaled`] gives each more or less, [`Trace::from_offset`] begins in its midst. At its end it begins
//!    again.
//! 4. `Replay`: one way follows it, packet by packet.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use super::spec::Rate;
use crate::clock::Moment;

mod opportunities;
mod rates;
mod recording;

use opportunities::Opportunities;
use rates::Rates;
pub use recording::Recording;

/// Bits a second in a Mbit/s.
const MEGABIT: f64 = 1e6;

/// What a link could carry over time; it repeats. Never without anything. Clones share one copy; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    kind: Kind,
    /// Where a replay begins.
    offset_ns: u64,
}

/// How it was recorded. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Opportunities(Opportunities),
    Rates(Rates),
}

/// Why a trace cannot be used. Plain data.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("read trace {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A line is no whole number of milliseconds.
    #[error("read trace, line {line}: {text:?} is no whole number of milliseconds up to {}", u32::MAX)]
    NoNumber {
        /// From 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line lies before the one above it.
    #[error("read trace, line {line}: {millis} ms is before the line above it")]
    Backwards {
        /// From 1.
        line: usize,
        /// What stands there.
        millis: u32,
    },
    /// There is no line, or none after 0 ms.
    #[error("read trace: it has no opportunity after 0 ms, so that it cannot repeat")]
    NoLength,
    /// There are no steps, or all are zero.
    #[error("read trace: it carries nothing at all")]
    Nothing,
    /// A step's rate is no rate.
    #[error("read trace, step {step}: {megabits} Mbit/s is no rate from 0 to 1 Tbit/s")]
    NoRate {
        /// From 1.
        step: usize,
        /// What stands there.
        megabits: f64,
    },
    /// Nothing would be left of it, or too much.
    #[error("scale trace: {factor} times it is no rate of a link")]
    Scale {
        /// As was asked.
        factor: f64,
    },
    /// The first line does not say what stands below.
    #[error("read drives, line 1: needs columns `second` and one for each link")]
    NoColumns,
    /// A row is too short or too long.
    #[error("read drives, line {line}: {cells} cells below {columns} columns")]
    Cells {
        /// From 1.
        line: usize,
        /// Cells of this line.
        cells: usize,
        /// As the first line has.
        columns: usize,
    },
    /// A cell is no number.
    #[error("read drives, line {line}: {text:?} is no number from 0 on")]
    Cell {
        /// From 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A drive's rows do not stand together.
    #[error("read drives, line {line}: drive {drive:?} has rows further up")]
    Scattered {
        /// From 1.
        line: usize,
        /// Which.
        drive: String,
    },
    /// A drive's seconds are no steps.
    #[error("read drives: the seconds of drive {drive:?} do not go up in equal steps")]
    Steps {
        /// Which.
        drive: String,
    },
    /// There is no such drive or link.
    #[error("find a drive's link: there is no {what} {name:?}, but: {known}")]
    None {
        /// A drive or a link.
        what: &'static str,
        /// As was asked.
        name: String,
        /// What there is.
        known: String,
    },
}

impl Trace {
    /// Step 1. Empty lines at the end are passed over.
    ///
    /// # Errors
    /// Where a line is no number or goes back, or all of it takes no time.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        Ok(Self { kind: Kind::Opportunities(Opportunities::parse(text)?), offset_ns: 0 })
    }

    /// Step 2: a rate in Mbit/s for each step; some may be zero.
    ///
    /// # Errors
    /// Where a rate is none, or all are zero.
    pub fn rates(step: Duration, megabits: &[f64]) -> Result<Self, TraceError> {
        Ok(Self { kind: Kind::Rates(Rates::new(step, megabits)?), offset_ns: 0 })
    }

    /// Reads a file in mahimahi's format.
    ///
    /// # Errors
    /// Where there is none, or [`Trace::parse`] refuses it.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let text =
            fs::read_to_string(path).map_err(|source| TraceError::Read { path: path.display().to_string(), source })?;
        Self::parse(&text)
    }

    /// Step 3: `factor` times as much, at every moment.
    ///
    /// # Errors
    /// Where nothing would be left, or more than 1 Tbit/s.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        let kind = match &self.kind {
            Kind::Opportunities(all) => Kind::Opportunities(all.scaled(factor)?),
            Kind::Rates(rates) => Kind::Rates(rates.scaled(factor)?),
        };
        Ok(Self { kind, ..*self })
    }

    /// Step 3: the same, begun so far after its start. Mean rate and length stay those of the whole.
    #[must_use]
    pub fn from_offset(self, offset: Duration) -> Self {
        let offset_ns = u64::try_from(offset.as_nanos() % u128::from(self.period())).unwrap_or_default();
        Self { offset_ns, ..self }
    }

    /// How long until it repeats.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.period())
    }

    /// What all of it delivers at most, on average, wherever it begins.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let bits = match &self.kind {
            Kind::Opportunities(all) => all.mean(),
            Kind::Rates(rates) => rates.mean(),
        };
        Rate::mbit(bits / MEGABIT)
    }

    /// How many bytes it holds between two times, counted from where it begins.
    #[must_use]
    pub fn bytes_between(&self, from: Duration, until: Duration) -> u64 {
        let before = |time: Duration| {
            let nanos = self.offset_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            match &self.kind {
                Kind::Opportunities(all) => all.bytes_before(nanos),
                Kind::Rates(rates) => rates.bytes_before(nanos),
            }
        };
        before(until).saturating_sub(before(from))
    }

    fn period(&self) -> u64 {
        match &self.kind {
            Kind::Opportunities(all) => all.period(),
            Kind::Rates(rates) => rates.period(),
        }
    }
}

/// Where one way is in its trace. Starts at a moment, before anything was delivered. One owner: the way.
#[derive(Debug)]
pub(crate) struct Replay {
    start: Moment,
    /// Of a trace of opportunities, once a packet went.
    opportunity: Option<opportunities::Progress>,
    /// Of a trace of rates.
    served: rates::Progress,
}

impl Replay {
    /// A trace begins at a moment.
    pub(crate) fn new(start: Moment) -> Self {
        Self { start, opportunity: None, served: rates::Progress::default() }
    }

    /// When a packet that waits since then may begin to go.
    pub(crate) fn next(&self, trace: &Trace, waits: Moment) -> Moment {
        let since = self.since(trace, waits);
        let nanos = match &trace.kind {
            Kind::Opportunities(all) => all.next(self.opportunity.unwrap_or(all.begin()), since),
            Kind::Rates(rates) => rates.next(since),
        };
        self.moment(trace, nanos)
    }

    /// Step 4: when a packet is through, which waits since `waits` (never before this trace began).
    pub(crate) fn serve(&mut self, trace: &Trace, bytes: u32, waits: Moment) -> Moment {
        let since = self.since(trace, waits);
        let nanos = match &trace.kind {
            Kind::Opportunities(all) => all.serve(self.opportunity.get_or_insert(all.begin()), bytes, since),
            Kind::Rates(rates) => rates.serve(&mut self.served, bytes, since),
        };
        self.moment(trace, nanos)
    }

    /// A moment as a time of the trace.
    fn since(&self, trace: &Trace, moment: Moment) -> u64 {
        trace.offset_ns + u64::try_from((moment - self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    fn moment(&self, trace: &Trace, nanos: u64) -> Moment {
        self.start + Duration::from_nanos(nanos - trace.offset_ns)
    }
}

#[cfg(test)]
mod tests;
