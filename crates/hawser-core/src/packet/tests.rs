//! Parsing, admitting and cutting, seen from outside.

use super::inner::parse;
use super::samples::*;
use super::train::MAX_HEAD;
use super::*;
use proptest::prelude::*;

fn store() -> TrainStore {
    TrainStore::new(KEY)
}

/// IPv6 with `extensions` before `rest`; the first extension's number is `next`.
fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
    packet.extend([0xfd; 32]);
    packet.extend(rest);
    packet
}

/// IPv4 without options.
fn ipv4(protocol: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20 + rest.len() as u8, 0, 7];
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(rest);
    packet
}

#[test]
fn what_is_no_packet_is_refused_with_its_reason() {
    let tcp = Sample::default().full();
    let said = |said, got| InnerError::Length { said, got };
    let mut offset = tcp.clone();
    offset[32] = 0x40;
    let mut options = tcp.clone();
    options[0] = 0x44;
    let table: [(&[u8], InnerError); 11] = [
        (&[], InnerError::Truncated),
        (&[0x50], InnerError::Version(5)),
        (&tcp[..19], InnerError::Truncated),
        (&tcp[..100], said(1_052, 100)),
        (&offset, InnerError::Truncated),
        (&options, InnerError::Truncated),
        (&ipv4(6, 0, &[0; 19]), InnerError::Truncated),
        (&ipv4(17, 0, &[0; 7]), InnerError::Truncated),
        (&ipv4(17, 0, &[0, 1, 0, 2, 0, 9, 0, 0]), InnerError::UdpLength(9)),
        (&ipv6(0, &[17, 1, 0, 0, 0, 0, 0, 0]), InnerError::Truncated),
        (&ipv6(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(9)), InnerError::Extensions),
    ];
    for (packet, error) in table {
        assert_eq!(parse(packet), Err(error), "{packet:x?}");
    }
}

