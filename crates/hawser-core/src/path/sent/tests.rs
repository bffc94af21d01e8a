//! Situations as sentences.

use super::*;
use crate::path::constants::{INITIAL_RTT, MAX_ACK_DELAY};
use crate::path::rtt::RttEstimator;
use std::ops::RangeInclusive;
use std::time::Duration;

pub(super) type Sent = SentPackets<u64, u32>;

pub(super) const BYTES: u32 = 1_000;

pub(super) fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

pub(super) fn packet(sent_ms: u64, content: u32) -> SentPacket<u64, u32> {
    SentPacket {
        sent_at: at(sent_ms),
        bytes: BYTES,
        ack_eliciting: true,
        in_flight: true,
        in_train: false,
        stamp: sent_ms,
        content,
    }
}

/// A bare acknowledgement.
pub(super) fn bare(sent_ms: u64) -> SentPacket<u64, u32> {
    SentPacket { ack_eliciting: false, in_flight: false, ..packet(sent_ms, 0) }
}

pub(super) fn rtt(ms: u64) -> RttEstimator {
    let mut rtt = RttEstimator::new(INITIAL_RTT);
    for i in 0..50 {
        rtt.on_sample(at(i), Duration::from_millis(ms), Duration::ZERO);
    }
    rtt
}

/// Packets 0.. sent a millisecond apart.
fn sent(count: u64) -> Sent {
    let mut sent = Sent::new();
    for pn in 0..count {
        sent.on_sent(PacketNumber(pn), packet(pn, pn as u32));
    }
    sent
}

pub(super) fn ranges(list: &[(u64, u64)]) -> impl Iterator<Item = RangeInclusive<PacketNumber>> + Clone + use<'_> {
    list.iter().map(|&(start, end)| PacketNumber(start)..=PacketNumber(end))
}

fn ack(sent: &mut Sent, ms: u64, list: &[(u64, u64)]) -> AckOutcome<u64> {
    sent.on_ack(at(ms), ranges(list), |_, _, _| {}).expect("an honest acknowledgement")
}

fn lost(sent: &mut Sent, ms: u64, rtt: &RttEstimator) -> Vec<u64> {
    let mut lost = Vec::new();
    let outcome = sent.detect_losses(at(ms), rtt, |pn, _| lost.push(pn.0));
    assert_eq!(outcome.packets as usize, lost.len());
    assert_eq!(outcome.bytes.0, lost.len() as u64 * u64::from(BYTES));
    lost
}

#[test]
fn an_acknowledgement_settles_each_packet_once() {
    let mut sent = sent(10);
    assert_eq!(sent.bytes_in_flight(), ByteCount(10_000));
    let first = ack(&mut sent, 20, &[(6, 8), (0, 3)]);
    assert_eq!((first.packets, first.bytes), (7, ByteCount(7_000)));
    assert_eq!(first.prior_in_flight, ByteCount(10_000));
    assert_eq!(first.newest.map(|n| (n.pn.0, n.stamp)), Some((8, 8)));
    assert_eq!(first.rtt_sample, Some(Duration::from_millis(12)));
    assert_eq!(sent.oldest_unacked_sent_at(), Some(at(4)));
    let again = ack(&mut sent, 21, &[(6, 8), (0, 3)]);
    assert!(!again.is_news());
    assert_eq!(again.rtt_sample, None);
    assert_eq!(sent.bytes_in_flight(), ByteCount(3_000));
    let rest = ack(&mut sent, 22, &[(0, 9)]);
    assert_eq!((rest.packets, sent.bytes_in_flight()), (3, ByteCount::ZERO));
    assert_eq!(sent.oldest_unacked_sent_at(), None);
    assert_eq!(sent.newest_ack_eliciting_sent_at(), None);
}

#[test]
fn only_a_new_largest_number_gives_a_round_trip() {
    let mut sent = sent(10);
    assert!(ack(&mut sent, 20, &[(5, 5)]).rtt_sample.is_some());
    let below = ack(&mut sent, 21, &[(0, 5)]);
    assert_eq!((below.packets, below.rtt_sample), (5, None));
    let mut bare_only = Sent::new();
    bare_only.on_sent(PacketNumber(0), bare(0));
    assert_eq!(ack(&mut bare_only, 20, &[(0, 0)]).rtt_sample, None);
}

#[test]
fn a_peer_that_lies_changes_nothing() {
    let mut sent = sent(10);
    sent.on_sent(PacketNumber(12), packet(12, 12));
    for (lie, list) in [(13, [(0, 3), (13, 13)]), (11, [(0, 3), (10, 12)]), (u64::MAX, [(0, 3), (0, u64::MAX)])] {
        let error = sent.on_ack(at(20), ranges(&list), |_, _, _| panic!("visited"));
        assert_eq!(error, Err(AckError::NeverSent(PacketNumber(lie))), "{list:?}");
    }
    assert_eq!(sent.bytes_in_flight(), ByteCount(11_000));
    assert_eq!(ack(&mut sent, 20, &[(12, 12), (0, 9)]).packets, 11);
}

