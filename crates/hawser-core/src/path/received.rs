//! The receiving side of one path: what came, and when it is acknowledged.
//!
//! 1. `check`: a packet that opened is judged by the replay window.
//! 2. `on_packet`: it enters the window and the ranges, and may make an acknowledgement due.
//! 3. `ack_due`: by when the session writes one, from `ack_ranges`, `largest_received_at` and `ecn_counts`.
//! 4. `on_ack_sent`: nothing is due any more.
//! 5. `on_ack_acked`: the peer has it, so old ranges go.
//!
//! A gap between the ranges is the NACK.

use super::constants::{
    ACK_DELAY_PARTS, MAX_ACK_DELAY, MAX_ACK_EVERY, MAX_RANGES_SENT, MIN_ACK_DELAY, MIN_ACK_EVERY, MIN_ACK_SPACING,
    REACH_DECAY, TRIM_MARGIN, TRIM_REACHES,
};
use super::ranges::RangeSet;
use super::replay::{ReplayVerdict, ReplayWindow};
use crate::units::{Ecn, PacketNumber, Time};
use crate::wire::EcnCounts;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long acknowledgements may wait. By default as long as they ever may. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AckPolicy {
    /// The longest delay after the first ack-eliciting packet.
    pub max_delay: Duration,
    /// Ack-eliciting packets that make one due at once, at most; fewer where fewer come in `max_delay`.
    pub every: u32,
}

impl Default for AckPolicy {
    fn default() -> Self {
        AckPolicy { max_delay: MAX_ACK_DELAY, every: MAX_ACK_EVERY }
    }
}

impl AckPolicy {
    /// A quarter of the round trip, but neither under 1 ms nor over 5 ms.
    pub fn for_rtt(smoothed: Duration) -> Self {
        AckPolicy { max_delay: (smoothed / ACK_DELAY_PARTS).clamp(MIN_ACK_DELAY, MAX_ACK_DELAY), every: MAX_ACK_EVERY }
    }
}

/// What came on a path, and when it is acknowledged. Nothing came and nothing is due at first. One
/// path owns it, under the session's lock; only its construction allocates.
#[derive(Clone, Debug, Default)]
pub struct ReceivedPackets {
    policy: AckPolicy,
    window: ReplayWindow,
    ranges: RangeSet,
    ecn: EcnCounts,
    largest_received_at: Option<Time>,
    /// Ack-eliciting packets since the last acknowledgement.
    unacked: u32,
    due: Option<Time>,
    /// When the last acknowledgement was made due at once.
    hurried_at: Option<Time>,
    pace: ArrivalPace,
    /// The largest distance that a packet was overtaken by, in numbers; what is seen no more is forgotten.
    reach: u64,
}

impl ReceivedPackets {
    /// Nothing came yet.
    pub fn new(policy: AckPolicy) -> Self {
        ReceivedPackets { policy, ..Self::default() }
    }

    /// Follows a round trip that changed.
    pub fn set_policy(&mut self, policy: AckPolicy) {
        self.policy = policy;
    }

    /// Judges the number of a packet that opened; nothing is accounted yet.
    pub fn check(&self, pn: PacketNumber) -> ReplayVerdict {
        self.window.check(pn)
    }

    /// Accounts a packet that opened. One that is not fresh changes nothing, and the verdict says so.
    pub fn on_packet(&mut self, now: Time, pn: PacketNumber, ack_eliciting: bool, ecn: Ecn) -> ReplayVerdict {
        let verdict = self.window.mark(pn);
        if verdict != ReplayVerdict::Fresh {
            return verdict;
        }
        let largest = self.ranges.largest();
        self.ranges.insert(pn);
        count(&mut self.ecn, ecn);
        match largest {
            Some(largest) if pn < largest => self.reach = self.reach.max(largest.0 - pn.0),
            _ => self.largest_received_at = Some(now),
        }
        if ack_eliciting {
            let in_order = largest.is_some_and(|largest| pn.0 == largest.0.saturating_add(1));
            self.on_ack_eliciting(now, in_order && ecn != Ecn::Ce);
        }
        verdict
    }

