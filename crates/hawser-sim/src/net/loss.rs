//! Which datagrams a link loses.

use crate::random::Seeded;

/// How a link loses. Nothing by default. A plain value.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum Loss {
    /// Nothing.
    #[default]
    None,
    /// Each datagram with this probability.
    Random(f64),
    /// Gilbert-Elliott: with probability `enter` a bad spell begins at a datagram, with `leave` it
    /// ends, and all that is sent within is lost.
    Bursts {
        /// From good to bad, per datagram.
        enter: f64,
        /// From bad to good, per datagram.
        leave: f64,
    },
}

/// Where a Gilbert-Elliott chain stands. Good at first; one direction of a link owns it.
#[derive(Default)]
pub struct LossState {
    bad: bool,
}

impl LossState {
    /// Whether the next datagram is lost.
    pub fn loses(&mut self, loss: Loss, rng: &mut Seeded) -> bool {
        match loss {
            Loss::None => false,
            Loss::Random(share) => rng.chance(share),
            Loss::Bursts { enter, leave } => {
                self.bad = if self.bad { !rng.chance(leave) } else { rng.chance(enter) };
                self.bad
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_lose_as_much_and_for_as_long_as_they_say() {
        let (mut state, mut rng) = (LossState::default(), Seeded::new(3));
        let loss = Loss::Bursts { enter: 0.01, leave: 0.25 };
        let (mut lost, mut bursts, mut before) = (0, 0, false);
        for _ in 0..200_000 {
            let now = state.loses(loss, &mut rng);
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        // Share: enter / (enter + leave) = 3.8 %; length: 1 / leave = 4.
        assert!((6_900..8_500).contains(&lost), "{lost} lost");
        let length = f64::from(lost) / f64::from(bursts);
        assert!((3.6..4.4).contains(&length), "bursts of {length}");
    }
}
