//! Loss at random or in bursts.

use super::dice::Dice;
use super::spec::Probability;

/// How packets get lost after the queue. None by default. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None is lost.
    #[default]
    None,
    /// Each with the same probability, independently.
    Random(Probability),
    /// In bursts.
    Bursts(GilbertElliott),
}

impl Loss {
    /// Independent loss in percent; None where it is not within 0 and 100.
    #[must_use]
    pub fn percent(percent: f64) -> Option<Self> {
        Probability::percent(percent).map(Self::Random)
    }
}

/// Gilbert's and Elliott's model: a good and a bad state, changing from packet to packet.
/// Starts good. Plain data. Source: E. O. Elliott, Bell System Technical Journal 42 (1963).
///
/// ```text
///            to_bad
///   ┌──────┐ ─────────► ┌─────┐
///   │ good │            │ bad │     loses: lost_in_good, lost_in_bad
///   └──────┘ ◄───────── └─────┘
///            to_good
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// From good to bad, per packet.
    pub to_bad: Probability,
    /// From bad to good, per packet: bursts last 1 / `to_good` packets on average.
    pub to_good: Probability,
    /// Loss while good.
    pub lost_in_good: Probability,
    /// Loss while bad.
    pub lost_in_bad: Probability,
}

/// The state of loss on one way. Starts good. One owner.
#[derive(Debug, Default)]
pub(crate) struct LossState {
    bad: bool,
}

impl LossState {
    /// Whether the next packet is lost.
    pub(crate) fn loses(&mut self, loss: Loss, dice: &mut Dice) -> bool {
        match loss {
            Loss::None => false,
            Loss::Random(probability) => dice.happens(probability),
            Loss::Bursts(model) => {
                let leave = if self.bad { model.to_good } else { model.to_bad };
                self.bad ^= dice.happens(leave);
                dice.happens(if self.bad { model.lost_in_bad } else { model.lost_in_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(fraction: f64) -> Probability {
        Probability::new(fraction).expect("a probability")
    }

    #[test]
    fn bursts_have_the_models_mean_loss_and_length() {
        let model = GilbertElliott {
            to_bad: p(0.01),
            to_good: p(0.25),
            lost_in_good: Probability::NEVER,
            lost_in_bad: Probability::ALWAYS,
        };
        let (mut state, mut dice) = (LossState::default(), Dice::new(7));
        let fates: Vec<bool> = (0..200_000).map(|_| state.loses(Loss::Bursts(model), &mut dice)).collect();
        let lost = fates.iter().filter(|&&lost| lost).count();
        let bursts = fates.windows(2).filter(|pair| pair[1] && !pair[0]).count();
        let share = lost as f64 / fates.len() as f64;
        let length = lost as f64 / bursts as f64;
        assert!((share - 0.01 / 0.26).abs() < 0.004, "lost {share}");
        assert!((length - 4.0).abs() < 0.25, "burst length {length}");
    }

    #[test]
    fn every_arrow_of_the_model_is_walked() {
        let model = GilbertElliott {
            to_bad: Probability::ALWAYS,
            to_good: Probability::ALWAYS,
            lost_in_good: Probability::NEVER,
            lost_in_bad: Probability::ALWAYS,
        };
        let (mut state, mut dice) = (LossState::default(), Dice::new(1));
        let fates: Vec<bool> = (0..4).map(|_| state.loses(Loss::Bursts(model), &mut dice)).collect();
        assert_eq!(fates, [true, false, true, false]);
    }
}
