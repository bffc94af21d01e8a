use super::super::encoder::Encoder;
use super::*;
use crate::rules::RuleId;
use crate::wire::{DataFlags, DataFrame, FlowBucket, FlowSequence, Frame, Frames};
use proptest::prelude::*;

const START: Time = Time::from_nanos(1_000_000_000);
const INTERVAL: usize = 4;

/// What a sender sends: sources and repairs in their order, each as the frame's bytes.
struct Sender {
    encoder: Encoder,
    sequence: u64,
}

impl Sender {
    fn new() -> Sender {
        Sender { encoder: Encoder::default(), sequence: 0 }
    }

    fn packet(sequence: u64) -> Vec<u8> {
        let len = 20 + (sequence * 37 % 90) as usize;
        (0..len).map(|at| (sequence as usize * 13 + at) as u8).collect()
    }

    fn source(&mut self, now: Time) -> Vec<u8> {
        let packet = Self::packet(self.sequence);
        let flags = DataFlags { partial: self.sequence.is_multiple_of(2), ..DataFlags::default() };
        let head = SymbolHead { bucket: FlowBucket(5), sequence: FlowSequence::of(self.sequence), flags };
        let symbol = self.encoder.protect(now, RuleId::default(), &head, (&packet[..8], &packet[8..]), INTERVAL);
        self.sequence += 1;
        let data = DataFrame { bucket: head.bucket, flags, sequence: head.sequence, packet: &packet };
        let mut buffer = [0; 200];
        let mut out = crate::wire::Writer::new(&mut buffer);
        ProtectedFrame { symbol, data }.encode(&mut out).expect("room");
        out.written().to_vec()
    }

    fn repair(&mut self, now: Time) -> Vec<u8> {
        let mut frame = vec![0; RepairFrame::HEAD_LEN + self.encoder.repair_len(now, INTERVAL)];
        self.encoder.repair(now, INTERVAL, &mut frame);
        frame
    }
}

/// The sequence numbers of what came back, each checked to be the packet that was sent.
fn receive(decoder: &mut Decoder, now: Time, frame: &[u8]) -> Vec<u64> {
    let mut back = Vec::new();
    let out = |(head, packet): Repaired<'_>| {
        let sequence = u64::from(head.sequence.get());
        assert_eq!(packet, Sender::packet(sequence));
        assert_eq!((head.bucket, head.flags.partial), (FlowBucket(5), sequence.is_multiple_of(2)));
        back.push(sequence);
    };
    match Frames::new(frame).next() {
        Some(Ok(Frame::Protected(frame))) => decoder.on_source(now, &frame, out),
        Some(Ok(Frame::Repair(frame))) => decoder.on_repair(now, &frame, out),
        other => panic!("a frame of ours: {other:?}"),
    }
    decoder.check();
    back
}

#[test]
fn one_repair_brings_one_packet_back_and_two_bring_two() {
    let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
    let sources: Vec<_> = (0..8).map(|_| sender.source(START)).collect();
    let repairs: Vec<_> = (0..3).map(|_| sender.repair(START)).collect();
    for (number, source) in sources.iter().enumerate() {
        if ![2, 5].contains(&number) {
            assert_eq!(receive(&mut decoder, START, source), []);
        }
    }
    assert_eq!(receive(&mut decoder, START, &repairs[0]), []);
    let mut back = receive(&mut decoder, START, &repairs[1]);
    back.sort_unstable();
    assert_eq!(back, [2, 5]);
    assert_eq!(receive(&mut decoder, START, &repairs[2]), [], "there is nothing left to repair");
    assert_eq!(receive(&mut decoder, START, &sources[2]), [], "a packet comes back once");
}

#[test]
fn a_packet_that_comes_late_helps_those_that_never_come() {
    let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
    let sources: Vec<_> = (0..6).map(|_| sender.source(START)).collect();
    let repair = sender.repair(START);
    for number in [0, 2, 3, 5] {
        receive(&mut decoder, START, &sources[number]);
    }
    assert_eq!(receive(&mut decoder, START, &repair), []);
    assert_eq!(receive(&mut decoder, START, &sources[1]), [4]);
}

#[test]
fn numbers_go_on_over_the_wrap_and_after_a_long_pause() {
    let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
    let mut now = START;
    for round in 0..300 {
        now = now + if round % 100 == 99 { Duration::from_secs(400) } else { Duration::from_millis(1) };
        // As many go by unheard as would make the numbers mean others.
        (0..if round % 100 == 99 { 40_000 } else { 230 }).for_each(|_| drop(sender.source(now)));
        let frames = [sender.source(now), sender.source(now), sender.source(now), sender.repair(now)];
        let lost = sender.sequence - 2;
        receive(&mut decoder, now, &frames[0]);
        receive(&mut decoder, now, &frames[2]);
        let repaired = receive(&mut decoder, now, &frames[3]);
        assert!(repaired.is_empty(), "29 others of its window are missing too: {lost}");
        let sources: Vec<_> = (0..32).map(|_| sender.source(now)).collect();
        let repair = sender.repair(now);
        sources[1..].iter().for_each(|source| drop(receive(&mut decoder, now, source)));
        assert_eq!(receive(&mut decoder, now, &repair), [sender.sequence - 32], "round {round}");
    }
}