#[test]
fn the_transport_is_found_behind_extension_headers() {
    let udp = [0, 53, 0, 99, 0, 8, 0, 0];
    let mut packet = vec![43, 0, 0, 0, 0, 0, 0, 0];
    packet.extend([51, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend([17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(udp);
    let inner = parse(&ipv6(0, &packet)).unwrap();
    assert_eq!(
        (inner.transport, inner.transport_at, inner.ports, inner.routed),
        (Transport::Udp, 40 + 28, Some((53, 99)), true)
    );
    assert_eq!(parse(&ipv6(59, &[])).unwrap().transport, Transport::Other);
}

#[test]
fn flows_hash_apart_and_fragments_together() {
    let bucket = |packet: &[u8]| parse(packet).unwrap().flow(&KEY, true).home;
    let sample = Sample::default();
    let other = Sample { ports: (4_001, 443), ..sample.clone() };
    assert_ne!(bucket(&sample.full()), bucket(&other.full()));
    let other_key = parse(&sample.full()).unwrap().flow(&FlowKey::new(3, 4), true).home;
    assert_ne!(bucket(&sample.full()), other_key);

    let first = ipv4(17, 0x2000, &[0, 1, 0, 2, 0, 30, 0, 0]);
    let last = ipv4(17, 0x0001, &[9; 22]);
    assert_eq!(bucket(&first), bucket(&last));
    let first = ipv6(44, &[17, 0, 0, 1, 0, 0, 0, 7, 0, 1, 0, 2, 0, 30, 0, 0]);
    let last = ipv6(44, &[17, 0, 0, 8, 0, 0, 0, 7, 9, 9]);
    assert_eq!(bucket(&first), bucket(&last));

    let echo = |id: u8| ipv4(1, 0, &[8, 0, 0, 0, 0, id, 0, 1]);
    assert_ne!(bucket(&echo(1)), bucket(&echo(2)));
    assert_eq!(parse(&echo(1)).unwrap().class(), Class::Unordered);
    assert_eq!(parse(&sample.full()).unwrap().class(), Class::Ordered);
}

#[test]
fn an_acknowledgement_waits_for_nothing_before_it_and_data_does() {
    let mut store = store();
    let mut class = |sample: Sample| {
        let (packet, offload) = sample.partial();
        let id = admit(&mut store, &packet, offload);
        store.train(id).class()
    };
    let ack = Sample { payload: 0, ..Sample::default() };
    assert_eq!(class(ack.clone()), Class::Unordered);
    assert_eq!(class(Sample { v6: true, ..ack.clone() }), Class::Unordered);
    // The end of a stream, and data, whose order is the stream's.
    assert_eq!(class(Sample { flags: 0x11, ..ack }), Class::Ordered);
    assert_eq!(class(Sample { payload: 1, ..Sample::default() }), Class::Ordered);
}

#[test]
fn an_offload_that_does_not_fit_is_refused() {
    let mut store = store();
    let train = Sample { gso_size: 300, ..Sample::default() };
    let (packet, good) = train.partial();
    let syn = Sample { flags: 0x12, ..train.clone() };
    let udp = Sample { udp: true, ..train.clone() };
    let table = [
        (&packet, Offload { gso_size: 0, ..good }, PacketDrop::GsoSize),
        (&packet, Offload { gso: Gso::TcpV6, ..good }, PacketDrop::GsoKind),
        (&packet, Offload { gso: Gso::UdpL4, ..good }, PacketDrop::GsoKind),
        (&packet, Offload { csum_start: 21, ..good }, PacketDrop::ChecksumPlace),
        (&syn.partial().0, good, PacketDrop::GsoKind),
        (&udp.partial().0, good, PacketDrop::ChecksumPlace),
    ];
    for (packet, offload, reason) in table {
        store.read_buffer()[..packet.len()].copy_from_slice(packet);
        assert_eq!(store.admit(packet.len(), offload), Err(reason), "{offload:?}");
    }
    assert_eq!(store.admit(1 << 20, good), Err(PacketDrop::TooLong(1 << 20)));
    assert_eq!(store.bytes_held(), 0);
}

#[test]
fn a_tunnels_partial_checksum_is_completed() {
    // UDP whose payload is a packet with a partial checksum of its own.
    let (inner, offload) = Sample { payload: 90, ..Sample::default() }.partial();
    let mut packet = Sample { udp: true, payload: inner.len(), ..Sample::default() }.full();
    packet[28..].copy_from_slice(&inner);
    packet[26..28].fill(0);
    let offload = Offload { csum_start: 28 + offload.csum_start, ..offload };
    let mut store = store();
    let id = admit(&mut store, &packet, offload);
    assert!(!store.train(id).partial());
    assert!(verifies(&store.train(id).body(0)[28..]));
    store.read_buffer()[..packet.len()].copy_from_slice(&packet);
    let outside = Offload { csum_start: 1_400, ..offload };
    assert_eq!(store.admit(packet.len(), outside), Err(PacketDrop::ChecksumPlace));
}

#[test]
fn the_flags_of_a_train_go_to_its_ends() {
    let sample = Sample { gso_size: 400, flags: 0x10 | 0x80 | 0x08 | 0x01, ..Sample::default() };
    let (packet, offload) = sample.partial();
    let mut store = store();
    let id = admit(&mut store, &packet, offload);
    let flags: Vec<u8> = (0..3).map(|i| segment(&store, id, i)[20 + 13]).collect();
    assert_eq!(flags, [0x90, 0x10, 0x19]);
}

#[test]
fn a_mark_stays_on_its_segment() {
    for v6 in [false, true] {
        for gso_size in [0, 400] {
            let sample = Sample { v6, gso_size, traffic_class: 2, ..Sample::default() };
            let (packet, offload) = sample.partial();
            let mut store = store();
            let id = admit(&mut store, &packet, offload);
            assert!(store.train(id).ect());
            let marked = store.train(id).segments() - 1;
            store.mark_ce(SegmentRef { train: id, segment: marked });
            for i in 0..=marked {
                let mut segment = segment(&store, id, i);
                finish(&mut segment, &offload);
                assert!(verifies(&segment));
                let ce = parse(&segment).unwrap().ecn() == crate::units::Ecn::Ce;
                assert_eq!(ce, i == marked, "segment {i}, v6 {v6}, gso {gso_size}");
            }
        }
    }
}

#[test]
fn buffers_are_held_as_long_as_a_segment_needs_them() {
    let mut store = store();
    let big = Sample { payload: 60_000, gso_size: 500, ..Sample::default() };
    let (packet, offload) = big.partial();
    let train = admit(&mut store, &packet, offload);
    let held = store.bytes_held();
    assert!((60_000..70_000).contains(&held));
    let small = admit(&mut store, &Sample::default().full(), Offload::default());
    assert_eq!(store.bytes_held(), held + 2_048);
    for segment in (0..120).rev() {
        assert_eq!(store.bytes_held(), held + 2_048);
        store.release(SegmentRef { train, segment });
    }
    assert_eq!(store.bytes_held(), 2_048);
    let again = admit(&mut store, &packet, offload);
    assert_ne!(again, train, "a name is never used twice");
    assert_eq!(store.bytes_pooled(), 0, "the buffer is used again");
    store.release(SegmentRef { train: small, segment: 0 });
    store.trim();
    store.trim();
    assert_eq!(store.bytes_pooled(), 0);
}

#[test]
#[should_panic(expected = "a segment released twice")]
fn a_second_release_of_a_segment_panics() {
    let mut store = store();
    let (packet, offload) = Sample { gso_size: 400, ..Sample::default() }.partial();
    let train = admit(&mut store, &packet, offload);
    store.release(SegmentRef { train, segment: 1 });
    store.release(SegmentRef { train, segment: 1 });
}

#[test]
#[should_panic(expected = "a train that was released")]
fn a_second_release_of_a_train_panics() {
    let mut store = store();
    let train = admit(&mut store, &Sample::default().full(), Offload::default());
    store.release(SegmentRef { train, segment: 0 });
    admit(&mut store, &Sample::default().full(), Offload::default());
    store.release(SegmentRef { train, segment: 0 });
}

#[test]
fn a_full_store_refuses() {
    let mut store = store();
    let packet = Sample { payload: 40_000, ..Sample::default() }.full();
    let mut refused = None;
    for _ in 0..2_000 {
        store.read_buffer()[..packet.len()].copy_from_slice(&packet);
        refused = store.admit(packet.len(), Offload::default()).err();
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused, Some(PacketDrop::Full));
    assert!(store.bytes_held() <= 96 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>()) {
        let mut bytes = bytes;
        if bytes.len() >= 40 {
            bytes[0] = if v6 { 0x60 } else { 0x40 | bytes[0] & 0xf };
            let len = if v6 { bytes.len() - 40 } else { bytes.len() } as u16;
            let at = if v6 { 4 } else { 2 };
            bytes[at..at + 2].copy_from_slice(&len.to_be_bytes());
        }
        if let Ok(inner) = parse(&bytes) {
            prop_assert!(inner.header_len().unwrap_or(0) <= bytes.len());
        }
    }

    #[test]
    fn every_segment_is_a_right_packet_and_together_they_are_the_payload(sample in any_train()) {
        let (packet, offload) = sample.partial();
        let mut store = store();
        let id = admit(&mut store, &packet, offload);
        let header = parse(&packet).unwrap().header_len().unwrap();
        let mut payload = Vec::<u8>::new();
        let mut bytes = 0;
        for i in 0..store.train(id).segments() {
            let mut segment = segment(&store, id, i);
            prop_assert_eq!(segment.len(), store.train(id).segment_len(i));
            prop_assert!(header <= MAX_HEAD);
            finish(&mut segment, &offload);
            prop_assert!(verifies(&segment), "segment {}", i);
            prop_assert_eq!(parse(&segment).unwrap().flow(&KEY, true), store.train(id).flow());
            payload.extend(&segment[header..]);
            bytes += segment.len() as u64;
        }
        prop_assert_eq!(&payload, &packet[header..]);
        prop_assert_eq!(bytes, store.train(id).bytes().0);
    }
}

#[test]
fn greedy_owners_leave_room_for_another_and_are_refused_before_the_store_is_full() {
    let packet = |store: &mut TrainStore, owner: u32| {
        let bytes = ipv4(47, 0, &[0; 200]);
        store.read_buffer()[..bytes.len()].copy_from_slice(&bytes);
        let train = store.admit(bytes.len(), Offload::default()).expect("the store is never full");
        let has_room = store.charge(train, owner);
        if !has_room {
            store.release_all(train);
        }
        (has_room, train)
    };
    let mut store = store();
    let mut kept = Vec::new();
    // One alone gets two thirds; a second one as much as is left beside the same again; so the third.
    let mut shares = Vec::new();
    for owner in 0..3 {
        let before = store.bytes_held();
        loop {
            let (has_room, train) = packet(&mut store, owner);
            if !has_room {
                break;
            }
            kept.push(train);
        }
        shares.push((store.bytes_held() - before) >> 20);
    }
    assert_eq!(shares, [64, 21, 7], "MiB of 96");
    // The first gives back half of what it has, and may not take it again before the others have had theirs.
    for train in kept.drain(..64 << 10) {
        store.release_all(train);
    }
    assert!(packet(&mut store, 1).0 && packet(&mut store, 2).0);
    kept.into_iter().for_each(|train| store.release_all(train));
    assert_eq!(store.owned_by(0), 0);
}
