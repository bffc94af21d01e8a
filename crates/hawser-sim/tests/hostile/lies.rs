//! A peer that lies: in its acknowledgements, its inner packets, its frames, its path ids.

use crate::liar::Liar;
use crate::memory::live;
use hawser_core::drops::DropReason;
use hawser_core::units::{ByteCount, PacketNumber};
use hawser_core::wire::{
    AckHead, DataFlags, DataFrame, EcnCounts, FlowBucket, FlowSequence, FrameType, Gone, Hold, LinkState, PathInfo,
    SplitFrame, SplitId,
};
use hawser_sim::host::packets::{self, UDP_HEADERS};
use hawser_sim::situation::address;
use hawser_sim::{LOCAL, REMOTE};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// What the resequencer may hold (32 MiB in buffers), with its tables, bytes.
const HELD_MOST: i64 = 40 << 20;
/// The largest number that a varint carries.
const VARINT_MAX: u64 = (1 << 62) - 1;

fn data(sequence: u64, packet: &[u8]) -> DataFrame<'_> {
    let flags = DataFlags { partial: false, continues: false, unordered: false };
    DataFrame { bucket: FlowBucket::of_hash(5), flags, sequence: FlowSequence::of(sequence), packet }
}

/// A UDP packet of no flow that a sink knows.
fn packet(from: Ipv4Addr, to: Ipv4Addr, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    packets::ipv4(&mut bytes, from, to, packets::UDP, len - 20);
    packets::udp(&mut bytes, 0, len - UDP_HEADERS);
    bytes
}

fn say_ack(liar: &mut Liar, ranges: &[RangeInclusive<u64>], delay_us: u64, received_at_us: u64) {
    let path = liar.path(0);
    let counts = EcnCounts { ect0: VARINT_MAX, ect1: VARINT_MAX, ce: VARINT_MAX };
    let head = AckHead { path, delay_us, received_at_us, ecn: counts };
    let ranges: Vec<_> = ranges.iter().map(|range| PacketNumber(*range.start())..=PacketNumber(*range.end())).collect();
    liar.say(path, |out| {
        let room = out.remaining();
        head.encode(ranges, room, out).expect("an acknowledgement fits");
    });
}

#[test]
fn acknowledges_what_was_never_sent() {
    let mut liar = Liar::new(60, 5.0);
    let path = liar.path(0);
    liar.ping(path);
    liar.pass(300);
    let before = liar.session().paths[0].clone();
    for upto in [1_000_000, u64::from(u32::MAX), VARINT_MAX] {
        let lies = liar.dropped(DropReason::BadFrame);
        say_ack(&mut liar, &[0..=upto], 0, 0);
        assert_eq!(liar.dropped(DropReason::BadFrame), lies + 1, "an acknowledgement of {upto}");
    }
    let after = liar.session().paths[0].clone();
    assert_eq!(after.window, before.window, "the window did not grow by it");
    assert_eq!(after.in_flight, before.in_flight, "nothing was settled by it");
    liar.pass(1_000);
}

#[test]
fn acknowledges_with_absurd_times_and_counts() {
    let mut liar = Liar::new(61, 5.0);
    let path = liar.path(0);
    liar.ping(path);
    for round in 0..50 {
        liar.pass(20);
        say_ack(&mut liar, &[0..=0], VARINT_MAX, if round % 2 == 0 { VARINT_MAX } else { 0 });
    }
    let rtt = liar.session().paths[0].rtt.as_secs_f64();
    assert!(rtt < 60.0, "a round trip of {rtt} s");
    liar.pass(5_000);
}

#[test]
fn acknowledges_nothing() {
    let mut liar = Liar::new(62, 50.0);
    let path = liar.path(0);
    liar.ping(path);
    liar.pass(100);
    let (before, _) = (live(), liar.heard());
    for _ in 0..30 {
        liar.ping(path);
        liar.pass(100);
        liar.heard();
    }
    // The queue's 8 MiB, and as much again in flight and in buffers kept.
    let grown = live() - before;
    assert!(grown < 64 << 20, "{grown} bytes more on the heap");
    assert!(liar.session().queued <= ByteCount(8 << 20));
}

#[test]
fn sends_inner_packets_from_addresses_that_are_not_its_own() {
    let mut liar = Liar::new(63, 0.1);
    let path = liar.path(0);
    let to = address(REMOTE, 10);
    let wrong = [Ipv4Addr::new(10, 99, 0, 1), address(REMOTE, 10), Ipv4Addr::new(127, 0, 0, 1)];
    for (sequence, from) in wrong.into_iter().enumerate() {
        let bytes = packet(from, to, 200);
        liar.say(path, |out| data(sequence as u64, &bytes).encode(out).expect("a packet fits"));
    }
    assert_eq!(liar.dropped(DropReason::WrongSource), 3);
    assert_eq!(liar.delivered.borrow().corrupt, 0, "the host got none of them");
    // One of its own addresses is let through, to a host that never heard of it.
    let bytes = packet(address(LOCAL, 10), to, 200);
    liar.say(path, |out| data(3, &bytes).encode(out).expect("a packet fits"));
    liar.pass(5_000);
    assert_eq!((liar.dropped(DropReason::WrongSource), liar.delivered.borrow().corrupt), (3, 1));
}

