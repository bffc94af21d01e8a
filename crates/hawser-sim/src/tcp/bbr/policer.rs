//! Policers: where much is lost at the same rate twice, that rate is what is let through.

use crate::tcp::window::View;
use hawser_core::units::Time;

/// The least round trips of a stretch; four times as many are the most.
const ROUNDS: u32 = 4;
const ROUNDS_MOST: u32 = 16;
/// At least this share of what was delivered is lost (50 of 256).
const LOSS: f64 = 50.0 / 256.0;
/// Two stretches are of one rate when they differ by less than this share, or by this number of bytes a second.
const ALIKE: f64 = 0.125;
const ALIKE_BYTES: f64 = 500.0;
/// Round trips at a policer's rate, after which more is tried.
const KEPT: u32 = 48;

/// The detection of a policer. Nothing is known at first; its BBR owns it.
#[derive(Default)]
pub(super) struct Policer {
    sampling: bool,
    used: bool,
    rate: f64,
    rounds: u32,
    /// The stretch began then, with so much delivered and lost.
    began: (Time, u64, u64),
}

impl Policer {
    /// The rate that is let through, segments a second, if there is a policer.
    pub fn rate(&self) -> Option<f64> {
        self.used.then_some(self.rate)
    }

    /// There is none.
    pub fn forget(&mut self, view: &View<'_>) {
        (self.sampling, self.used, self.rate) = (false, false, 0.0);
        self.begin(view);
    }

    fn begin(&mut self, view: &View<'_>) {
        self.rounds = 0;
        self.began = (view.sampler.delivered_at, view.sampler.delivered, view.sampler.lost);
    }

    /// An acknowledgement. Says whether more is to be tried from now on.
    pub fn learn(&mut self, view: &View<'_>, lost: bool, app_limited: bool, round_start: bool, probing: bool) -> bool {
        if self.used {
            self.rounds += u32::from(probing && round_start);
            let over = self.rounds >= KEPT;
            if over {
                self.forget(view);
            }
            return over;
        }
        if !self.sampling {
            self.sampling = lost;
            self.begin(view);
        } else if app_limited || self.rounds > ROUNDS_MOST {
            self.forget(view);
        }
        if self.sampling {
            self.rounds += u32::from(round_start);
            if lost && self.rounds >= ROUNDS {
                self.end(view);
            }
        }
        false
    }

    /// A stretch ends with a loss.
    fn end(&mut self, view: &View<'_>) {
        let (at, delivered, lost) = self.began;
        let delivered = (view.sampler.delivered - delivered) as f64;
        let lost = (view.sampler.lost - lost) as f64;
        let seconds = view.sampler.delivered_at.since(at).as_secs_f64();
        if delivered == 0.0 || lost < LOSS * delivered || seconds < 1e-3 {
            return;
        }
        let rate = delivered / seconds;
        let apart = (rate - self.rate).abs();
        if self.rate > 0.0 && (apart <= ALIKE * self.rate || apart * f64::from(view.window.mss) <= ALIKE_BYTES) {
            (self.rate, self.used, self.rounds) = ((rate + self.rate) / 2.0, true, 0);
            return;
        }
        self.rate = rate;
        self.begin(view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::rate::Sampler;
    use crate::tcp::rtt::Rtt;
    use crate::tcp::window::{State, Window};
    use std::time::Duration;

    /// The rate found in forty round trips of 100 ms, each of which delivers 100 segments and loses `lost`.
    fn found(lost: u64) -> Option<f64> {
        let (mut policer, mut sampler) = (Policer::default(), Sampler::default());
        let (mut window, rtt, mut now) = (Window::new(1448), Rtt::default(), Time::ZERO);
        for _ in 0..40 {
            now = now + Duration::from_millis(100);
            sampler.delivered += 100;
            sampler.lost += lost;
            sampler.delivered_at = now;
            let (window, sampler) = (&mut window, &mut sampler);
            let view = View { now, window, rtt: &rtt, sampler, una: 0, nxt: 0, in_flight: 0, state: State::Open };
            policer.learn(&view, lost > 0, false, true, true);
        }
        policer.rate()
    }

    #[test]
    fn a_fifth_lost_at_a_steady_rate_is_a_policer_and_a_tenth_is_not() {
        let rate = found(30).expect("a policer");
        assert!((rate - 1_000.0).abs() < 1.0, "{rate} segments a second");
        assert_eq!((found(10), found(0)), (None, None));
    }
}
