//! CUBIC (RFC 9438), with HyStart++ (RFC 9406) in the first slow start.
//!
//! 1. Slow start grows the window by what is acknowledged.
//! 2. A congestion event remembers where it was (less, when the maximum shrinks: fast
//!    convergence), and leaves 0.7 of the window.
//! 3. Congestion avoidance follows `C (t - K)^3 + W_max` of the time since: concave up to the
//!    remembered window, convex beyond it, and never below what Reno would have (Reno-friendly region).
//! 4. Time in which the sender did not fill the window does not count (RFC 9438 section 5.8).
//! 5. A loss that was none is undone (RFC 9438 section 4.9).

use super::hystart::HyStart;
use super::{AckEvent, Controller, LossEvent, MIN_WINDOW_PACKETS, PathSnapshot, initial_window, window_pacing};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Steepness of the cubic, in packets per second cubed (RFC 9438 section 4.1.1, `C`).
const C: f64 = 0.4;
/// What a congestion event leaves of the window (RFC 9438 section 4.6, beta_cubic).
const BETA: f64 = 0.7;
/// Packets the Reno-friendly window gains in a window of acknowledgements (RFC 9438 section 4.3, alpha_cubic).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The most a window may grow in one round trip (RFC 9438 section 4.2).
const TARGET_CAP: f64 = 1.5;

/// The course of one congestion avoidance, from a congestion event on; windows in packets.
#[derive(Copy, Clone, Debug)]
struct Epoch {
    start: Time,
    /// Seconds from the start until the window is back at `w_max`.
    k: f64,
    /// What Reno's window would be (RFC 9438 section 4.3).
    w_est: f64,
}

impl Epoch {
    fn new(start: Time, window: f64, w_max: f64) -> Self {
        Epoch { start, k: time_to_maximum(window, w_max), w_est: window }
    }
}

/// `K`: seconds that the cubic takes from `window` to `w_max`, in packets (RFC 9438 section 4.2).
fn time_to_maximum(window: f64, w_max: f64) -> f64 {
    ((w_max - window).max(0.0) / C).cbrt()
}

/// `W_cubic(t)` in packets, `t` and `k` in seconds (RFC 9438 section 4.2).
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    C * (t - k).powi(3) + w_max
}

/// Everything that a spurious congestion event must give back.
#[derive(Clone, Debug)]
struct Undo {
    window: f64,
    threshold: f64,
    w_max: f64,
    prior: f64,
    epoch: Option<Epoch>,
    hystart: HyStart,
}

/// The CUBIC controller. Starts in slow start with the initial window. One path owns it.
#[derive(Clone, Debug)]
pub struct Cubic {
    mtu: ByteCount,
    /// Packets; fractions count, or slow growth would be lost.
    window: f64,
    threshold: f64,
    w_max: f64,
    /// The window just before the last congestion event (RFC 9438 section 4.1.2, cwnd_prior).
    prior: f64,
    epoch: Option<Epoch>,
    /// Up to when the epoch's time is accounted.
    active_at: Time,
    reduced_at: Option<Time>,
    hystart: HyStart,
    undo: Option<Undo>,
    rtt: Option<Duration>,
}

