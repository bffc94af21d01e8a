//! What is cut and restored is what was sent, but for what is said to be lost.

use hawser_core::packet::checksum;
use hawser_core::units::Time;
use proptest::prelude::*;

use super::*;
use crate::compress::Compression;
use crate::mptcp::Flags;
use crate::mptcp::samples::{Draft, v6};

const ROOM: u16 = 1360;
const PORT: OuterPort = OuterPort(31_007);

fn segments(packet: &[u8], offload: Offload, room: u16) -> Result<(u8, Vec<Vec<u8>>), NotCut> {
    let mut out = Datagrams::default();
    let class = cut(packet, offload, room, PORT, &mut out)?;
    Ok((class, out.iter().map(<[u8]>::to_vec).collect()))
}

fn drafts() -> [Draft; 2] {
    let options = vec![2, 4, 5, 180, 1, 1, 1, 1];
    let draft = Draft { options, payload: (0..=250).collect(), flags: Flags(0x18), ..Draft::default() };
    [draft.clone(), Draft { from: v6(1), to: v6(2), ..draft }]
}

/// As the far kernel does where a checksum is partial.
fn completed(packet: &[u8]) -> Vec<u8> {
    let at = usize::from(Segment::parse(packet).expect("a segment").tcp_at);
    let mut packet = packet.to_vec();
    let sum = !checksum::sum(&packet[at..]);
    packet[at + CHECKSUM_AT..at + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn a_segment_comes_back_as_it_was_between_the_addresses_that_it_is_given() {
    for draft in drafts() {
        let mut sent = draft.packet();
        if draft.from.is_ipv4() {
            (sent[1], sent[6]) = (0xb9, 0x40);
            sent[10..12].fill(0);
            let sum = !checksum::sum(&sent[..20]);
            sent[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            (sent[0], sent[1]) = (0x6b, 0x90);
        }
        let (class, all) = segments(&sent, Offload::default(), ROOM).expect("it fits");
        assert_eq!((class, all.len()), (0xb9, 1));
        assert_eq!(ports(&all[0]), Some((PORT.0, draft.to.port())));
        let mut packet = Vec::new();
        restore(&all[0], class, draft.from, draft.to, &mut packet).expect("a packet");
        assert_eq!(completed(&packet), sent, "{:?}", draft.from);
    }
}

#[test]
fn a_train_is_cut_at_its_segments_and_a_wrong_checksum_is_not_made_right() {
    for draft in drafts() {
        let draft = Draft { payload: vec![3; 2500], flags: Flags(0x99), ..draft };
        let train = Offload { partial: true, segment: Some(1000) };
        let (_, all) = segments(&draft.packet(), train, ROOM).expect("it fits");
        let read: Vec<(u32, u8, usize)> = all
            .iter()
            .map(|one| {
                let number = u32::from_be_bytes([one[4], one[5], one[6], one[7]]);
                (number - draft.sequence, one[FLAGS_AT], one.len() - 28)
            })
            .collect();
        assert_eq!(read, [(0, 0x90, 1000), (1000, 0x10, 1000), (2000, 0x19, 500)], "CWR first, FIN and PSH last");
        let mut wrong = Draft { payload: vec![3; 25], ..draft }.packet();
        *wrong.last_mut().expect("bytes") ^= 1;
        assert_eq!(segments(&wrong, Offload::default(), ROOM), Err(NotCut::Damaged));
        assert_eq!(segments(&wrong[..wrong.len() - 1], Offload::default(), ROOM), Err(NotCut::Damaged));
    }
}

#[test]
fn a_segment_of_the_largest_size_fits_and_a_larger_one_does_not_and_it_is_larger_than_in_a_datagram() {
    let fits = |payload: usize| {
        let draft = Draft { payload: vec![1; payload], ..Draft::default() };
        segments(&draft.packet(), Offload::default(), ROOM).map(|(_, all)| all[0].len())
    };
    let most = usize::from(max_segment(ROOM));
    assert_eq!(fits(most), Ok(usize::from(ROOM) + 8));
    let too_large = TooLarge { len: usize::from(ROOM) + 9, room: usize::from(ROOM) + 8 };
    assert_eq!(fits(most + 1), Err(NotCut::TooLarge(too_large)));
    assert_eq!(max_segment(ROOM) - Compression::max_segment(ROOM), 10);
}

#[test]
fn headers_alone_bring_nothing_new() {
    for draft in drafts() {
        let packet = Draft { flags: Flags(0x19), ..draft.clone() }.packet();
        let headers = packet.len() - draft.payload.len();
        let mut out = Datagrams::default();
        assert_eq!(bare(&packet[..headers], ROOM, PORT, &mut out), Some(0));
        let segment = out.iter().next().expect("one").to_vec();
        assert_eq!((segment.len(), segment[FLAGS_AT]), (28, 0x10), "no FIN, no data");
        assert_eq!(ports(&segment), Some((PORT.0, draft.to.port())));
        assert_eq!(bare(&packet[..headers - 1], ROOM, PORT, &mut out), None);
        assert_eq!((bare(&[], ROOM, PORT, &mut out), bare(&packet[..headers], 10, PORT, &mut out)), (None, None));
        assert_eq!(out.len(), 1);
    }
}

#[test]
fn the_option_costs_less_than_a_compact_datagram() {
    let draft = Draft { payload: vec![1; 1000], ..Draft::default() };
    let (_, all) = segments(&draft.packet(), Offload::default(), ROOM).expect("it fits");
    let (mut compression, mut datagrams) = (Compression::new(1), Datagrams::default());
    let shrunk = compression.shrink(Time::ZERO, &draft.packet(), Offload::default(), ROOM, &mut || 7, &mut datagrams);
    assert_eq!(shrunk, Ok(()));
    assert!(all[0].len() < datagrams.total() + UDP_LEN);
}

proptest! {
    #[test]
    fn nothing_that_comes_makes_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        class: u8,
        size in proptest::option::of(0_u16..50),
        room in 0_u16..300,
    ) {
        let mut out = Vec::new();
        let [v4, v6] = drafts();
        for draft in [v4, v6] {
            let restored = restore(&bytes, class, draft.from, draft.to, &mut out);
            prop_assert_eq!(restored.is_some(), bytes.len() >= TCP_HEADER);
        }
        prop_assert!(restore(&bytes, class, drafts()[0].from, drafts()[1].to, &mut out).is_none());
        let mut datagrams = Datagrams::default();
        let _ = cut(&bytes, Offload { partial: true, segment: size }, room, PORT, &mut datagrams);
        let _ = bare(&bytes, room, PORT, &mut datagrams);
        let _ = ports(&bytes);
    }
}
