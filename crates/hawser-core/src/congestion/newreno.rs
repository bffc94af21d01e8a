//! NewReno as RFC 9002 section 7 has it, with HyStart++ (RFC 9406) in the first slow start.
//!
//! 1. Slow start grows the window by what is acknowledged.
//! 2. A loss of a packet sent after the last reduction halves it, once a round trip.
//! 3. Congestion avoidance grows it by one packet a window.
//! 4. Persistent congestion falls to the minimum. A loss that was none is undone.

use super::hystart::HyStart;
use super::{
    AckEvent, Controller, LossEvent, MIN_WINDOW_PACKETS, PathSnapshot, initial_window, packets, window_pacing,
};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// What a loss leaves of the window (RFC 9002 section 7.3.2, kLossReductionFactor).
const LOSS_FACTOR: f64 = 0.5;

/// Window and threshold before the last reduction.
#[derive(Copy, Clone, Debug)]
struct Undo {
    window: ByteCount,
    threshold: ByteCount,
}

/// The NewReno controller. Starts in slow start with the initial window. One path owns it.
#[derive(Clone, Debug)]
pub struct NewReno {
    mtu: ByteCount,
    window: ByteCount,
    /// Slow start lasts while the window is below.
    threshold: ByteCount,
    /// Bytes acknowledged since the last growth in congestion avoidance.
    acked: ByteCount,
    /// When the last reduction was: losses and growth of what was sent before belong to it.
    reduced_at: Option<Time>,
    hystart: HyStart,
    undo: Option<Undo>,
    rtt: Option<Duration>,
}

impl NewReno {
    /// For a path with datagrams of at most `mtu` bytes.
    pub fn new(mtu: ByteCount) -> Self {
        NewReno {
            mtu,
            window: initial_window(mtu),
            threshold: ByteCount::MAX,
            acked: ByteCount::ZERO,
            reduced_at: None,
            hystart: HyStart::new(),
            undo: None,
            rtt: None,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn in_recovery(&self, sent_at: Time) -> bool {
        self.reduced_at.is_some_and(|at| sent_at <= at)
    }

    fn slow_start(&mut self, ack: &AckEvent) {
        if self.hystart.is_done() {
            self.window += ack.acked;
            return;
        }
        let grown = self.hystart.on_ack(ack.now, ack.largest_sent_at, ack.acked, ack.rtt.latest);
        self.window += grown;
        if self.hystart.is_done() {
            self.threshold = self.window;
        }
    }

    fn avoid_congestion(&mut self, acked: ByteCount) {
        self.acked += acked;
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window += self.mtu;
        }
    }

    fn reduce(&mut self, now: Time, sent_at: Time) {
        if self.in_recovery(sent_at) {
            return;
        }
        self.undo = Some(Undo { window: self.window, threshold: self.threshold });
        self.reduced_at = Some(now);
        self.hystart.stop();
        self.threshold = self.window.scale(LOSS_FACTOR).max(packets(MIN_WINDOW_PACKETS, self.mtu));
        self.window = self.threshold;
        self.acked = ByteCount::ZERO;
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, _now: Time, _bytes: ByteCount, _in_flight: ByteCount, _limited: bool) {}

    fn on_ack(&mut self, ack: &AckEvent, _siblings: &[PathSnapshot]) {
        self.rtt = Some(ack.rtt.smoothed);
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
            self.window = packets(MIN_WINDOW_PACKETS, self.mtu);
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
        self.window = self.window.max(packets(MIN_WINDOW_PACKETS, mtu));
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        let Some(undo) = self.undo.take() else { return };
        self.window = self.window.max(undo.window);
        self.threshold = self.threshold.max(undo.threshold);
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

    fn name(&self) -> &'static str {
        "newreno"
    }
}