#[test]
#[should_panic(expected = "used twice")]
fn a_number_is_never_used_twice() {
    let mut sent = sent(3);
    sent.on_sent(PacketNumber(2), packet(9, 9));
}

#[test]
fn three_later_packets_make_a_loss() {
    let mut sent = sent(10);
    ack(&mut sent, 20, &[(1, 2)]);
    assert_eq!(lost(&mut sent, 20, &rtt(100)), Vec::<u64>::new());
    ack(&mut sent, 21, &[(1, 3)]);
    assert_eq!(lost(&mut sent, 21, &rtt(100)), [0]);
    assert_eq!(sent.bytes_in_flight(), ByteCount(6_000));
    assert_eq!(lost(&mut sent, 22, &rtt(100)), Vec::<u64>::new());
}

#[test]
fn nine_eighths_of_a_round_trip_make_a_loss() {
    let mut sent = sent(2);
    ack(&mut sent, 81, &[(1, 1)]);
    assert_eq!(lost(&mut sent, 81, &rtt(80)), Vec::<u64>::new());
    assert_eq!(sent.loss_time(), Some(at(90)));
    assert_eq!(lost(&mut sent, 90, &rtt(80)), [0]);
    assert_eq!(sent.loss_time(), None);
}

#[test]
fn nothing_is_lost_before_a_later_packet_is_acknowledged() {
    let mut sent = sent(10);
    assert_eq!(lost(&mut sent, 10_000, &rtt(10)), Vec::<u64>::new());
    assert_eq!(sent.loss_time(), None);
}

#[test]
fn a_loss_that_was_none_is_noticed_and_tolerated_next_time() {
    let mut sent = sent(40);
    ack(&mut sent, 50, &[(1, 12)]);
    assert_eq!(lost(&mut sent, 50, &rtt(100)), [0]);
    let mut seen = Vec::new();
    let outcome = sent.on_ack(at(51), ranges(&[(0, 13)]), |pn, _, how| seen.push((pn.0, how))).expect("honest");
    assert_eq!((outcome.spurious, outcome.packets), (1, 1));
    assert_eq!(seen, [(13, Arrival::Outstanding), (0, Arrival::AfterLoss)]);
    assert_eq!(sent.bytes_in_flight(), ByteCount(26_000));
    // It was 12 behind: 12 behind is no loss any more, 13 is.
    ack(&mut sent, 52, &[(15, 26)]);
    assert_eq!(lost(&mut sent, 52, &rtt(100)), Vec::<u64>::new());
    ack(&mut sent, 53, &[(15, 27)]);
    assert_eq!(lost(&mut sent, 53, &rtt(100)), [14]);
}

#[test]
fn a_lost_packet_is_forgotten_after_three_probe_timeouts() {
    let mut sent = sent(10);
    let rtt = rtt(100);
    ack(&mut sent, 110, &[(1, 9)]);
    assert_eq!(lost(&mut sent, 110, &rtt), [0]);
    let keep = rtt.pto(MAX_ACK_DELAY) * 3;
    let mut soon = sent.clone();
    soon.detect_losses(at(109) + keep, &rtt, |_, _| {});
    assert_eq!(ack(&mut soon, 500, &[(0, 9)]).spurious, 1);
    sent.detect_losses(at(110) + keep, &rtt, |_, _| {});
    assert_eq!(ack(&mut sent, 500, &[(0, 9)]).spurious, 0);
    assert!(sent.ring.is_empty());
}

#[test]
fn memory_stays_bounded_whatever_is_lost() {
    let mut sent = Sent::new();
    let rtt = rtt(100);
    for pn in 0..100_000 {
        sent.on_sent(PacketNumber(pn), packet(200, 0));
        if pn % 10 == 9 {
            ack(&mut sent, 300, &[(pn, pn)]);
            sent.detect_losses(at(300), &rtt, |_, _| {});
        }
    }
    assert!(sent.ring.len() <= 16_384 + 20, "{}", sent.ring.len());
}

#[test]
fn bare_acknowledgements_that_nobody_acknowledges_are_forgotten() {
    let mut sent = Sent::new();
    let rtt = rtt(10);
    for pn in 0..10_000 {
        sent.on_sent(PacketNumber(pn), bare(pn));
        sent.detect_losses(at(pn), &rtt, |_, _| panic!("nobody waits for it"));
    }
    assert!(sent.ring.len() < 100, "{}", sent.ring.len());
    assert_eq!(sent.bytes_in_flight(), ByteCount::ZERO);
    assert_eq!(sent.pto_deadline(Duration::from_millis(15)), None);
}

