//! What is usual of a path, and what is unusual in a report.

use std::time::Duration;

use super::judge::Sight;
use crate::api::Condition;

/// Memories of what is usual: a rate follows demand, a capacity and a round trip are the link's.
const RATE_MEMORY: Duration = Duration::from_secs(5);
const CAPACITY_MEMORY: Duration = Duration::from_secs(10);
const RTT_MEMORY: Duration = Duration::from_secs(60);
/// While it is unusual the memory is this many times longer: what lasts for minutes becomes usual.
const SLOWLY: u32 = 6;

/// A rate or capacity below this says nothing, in Mbit/s.
const LEAST_MBPS: f64 = 0.5;
/// A path fades below this part of what is usual, and is well again above that.
const FADED: f64 = 0.5;
const UNFADED: f64 = 0.7;
/// A queue of this many milliseconds, and of the least round trip, is one that stands.
const QUEUE_MS: f64 = 50.0;
/// What is believed of its capacity says something where it carries this part of it.
const DEMAND: f64 = 0.4;
/// A path is degraded from this loss on, in per cent, and well again below that.
const LOSS_PCT: f64 = 2.0;
const LOSS_WELL_PCT: f64 = 1.0;
/// And from this many times its usual round trip and this many milliseconds.
const RTT_TIMES: f64 = 3.0;
const RTT_MORE_MS: f64 = 50.0;

/// What is usual of a path; nothing at first. Its judge owns it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usual {
    mbps: f64,
    capacity_mbps: f64,
    rtt_ms: f64,
    learnt: Option<Duration>,
}

/// What is unusual in a report. Plain value.
#[derive(Clone, Copy, Debug)]
pub struct Symptoms {
    /// It carries less than half of the usual, and packets wait for it.
    pub fades: bool,
    /// It loses more than it may.
    pub loses: bool,
    /// Its round trip is a multiple of the usual.
    pub waits: bool,
    /// None of that, with a margin.
    pub none: bool,
}

impl Usual {
    /// What is unusual in this report.
    pub fn symptoms(&self, sight: &Sight<'_>) -> Symptoms {
        let waits = |part: f64| {
            let (times, more) = (1.0 + (RTT_TIMES - 1.0) * part, RTT_MORE_MS * part);
            sight.fresh && self.rtt_ms > 0.0 && sight.rtt_ms > self.rtt_ms * times + more
        };
        Symptoms {
            fades: self.fades(sight, FADED),
            loses: sight.loss_pct >= LOSS_PCT,
            waits: waits(1.0),
            none: !self.fades(sight, UNFADED) && sight.loss_pct < LOSS_WELL_PCT && !waits(0.5),
        }
    }

    fn fades(&self, sight: &Sight<'_>, part: f64) -> bool {
        let stands = sight.fresh && sight.queue_ms >= QUEUE_MS.max(sight.rtt_min_ms);
        let less = self.mbps >= LEAST_MBPS && sight.mbps < self.mbps * part;
        let known = self.capacity_mbps >= LEAST_MBPS && sight.capacity_mbps > 0.0;
        let used = sight.fresh && sight.mbps > sight.capacity_mbps * DEMAND;
        less && stands || known && used && sight.capacity_mbps < self.capacity_mbps * part
    }

    /// What to say of a report that changes something.
    pub fn cause(&self, sight: &Sight<'_>, fades: bool, loses: bool) -> String {
        if fades {
            let usual = if self.mbps >= LEAST_MBPS { self.mbps } else { self.capacity_mbps };
            return format!("carries {:.1} of {usual:.1} Mbit/s, {:.0} ms of queue", sight.mbps, sight.queue_ms);
        }
        if loses {
            return format!("loses {:.1} % of its packets", sight.loss_pct);
        }
        format!("round trip {:.0} ms, usually {:.0} ms", sight.rtt_ms, self.rtt_ms)
    }

    /// Takes a report for usual, or little of it where the path is not well.
    pub fn learn(&mut self, sight: &Sight<'_>, condition: Condition) {
        let Some(before) = self.learnt.replace(sight.at) else {
            (self.mbps, self.capacity_mbps, self.rtt_ms) = (sight.mbps, sight.capacity_mbps, sight.rtt_ms);
            return;
        };
        let slowly = if condition == Condition::Well { 1 } else { SLOWLY };
        let passed = sight.at.saturating_sub(before).as_secs_f64();
        let blend = |usual: &mut f64, seen: f64, memory: Duration| {
            *usual += (seen - *usual) * (1.0 - (-passed / (memory * slowly).as_secs_f64()).exp());
        };
        blend(&mut self.mbps, sight.mbps, RATE_MEMORY);
        if sight.capacity_mbps > 0.0 {
            blend(&mut self.capacity_mbps, sight.capacity_mbps, CAPACITY_MEMORY);
        }
        if sight.fresh {
            blend(&mut self.rtt_ms, sight.rtt_ms, RTT_MEMORY);
        }
    }
}