    /// The first packet of a path, a gap, a packet out of order and a CE mark are acknowledged at once, but not over
    /// and over (RFC 9000 section 13.2.1); the others every few packets or after the delay.
    fn on_ack_eliciting(&mut self, now: Time, may_wait: bool) {
        self.unacked = self.unacked.saturating_add(1);
        let expected = self.pace.on_packet(now, self.policy.max_delay);
        let every = expected.clamp(MIN_ACK_EVERY, self.policy.every.max(MIN_ACK_EVERY));
        let deadline = match (self.unacked < every, may_wait) {
            (false, _) => now,
            (true, true) => now + self.policy.max_delay,
            (true, false) => self.hurry(now),
        };
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
    }

    /// At once, unless that was a moment ago.
    fn hurry(&mut self, now: Time) -> Time {
        match self.hurried_at {
            Some(due) if due > now => due,
            last => {
                let due = last.map_or(now, |last| now.max(last + MIN_ACK_SPACING));
                self.hurried_at = Some(due);
                due
            }
        }
    }

    /// By when an acknowledgement has to be sent; not after the last packet's arrival: at once.
    pub fn ack_due(&self) -> Option<Time> {
        self.due
    }

    /// The ranges of an acknowledgement frame, newest first, at most 256.
    pub fn ack_ranges(&self) -> impl Iterator<Item = RangeInclusive<PacketNumber>> + Clone + '_ {
        self.ranges.newest_first().take(MAX_RANGES_SENT)
    }

    /// The largest number that came.
    pub fn largest(&self) -> Option<PacketNumber> {
        self.ranges.largest()
    }

    /// When the largest number came.
    pub fn largest_received_at(&self) -> Option<Time> {
        self.largest_received_at
    }

    /// The codepoints of all packets so far.
    pub fn ecn_counts(&self) -> EcnCounts {
        self.ecn
    }

    /// An acknowledgement with everything so far was written.
    pub fn on_ack_sent(&mut self) {
        self.unacked = 0;
        self.due = None;
    }

    /// The last acknowledgement may have gone with its path: what came is told once more, at once.
    pub fn repeat_ack(&mut self, now: Time) {
        if self.largest().is_some() {
            self.due = Some(now);
        }
    }

    /// The peer has an acknowledgement whose largest number was `largest`: what lies well below it
    /// need not be told again. The largest number of all stays.
    pub fn on_ack_acked(&mut self, largest: PacketNumber) {
        let Some(newest) = self.ranges.largest() else {
            return;
        };
        self.reach -= self.reach.div_ceil(REACH_DECAY);
        let margin = TRIM_MARGIN.max(self.reach.saturating_mul(TRIM_REACHES));
        let floor = largest.0.min(newest.0).saturating_sub(margin);
        self.ranges.remove_below(PacketNumber(floor));
    }
}

/// How many ack-eliciting packets came in the last full acknowledgement delay: the faster they
/// come, the more share one acknowledgement. None at first. A part of [`ReceivedPackets`].
#[derive(Clone, Debug, Default)]
struct ArrivalPace {
    since: Time,
    counted: u32,
    last: u32,
}

impl ArrivalPace {
    /// Counts one packet, and gives the count of the last full interval.
    fn on_packet(&mut self, now: Time, interval: Duration) -> u32 {
        let elapsed = now.since(self.since);
        if elapsed >= interval {
            // An interval that ended long ago says nothing about now.
            let stale = elapsed >= interval * 2;
            self.last = if stale { 0 } else { self.counted };
            self.counted = 0;
            self.since = now;
        }
        self.counted = self.counted.saturating_add(1);
        self.last
    }
}

