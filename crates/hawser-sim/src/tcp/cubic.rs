//! CUBIC (RFC 9438) as in Linux, with HyStart.

use super::hystart::HyStart;
use super::rate::Sample;
use super::window::{Control, View, Window};
use hawser_core::units::Time;
use std::time::Duration;

/// The window after a loss, of that before (RFC 9438 section 4.6: 0.7).
const BETA: f64 = 717.0 / 1024.0;
/// RFC 9438 section 5.1, segments per s³.
const C: f64 = 0.4;
/// Reno's growth for this beta (RFC 9438 section 4.3), inverse: acknowledged windows per segment.
const RENO: f64 = (1.0 + BETA) / (3.0 * (1.0 - BETA));
/// The least time between two computations of the target, as long as the window is the same.
const EVERY: Duration = Duration::from_millis(31);
/// Without a known maximum, one segment for this number of acknowledged ones at the slowest.
const SLOWEST_UNKNOWN: f64 = 20.0;
/// Round trips right after a recovery say nothing of the path.
const AFTER_EPOCH: Duration = Duration::from_secs(1);

/// CUBIC's state. Nothing is known at first; its sender owns it.
#[derive(Debug, Default)]
pub struct Cubic {
    epoch: Option<Time>,
    last_max: f64,
    origin: f64,
    k: f64,
    last: Option<(u32, Time)>,
    every: u32,
    acked: f64,
    reno: f64,
    least: Option<Duration>,
    hystart: HyStart,
}

impl Cubic {
    /// Which acknowledged segments bring one more.
    fn update(&mut self, now: Time, cwnd: u32, acked: u32) {
        self.acked += f64::from(acked);
        if self.last.is_some_and(|(same, at)| same == cwnd && now.since(at) <= EVERY) {
            return;
        }
        self.last = Some((cwnd, now));
        let window = f64::from(cwnd);
        let began = *self.epoch.get_or_insert_with(|| {
            (self.acked, self.reno) = (f64::from(acked), window);
            (self.k, self.origin) = match self.last_max > window {
                true => (((self.last_max - window) / C).cbrt(), self.last_max),
                false => (0.0, window),
            };
            now
        });
        let since = now.since(began) + self.least.unwrap_or_default();
        let target = self.origin + C * (since.as_secs_f64() - self.k).powi(3);
        let mut every = if target > window { window / (target - window) } else { 100.0 * window };
        if self.last_max == 0.0 {
            every = every.min(SLOWEST_UNKNOWN);
        }
        let step = window * RENO;
        if self.acked > step {
            self.reno += (self.acked / step).floor();
            self.acked %= step;
        }
        if self.reno > window {
            every = every.min(window / (self.reno - window));
        }
        self.every = every.max(2.0) as u32;
    }
}

impl Control for Cubic {
    fn ssthresh(&mut self, view: &mut View<'_>) -> u32 {
        self.epoch = None;
        let window = f64::from(view.window.cwnd);
        // Fast convergence (RFC 9438 section 4.7).
        self.last_max = if window < self.last_max { window * (1.0 + BETA) / 2.0 } else { window };
        ((window * BETA) as u32).max(2)
    }

    fn undo(&mut self, view: &mut View<'_>) -> u32 {
        view.window.cwnd.max(view.window.prior_cwnd)
    }

    fn on_timeout(&mut self, view: &mut View<'_>) {
        *self = Cubic::default();
        self.hystart.restart(view.now, view.nxt);
    }

    fn on_round_trip(&mut self, view: &mut View<'_>, rtt: Duration) {
        if self.epoch.is_some_and(|epoch| view.now.since(epoch) < AFTER_EPOCH) {
            return;
        }
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        self.hystart.on_round_trip(view, rtt, least);
    }

    fn avoid(&mut self, view: &mut View<'_>, mut acked: u32) {
        if !view.window.may_grow() {
            return;
        }
        if view.window.in_slow_start() {
            acked = view.window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(view.now, view.window.cwnd, acked);
        view.window.grow(self.every, acked);
    }

    fn on_sample(&mut self, _: &mut View<'_>, _: &Sample) -> bool {
        false
    }

    fn rules_alone(&self) -> bool {
        false
    }

    fn least_train(&self, _: &Window) -> u32 {
        2
    }
}