#[test]
fn bare_acknowledgements_are_bounded_even_if_nothing_ever_comes_back() {
    let mut sent = Sent::new();
    for pn in 0..50_000 {
        sent.on_sent(PacketNumber(pn), bare(pn));
    }
    assert_eq!(sent.ring.len(), 16_384);
    assert_eq!(ack(&mut sent, 60_000, &[(0, 49_999)]).packets, 16_384);
}

#[test]
fn challenges_lost_on_a_dead_path_are_no_persistent_congestion() {
    let mut sent = Sent::new();
    sent.on_sent(PacketNumber(0), packet(0, 0));
    ack(&mut sent, 50, &[(0, 0)]);
    for i in 1..=10 {
        let challenge = SentPacket { in_flight: false, ..packet(i * 500, 0) };
        sent.on_sent(PacketNumber(i), challenge);
    }
    ack(&mut sent, 5_050, &[(10, 10)]);
    let outcome = sent.detect_losses(at(5_050), &rtt(50), |_, _| {});
    assert_eq!((outcome.packets, outcome.bytes), (9, ByteCount::ZERO));
    assert!(!outcome.persistent);
}

#[test]
fn a_probe_of_the_mtu_is_lost_without_being_congestion() {
    let mut sent = Sent::new();
    let probe = SentPacket { in_flight: false, ..packet(0, 7) };
    sent.on_sent(PacketNumber(0), probe);
    for pn in 1..5 {
        sent.on_sent(PacketNumber(pn), packet(pn, 0));
    }
    assert_eq!(sent.bytes_in_flight(), ByteCount(4_000));
    ack(&mut sent, 20, &[(1, 4)]);
    let mut seen = Vec::new();
    let outcome = sent.detect_losses(at(20), &rtt(100), |_, p| seen.push(p.content));
    assert_eq!(seen, [7]);
    assert_eq!((outcome.packets, outcome.bytes, outcome.newest), (1, ByteCount::ZERO, None));
}

#[test]
fn a_dead_path_hands_out_everything_oldest_first() {
    let mut sent = sent(6);
    ack(&mut sent, 20, &[(2, 2)]);
    let peeked: Vec<u64> = sent.outstanding().map(|(pn, _)| pn.0).collect();
    let mut drained = Vec::new();
    sent.drain(at(30), |pn, _| drained.push(pn.0));
    assert_eq!(drained, [0, 1, 3, 4, 5]);
    assert_eq!(peeked, drained);
    assert_eq!(sent.bytes_in_flight(), ByteCount::ZERO);
    assert_eq!(sent.pto_deadline(Duration::from_millis(10)), None);
    assert_eq!(lost(&mut sent, 31, &rtt(10)), Vec::<u64>::new());
    sent.drain(at(32), |_, _| panic!("handed out before"));
    // They arrived after all: news of a living path, no reordering, nothing in flight.
    let late = ack(&mut sent, 33, &[(0, 5)]);
    assert_eq!((late.packets, late.spurious, late.after_drain), (0, 0, 5));
    assert!(late.is_news());
    assert_eq!(sent.reordering.packet_threshold(), 3);
}

#[test]
fn nothing_but_loss_for_three_probe_timeouts_is_persistent_congestion() {
    // (losses end at ms, an acknowledged packet amid, persistent)
    let table = [(400, None, true), (200, None, false), (400, Some(300), false)];
    for (end, amid, expected) in table {
        let rtt = rtt(50);
        let mut sent = Sent::new();
        sent.on_sent(PacketNumber(0), packet(0, 0));
        ack(&mut sent, 50, &[(0, 0)]);
        let mut acked = Vec::new();
        let mut pn = 1;
        for ms in (100..=end).step_by(100) {
            sent.on_sent(PacketNumber(pn), packet(ms, 0));
            if amid == Some(ms) {
                acked.push((pn, pn));
            }
            pn += 1;
        }
        sent.on_sent(PacketNumber(pn), packet(end + 100, 0));
        acked.push((pn, pn));
        ack(&mut sent, end + 150, &acked);
        let outcome = sent.detect_losses(at(end + 300), &rtt, |_, _| {});
        assert_eq!(outcome.persistent, expected, "until {end} ms, amid {amid:?}");
    }
}

#[test]
fn a_steady_flow_into_a_black_hole_falls_silent_after_one_probe_timeout() {
    let pto = Duration::from_millis(30);
    let mut sent = sent(20);
    ack(&mut sent, 25, &[(0, 4)]);
    for pn in 20..50 {
        sent.on_sent(PacketNumber(pn), packet(pn, 0));
    }
    assert_eq!(sent.pto_deadline(pto), Some((at(55), PtoKind::Silence)));
    sent.on_pto(at(55), PtoKind::Silence);
    assert_eq!(sent.pto_deadline(pto), Some((at(55 + 60), PtoKind::Silence)));
    sent.on_pto(at(115), PtoKind::Silence);
    assert_eq!((sent.pto_count(), sent.pto_deadline(pto)), (2, Some((at(115 + 120), PtoKind::Silence))));
    ack(&mut sent, 120, &[(40, 40)]);
    assert_eq!(sent.pto_count(), 0);
}

