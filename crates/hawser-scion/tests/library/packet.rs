//! What is written is read again; what is cut, changed or out of order is refused; ways back; whose packet it is.

use std::time::{Duration, SystemTime};

use crate::common::*;
use hawser_scion::packet::*;
use hawser_scion::{Dataplane, InterfaceId};

#[test]
fn a_packet_that_is_cut_anywhere_is_refused() {
    for bytes in [datagram(&path(&[2, 3], 1), b"hello"), control(&down(b"quoted"))] {
        assert!(parse(&bytes).is_ok());
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "cut to {len} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn each_wrong_field_is_refused_for_its_own_reason() {
    // IPv4 hosts, a path of one segment with two hops: 12, 24 and 36 bytes, then UDP of 8 and 5.
    type Expected = fn(Malformed) -> bool;
    let table: [(&str, usize, u8, Expected); 11] = [
        ("version", 0, 0x10, |error| error == Malformed::Version(1)),
        ("header length, short", 5, 8, |error| error == Malformed::HeaderLength { said: 32, need: 36 }),
        ("header length, long", 5, 200, |error| matches!(error, Malformed::Truncated { part: Part::Header, .. })),
        ("header length, cuts path", 5, 17, |error| matches!(error, Malformed::Truncated { part: Part::Path, .. })),
        ("payload length", 7, 12, |error| error == Malformed::PayloadLength { said: 12, there: 13 }),
        ("path type", 8, 4, |error| error == Malformed::PathType(4)),
        ("empty path", 8, 0, |error| error == Malformed::NotEmpty(36)),
        ("address type", 9, 0x10, |error| error == Malformed::AddressType(1)),
        ("service", 9, 0x40, |error| error == Malformed::Service(Service(0x0a00))),
        ("udp length, short", 72 + 5, 7, |error| error == Malformed::UdpLength { said: 7, there: 13 }),
        ("udp length, long", 72 + 5, 14, |error| error == Malformed::UdpLength { said: 14, there: 13 }),
    ];
    let right = datagram(&path(&[2], 0), b"hello");
    assert_eq!(right.len(), 72 + 13);
    for (field, at, byte, expected) in table {
        let mut wrong = right.clone();
        wrong[at] = byte;
        let error = parse(&wrong).expect_err(field);
        assert!(expected(error), "{field}: {error}");
    }
}

#[test]
fn a_gap_between_segments_is_refused() {
    for (lens, good) in
        [([2, 2, 2], true), ([0, 1, 0], false), ([0, 0, 1], false), ([1, 0, 1], false), ([0, 0, 0], true)]
    {
        let read = DataplaneView::read(1, &at_position(&lens, 0, 0)).map(drop);
        assert_eq!(read, if good { Ok(()) } else { Err(Malformed::SegmentGap(lens)) });
    }
}

#[test]
fn more_hops_than_can_be_pointed_at_are_refused() {
    assert!(DataplaneView::of(&path(&[20, 22, 22], 63)).is_ok());
    assert_eq!(DataplaneView::of(&path(&[20, 22, 23], 0)), Err(Malformed::TooManyHops(65)));
}

#[test]
fn services_are_read_in_headers_and_refused_in_packets() {
    let mut bytes = datagram(&Dataplane::Empty, b"");
    bytes[9] = 0x44;
    let (header, _) = Header::read(&bytes).expect("a header");
    assert_eq!(
        (header.destination().1, header.source().1),
        (Host::Service(Service(0x0a00)), Host::Service(Service(0x0a00)))
    );
    assert_eq!(parse(&bytes), Err(Malformed::Service(Service(0x0a00))));
}

#[test]
fn kinds_of_paths_that_are_not_read_are_known_by_number() {
    for (kind, len, expected) in [(2, 32, PathType::OneHop), (3, 16 + 4 + 8 + 24, PathType::Epic)] {
        let mut bytes = vec![0; len];
        if kind == 3 {
            bytes[16..20].copy_from_slice(&(2u32 << 12).to_be_bytes());
        }
        let view = DataplaneView::read(kind, &bytes).expect("long enough");
        assert_eq!((view.path_type(), view.as_bytes().len()), (expected, len));
        assert_eq!((view.reversed(), view.expiry(), view.position()), (Err(NotReversible::Kind), None, None));
        assert!(DataplaneView::read(kind, &bytes[..len - 1]).is_err());
    }
}

#[test]
fn extensions_are_passed_over_in_their_order_only() {
    const HBH: u8 = protocol::HOP_BY_HOP;
    const E2E: u8 = protocol::END_TO_END;
    let table: [(&[u8], bool); 8] = [
        (&[], true),
        (&[HBH], true),
        (&[E2E], true),
        (&[HBH, E2E], true),
        (&[E2E, HBH], false),
        (&[HBH, HBH], false),
        (&[E2E, E2E], false),
        (&[HBH, E2E, E2E], false),
    ];
    for (order, good) in table {
        let read = with_extensions(order, &[1, 4, 0, 0, 0, 0]);
        let read = parse(&read).map(|packet| match packet.upper() {
            Upper::Udp(udp) => (udp.payload().to_vec(), packet.verify_checksum()),
            other => panic!("{other:?}"),
        });
        assert_eq!(read.is_ok(), good, "{order:?}: {read:?}");
        if good {
            assert_eq!(read, Ok((b"hello".to_vec(), true)), "{order:?}");
        }
    }
}

#[test]
fn options_fill_their_extension() {
    let table: [(&[u8], bool); 6] = [
        (&[0, 0], true),
        (&[1, 0], true),
        (&[7, 4, 9, 9, 9, 9], true),
        (&[7, 3, 9, 9, 9, 0], true),
        (&[7, 5, 9, 9, 9, 9], false),
        (&[0, 7], false),
    ];
    for (options, good) in table {
        let bytes = with_extensions(&[protocol::END_TO_END], options);
        assert_eq!(parse(&bytes).is_ok(), good, "{options:?}");
    }
}

#[test]
fn the_first_hop_field_to_expire_ends_a_path() {
    let mut bytes = path(&[2, 1], 0).as_bytes().to_vec();
    // Timestamps of both info fields, and units of the three hop fields after them.
    bytes[8..12].copy_from_slice(&1_000_000u32.to_be_bytes());
    bytes[16..20].copy_from_slice(&1_000_300u32.to_be_bytes());
    for (hop, units) in [(0, 3), (1, 1), (2, 0)] {
        bytes[20 + hop * 12 + 1] = units;
    }
    let view = DataplaneView::read(1, &bytes).expect("a path");
    let expected = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_300_000 + 337_500);
    assert_eq!(view.expiry(), Some(expected));
    assert_eq!(DataplaneView::of(&Dataplane::Empty).expect("a path").expiry(), None);
}

