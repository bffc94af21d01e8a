//! HyStart as in Linux's CUBIC (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011): when slow start ends
//! before anything is lost.

use super::window::View;
use hawser_core::units::Time;
use std::time::Duration;

/// No smaller window ends it, segments.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements closer than this are one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Round trips that are looked at in each round.
const SAMPLES: u32 = 8;
/// A delay that grew by an eighth ends it, but at least by the first and at most by the second of these.
const DELAY_PART: u32 = 8;
const DELAY_LIMITS: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// One round of slow start. Its CUBIC owns it.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    began: Time,
    last: Time,
    round_end: u64,
    least: Option<Duration>,
    samples: u32,
    found: bool,
}

impl HyStart {
    /// A round begins.
    pub fn restart(&mut self, now: Time, nxt: u64) {
        (self.began, self.last, self.round_end) = (now, now, nxt);
        (self.least, self.samples) = (None, 0);
    }

    /// It may end slow start again.
    pub fn forget(&mut self) {
        self.found = false;
    }

    /// An acknowledgement, with the round trip of the newest; `least` of the connection.
    pub fn on_round_trip(&mut self, view: &mut View<'_>, rtt: Duration, least: Duration) {
        if self.found || !view.window.in_slow_start() || view.window.cwnd < LOW_WINDOW {
            return;
        }
        if view.una > self.round_end {
            self.restart(view.now, view.nxt);
        }
        // Linux adds what a super-packet takes at the pacing rate, and halves it all where nothing paces.
        let train = Duration::from_secs_f64((65_536.0 * 4.0 / view.window.pacing.max(1.0)).min(1e-3));
        if view.now.since(self.last) <= TRAIN_GAP {
            self.last = view.now;
            self.found |= view.now.since(self.began) > (least + train) / 2;
        }
        self.least = Some(self.least.map_or(rtt, |known| known.min(rtt)));
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let more = (least / DELAY_PART).clamp(DELAY_LIMITS.0, DELAY_LIMITS.1);
            self.found |= self.least.is_some_and(|delay| delay > least + more);
        }
        if self.found {
            view.window.ssthresh = view.window.cwnd;
        }
    }
}
