//! How fast a path delivers: draft-ietf-ccwg-bbr section 4.1 (delivery rate samples).
//!
//! 1. `on_sent` stamps every packet with what was delivered by then, and when.
//! 2. `on_packet_acked` adds an acknowledged packet, and remembers the newest of its frame.
//! 3. `take_sample` compares the newest packet's stamp with the present: bytes delivered since,
//!    over the longest of the times it took to send them, to acknowledge them, and from one arrival to
//!    the other by the peer's clock. The draft has the first two; but acknowledgements that waited in a
//!    full way back come in clumps, by which a path that is full both ways passed for a third faster
//!    (docs/results/full-both-ways.json).
//! 4. A pause of the sender marks what is sent until the pause has passed through the path.

use super::RateSample;
use crate::units::{ByteCount, Rate, Time};
use std::num::NonZeroU32;
use std::time::Duration;

/// What a packet remembers of its path at the time it was sent, for the sample its acknowledgement
/// makes. Has no useful zero value: `on_sent` makes it. A small plain value, kept beside the packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Wraps: only differences count.
    lost: u32,
    arrived: Option<Arrival>,
    /// Saturates at 4 GiB, far above any window.
    tx_in_flight: u32,
    app_limited: bool,
}

const _: () = assert!(size_of::<Stamp>() <= 40);

impl Stamp {
    /// Bytes in flight just after the packet was sent, itself included.
    pub fn tx_in_flight(&self) -> ByteCount {
        ByteCount(u64::from(self.tx_in_flight))
    }

    /// The packet was sent in or after a pause of the sender that had not yet passed.
    pub fn app_limited(&self) -> bool {
        self.app_limited
    }
}

/// When a packet arrived by its receiver's clock, in µs, and never zero. It wraps after 71 minutes: only differences
/// count. A plain value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Arrival(NonZeroU32);

impl Arrival {
    fn at(received_at: Time) -> Arrival {
        Arrival(NonZeroU32::new(received_at.as_micros() as u32).unwrap_or(NonZeroU32::MIN))
    }

    /// How long after an earlier one; nothing where it was not earlier.
    fn since(self, earlier: Arrival) -> Duration {
        let micros = self.0.get().wrapping_sub(earlier.0.get());
        Duration::from_micros(if micros > u32::MAX / 2 { 0 } else { u64::from(micros) })
    }
}

/// The newest packet that the frame at hand acknowledged.
#[derive(Copy, Clone, Debug)]
struct Newest {
    stamp: Stamp,
    sent_at: Time,
}

/// A path's delivery-rate sampler. Starts with nothing delivered. One path owns it.
#[derive(Clone, Debug, Default)]
pub struct DeliverySampler {
    delivered: u64,
    lost: u64,
    delivered_at: Time,
    /// When the newest of these came to the peer; unknown after a rest.
    arrived: Option<Arrival>,
    /// When the packet that was most recently delivered was sent; the start of the send interval.
    first_sent_at: Time,
    /// The count of delivered bytes at which the sender's last pause has passed; none: not paused.
    app_limited_until: Option<u64>,
    newest: Option<Newest>,
    /// The newest of those that were on their way for as long as a sample needs.
    settled: Option<Newest>,
}

impl DeliverySampler {
    /// Nothing sent, nothing delivered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stamps a packet of `bytes` that goes out now, after `in_flight_before` bytes. `app_limited`:
    /// after it nothing waits although window and pacer have room; a pause begins.
    pub fn on_sent(&mut self, now: Time, bytes: ByteCount, in_flight_before: ByteCount, app_limited: bool) -> Stamp {
        if in_flight_before == ByteCount::ZERO {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.arrived = None;
        }
        let in_flight = in_flight_before + bytes;
        let stamp = Stamp {
            delivered: self.delivered,
            lost: self.lost as u32,
            arrived: self.arrived,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            tx_in_flight: u32::try_from(in_flight.0).unwrap_or(u32::MAX),
            app_limited: self.app_limited_until.is_some(),
        };
        if app_limited {
            self.mark_app_limited(in_flight);
        }
        stamp
    }