#[test]
fn a_path_is_reversed_from_where_the_packet_is() {
    let bytes = path(&[3, 2], 2);
    let view = DataplaneView::of(&bytes).expect("a path");
    let back = view.reversed().expect("it can be reversed");
    let back = DataplaneView::of(&back).expect("a path");
    assert_eq!((view.position(), back.position()), (Some((0, 2)), Some((1, 2))));
    let lens = |view: DataplaneView<'_>| {
        view.segments().map(|(info, hops)| (info.construction, hops.count())).collect::<Vec<_>>()
    };
    assert_eq!((lens(view), lens(back)), (vec![(true, 3), (true, 2)], vec![(false, 2), (false, 3)]));
    let hops = |view: DataplaneView<'_>| view.segments().flat_map(|(_, hops)| hops).collect::<Vec<_>>();
    assert!(hops(view).iter().eq(hops(back).iter().rev()));
}

#[test]
fn there_is_no_way_back_from_nowhere() {
    let table = [
        ("no segment", vec![0; 4], NotReversible::NoSegment),
        ("beyond the last hop", at_position(&[2], 0, 2), NotReversible::Position { hop: 2, hops: 2, segment: 0 }),
        ("another segment", at_position(&[2, 2], 0, 2), NotReversible::Position { hop: 2, hops: 4, segment: 0 }),
        ("no such segment", at_position(&[2], 3, 0), NotReversible::Position { hop: 0, hops: 2, segment: 3 }),
    ];
    for (name, bytes, expected) in table {
        let view = DataplaneView::read(1, &bytes).expect("a path");
        assert_eq!(view.reversed(), Err(expected), "{name}");
        let path = Dataplane::Scion(bytes.into());
        let template = Template::new(alice(), bob(), &path, FlowId::default());
        assert!(matches!(template, Err(TemplateError::Position(error)) if error == expected), "{name}: {template:?}");
    }
}

#[test]
fn a_template_is_made_of_a_path_and_nothing_more() {
    let longer = Dataplane::Scion([path(&[2], 0).as_bytes(), &[0; 4]].concat().into());
    let error = Template::new(alice(), bob(), &longer, FlowId::default());
    assert_eq!(error, Err(TemplateError::PathLength { len: 36, extra: 4 }));
    let shorter = Dataplane::Scion(path(&[2], 0).as_bytes()[..35].into());
    assert!(matches!(Template::new(alice(), bob(), &shorter, FlowId::default()), Err(TemplateError::Path(_))));
}

