//! Acknowledgements that come in lumps (Wi-Fi, LTE): the window must hold what is acknowledged at once.

use crate::tcp::rate::Sample;
use crate::tcp::window::View;
use hawser_core::units::Time;

/// Lumps are remembered for five to ten rounds.
const ROUNDS: u32 = 5;
/// The longest time at the rate that they count, s.
const MOST: f64 = 0.1;
/// The count of acknowledged segments begins anew here.
const RESET: u64 = 1 << 20;

/// How much more than the rate says was acknowledged at once. Nothing at first; its BBR owns it.
#[derive(Default)]
pub(super) struct Aggregation {
    most: [f64; 2],
    rounds: u32,
    which: usize,
    /// Segments acknowledged since then.
    epoch: (Time, u64),
}

impl Aggregation {
    /// An acknowledgement, while the rate is `rate` segments a second.
    pub fn learn(&mut self, view: &View<'_>, sample: &Sample, round_start: bool, rate: f64) {
        if sample.acked == 0 || sample.delivered.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                (self.rounds, self.which) = (0, 1 - self.which);
                self.most[self.which] = 0.0;
            }
        }
        let (began, acked) = &mut self.epoch;
        let now = view.sampler.delivered_at;
        let mut expected = rate * now.since(*began).as_secs_f64();
        if *acked as f64 <= expected || *acked >= RESET {
            (*began, *acked, expected) = (now, 0, 0.0);
        }
        *acked += u64::from(sample.acked);
        let more = (*acked as f64 - expected).min(f64::from(view.window.cwnd));
        self.most[self.which] = self.most[self.which].max(more);
    }

    /// The segments that the window holds for it.
    pub fn segments(&self, rate: f64) -> u32 {
        self.most[0].max(self.most[1]).min(rate * MOST) as u32
    }
}
