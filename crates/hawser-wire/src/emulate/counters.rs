//! What one way of a link counted.

use std::time::Duration;

/// What one way of a link counted since it was made, and what waits now. Starts at zero.
/// Every packet in is out, dropped, lost or still on the way. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets read from the sender's interface.
    pub packets_in: u64,
    /// Their IP bytes.
    pub bytes_in: u64,
    /// Packets delivered to the receiver's interface, duplicates included.
    pub packets_out: u64,
    /// Their IP bytes.
    pub bytes_out: u64,
    /// Packets that found no room in the queue.
    pub dropped_by_queue: u64,
    /// Packets that CoDel dropped: they had waited too long.
    pub dropped_by_codel: u64,
    /// Packets that [`super::Loss`] took.
    pub lost: u64,
    /// Packets longer than [`super::Direction::longest`].
    pub too_long: u64,
    /// Packets that vanished in a black hole.
    pub vanished: u64,
    /// Packets that were on the way when the link was cut, or met an interface that was down.
    pub cut: u64,
    /// Packets delivered a second time.
    pub duplicated: u64,
    /// Packets delivered with a flipped bit.
    pub corrupted: u64,
    /// Packets held back by [`super::Reorder`].
    pub held_back: u64,
    /// Turns on the medium that collided.
    pub collisions: u64,
    /// Packets in the queue now, the one being sent included.
    pub queue_packets: u64,
    /// Their IP bytes.
    pub queue_bytes: u64,
    /// The most IP bytes the queue ever held.
    pub queue_bytes_most: u64,
    /// How long what is in the queue now will take.
    pub queue_delay: Duration,
    /// The longest any packet took from its arrival to its last bit sent.
    pub queue_delay_most: Duration,
    /// The same, added over all packets that left the queue.
    pub queue_delay_sum: Duration,
    /// Packets that left the queue.
    pub packets_sent: u64,
}

impl Counters {
    /// The mean time in the queue over packets that left it since an earlier look; zero where none did.
    #[must_use]
    pub fn queue_delay_mean_since(&self, earlier: &Self) -> Duration {
        let packets = self.packets_sent.saturating_sub(earlier.packets_sent);
        let sum = self.queue_delay_sum.saturating_sub(earlier.queue_delay_sum);
        let mean = sum.as_nanos().checked_div(u128::from(packets)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}