#[test]
fn headers_leave_the_rest_of_the_mtu_to_the_payload() {
    for (path, expected) in [(Dataplane::Empty, 1428), (path(&[2], 0), 1392), (path(&[2, 2, 2], 0), 1328)] {
        let template = template(&path);
        assert_eq!((template.max_payload(1472), template.max_payload(20)), (expected, 0));
    }
}

#[test]
fn a_template_can_change_ports_and_traffic_class() {
    let mut template = template(&path(&[2], 0));
    for (class, source, destination) in [(0xff, 1, 2), (0x12, 65535, 0), (0, 30041, 31000)] {
        template.set_traffic_class(class);
        template.set_source_port(source);
        template.set_destination_port(destination);
        let bytes = finished(&template, b"payload");
        let packet = parse(&bytes).expect("a packet");
        let Upper::Udp(udp) = packet.upper() else { panic!("no datagram") };
        assert_eq!((packet.header().traffic_class(), packet.header().flow_id()), (class, 1));
        assert_eq!((udp.source_port(), udp.destination_port(), udp.verify_checksum()), (source, destination, true));
    }
}

#[test]
fn flow_ids_have_20_bits_and_are_never_0() {
    assert_eq!((FlowId::new(0), FlowId::new(1 << 20)), (None, None));
    for hash in [0, 1, (1 << 20) - 2, (1 << 20) - 1, 1 << 20, u32::MAX] {
        let flow = FlowId::from_hash(hash);
        assert_eq!(FlowId::new(flow.get()), Some(flow), "{hash}");
    }
}

#[test]
fn an_error_quotes_what_has_room() {
    let template = template(&path(&[2, 2, 2], 0));
    let offending = vec![7; 4000];
    let mut bytes = Vec::new();
    template.write_scmp(&down(&offending), &mut bytes);
    assert_eq!(bytes.len(), MAX_SCMP_LEN);
    let packet = parse(&bytes).expect("a packet");
    assert!(packet.verify_checksum());
    let Upper::Scmp(message) = packet.upper() else { panic!("no message") };
    assert!(message.is_error());
    assert_eq!(message.quoted().map(<[u8]>::len), Some(MAX_SCMP_LEN - 12 - 24 - 100 - 20));
}

#[test]
fn an_echo_is_answered_by_its_repetition() {
    let echo = Echo { id: 1, seq: 2, data: b"again" };
    let bytes = control(&ScmpView::EchoRequest(echo));
    let Upper::Scmp(ScmpView::EchoRequest(asked)) = parse(&bytes).expect("a packet").upper() else { panic!("no echo") };
    assert_eq!(asked.reply(), ScmpView::EchoReply(echo));
    assert_eq!((asked.reply().quoted(), asked.reply().is_error()), (None, false));
}

#[test]
fn a_packet_goes_to_whom_it_concerns() {
    let udp = datagram(&path(&[2], 0), b"hello");
    let trace = Traceroute { id: 7, seq: 0, ..Traceroute::default() };
    let echo = Echo { id: 9, seq: 0, data: b"" };
    let ours = |message: &ScmpView<'_>| control(message);
    let udp_from_0 = {
        let mut template = template(&path(&[2], 0));
        template.set_source_port(0);
        finished(&template, b"")
    };
    let table: [(&str, Vec<u8>, Result<u16, Undeliverable>); 15] = [
        ("a datagram", udp.clone(), Ok(31001)),
        ("an echo request", ours(&ScmpView::EchoRequest(echo)), Ok(ENDHOST_PORT)),
        ("an echo reply", ours(&ScmpView::EchoReply(echo)), Ok(9)),
        ("a traceroute request", ours(&ScmpView::TracerouteRequest(trace)), Ok(ENDHOST_PORT)),
        ("a traceroute reply", ours(&ScmpView::TracerouteReply(trace)), Ok(7)),
        ("an error about a datagram", ours(&down(&udp)), Ok(31000)),
        ("an error about a cut datagram", ours(&down(&udp[..72 + 8])), Ok(31000)),
        ("an error about too little", ours(&down(&udp[..72 + 7])), Err(Undeliverable::NotOurs)),
        ("an error about a datagram of nobody", ours(&down(&udp_from_0)), Err(Undeliverable::NotOurs)),
        ("an error about an echo", ours(&down(&ours(&ScmpView::EchoRequest(echo)))), Ok(9)),
        ("an error about a traceroute", ours(&down(&ours(&ScmpView::TracerouteRequest(trace)))), Ok(7)),
        ("an error about an answer", ours(&down(&ours(&ScmpView::EchoReply(echo)))), Err(Undeliverable::NotOurs)),
        ("an error about an error", ours(&down(&ours(&down(&udp)))), Err(Undeliverable::NotOurs)),
        (
            "an unknown message",
            ours(&ScmpView::Unknown { kind: 3, code: 0, body: &udp }),
            Err(Undeliverable::UnknownScmp(3)),
        ),
        ("another protocol", carrying(250, b"anything"), Ok(ENDHOST_PORT)),
    ];
    for (name, bytes, expected) in table {
        let packet = parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(dispatched_port(&packet), expected, "{name}");
    }
    let tcp = [&[0, 1, 0x79, 0x18][..], &[0; 16]].concat();
    assert_eq!(dispatched_port(&parse(&carrying(protocol::TCP, &tcp)).expect("a packet")), Ok(31000));
    let short = carrying(protocol::TCP, &tcp[..19]);
    assert_eq!(dispatched_port(&parse(&short).expect("a packet")), Err(Undeliverable::Truncated));
}