#[test]
fn sends_frames_that_are_none() {
    let mut liar = Liar::new(64, 0.1);
    let path = liar.path(0);
    liar.ping(path);
    let mut junk = 0;
    // CLOSE takes any reason, and ends the session.
    for first in (0..=255u8).filter(|first| *first != FrameType::Close as u8) {
        let before = liar.dropped(DropReason::BadFrame);
        liar.say(path, |out| {
            for byte in [first, 0xff, 0xff, 0xff] {
                out.put_u8(byte).expect("room for a byte");
            }
        });
        junk += liar.dropped(DropReason::BadFrame) - before;
    }
    assert!(junk >= 245, "{junk} of 255 were known as junk");
    liar.ping(path);
    assert_eq!(liar.session().paths.len(), 1);
}

#[test]
fn fills_the_resequencer_with_gaps() {
    let mut liar = Liar::new(65, 0.1);
    let path = liar.path(0);
    liar.say(path, |out| Hold { hold_us: VARINT_MAX }.encode(out).expect("a word fits"));
    let bytes = packet(address(LOCAL, 10), address(REMOTE, 10), 1_300);
    let before = live();
    let mut most = 0;
    for number in 0..40_000u64 {
        let frame = DataFrame { bucket: FlowBucket::of_hash(number % 64), ..data(number / 64 * 2 + 1, &bytes) };
        liar.say(path, |out| frame.encode(out).expect("a packet fits"));
        most = most.max(live() - before);
    }
    assert!(most < HELD_MOST, "{most} bytes more on the heap");
    liar.pass(20_000);
    assert_eq!(liar.session().held, ByteCount::ZERO, "held for longer than any gap is waited for");
}

#[test]
fn begins_packets_in_pieces_and_ends_none() {
    let mut liar = Liar::new(66, 0.1);
    let path = liar.path(0);
    let before = live();
    for number in 0..20_000u64 {
        let flags = DataFlags { partial: false, continues: false, unordered: false };
        let frame = SplitFrame {
            id: SplitId(number as u16),
            more: true,
            offset: (number % 30) as u16 * 1_000,
            bucket: FlowBucket::of_hash(number),
            flags,
            sequence: FlowSequence::of(number),
            bytes: &[0; 1_000],
        };
        liar.say(path, |out| frame.encode(out).expect("a piece fits"));
    }
    let grown = live() - before;
    assert!(grown < 8 << 20, "{grown} bytes more on the heap");
}

#[test]
fn says_that_everything_is_gone() {
    let mut liar = Liar::new(67, 0.1);
    let path = liar.path(0);
    for number in 0..20_000u64 {
        let gone = Gone { bucket: FlowBucket::of_hash(number), upto: FlowSequence::of(number * 7_919) };
        liar.say(path, |out| gone.encode(out).expect("a word fits"));
    }
    liar.pass(1_000);
    assert_eq!(liar.session().held, ByteCount::ZERO);
}

#[test]
fn opens_paths_without_end() {
    let mut liar = Liar::new(68, 0.1);
    let before = live();
    for count in 0..3_000 {
        let path = liar.path(count);
        liar.ping(path);
        if count % 50 == 0 {
            liar.pass(1);
        }
    }
    let session = liar.session();
    assert!(session.paths.len() <= 64, "{} paths", session.paths.len());
    let grown = live() - before;
    assert!(grown < 16 << 20, "{grown} bytes more on the heap");
}

#[test]
fn says_strange_things_of_paths() {
    let mut liar = Liar::new(69, 0.1);
    let path = liar.path(0);
    liar.ping(path);
    for number in 0..5_000u32 {
        let state = [LinkState::Usable, LinkState::Down][number as usize % 2];
        let info = PathInfo { path: liar.path(number % 100 + 1), state, metric: 7, revision: u64::from(number) };
        liar.say(path, |out| info.encode(out).expect("a word fits"));
    }
    let revision = VARINT_MAX;
    let info = PathInfo { path, state: LinkState::Closed, metric: 0, revision };
    liar.say(path, |out| info.encode(out).expect("a word fits"));
    liar.pass(5_000);
    assert!(liar.session().paths.len() <= 1, "a closed path is forgotten");
}
