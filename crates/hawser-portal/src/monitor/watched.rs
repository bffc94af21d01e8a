//! One path, watched: its rates over the last second, its condition, and what it did in the present second.

use std::collections::VecDeque;
use std::time::Duration;

use super::history::Row;
use super::judge::{Change, Judge, Sight};
use crate::api::{EventKind, PathStatus};

/// Rates are of this long: five reports.
const WINDOW: Duration = Duration::from_secs(1);
/// Bits in a byte, bits and microseconds in their larger units, parts in a million, and in a per cent.
const BITS: f64 = 8.0;
const BITS_PER_MBIT: f64 = 1e6;
const MICROS: f64 = 1_000.0;
const MILLION: f64 = 1e6;
const PPM_PER_CENT: f64 = 1e4;

/// Counters at one moment. Zero at first; plain data.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    at: Duration,
    rx: u64,
    tx: u64,
    acked: u64,
    lost: u64,
    retransmitted: u64,
    reinjected: u64,
}

impl Counters {
    fn of(at: Duration, path: &PathStatus) -> Self {
        let live = &path.live;
        Self {
            at,
            rx: path.rx_bytes,
            tx: path.tx_bytes,
            acked: live.acked_packets,
            lost: live.lost_packets,
            retransmitted: live.retransmitted_bytes,
            reinjected: live.reinjected_bytes,
        }
    }

    /// What came since; nothing where a counter began anew.
    fn since(&self, before: &Self) -> Self {
        Self {
            at: self.at.saturating_sub(before.at),
            rx: self.rx.saturating_sub(before.rx),
            tx: self.tx.saturating_sub(before.tx),
            acked: self.acked.saturating_sub(before.acked),
            lost: self.lost.saturating_sub(before.lost),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            reinjected: self.reinjected.saturating_sub(before.reinjected),
        }
    }

    fn bps(&self, bytes: u64) -> f64 {
        if self.at.is_zero() { 0.0 } else { bytes as f64 * BITS / self.at.as_secs_f64() }
    }
}

/// A path that is watched. Nothing is known at first; the monitor owns it.
#[derive(Debug, Default)]
pub struct Watched {
    /// Its number in the session when it was last seen.
    pub id: Option<u32>,
    endpoint: Option<String>,
    judge: Judge,
    window: VecDeque<Counters>,
    /// At the end of the last second.
    second: Counters,
}

impl Watched {
    /// Takes in a report, and writes what is seen of it into the path.
    pub fn look(&mut self, at: Duration, path: &mut PathStatus) -> Vec<Change> {
        let now = Counters::of(at, path);
        // A path with another number counts from zero.
        if self.id != path.live.id {
            self.id = path.live.id;
            self.window.clear();
            self.second = now;
        }
        let fresh = self.window.back().is_some_and(|last| now.acked > last.acked);
        self.window.push_back(now);
        while self.window.len() > 2 && at.saturating_sub(self.window[1].at) >= WINDOW {
            self.window.pop_front();
        }
        let passed = now.since(&self.window[0]);
        path.live.rx_mbps = passed.bps(passed.rx) / BITS_PER_MBIT;
        path.live.tx_mbps = passed.bps(passed.tx) / BITS_PER_MBIT;
        let mut changes: Vec<Change> = self.roaming(path).into_iter().collect();
        changes.extend(self.judge.look(&sight(at, path, fresh)));
        let (condition, since) = self.judge.condition();
        path.live.condition = condition;
        path.live.condition_s = at.saturating_sub(since).as_secs_f64();
        changes
    }

    /// The same path leads elsewhere.
    fn roaming(&mut self, path: &PathStatus) -> Option<Change> {
        let now = path.endpoint.clone()?;
        let before = self.endpoint.replace(now.clone())?;
        let cause = || format!("{before} became {now}");
        (before != now).then(|| Change { kind: EventKind::Roaming, cause: cause() })
    }

    /// The row of the second that is over.
    pub fn row(&mut self, path: &PathStatus) -> Row {
        let now = self.window.back().copied().unwrap_or_default();
        let passed = now.since(&std::mem::replace(&mut self.second, now));
        let outcomes = passed.acked + passed.lost;
        let loss = (outcomes > 0).then(|| passed.lost as f64 / outcomes as f64 * MILLION);
        let measured = path.rate_mbps > 0.0;
        [
            Some(passed.bps(passed.rx)),
            Some(passed.bps(passed.tx)),
            measured.then_some(path.rate_mbps * BITS_PER_MBIT),
            path.rtt_ms.map(|ms| ms * MICROS),
            path.live.queue_ms.map(|ms| ms * MICROS),
            loss,
            Some(passed.bps(passed.retransmitted)),
            Some(passed.bps(passed.reinjected)),
            Some(path.live.share_pct * PPM_PER_CENT),
        ]
        .map(|figure| figure.map(|figure| figure.max(0.0) as u64))
    }
}

fn sight(at: Duration, path: &PathStatus, fresh: bool) -> Sight<'_> {
    Sight {
        at,
        state: path.state,
        reason: path.reason.as_deref(),
        mbps: path.live.rx_mbps + path.live.tx_mbps,
        capacity_mbps: path.rate_mbps,
        rtt_ms: path.rtt_ms.unwrap_or(0.0),
        queue_ms: path.live.queue_ms.unwrap_or(0.0),
        rtt_min_ms: path.live.rtt_min_ms.unwrap_or(0.0),
        loss_pct: path.loss_pct,
        fresh,
    }
}