#[test]
fn a_quote_tells_where_our_packet_was_going() {
    let udp = datagram(&path(&[2, 2], 3), b"hello");
    let bytes = control(&down(&udp[..udp.len() - 3]));
    let Upper::Scmp(message) = parse(&bytes).expect("a packet").upper() else { panic!("no message") };
    let quote = Quote::read(message.quoted().expect("an error quotes")).expect("a quote");
    assert_eq!(quote.header.destination(), (bob().isd_as, Host::Ip(bob().host.ip())));
    assert_eq!(quote.header.dataplane().position(), Some((1, 3)));
    assert_eq!(quote.carried, Quoted::Udp { source_port: 31000, destination_port: 31001, payload: b"he" });
}

#[test]
fn interfaces_of_messages_are_those_of_hop_fields() {
    let mut bytes = control(&down(b""));
    let last = bytes.len() - 1;
    assert!(matches!(
        parse(&bytes).expect("a packet").upper(),
        Upper::Scmp(ScmpView::ExternalInterfaceDown { interface: InterfaceId(41), .. })
    ));
    bytes[last - 2] = 1;
    assert_eq!(parse(&bytes), Err(Malformed::Interface(0x1_0029)));
}

/// A segment from port 7 to port 9 with these bytes after its header.
fn segment(payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; 20];
    (segment[1], segment[3], segment[12]) = (7, 9, 5 << 4);
    segment.extend(payload);
    segment
}

#[test]
fn a_segment_of_tcp_goes_behind_the_scion_header_with_a_checksum_of_its_own_and_a_traffic_class() {
    for (path, payload) in [(path(&[2, 3], 1), &b"hello"[..]), (Dataplane::Empty, b"")] {
        let template = template(&path);
        assert_eq!(template.tcp_headroom() + UDP_LEN, template.headroom());
        let mut packet = vec![0xaa; template.tcp_headroom()];
        packet.extend(segment(payload));
        template.finish_tcp(&mut packet, 0xb9);
        let read = parse(&packet).expect("a packet");
        assert_eq!((read.header().next_header(), read.header().traffic_class()), (protocol::TCP, 0xb9));
        assert_eq!(read.dataplane().as_bytes(), DataplaneView::of(&path).expect("a path").as_bytes());
        let tcp = TcpView::of(&read).expect("a segment");
        assert_eq!((tcp.source_port(), tcp.destination_port()), (7, 9));
        assert_eq!(tcp.segment()[20..], *payload);
        // RFC 9293, 3.1, over the pseudo-header of scion-header.rst: addresses, length, protocol.
        let sum = |bytes: &[u8]| {
            bytes.chunks(2).map(|b| u64::from(b[0]) << 8 | u64::from(*b.get(1).unwrap_or(&0))).sum::<u64>()
        };
        let all = sum(&packet[12..36]) + tcp.segment().len() as u64 + u64::from(protocol::TCP) + sum(tcp.segment());
        assert_eq!(all % 0xffff, 0, "the checksum makes the sum one of ones");
        assert!(tcp.verify_checksum());
        for at in [12, 20, 28, 32, packet.len() - 1] {
            let mut changed = packet.clone();
            changed[at] ^= 4;
            let read = parse(&changed).expect("a packet");
            assert!(!TcpView::of(&read).expect("a segment").verify_checksum(), "byte {at}");
        }
        assert_eq!(dispatched_port(&read), Ok(9));
    }
}

#[test]
fn what_is_no_whole_segment_of_tcp_is_none() {
    for bytes in [
        carrying(protocol::TCP, &segment(b"")[..19]),
        carrying(99, &segment(b"")),
        datagram(&Dataplane::Empty, &[0; 40]),
    ] {
        assert_eq!(TcpView::of(&parse(&bytes).expect("a packet")), None);
    }
}
