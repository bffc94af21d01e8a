use super::*;
use crate::wire::{Frame, Frames};

const START: Time = Time::from_nanos(1_000_000_000);
const INTERVAL: usize = 4;

fn at(ms: u64) -> Time {
    START + Duration::from_millis(ms)
}

/// What the next repair covers: its first symbol, how many, its row.
fn repair(encoder: &mut Encoder, now: Time) -> (u16, u8, u8) {
    let mut out = vec![0xff; RepairFrame::HEAD_LEN + encoder.repair_len(now, INTERVAL)];
    encoder.repair(now, INTERVAL, &mut out);
    let Some(Ok(Frame::Repair(frame))) = Frames::new(&out).next() else { panic!("a repair") };
    (frame.first.0, frame.count, frame.row)
}

fn protect(encoder: &mut Encoder, now: Time, packet: &[u8]) -> u16 {
    encoder.protect(now, RuleId::default(), &SymbolHead::default(), (packet, &[]), INTERVAL).0
}

#[test]
fn every_fourth_packet_brings_a_repair_of_the_last_fifty_milliseconds() {
    let mut encoder = Encoder::default();
    let mut repairs = Vec::new();
    for number in 0..24 {
        assert_eq!(protect(&mut encoder, at(number * 5), b"packet"), number as u16);
        if encoder.is_due(at(number * 5), INTERVAL) {
            repairs.push(repair(&mut encoder, at(number * 5)));
            assert!(!encoder.is_due(at(number * 5), INTERVAL));
        }
    }
    assert_eq!(repairs, [(0, 4, 0), (0, 8, 1), (1, 11, 2), (5, 11, 3), (9, 11, 4), (13, 11, 5)]);
}

#[test]
fn a_slow_flow_is_covered_by_two_repairs_and_a_fast_one_by_a_whole_window() {
    for (gap, count) in [(20, 8), (60, 7), (1, 32)] {
        let mut encoder = Encoder::default();
        for number in 0..100 {
            protect(&mut encoder, at(number * gap), b"packet");
        }
        assert_eq!(repair(&mut encoder, at(99 * gap)).1, count, "{gap} ms");
    }
}

#[test]
fn the_last_packets_of_a_flow_get_two_repairs_and_then_there_is_silence() {
    let mut encoder = Encoder::default();
    for number in 0..5 {
        protect(&mut encoder, at(number * 5), b"packet");
        if encoder.is_due(at(number * 5), INTERVAL) {
            repair(&mut encoder, at(number * 5));
        }
    }
    let mut due = Vec::new();
    for ms in 20..1_000 {
        if encoder.is_due(at(ms), INTERVAL) {
            due.push(ms);
            repair(&mut encoder, at(ms));
        }
    }
    assert_eq!(due, [45, 70]);
    assert_eq!(encoder.silence_ends(), None);
}

#[test]
fn a_flow_of_thirty_packets_a_second_is_not_taken_for_silent() {
    let mut encoder = Encoder::default();
    for ms in 0..3_300 {
        if ms % 33 == 0 {
            protect(&mut encoder, at(ms), b"packet");
        }
        let silent = encoder.silence_ends().is_some_and(|end| end <= at(ms));
        assert!(!silent || ms < 500, "{ms} ms");
        if encoder.is_due(at(ms), INTERVAL) {
            repair(&mut encoder, at(ms));
        }
    }
}

#[test]
fn a_train_brings_its_repairs_at_once_but_no_more_than_eight() {
    let mut encoder = Encoder::default();
    let mut due = |packets| {
        for _ in 0..packets {
            protect(&mut encoder, START, b"packet");
        }
        let mut repairs = 0;
        while encoder.is_due(START, INTERVAL) {
            repair(&mut encoder, START);
            repairs += 1;
        }
        repairs
    };
    assert_eq!([due(10), due(2), due(400)], [2, 1, 8]);
}

#[test]
fn nothing_is_due_before_the_first_packet_nor_after_a_rest() {
    let mut encoder = Encoder::default();
    assert!(!encoder.is_due(START, INTERVAL));
    for _ in 0..9 {
        protect(&mut encoder, START, b"packet");
    }
    encoder.rest();
    assert!(!encoder.is_due(at(10_000), INTERVAL));
    assert_eq!(encoder.repair_len(at(10_000), INTERVAL), 0, "what is too old is not repaired");
    encoder.trim();
    encoder.trim();
    assert!(encoder.ring.is_empty());
    protect(&mut encoder, at(10_000), b"packet");
    assert_eq!(repair(&mut encoder, at(10_000)), (9, 1, 0));
}
