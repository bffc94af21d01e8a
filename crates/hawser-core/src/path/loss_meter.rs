//! The share of packets that a path loses, smoothed.

/// Weight of one packet: the meter forgets over about so many packets.
const MEMORY_PACKETS: f64 = 1_000.0;

/// A moving average of loss. Zero at first; one path owns it.
#[derive(Copy, Clone, Debug, Default)]
pub struct LossMeter {
    share: f64,
}

impl LossMeter {
    /// A packet arrived.
    pub fn on_acked(&mut self) {
        self.share -= self.share / MEMORY_PACKETS;
    }

    /// A packet was lost.
    pub fn on_lost(&mut self) {
        self.share += (1.0 - self.share) / MEMORY_PACKETS;
    }

    /// The share, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loss_in_a_hundred_is_one_per_cent() {
        let mut meter = LossMeter::default();
        for packet in 0..20_000 {
            if packet % 100 == 0 { meter.on_lost() } else { meter.on_acked() }
        }
        assert!((meter.share() - 0.01).abs() < 0.001, "{}", meter.share());
    }
}
