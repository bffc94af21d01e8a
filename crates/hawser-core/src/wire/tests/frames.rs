//! Golden and hostile bytes of every frame.

use std::ops::RangeInclusive;

use super::*;
use crate::units::{PacketNumber, PathId};

fn golden_frames() -> Vec<(&'static str, Frame<'static>)> {
    let flags = DataFlags { partial: true, continues: false, unordered: true };
    let sequence = FlowSequence::of(0x01_0203);
    let token = Token(*b"hawser!!");
    vec![
        ("00 00 00", Frame::Padding(3)),
        ("01", Frame::Ping),
        ("03 6861777365722121", Frame::PathChallenge(PathChallenge { token })),
        ("04 6861777365722121", Frame::PathResponse(PathResponse { token })),
        (
            "05 4101 01 0007 05",
            Frame::PathInfo(PathInfo { path: PathId(257), state: LinkState::Down, metric: 7, revision: 5 }),
        ),
        ("06 0abc 010203", Frame::Gone(Gone { bucket: bucket(0xabc), upto: sequence })),
        (
            "07 0009 8578 5abc 010203 c0ffee",
            Frame::Split(SplitFrame {
                id: SplitId(9),
                more: true,
                offset: 1400,
                bucket: bucket(0xabc),
                flags,
                sequence,
                bytes: &[0xc0, 0xff, 0xee],
            }),
        ),
        (
            "08 5abc 010203 450000",
            Frame::Data(DataFrame { bucket: bucket(0xabc), flags, sequence, packet: &[0x45, 0, 0] }),
        ),
        (
            "08 2fff ffffff 60",
            Frame::Data(DataFrame {
                bucket: bucket(0xfff),
                flags: DataFlags { continues: true, ..DataFlags::default() },
                sequence: FlowSequence::of(0xff_ffff),
                packet: &[0x60],
            }),
        ),
        ("40 00", Frame::Reserved(ReservedFrame::new(0x40, &[]).expect("reserved"))),
        ("5f 02 c0ff", Frame::Reserved(ReservedFrame::new(0x5f, &[0xc0, 0xff]).expect("reserved"))),
        ("60 01 00", Frame::Reserved(ReservedFrame::new(0x60, &[0]).expect("reserved"))),
        ("7f 01 2a", Frame::Reserved(ReservedFrame::new(0x7f, &[42]).expect("reserved"))),
        ("09 00", Frame::Close(Close { reason: CloseReason::Shutdown })),
        ("09 01", Frame::Close(Close { reason: CloseReason::PeerRemoved })),
        ("09 02", Frame::Close(Close { reason: CloseReason::Violation })),
        ("09 2a", Frame::Close(Close { reason: CloseReason::Other(42) })),
        ("0a 80011170", Frame::Hold(Hold { hold_us: 70_000 })),
        (
            "0b fffe 0c 7f c0ffee",
            Frame::Repair(RepairFrame {
                first: SymbolNumber(0xfffe),
                count: 12,
                row: 127,
                symbol: &[0xc0, 0xff, 0xee],
            }),
        ),
        (
            "0d 0409 5abc 010203 450000",
            Frame::Protected(ProtectedFrame {
                symbol: SymbolNumber(0x409),
                data: DataFrame { bucket: bucket(0xabc), flags, sequence, packet: &[0x45, 0, 0] },
            }),
        ),
        (
            "0c 4101 01 03 80004e20 05",
            Frame::Terms(TermsFrame { path: PathId(257), barred: true, weight: 3, max_kbit: 20_000, revision: 5 }),
        ),
    ]
}

#[test]
fn every_frame_has_its_golden_bytes() {
    for (text, frame) in golden_frames() {
        let bytes = hex(text);
        assert_eq!(Frames::new(&bytes).collect::<Vec<_>>(), [Ok(frame.clone())], "{text}");
        assert_eq!(written(|out| encode(&frame, out)), bytes, "{text}");
    }
}

fn ranges(bounds: &[(u64, u64)]) -> Vec<RangeInclusive<PacketNumber>> {
    bounds.iter().map(|&(low, high)| PacketNumber(low)..=PacketNumber(high)).collect()
}

const ACK_HEAD: AckHead =
    AckHead { path: PathId(3), delay_us: 250, received_at_us: 1_000_000, ecn: EcnCounts { ect0: 20, ect1: 0, ce: 1 } };
/// 20 to 23, 17, 5 to 10; the count in its two-byte form.
const ACK_GOLDEN: &str = "02 03 17 40fa 800f4240 4002 03  01 00  05 05  14 00 01";