/// Counts a codepoint (RFC 9000 section 13.4.1).
fn count(counts: &mut EcnCounts, ecn: Ecn) {
    match ecn {
        Ecn::NotEct => {}
        Ecn::Ect0 => counts.ect0 += 1,
        Ecn::Ect1 => counts.ect1 += 1,
        Ecn::Ce => counts.ce += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::constants::MAX_RANGES_KEPT;

    const POLICY: AckPolicy = AckPolicy { max_delay: Duration::from_millis(4), every: 32 };

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    fn came(received: &mut ReceivedPackets, us: u64, pn: u64) {
        let verdict = received.on_packet(at(us), PacketNumber(pn), true, Ecn::NotEct);
        assert_eq!(verdict, ReplayVerdict::Fresh);
    }

    /// Packets 0.. at one interval, each acknowledgement sent when it is due at once; counts those of
    /// the second half.
    fn steady(interval_us: u64, packets: u64) -> (ReceivedPackets, u64) {
        let mut received = ReceivedPackets::new(POLICY);
        let mut acks = 0;
        for pn in 0..packets {
            let now = at(pn * interval_us);
            if received.ack_due().is_some_and(|due| due <= now) {
                received.on_ack_sent();
                acks += u64::from(pn >= packets / 2);
            }
            came(&mut received, pn * interval_us, pn);
        }
        (received, acks)
    }

    #[test]
    fn the_delay_is_a_quarter_of_the_round_trip_within_bounds() {
        let table = [(0, 1_000), (2_000, 1_000), (12_000, 3_000), (300_000, 5_000)];
        for (rtt, delay) in table {
            let policy = AckPolicy::for_rtt(Duration::from_micros(rtt));
            assert_eq!(policy.max_delay, Duration::from_micros(delay), "{rtt} µs");
        }
    }

    #[test]
    fn the_first_packet_is_acknowledged_at_once_and_the_next_may_wait() {
        let mut received = ReceivedPackets::new(POLICY);
        assert_eq!(received.ack_due(), None);
        came(&mut received, 100, 0);
        assert_eq!(received.ack_due(), Some(at(100)));
        received.on_ack_sent();
        assert_eq!(received.ack_due(), None);
        came(&mut received, 200, 1);
        assert_eq!(received.ack_due(), Some(at(4_200)));
    }

    #[test]
    fn what_makes_an_acknowledgement_due_at_once() {
        let table = [
            ("in order", 1, Ecn::NotEct, false),
            ("marked ECT(0)", 1, Ecn::Ect0, false),
            ("marked CE", 1, Ecn::Ce, true),
            ("after a gap", 2, Ecn::NotEct, true),
        ];
        for (what, pn, ecn, at_once) in table {
            let mut received = ReceivedPackets::new(POLICY);
            came(&mut received, 0, 0);
            received.on_ack_sent();
            received.on_packet(at(1_000), PacketNumber(pn), true, ecn);
            assert_eq!(received.ack_due() == Some(at(1_000)), at_once, "{what}");
        }
    }

    #[test]
    fn where_packets_overtake_each_other_one_acknowledgement_a_millisecond_tells_of_all() {
        let mut received = ReceivedPackets::new(POLICY);
        came(&mut received, 0, 0);
        received.on_ack_sent();
        for (us, pn) in [(5_000, 9), (5_100, 5), (5_900, 7)] {
            came(&mut received, us, pn);
            assert_eq!(received.ack_due(), Some(at(5_000)), "not sent yet");
        }
        received.on_ack_sent();
        came(&mut received, 5_950, 3);
        assert_eq!(received.ack_due(), Some(at(6_000)));
        received.on_ack_sent();
        came(&mut received, 6_500, 2);
        assert_eq!(received.ack_due(), Some(at(7_000)));
    }

    #[test]
    fn a_packet_that_fills_a_gap_is_acknowledged_at_once() {
        let mut received = ReceivedPackets::new(POLICY);
        came(&mut received, 0, 0);
        came(&mut received, 10, 2);
        received.on_ack_sent();
        came(&mut received, 2_000, 1);
        assert_eq!(received.ack_due(), Some(at(2_000)));
        assert_eq!(received.largest_received_at(), Some(at(10)));
    }

    #[test]
    fn a_packet_that_elicits_nothing_makes_nothing_due() {
        let mut received = ReceivedPackets::new(POLICY);
        received.on_packet(at(0), PacketNumber(0), false, Ecn::Ce);
        assert_eq!(received.ack_due(), None);
        assert_eq!(received.ecn_counts().ce, 1);
        assert_eq!(received.ack_ranges().count(), 1);
    }

    #[test]
    fn a_deadline_is_never_put_off() {
        let (mut received, _) = steady(400, 100);
        received.on_ack_sent();
        came(&mut received, 40_000, 100);
        came(&mut received, 40_400, 101);
        came(&mut received, 40_800, 102);
        assert_eq!(received.ack_due(), Some(at(44_000)));
    }

    #[test]
    fn faster_packets_share_an_acknowledgement() {
        // At 20 µs 200 packets come in a delay, at 400 µs ten, at 3 ms two.
        let table = [(20, 32), (400, 10), (3_000, 2)];
        for (interval, share) in table {
            let packets = 3_200;
            let (_, acks) = steady(interval, packets);
            let ideal = packets / 2 / share;
            assert!(
                acks >= ideal * 9 / 10 && acks <= ideal * 11 / 10,
                "{interval} µs: {acks} acks for {packets} packets, expected about {ideal}"
            );
        }
    }

    #[test]
    fn after_a_pause_packets_do_not_wait_for_a_crowd() {
        let (mut received, _) = steady(20, 1_000);
        received.on_ack_sent();
        came(&mut received, 1_000_000, 1_000);
        came(&mut received, 1_000_010, 1_001);
        assert_eq!(received.ack_due(), Some(at(1_000_010)));
    }

    #[test]
    fn a_duplicate_changes_nothing() {
        let mut received = ReceivedPackets::new(POLICY);
        came(&mut received, 0, 0);
        received.on_ack_sent();
        let again = received.on_packet(at(50), PacketNumber(0), true, Ecn::Ce);
        assert_eq!(again, ReplayVerdict::Duplicate);
        assert_eq!(received.check(PacketNumber(0)), ReplayVerdict::Duplicate);
        assert_eq!(received.ack_due(), None);
        assert_eq!(received.ecn_counts(), EcnCounts::default());
    }

    #[test]
    fn ranges_are_bounded_both_kept_and_sent() {
        let mut received = ReceivedPackets::new(POLICY);
        for pn in 0..600 {
            came(&mut received, pn, pn * 3);
        }
        assert_eq!(received.ranges.newest_first().count(), MAX_RANGES_KEPT);
        assert_eq!(received.ack_ranges().count(), MAX_RANGES_SENT);
        assert_eq!(received.largest(), Some(PacketNumber(599 * 3)));
    }

    #[test]
    fn an_acknowledged_acknowledgement_trims_all_but_a_margin() {
        let mut received = ReceivedPackets::new(POLICY);
        for pn in (0..1_000).filter(|pn| pn % 100 != 50) {
            came(&mut received, pn, pn);
        }
        received.on_ack_acked(PacketNumber(500));
        let oldest = received.ack_ranges().last().expect("ranges");
        assert_eq!(oldest.start().0, 500 - TRIM_MARGIN);
        // A lie about numbers that never came leaves the largest.
        received.on_ack_acked(PacketNumber(u64::MAX));
        assert_eq!(received.largest(), Some(PacketNumber(999)));
    }

    #[test]
    fn the_margin_follows_how_far_packets_were_overtaken_and_forgets_it() {
        let mut received = ReceivedPackets::new(POLICY);
        for pn in (0..1_000).filter(|pn| *pn != 700) {
            came(&mut received, pn, pn);
        }
        came(&mut received, 1_000, 700);
        received.on_ack_acked(PacketNumber(900));
        let oldest = |received: &ReceivedPackets| received.ack_ranges().last().expect("ranges").start().0;
        // 299, less a 64th.
        assert_eq!(oldest(&received), 900 - 2 * 294);
        for pn in 1_000..1_200 {
            came(&mut received, pn, pn);
            received.on_ack_acked(PacketNumber(pn));
        }
        assert_eq!(oldest(&received), 1_199 - TRIM_MARGIN);
    }
}
