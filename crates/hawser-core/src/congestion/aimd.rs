//! The frame of every controller that adds and multiplies: NewReno, and LIA, OLIA and BALIA that are coupled.
//!
//! 1. Slow start grows the window by what is acknowledged, with HyStart++ (RFC 9406) the first time.
//! 2. A loss of a packet sent after the last reduction reduces the window, once a round trip.
//! 3. Congestion avoidance grows it by the law's gain a window.
//! 4. Persistent congestion falls to the minimum. A loss that was none is undone.
//!
//! What grows by how much, and what a loss leaves, is the [`Law`]'s.
//!
//! Slow start is each path's own, as RFC 6356 section 3 leaves it: paths that begin together double together, and so
//! overshoot a bottleneck that they share by what one flow would; each leaves as soon as it sees the queue that all
//! make. OLIA's draft lets paths beyond the first begin without it; a link that returns would take minutes to fill, so
//! here it does not.

use super::hystart::HyStart;
use super::{
    AckEvent, Controller, LossEvent, MIN_WINDOW_PACKETS, PathSnapshot, initial_window, packets, window_pacing,
};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// How a window moves once slow start is over. Begins as a path alone would be; its controller owns it.
pub(super) trait Law: Send {
    /// The configured name.
    const NAME: &'static str;
    /// Whether it looks at the paths beside its own.
    const COUPLED: bool;
    /// How its path stands, and those beside it.
    fn observe(&mut self, own: &PathSnapshot, siblings: &[PathSnapshot]);
    /// Packets that the window grows by while a whole window is acknowledged: 1 is NewReno's.
    fn gain(&self) -> f64;
    /// What a loss leaves of the window.
    fn leaves(&self) -> f64;
}

/// Windows acknowledged over which the usual one is averaged, at most: several ways from a loss to the next, of some
/// dozens of packets each, so that what is left of the sawtooth is no larger share of one path's window than of
/// another's.
const USUAL_WINDOWS: f64 = 256.0;

/// Bytes that arrived since the last loss, and between the two before it. Nothing at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
struct Delivered {
    since: ByteCount,
    before: ByteCount,
}

/// What the last reduction changed.
#[derive(Copy, Clone, Debug)]
struct Undo {
    window: ByteCount,
    threshold: ByteCount,
    before: ByteCount,
}

/// A controller that follows a law. Starts in slow start with the initial window. One path owns it.
#[derive(Clone, Debug)]
pub(super) struct Aimd<L> {
    law: L,
    mtu: ByteCount,
    window: ByteCount,
    /// The window's average since slow start, bytes; of late, once that is long ago.
    usual: f64,
    /// Windows acknowledged that went into it.
    averaged: f64,
    /// Slow start lasts while the window is below.
    threshold: ByteCount,
    /// Bytes acknowledged since the window last changed in congestion avoidance, times the gain.
    credit: f64,
    /// When the last reduction was: losses and growth of what was sent before belong to it.
    reduced_at: Option<Time>,
    hystart: HyStart,
    undo: Option<Undo>,
    delivered: Delivered,
    rtt: Option<Duration>,
}

impl<L: Law> Aimd<L> {
    /// For a path with datagrams of at most `mtu` bytes.
    pub(super) fn new(law: L, mtu: ByteCount) -> Self {
        Aimd {
            law,
            mtu,
            window: initial_window(mtu),
            usual: initial_window(mtu).0 as f64,
            averaged: 0.0,
            threshold: ByteCount::MAX,
            credit: 0.0,
            reduced_at: None,
            hystart: HyStart::new(),
            undo: None,
            delivered: Delivered::default(),
            rtt: None,
        }
    }