#[test]
fn an_ack_has_its_golden_bytes() {
    let wanted = ranges(&[(20, 23), (17, 17), (5, 10)]);
    let bytes = hex(ACK_GOLDEN);
    assert_eq!(written(|out| ACK_HEAD.encode(wanted.clone(), 1000, out).map(drop)), bytes);
    let Some(Ok(Frame::Ack(ack))) = Frames::new(&bytes).next() else { panic!("an ACK") };
    assert_eq!((ack.path, ack.largest), (PathId(3), PacketNumber(23)));
    assert_eq!((ack.delay_us, ack.received_at_us, ack.ecn), (250, 1_000_000, ACK_HEAD.ecn));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), wanted);
}

#[test]
fn an_ack_leaves_out_the_oldest_ranges_that_its_budget_does_not_hold() {
    let all = ranges(&[(20, 23), (17, 17), (5, 10)]);
    let whole = hex(ACK_GOLDEN).len();
    for (budget, count) in [(whole, 3), (whole - 1, 2), (whole - 2, 2), (whole - 4, 1)] {
        let mut buffer = [0; 100];
        let mut out = Writer::new(&mut buffer);
        assert_eq!(ACK_HEAD.encode(all.clone(), budget, &mut out), Ok(count), "budget {budget}");
        assert!(out.len() <= budget);
        let Some(Ok(Frame::Ack(ack))) = Frames::new(out.written()).next() else { panic!("an ACK") };
        assert_eq!(ack.ranges().collect::<Vec<_>>(), all[..count]);
    }
    let mut buffer = [0; 100];
    let mut out = Writer::new(&mut buffer);
    assert_eq!(ACK_HEAD.encode(all, whole - 5, &mut out), Err(EncodeError::NoRoom));
    assert!(out.is_empty(), "a failed write leaves nothing");
}

#[test]
fn an_ack_is_not_written_from_ranges_that_touch_or_climb() {
    for bad in [&[][..], &[(5, 4)], &[(5, 6), (3, 4)], &[(5, 6), (5, 5)], &[(5, 6), (8, 9)]] {
        let mut buffer = [0; 100];
        let mut out = Writer::new(&mut buffer);
        assert_eq!(ACK_HEAD.encode(ranges(bad), 100, &mut out), Err(EncodeError::AckRanges), "{bad:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn hostile_frames_are_refused_with_their_reason() {
    for (text, error) in [
        ("0e", WireError::UnknownType(0x0e)),
        ("0b 0000 00 00 01", WireError::OutOfRange),
        ("0b 0000 21 00 01", WireError::OutOfRange),
        ("0b 0000 01 80 01", WireError::OutOfRange),
        ("0b 0000 01 00", WireError::Truncated),
        ("0d 0000 8abc 000000 45", WireError::Reserved),
        ("0d 0000 0abc 000000", WireError::Truncated),
        ("ff", WireError::UnknownType(0xff)),
        ("03 00", WireError::Truncated),
        ("06 1abc 000000", WireError::Reserved),
        ("08 8abc 000000 45", WireError::Reserved),
        ("08 0abc 000000", WireError::Truncated),
        ("07 0000 0000 8000 000000 45", WireError::Reserved),
        ("07 0000 0000 0000 000000", WireError::Truncated),
        ("05 01 03 0000 00", WireError::OutOfRange),
        ("05 c000000100000000 00 0000 00", WireError::OutOfRange),
        ("02 00 05 00 00 00 06 00 00 00", WireError::AckRanges),
        ("02 00 05 00 00 01 05 00 00 00 00 00", WireError::AckRanges),
        ("02 00 05 00 00 01 00 03 01 00 00 00", WireError::AckRanges),
        ("02 00 05 00 00 ffffffffffffffff 00 00 00", WireError::Truncated),
        ("0a 80", WireError::Truncated),
        ("3f 00", WireError::UnknownType(0x3f)),
        ("80 00", WireError::UnknownType(0x80)),
        ("40", WireError::Truncated),
        ("40 02 00", WireError::Truncated),
        ("7f ffffffffffffffff 00", WireError::Truncated),
    ] {
        let bytes = hex(text);
        let mut frames = Frames::new(&bytes);
        assert_eq!(frames.next(), Some(Err(error)), "{text}");
        assert_eq!(frames.next(), None, "nothing follows an error: {text}");
    }
}

#[test]
fn only_ack_close_hold_and_the_upper_reserved_half_are_not_acknowledged() {
    for (text, frame) in golden_frames() {
        let unacked = ["09", "0a", "60", "7f"].iter().any(|kind| text.starts_with(kind));
        assert_eq!(frame.is_acked(), !unacked, "{text}");
    }
    let bytes = hex(ACK_GOLDEN);
    assert!(!Frames::new(&bytes).next().expect("a frame").expect("an ACK").is_acked());
}
