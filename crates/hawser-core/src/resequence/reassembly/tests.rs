//! Pieces in any order become the packet they were.

use super::*;
use crate::packet::{FlowBucket, FlowSequence};
use proptest::prelude::*;

const HOLD: Duration = Duration::from_secs(1);

fn arrival(sequence: u32) -> Arrival {
    Arrival { bucket: FlowBucket(7), sequence: FlowSequence(sequence), ..Arrival::default() }
}

type Said = Result<Option<Vec<u8>>, PieceError>;

fn piece(r: &mut Reassembler, now: Time, id: u16, offset: u16, more: bool, bytes: &[u8]) -> Said {
    r.on_piece(now, id, offset, more, arrival(u32::from(id)), bytes, HOLD).map(|whole| {
        whole.map(|w| {
            assert_eq!(w.arrival, arrival(u32::from(id)));
            w.packet.to_vec()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_in_any_order_make_the_packet_once(
        cuts in proptest::collection::vec((1..3_000usize, any::<u16>()), 1..20), twice in any::<bool>()
    ) {
        let mut packet = Vec::new();
        let mut pieces = Vec::new();
        for &(len, key) in &cuts {
            pieces.push((key, packet.len(), len));
            let start = packet.len();
            packet.extend((0..len).map(|i| (i * 31 + start) as u8));
        }
        prop_assume!(packet.len() < 1 << 15);
        pieces.sort();
        let mut r = Reassembler::new();
        let mut wholes = Vec::new();
        for (n, &(_, start, len)) in pieces.iter().enumerate() {
            let end = start + len;
            let last = n + 1 == pieces.len();
            for copy in 0..=u8::from(twice && !last) {
                let said = piece(&mut r, Time::ZERO, 1, start as u16, end < packet.len(), &packet[start..end]);
                if copy == 1 {
                    prop_assert_eq!(&said, &Err(PieceError::Overlap));
                }
                wholes.extend(said.ok().flatten());
            }
        }
        prop_assert_eq!(wholes, vec![packet]);
        prop_assert_eq!(r.in_progress(), 0);
    }

    #[test]
    fn nonsense_never_panics_nor_grows(
        pieces in proptest::collection::vec((0..4u16, 0..300u16, any::<bool>(), 0..200usize), 1..200)
    ) {
        let mut r = Reassembler::new();
        for (id, offset, more, len) in pieces {
            let _ = piece(&mut r, Time::ZERO, id, offset, more, &vec![1; len]);
            prop_assert!(r.in_progress() <= 4);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_the_rest_stays() {
    let mut r = Reassembler::new();
    let mut say = |offset, more, bytes: &[u8]| piece(&mut r, Time::ZERO, 1, offset, more, bytes);
    assert_eq!(say(10, true, &[1; 10]), Ok(None));
    let table: [(u16, bool, &[u8], PieceError); 6] = [
        (0, true, &[], PieceError::Empty),
        (65_535, true, &[2; 100], PieceError::TooLong(65_635)),
        (10, true, &[2; 10], PieceError::Overlap),
        (5, true, &[2; 6], PieceError::Overlap),
        (19, true, &[2; 6], PieceError::Overlap),
        (0, false, &[2; 5], PieceError::Contradiction),
    ];
    for (offset, more, bytes, error) in table {
        assert_eq!(say(offset, more, bytes), Err(error));
    }
    assert_eq!(say(20, false, &[3; 5]), Ok(None));
    assert_eq!(say(25, true, &[3; 5]), Err(PieceError::Contradiction));
    assert_eq!(say(25, false, &[3; 5]), Err(PieceError::Contradiction));
    let whole = [[0; 10].as_slice(), &[1; 10], &[3; 5]].concat();
    assert_eq!(say(0, true, &[0; 10]), Ok(Some(whole)));

    assert_eq!(piece(&mut r, Time::ZERO, 2, 0, true, &[1; 10]), Ok(None));
    let other = r.on_piece(Time::ZERO, 2, 10, false, arrival(9), &[1; 10], HOLD);
    assert_eq!(other, Err(PieceError::Contradiction));
}

#[test]
fn scattered_pieces_are_refused() {
    let mut r = Reassembler::new();
    for n in 0..64 {
        assert_eq!(piece(&mut r, Time::ZERO, 1, n * 2, true, &[0]), Ok(None));
    }
    assert_eq!(piece(&mut r, Time::ZERO, 1, 200, true, &[0]), Err(PieceError::Scattered));
    assert_eq!(piece(&mut r, Time::ZERO, 1, 1, true, &[0]), Ok(None));
}

#[test]
fn unfinished_packets_are_forgotten_when_old_or_too_many() {
    let mut r = Reassembler::new();
    for id in 0..70 {
        assert_eq!(piece(&mut r, Time::ZERO, id, 0, true, &[0; 100]), Ok(None));
    }
    assert_eq!((r.in_progress(), r.expired()), (64, 6));
    r.expire(Time::ZERO + HOLD, HOLD);
    assert_eq!(r.in_progress(), 64);
    let later = Time::ZERO + HOLD * 2;
    assert_eq!(piece(&mut r, later, 69, 100, false, &[0; 100]), Ok(None));
    assert_eq!((r.in_progress(), r.expired()), (1, 70));
}