    fn least(&self) -> ByteCount {
        packets(MIN_WINDOW_PACKETS, self.mtu)
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn in_recovery(&self, sent_at: Time) -> bool {
        self.reduced_at.is_some_and(|at| sent_at <= at)
    }

    fn own(&self, rtt: Duration) -> PathSnapshot {
        let between_losses = self.delivered.since.max(self.delivered.before);
        PathSnapshot { window: self.window, usual: ByteCount(self.usual as u64), rtt, between_losses }
    }

    /// In slow start the window is what it is: nothing is usual yet.
    fn average(&mut self, acked: ByteCount) {
        let window = self.window.0 as f64;
        let windows = acked.0 as f64 / window;
        self.averaged = if self.in_slow_start() { windows } else { (self.averaged + windows).min(USUAL_WINDOWS) };
        self.usual += (window - self.usual) * (windows / self.averaged).min(1.0);
    }

    fn slow_start(&mut self, ack: &AckEvent) {
        if self.hystart.is_done() {
            self.window += ack.acked;
            return;
        }
        let grown = self.hystart.on_ack(ack.now, ack.largest_sent_at, ack.acked, ack.round_trip);
        self.window += grown;
        if self.hystart.is_done() {
            self.threshold = self.window;
        }
    }

    fn avoid_congestion(&mut self, acked: ByteCount) {
        self.credit += acked.0 as f64 * self.law.gain();
        let window = self.window.0 as f64;
        if self.credit >= window {
            self.credit -= window;
            self.window += self.mtu;
        } else if self.credit <= -window {
            // A coupled path makes room for a better one.
            self.credit += window;
            self.window = (self.window - self.mtu).max(self.least());
            self.threshold = self.threshold.min(self.window);
        }
    }

    fn reduce(&mut self, now: Time, sent_at: Time) {
        if self.in_recovery(sent_at) {
            return;
        }
        self.undo = Some(Undo { window: self.window, threshold: self.threshold, before: self.delivered.before });
        self.delivered = Delivered { since: ByteCount::ZERO, before: self.delivered.since };
        self.reduced_at = Some(now);
        self.hystart.stop();
        self.threshold = self.window.scale(self.law.leaves()).max(self.least());
        self.window = self.threshold;
        self.credit = 0.0;
    }
}

impl<L: Law> Controller for Aimd<L> {
    fn on_sent(&mut self, _now: Time, _bytes: ByteCount, _in_flight: ByteCount, _limited: bool) {}

    fn on_ack(&mut self, ack: &AckEvent, siblings: &[PathSnapshot]) {
        self.rtt = Some(ack.rtt.smoothed);
        self.delivered.since += ack.acked;
        self.average(ack.acked);
        self.law.observe(&self.own(ack.rtt.smoothed), siblings);
        if self.in_recovery(ack.largest_sent_at) || ack.app_limited {
            return;
        }
        if self.in_slow_start() {
            self.slow_start(ack);
        } else {
            self.avoid_congestion(ack.acked);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        self.reduce(loss.now, loss.largest_sent_at);
        if loss.persistent {
            self.window = self.least();
            self.reduced_at = None;
            self.undo = None;
        }
    }

    fn on_ecn(&mut self, now: Time, marked: u64, sent_at: Time) {
        if marked > 0 {
            self.reduce(now, sent_at);
            // A mark is never spurious.
            self.undo = None;
        }
    }

    fn on_mtu(&mut self, mtu: ByteCount) {
        self.mtu = mtu;
        self.window = self.window.max(self.least());
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        let Some(undo) = self.undo.take() else { return };
        self.window = self.window.max(undo.window);
        self.threshold = self.threshold.max(undo.threshold);
        self.delivered.since += std::mem::replace(&mut self.delivered.before, undo.before);
        self.reduced_at = None;
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let rtt = self.rtt?;
        Some(window_pacing(self.window, rtt, self.in_slow_start()))
    }

    fn bandwidth(&self) -> Option<Rate> {
        Some(Rate::of(self.window, self.rtt?))
    }

    fn coupling(&self) -> Option<PathSnapshot> {
        self.rtt.filter(|_| L::COUPLED).map(|rtt| self.own(rtt))
    }

    fn is_coupled(&self) -> bool {
        L::COUPLED
    }

    fn name(&self) -> &'static str {
        L::NAME
    }
}

#[cfg(test)]
#[path = "aimd_tests.rs"]
mod tests;