    /// The sender pauses with `in_flight` bytes on the way: what is sent until they are delivered
    /// tells nothing about the path's capacity.
    pub fn mark_app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight.0));
    }

    /// A packet of `bytes`, stamped and sent at `sent_at`, was acknowledged by the frame at hand. Where packets
    /// overtake each other the newest are the fastest, and their short samples are noise: one is taken then of a packet
    /// whose own lasted `least`.
    pub fn on_packet_acked(&mut self, stamp: Stamp, sent_at: Time, bytes: ByteCount, now: Time, least: Duration) {
        self.delivered = self.delivered.saturating_add(bytes.0);
        let lasted = now.since(stamp.delivered_at);
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| sent_at >= newest.sent_at) {
            self.newest = Some(Newest { stamp, sent_at });
        }
        if lasted >= least && self.settled.is_none_or(|settled| sent_at >= settled.sent_at) {
            self.settled = Some(Newest { stamp, sent_at });
        }
    }

    /// `bytes` were declared lost.
    pub fn on_lost(&mut self, bytes: ByteCount) {
        self.lost = self.lost.saturating_add(bytes.0);
    }

    /// The sample of the frame at hand, once all its packets were accounted; `None` when it
    /// acknowledged nothing new. Its rate is zero when the interval is shorter than `min_rtt`:
    /// such a rate would be the neighbourhood's burst, not the path's rate. `received_at`: when the newest of these
    /// came, by the peer's clock, if that is to count.
    pub fn take_sample(&mut self, now: Time, received_at: Option<Time>, min_rtt: Duration) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let newest = self.newest.take()?;
        let arrival = received_at.map(Arrival::at);
        let since = |before: Arrival| arrival.map_or(Duration::ZERO, |arrival| arrival.since(before));
        if self.arrived.is_none_or(|before| since(before) > Duration::ZERO) {
            self.arrived = arrival;
        }
        self.first_sent_at = self.first_sent_at.max(newest.sent_at);
        let Newest { stamp, sent_at } = self.settled.take().unwrap_or(newest);
        let send_elapsed = sent_at.since(stamp.first_sent_at);
        let ack_elapsed = now.since(stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed).max(stamp.arrived.map_or(Duration::ZERO, since));
        let delivered = ByteCount(self.delivered - stamp.delivered);
        let rate = if interval < min_rtt { Rate::ZERO } else { Rate::of(delivered, interval) };
        Some(RateSample {
            rate,
            app_limited: stamp.app_limited,
            prior_delivered: ByteCount(stamp.delivered),
            delivered,
            lost: ByteCount(u64::from((self.lost as u32).wrapping_sub(stamp.lost))),
            tx_in_flight: stamp.tx_in_flight(),
            interval,
        })
    }

    /// All bytes delivered so far.
    pub fn delivered(&self) -> ByteCount {
        ByteCount(self.delivered)
    }

    /// All bytes declared lost so far.
    pub fn lost(&self) -> ByteCount {
        ByteCount(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount(1_000);
    const RTT: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Sends ten packets a millisecond apart, from `start`, and returns their stamps.
    fn ten(sampler: &mut DeliverySampler, start: u64) -> Vec<(Stamp, Time)> {
        (0..10)
            .map(|i| {
                let now = at(start + i);
                let before = ByteCount(i * PACKET.0);
                (sampler.on_sent(now, PACKET, before, false), now)
            })
            .collect()
    }

    #[test]
    fn a_steady_stream_measures_its_own_rate() {
        let mut sampler = DeliverySampler::new();
        let mut last = None;
        for (stamp, sent) in ten(&mut sampler, 100) {
            let now = sent + RTT;
            sampler.on_packet_acked(stamp, sent, PACKET, now, Duration::ZERO);
            last = sampler.take_sample(now, None, RTT);
        }
        let sample = last.expect("a sample");
        assert_eq!(sample.delivered, ByteCount(10_000));
        assert_eq!(sample.interval, Duration::from_millis(19));
        assert_eq!(sample.rate, Rate::of(ByteCount(10_000), sample.interval));
        assert_eq!(sample.prior_delivered, ByteCount::ZERO);
        assert_eq!(sample.tx_in_flight, ByteCount(10_000));
    }

    #[test]
    fn acks_that_come_in_a_clump_do_not_measure_faster_than_the_sending() {
        let mut sampler = DeliverySampler::new();
        let sent = ten(&mut sampler, 100);
        let (stamp, first) = sent[0];
        sampler.on_packet_acked(stamp, first, PACKET, at(110), Duration::ZERO);
        sampler.take_sample(at(110), None, RTT);
        let late = sampler.on_sent(at(110), PACKET, ByteCount(9_000), false);
        for (stamp, when) in &sent[1..] {
            sampler.on_packet_acked(*stamp, *when, PACKET, at(111), Duration::ZERO);
        }
        sampler.on_packet_acked(late, at(110), PACKET, at(111), Duration::ZERO);
        let sample = sampler.take_sample(at(111), None, Duration::ZERO).expect("a sample");
        assert_eq!(sample.delivered, ByteCount(10_000));
        assert_eq!(sample.interval, Duration::from_millis(10));
    }

    #[test]
    fn acks_that_waited_on_their_way_do_not_measure_faster_than_the_arrivals() {
        // Sent a millisecond apart, they arrive two apart; all acknowledgements but the first come at once.
        for (counts, interval) in [(true, 20), (false, 11)] {
            let mut sampler = DeliverySampler::new();
            let mut sent = ten(&mut sampler, 100);
            let acked = |sampler: &mut DeliverySampler, (stamp, sent): (Stamp, Time), now: Time, arrived: u64| {
                sampler.on_packet_acked(stamp, sent, PACKET, now, Duration::ZERO);
                sampler.take_sample(now, counts.then(|| at(arrived)), Duration::ZERO).expect("a sample")
            };
            let first = sent.remove(0);
            acked(&mut sampler, first, at(110), 5_000);
            let last = (sampler.on_sent(at(110), PACKET, ByteCount(9_000), false), at(110));
            sent.iter().zip(1..).for_each(|(packet, place)| {
                acked(&mut sampler, *packet, at(121), 5_000 + 2 * place);
            });
            let sample = acked(&mut sampler, last, at(121), 5_020);
            assert_eq!((sample.delivered, sample.interval), (ByteCount(10_000), Duration::from_millis(interval)));
        }
    }

    #[test]
    fn an_arrival_before_the_last_one_and_a_clock_that_wraps_do_no_harm() {
        let arrival = |micros: u64| Arrival::at(Time::ZERO + Duration::from_micros(micros));
        let wrap = u64::from(u32::MAX) + 1;
        for (before, after, micros) in [(10, 30, 20), (30, 10, 0), (wrap - 10, wrap + 10, 20), (wrap, wrap + 1, 0)] {
            assert_eq!(arrival(after).since(arrival(before)), Duration::from_micros(micros), "{before}, {after}");
        }
    }

    #[test]
    fn an_interval_below_the_least_round_trip_gives_no_rate() {
        let mut sampler = DeliverySampler::new();
        let stamp = sampler.on_sent(at(0), PACKET, ByteCount::ZERO, false);
        sampler.on_packet_acked(stamp, at(0), PACKET, at(5), Duration::ZERO);
        let sample = sampler.take_sample(at(5), None, RTT).expect("a sample");
        assert_eq!(sample.rate, Rate::ZERO);
        assert_eq!(sample.delivered, PACKET);
        assert!(sampler.take_sample(at(5), None, RTT).is_none());
    }

    #[test]
    fn a_pause_marks_what_is_sent_until_it_has_passed() {
        let mut sampler = DeliverySampler::new();
        let first = sampler.on_sent(at(0), PACKET, ByteCount::ZERO, true);
        let second = sampler.on_sent(at(5), PACKET, PACKET, false);
        assert!(!first.app_limited());
        assert!(second.app_limited());
        sampler.on_packet_acked(first, at(0), PACKET, at(10), Duration::ZERO);
        sampler.take_sample(at(10), None, RTT);
        let third = sampler.on_sent(at(11), PACKET, PACKET, false);
        assert!(third.app_limited(), "exactly the pause's bytes are not past it");
        sampler.on_packet_acked(second, at(5), PACKET, at(15), Duration::ZERO);
        assert!(sampler.take_sample(at(15), None, RTT).expect("a sample").app_limited);
        let fourth = sampler.on_sent(at(16), PACKET, PACKET, false);
        assert!(!fourth.app_limited());
    }

    #[test]
    fn losses_since_the_sending_are_counted() {
        let mut sampler = DeliverySampler::new();
        sampler.on_lost(PACKET);
        let stamp = sampler.on_sent(at(0), PACKET, ByteCount::ZERO, false);
        sampler.on_lost(ByteCount(2_000));
        sampler.on_packet_acked(stamp, at(0), PACKET, at(10), Duration::ZERO);
        let sample = sampler.take_sample(at(10), None, RTT).expect("a sample");
        assert_eq!(sample.lost, ByteCount(2_000));
        assert_eq!(sampler.lost(), ByteCount(3_000));
        assert_eq!(sampler.delivered(), PACKET);
    }

    #[test]
    fn the_newest_packet_of_a_frame_makes_the_sample() {
        let mut sampler = DeliverySampler::new();
        let sent = ten(&mut sampler, 0);
        for (stamp, when) in sent.iter().rev() {
            sampler.on_packet_acked(*stamp, *when, PACKET, at(20), Duration::ZERO);
        }
        let sample = sampler.take_sample(at(20), None, RTT).expect("a sample");
        assert_eq!(sample.tx_in_flight, ByteCount(10_000));
        assert_eq!(sample.interval, Duration::from_millis(20));
    }

    #[test]
    fn where_packets_overtake_each_other_one_that_was_long_on_its_way_makes_the_sample() {
        let mut sampler = DeliverySampler::new();
        let sent = ten(&mut sampler, 0);
        for (index, (stamp, when)) in sent.iter().enumerate() {
            let least = Duration::from_millis(if index < 5 { 20 } else { 50 });
            sampler.on_packet_acked(*stamp, *when, PACKET, at(20), least);
        }
        let sample = sampler.take_sample(at(20), None, RTT).expect("a sample");
        assert_eq!(sample.tx_in_flight, ByteCount(5_000), "the newest of those that lasted");
        assert!(sampler.take_sample(at(20), None, RTT).is_none());
    }
}