#[test]
fn a_repair_that_comes_before_its_packets_waits_for_them() {
    let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
    let sources: Vec<_> = (0..4).map(|_| sender.source(START)).collect();
    let repair = sender.repair(START);
    assert_eq!(receive(&mut decoder, START, &repair), []);
    for source in &sources[..2] {
        assert_eq!(receive(&mut decoder, START, source), []);
    }
    assert_eq!(receive(&mut decoder, START, &sources[3]), [2]);
}

#[test]
fn what_was_forgotten_is_not_waited_for() {
    let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
    for round in 0..1_000 {
        // Half of all is lost, and one repair for four cannot bring it back.
        for number in 0..4 {
            let source = sender.source(START);
            if number % 2 == 0 {
                receive(&mut decoder, START, &source);
            }
        }
        let repair = sender.repair(START);
        receive(&mut decoder, START, &repair);
        assert!(decoder.equations.len() <= 16, "round {round}");
    }
    decoder.trim();
    decoder.trim();
    assert!(decoder.equations.is_empty() && decoder.known.is_empty() && decoder.spare.is_empty());
}

#[test]
fn lies_deliver_nothing_and_cost_nothing() {
    let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
    let sources: Vec<_> = (0..4).map(|_| sender.source(START)).collect();
    sources[..3].iter().for_each(|source| drop(receive(&mut decoder, START, source)));
    let repair = sender.repair(START);
    let nothing = |_: Repaired<'_>| panic!("nothing comes of a lie");
    let Some(Ok(Frame::Repair(honest))) = Frames::new(&repair).next() else { panic!("a repair") };
    let wide = vec![1; MAX_SYMBOL + 1];
    for (lie, why) in [
        (RepairFrame { symbol: &honest.symbol[..6], ..honest }, "shorter than what it is a sum of"),
        (RepairFrame { symbol: &wide, ..honest }, "longer than any symbol"),
        (RepairFrame { row: 9, ..honest }, "another row: no packet comes of it"),
        (RepairFrame { first: SymbolNumber(65_000), ..honest }, "of symbols that were forgotten"),
    ] {
        decoder.on_repair(START, &lie, nothing);
        decoder.check();
        assert!(decoder.equations.is_empty(), "{why}");
    }
    assert_eq!(receive(&mut decoder, START, &repair), [3], "and the truth is still believed");
}

proptest! {
    /// However packets are lost: as many repairs as packets are missing, and all come back.
    #[test]
    fn any_loss_within_the_codes_strength_is_repaired(
        lost in proptest::collection::btree_set(0..32_usize, 0..12),
        missing_repairs in proptest::collection::btree_set(0..24_usize, 12),
        late in any::<prop::sample::Index>(),
    ) {
        let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
        let sources: Vec<_> = (0..32).map(|_| sender.source(START)).collect();
        let mut frames: Vec<_> = sources.iter().enumerate().filter(|(at, _)| !lost.contains(at)).map(|(_, f)| f.clone()).collect();
        let repairs: Vec<_> = (0..24).map(|_| sender.repair(START)).collect();
        let heard = repairs.iter().enumerate().filter(|(at, _)| !missing_repairs.contains(at)).map(|(_, f)| f.clone());
        frames.extend(heard.take(lost.len()));
        // One frame comes after all others.
        if !frames.is_empty() {
            let moved = frames.remove(late.index(frames.len()));
            frames.push(moved);
        }
        let mut back: Vec<u64> = frames.iter().flat_map(|frame| receive(&mut decoder, START, frame)).collect();
        back.sort_unstable();
        prop_assert!(lost.iter().all(|at| back.contains(&(*at as u64))), "lost {:?}, came back {:?}", lost, back);
    }

    /// Whatever is lost and however it is reordered, only packets that were sent come back.
    #[test]
    fn nothing_that_was_not_sent_comes_back(fates in proptest::collection::vec((any::<bool>(), 0..8_u64), 1..300)) {
        let (mut sender, mut decoder) = (Sender::new(), Decoder::default());
        let mut under_way = Vec::new();
        for (at, (lost, delay)) in fates.iter().enumerate() {
            let now = START + Duration::from_millis(at as u64);
            let frame = if at % 4 == 3 { sender.repair(now) } else { sender.source(now) };
            if !lost {
                under_way.push((at as u64 + delay, frame));
            }
        }
        under_way.sort_by_key(|(at, _)| *at);
        for (at, frame) in under_way {
            receive(&mut decoder, START + Duration::from_millis(at), &frame);
        }
    }
}