#[test]
fn a_lost_tail_is_probed_without_suspicion_and_then_falls_silent() {
    let pto = Duration::from_millis(30);
    let mut sent = sent(10);
    ack(&mut sent, 25, &[(0, 8)]);
    assert_eq!(sent.pto_deadline(pto), Some((at(39), PtoKind::Tail)));
    sent.on_pto(at(39), PtoKind::Tail);
    sent.on_sent(PacketNumber(10), packet(39, 0));
    assert_eq!(sent.pto_deadline(pto), Some((at(55), PtoKind::Silence)));
}

#[test]
fn an_idle_path_is_never_silent() {
    let mut sent = sent(10);
    assert!(sent.pto_deadline(Duration::from_millis(30)).is_some());
    ack(&mut sent, 20, &[(0, 9)]);
    assert_eq!(sent.pto_deadline(Duration::from_millis(30)), None);
}

#[test]
fn the_oldest_packet_that_somebody_waits_for_is_no_bare_acknowledgement() {
    let mut sent = Sent::new();
    sent.on_sent(PacketNumber(0), bare(0));
    assert_eq!(sent.oldest_unacked_sent_at(), None);
    sent.on_sent(PacketNumber(1), packet(7, 0));
    sent.on_sent(PacketNumber(2), bare(8));
    assert_eq!(sent.oldest_unacked_sent_at(), Some(at(7)));
}

#[test]
fn an_acknowledgement_overtaken_by_a_later_one_tells_nothing_new() {
    let mut sent = sent(30);
    ack(&mut sent, 40, &[(0, 29)]);
    let stale = ack(&mut sent, 41, &[(0, 17)]);
    assert!(!stale.is_news());
    assert_eq!(sent.largest_acked(), Some(PacketNumber(29)));
}

/// A path with 20 ms of round trip whose every tenth packet is up to 4 ms late; gives the losses declared, none of
/// them true, in the first and in the last of ten spans.
fn spurious_on_a_reordering_path() -> (u32, u32) {
    const PACKETS: u64 = 20_000;
    let mut sent = Sent::new();
    let rtt = rtt(20);
    let mut arrivals: Vec<(u64, u64)> = Vec::new();
    for pn in 0..PACKETS {
        let late = if pn % 10 == 0 { pn * 7 % 40 } else { 0 };
        arrivals.push((pn + 200 + late, pn));
        sent.on_sent(PacketNumber(pn), packet_at(pn));
    }
    arrivals.sort_unstable();
    let mut spans = [0; 10];
    for (tenths, pn) in arrivals {
        let now = tenth_ms(tenths);
        sent.on_ack(now, ranges(&[(pn, pn)]), |_, _, _| {}).expect("honest");
        let outcome = sent.detect_losses(now, &rtt, |_, _| {});
        spans[(pn * 10 / PACKETS) as usize] += outcome.packets;
    }
    assert_eq!(sent.bytes_in_flight(), ByteCount::ZERO);
    (spans[0], spans[9])
}

/// Tenths of a millisecond.
fn tenth_ms(tenths: u64) -> Time {
    Time::ZERO + Duration::from_micros(tenths * 100)
}

fn packet_at(tenths: u64) -> SentPacket<u64, u32> {
    SentPacket { sent_at: tenth_ms(tenths), ..packet(0, 0) }
}

#[test]
fn a_path_that_reorders_is_understood_after_a_few_mistakes() {
    let (first, last) = spurious_on_a_reordering_path();
    assert!((1..20).contains(&first), "{first} mistakes at first");
    assert_eq!(last, 0, "mistakes at last");
}

/// A path kept thousands of packets and lets them go: whatever the frames tell again, each number is looked at a few
/// times.
#[test]
fn thousands_that_are_acknowledged_late_cost_a_few_looks_each() {
    const MANY: u64 = 10_000;
    let mut sent = sent(MANY);
    sent.drain(at(MANY), |_, _| {});
    let last = MANY - 1;
    // From the newest down, a number in each frame; then frames that were overtaken by those.
    for low in (0..MANY).rev() {
        assert_eq!(ack(&mut sent, MANY + 1, &[(low, last)]).after_drain, 1);
    }
    for high in (0..MANY).rev() {
        assert_eq!(ack(&mut sent, MANY + 2, &[(0, high)]).after_drain, 0);
    }
    assert!(sent.looks.get() <= 5 * MANY, "{} looks", sent.looks.get());
}
