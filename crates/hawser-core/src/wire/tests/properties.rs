//! Round trips of anything, and no panic on anything.

use proptest::prelude::*;

use super::handshake::{CookieReply, Initiation, Response};
use super::*;
use crate::units::{PacketNumber, PathId};

fn any_varint() -> impl Strategy<Value = u64> {
    (0..=varint::MAX, 0..62_u32).prop_map(|(value, shift)| value >> shift)
}

fn any_small_frame() -> impl Strategy<Value = Frame<'static>> {
    let place = (0..4096_u16, any::<u64>());
    prop_oneof![
        Just(Frame::Ping),
        any::<[u8; 8]>().prop_map(|token| Frame::PathChallenge(PathChallenge { token: Token(token) })),
        any::<[u8; 8]>().prop_map(|token| Frame::PathResponse(PathResponse { token: Token(token) })),
        (any::<u32>(), 0..3_u8, any::<u16>(), any_varint()).prop_map(|(path, state, metric, revision)| {
            let state = [LinkState::Usable, LinkState::Down, LinkState::Closed][usize::from(state)];
            Frame::PathInfo(PathInfo { path: PathId(path), state, metric, revision })
        }),
        place.prop_map(|(number, upto)| Frame::Gone(Gone { bucket: bucket(number), upto: FlowSequence::of(upto) })),
        any::<u8>().prop_map(|code| Close::decode(&mut Reader::new(&[code])).map(Frame::Close).expect("a reason")),
        any_varint().prop_map(|hold_us| Frame::Hold(Hold { hold_us })),
        (0x40..0x80_u8, 0..3_usize).prop_map(|(kind, len)| {
            Frame::Reserved(ReservedFrame::new(kind, &[0xaa, 0, 0x40][..len]).expect("of the range"))
        }),
        (any::<u32>(), any::<bool>(), 1..=u8::MAX, any_varint(), any_varint()).prop_map(
            |(path, barred, weight, max_kbit, revision)| {
                Frame::Terms(TermsFrame { path: PathId(path), barred, weight, max_kbit, revision })
            }
        ),
    ]
}

proptest! {
    #[test]
    fn varints_round_trip(value in any_varint()) {
        let bytes = written(|out| out.put_varint(value));
        prop_assert_eq!(varint::decode(&bytes), Ok((value, varint::len(value).expect("in range"))));
    }

    #[test]
    fn packet_numbers_round_trip(largest in 0..varint::MAX, step in -(1_i64 << 31) + 2..1 << 31) {
        let number = PacketNumber(largest.saturating_add_signed(step));
        prop_assert_eq!(TruncatedNumber::of(number).expand(Some(PacketNumber(largest))), number);
    }

    #[test]
    fn flow_sequences_round_trip(near in 0..u64::MAX >> 1, step in -(1_i64 << 23)..1 << 23) {
        let count = near.saturating_add_signed(step);
        prop_assert_eq!(FlowSequence::of(count).expand(near), count);
    }

    #[test]
    fn expansion_never_panics(cut in any::<u32>(), near in any::<u64>()) {
        TruncatedNumber(cut).expand(Some(PacketNumber(near)));
        FlowSequence::of(u64::from(cut)).expand(near);
    }

    #[test]
    fn frames_round_trip_in_a_row(
        mut frames in proptest::collection::vec(any_small_frame(), 0..20),
        packet in proptest::collection::vec(any::<u8>(), 1..200),
        place in (0..4096_u16, any::<u64>(), any::<[bool; 4]>(), 0..=SplitFrame::MAX_OFFSET, any::<u16>()),
    ) {
        let (number, count, [partial, continues, unordered, more], offset, id) = place;
        let flags = DataFlags { partial, continues, unordered };
        let (bucket, sequence) = (bucket(number), FlowSequence::of(count));
        for last in [
            Frame::Data(DataFrame { bucket, flags, sequence, packet: &packet }),
            Frame::Protected(ProtectedFrame {
                symbol: SymbolNumber(id),
                data: DataFrame { bucket, flags, sequence, packet: &packet },
            }),
            Frame::Repair(RepairFrame {
                first: SymbolNumber(id),
                count: 1 + (number % 32) as u8,
                row: (number % 128) as u8,
                symbol: &packet,
            }),
            Frame::Split(SplitFrame { id: SplitId(id), more, offset, bucket, flags, sequence, bytes: &packet }),
        ] {
            frames.push(last);
            let bytes = written(|out| frames.iter().try_for_each(|frame| encode(frame, out)));
            let back: Result<Vec<_>, _> = Frames::new(&bytes).collect();
            prop_assert_eq!(back.as_ref(), Ok(&frames));
            frames.pop();
        }
    }

    #[test]
    fn acks_round_trip(
        steps in proptest::collection::vec((0..1_u64 << 20, 0..1_u64 << 20), 1..300),
        numbers in (any::<u32>(), any_varint(), any_varint()),
        ecn in (any_varint(), any_varint(), any_varint()),
    ) {
        let (path, delay_us, received_at_us) = numbers;
        let head = AckHead {
            path: PathId(path),
            delay_us,
            received_at_us,
            ecn: EcnCounts { ect0: ecn.0, ect1: ecn.1, ce: ecn.2 },
        };
        let mut above = 1_u64 << 40;
        let all: Vec<_> = steps.into_iter().map(|(gap, length)| {
            let high = above - gap - 2;
            above = high - length;
            PacketNumber(above)..=PacketNumber(high)
        }).collect();
        let mut buffer = [0; 1200];
        let mut out = Writer::new(&mut buffer);
        let count = head.encode(all.clone(), 1200, &mut out).expect("one range fits");
        let mut reader = Reader::new(out.written());
        let Ok(Frame::Ack(ack)) = Frame::decode(&mut reader) else { panic!("an ACK") };
        prop_assert!(reader.is_empty());
        prop_assert_eq!((ack.path, ack.delay_us, ack.received_at_us, ack.ecn), (head.path, delay_us, received_at_us, head.ecn));
        prop_assert_eq!(ack.ranges().collect::<Vec<_>>(), &all[..count]);
    }

    #[test]
    fn random_bytes_never_panic_and_what_is_read_is_written_alike(
        bytes in proptest::collection::vec(prop_oneof![0..16_u8, any::<u8>()], 0..300),
    ) {
        let _ = (DataHeader::decode(&mut Reader::new(&bytes)), Initiation::decode(&bytes), Response::decode(&bytes));
        let _ = (CookieReply::decode(&bytes), Offer::decode(&bytes));
        for frame in Frames::new(&bytes).map_while(Result::ok) {
            let again = written(|out| encode(&frame, out));
            prop_assert_eq!(Frames::new(&again).next(), Some(Ok(frame)));
        }
    }

    #[test]
    fn a_writer_never_overruns(frame in any_small_frame(), room in 0..40_usize) {
        let mut buffer = [0x55; 64];
        let mut out = Writer::new(&mut buffer[..room]);
        if encode(&frame, &mut out).is_err() {
            prop_assert!(out.is_empty());
        }
        prop_assert!(buffer[room..].iter().all(|byte| *byte == 0x55));
    }
}