impl Cubic {
    /// For a path with datagrams of at most `mtu` bytes.
    pub fn new(mtu: ByteCount) -> Self {
        Cubic {
            mtu,
            window: initial_window(mtu).0 as f64 / mtu.0 as f64,
            threshold: f64::INFINITY,
            w_max: 0.0,
            prior: 0.0,
            epoch: None,
            active_at: Time::ZERO,
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

    /// The time since it was last accounted does not belong to the epoch.
    fn skip_idle(&mut self, now: Time) {
        let idle = now.since(self.active_at);
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start + idle;
        }
        self.active_at = now;
    }

    fn slow_start(&mut self, ack: &AckEvent) {
        let was_done = self.hystart.is_done();
        let grown = if was_done {
            ack.acked
        } else {
            self.hystart.on_ack(ack.now, ack.largest_sent_at, ack.acked, ack.round_trip)
        };
        self.window += grown.0 as f64 / self.mtu.0 as f64;
        if !was_done && self.hystart.is_done() {
            self.threshold = self.window;
        }
    }

    fn avoid_congestion(&mut self, now: Time, acked: ByteCount, rtt: Duration) {
        let acked = acked.0 as f64 / self.mtu.0 as f64;
        let window = self.window;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                // Slow start ended without a loss, or after a timeout: the plateau is here.
                self.w_max = window;
                self.prior = window;
                Epoch::new(now, window, window)
            }
        };
        let t = now.since(epoch.start).as_secs_f64();
        let target = w_cubic(t + rtt.as_secs_f64(), epoch.k, self.w_max);
        let target = target.clamp(window, window * TARGET_CAP);
        // Once Reno is back where it was, it grows by a packet a window again.
        let alpha = if epoch.w_est < self.prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * acked / window;
        self.window = if w_cubic(t, epoch.k, self.w_max) < epoch.w_est {
            window.max(epoch.w_est)
        } else {
            window + (target - window) * acked / window
        };
        self.epoch = Some(epoch);
    }

    fn reduce(&mut self, now: Time, sent_at: Time) {
        if self.in_recovery(sent_at) {
            return;
        }
        self.undo = Some(Undo {
            window: self.window,
            threshold: self.threshold,
            w_max: self.w_max,
            prior: self.prior,
            epoch: self.epoch,
            hystart: self.hystart.clone(),
        });
        self.hystart.stop();
        self.reduced_at = Some(now);
        self.prior = self.window;
        // Fast convergence: a maximum that shrinks makes room for a newcomer (RFC 9438 section 4.7).
        self.w_max = if self.window < self.w_max { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.threshold = (self.window * BETA).max(MIN_WINDOW_PACKETS as f64);
        self.window = self.threshold;
        self.epoch = Some(Epoch::new(now, self.window, self.w_max));
        self.active_at = now;
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Time, bytes: ByteCount, in_flight: ByteCount, _limited: bool) {
        if in_flight == bytes {
            self.skip_idle(now);
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, _siblings: &[PathSnapshot]) {
        self.rtt = Some(ack.rtt.smoothed);
        if ack.app_limited {
            self.skip_idle(ack.now);
            return;
        }
        self.active_at = ack.now;
        if self.in_recovery(ack.largest_sent_at) {
            return;
        }
        if self.in_slow_start() {
            self.slow_start(ack);
        } else {
            self.avoid_congestion(ack.now, ack.acked, ack.rtt.smoothed);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        self.reduce(loss.now, loss.largest_sent_at);
        if loss.persistent {
            self.window = MIN_WINDOW_PACKETS as f64;
            self.epoch = None;
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
        let scale = self.mtu.0 as f64 / mtu.0 as f64;
        self.mtu = mtu;
        self.window = (self.window * scale).max(MIN_WINDOW_PACKETS as f64);
        self.threshold *= scale;
        self.w_max *= scale;
        self.prior *= scale;
        if let Some(epoch) = &mut self.epoch {
            epoch.w_est *= scale;
            epoch.k *= scale.cbrt();
        }
        self.undo = None;
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        let Some(undo) = self.undo.take() else { return };
        self.w_max = undo.w_max;
        self.prior = undo.prior;
        self.threshold = undo.threshold;
        self.epoch = undo.epoch;
        self.hystart = undo.hystart;
        self.window = self.window.max(undo.window);
        self.reduced_at = None;
    }

    fn window(&self) -> ByteCount {
        ByteCount((self.window * self.mtu.0 as f64) as u64)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(window_pacing(self.window(), self.rtt?, self.in_slow_start()))
    }

    fn bandwidth(&self) -> Option<Rate> {
        Some(Rate::of(self.window(), self.rtt?))
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
