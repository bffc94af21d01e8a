//! Options as RFC 8684 draws them, cut ones, and noise.

use std::net::IpAddr;

use proptest::prelude::*;

use super::samples::{Draft, v6};
use super::*;

const KEY: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const OTHER: [u8; 8] = [9, 9, 9, 9, 8, 8, 8, 8];

/// What the one option of a segment with these flags says.
fn said(body: &[u8], flags: Flags) -> Result<MptcpOption<'_>, OptionError> {
    MptcpOption::parse(body, flags)
}

fn capable(form: CapableForm) -> MptcpOption<'static> {
    MptcpOption::Capable(Capable { flags: CapableFlags(0x01), form })
}

fn ack(data: Option<u16>, checksum: Option<u16>) -> MptcpOption<'static> {
    capable(CapableForm::Ack { initiator: Key(KEY), responder: Key(OTHER), data, checksum })
}

#[test]
fn a_connection_begins_in_three_segments() {
    let keys = [&[0x01, 0x01][..], &KEY, &OTHER].concat();
    let with = |more: &[u8]| [&keys[..], more].concat();
    let syn_ack = [&[0x01, 0x01][..], &KEY].concat();
    let table = [
        ("syn", vec![0x01, 0x01], Flags::SYN, capable(CapableForm::Syn)),
        ("syn/ack", syn_ack, Flags(0x12), capable(CapableForm::SynAck { responder: Key(KEY) })),
        ("ack", keys.clone(), Flags::ACK, ack(None, None)),
        ("with data", with(&[0x01, 0x02]), Flags::ACK, ack(Some(0x102), None)),
        ("with checksum", with(&[0, 5, 0xab, 0xcd]), Flags::ACK, ack(Some(5), Some(0xabcd))),
    ];
    for (name, body, flags, expected) in table {
        assert_eq!(said(&body, flags), Ok(expected), "{name}");
        for cut in 3..body.len() {
            if ![10, 18, 20].contains(&cut) {
                let error = OptionError::Length { subtype: 0, len: cut + 2 };
                assert_eq!(said(&body[..cut], flags), Err(error), "{name} cut to {cut}");
            }
        }
    }
    assert_eq!(said(&[0x00, 0x01], Flags::SYN), Err(OptionError::Version(0)));
}

#[test]
fn a_subflow_joins_in_three_segments() {
    let (syn, syn_ack) = (Flags::SYN, Flags::SYN.with(Flags::ACK));
    let first = JoinForm::Syn { address: AddressId(2), token: Token(0x0102_0304), nonce: 0x0506_0708 };
    let second = JoinForm::SynAck { address: AddressId(2), hmac: KEY, nonce: 0x0101_0101 };
    let table = [
        (vec![0x10, 2, 1, 2, 3, 4, 5, 6, 7, 8], syn, Join { backup: false, form: first }),
        (vec![0x11, 2, 1, 2, 3, 4, 5, 6, 7, 8], syn, Join { backup: true, form: first }),
        ([&[0x11, 2][..], &KEY, &[1; 4]].concat(), syn_ack, Join { backup: true, form: second }),
        (
            [&[0x10, 0][..], &[7; 20]].concat(),
            Flags::ACK,
            Join { backup: false, form: JoinForm::Ack { hmac: [7; 20] } },
        ),
    ];
    for (body, flags, expected) in table {
        assert_eq!(said(&body, flags), Ok(MptcpOption::Join(expected)));
        for cut in 1..body.len() {
            assert!(said(&body[..cut], flags).is_err(), "cut to {cut}");
        }
        assert!(said(&[&body[..], &[0]].concat(), flags).is_err(), "too long");
    }
}

#[test]
fn a_mapping_has_numbers_of_four_or_eight_bytes() {
    let ack4 = [0, 0, 0, 7];
    let ack8 = [0, 0, 0, 1, 0, 0, 0, 7];
    let tail = [0, 0, 0, 9, 0x05, 0xdc];
    let (low, full) = (DataSequence::Low(7), DataSequence::Full(1 << 32 | 7));
    let mapping = |sequence, checksum| Some(Mapping { sequence, subflow_sequence: 9, len: 1500, checksum });
    let table: [(&str, u8, Vec<u8>, Dss); 7] = [
        ("ack", 0x01, ack4.to_vec(), Dss { ack: Some(low), ..Dss::default() }),
        ("long ack", 0x03, ack8.to_vec(), Dss { ack: Some(full), ..Dss::default() }),
        ("mapping", 0x04, [&ack4[..], &tail].concat(), Dss { mapping: mapping(low, None), ..Dss::default() }),
        ("long", 0x0c, [&ack8[..], &tail].concat(), Dss { mapping: mapping(full, None), ..Dss::default() }),
        (
            "both, as Linux",
            0x0d,
            [&ack4[..], &ack8, &tail].concat(),
            Dss { ack: Some(low), mapping: mapping(full, None), data_fin: false },
        ),
        (
            "checksum",
            0x0d,
            [&ack4[..], &ack8, &tail, &[0xab, 0xcd]].concat(),
            Dss { ack: Some(low), mapping: mapping(full, Some(0xabcd)), data_fin: false },
        ),
        ("the end", 0x11, ack4.to_vec(), Dss { ack: Some(low), mapping: None, data_fin: true }),
    ];
    for (name, flags, rest, expected) in table {
        let body = [&[0x20, flags][..], &rest].concat();
        assert_eq!(said(&body, Flags::ACK), Ok(MptcpOption::Dss(expected)), "{name}");
        assert!(said(&[&body[..], &[0]].concat(), Flags::ACK).is_err(), "{name}, too long");
        let without_checksum = (name == "checksum").then(|| body.len() - 2);
        for cut in (2..body.len()).filter(|cut| Some(*cut) != without_checksum) {
            assert!(said(&body[..cut], Flags::ACK).is_err(), "{name} cut to {cut}");
        }
    }
}

#[test]
fn addresses_come_go_and_are_echoed() {
    let (four, six): (IpAddr, IpAddr) = ([10, 0, 0, 3].into(), v6(3).ip());
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    for address in [four, six] {
        for port in [None, Some(4920)] {
            for hmac in [None, Some(KEY)] {
                let mut body = vec![0x30 | u8::from(hmac.is_none()), 5];
                body.extend(octets(address));
                body.extend(port.iter().flat_map(|port: &u16| port.to_be_bytes()));
                body.extend(hmac.iter().flatten());
                let expected = AddAddr { id: AddressId(5), address, port, hmac };
                assert_eq!(said(&body, Flags::ACK), Ok(MptcpOption::AddAddr(expected)));
                assert_eq!(expected.is_echo(), hmac.is_none());
            }
        }
    }
    assert!(said(&[0x30, 5, 10, 0, 0, 3], Flags::ACK).is_err(), "no echo, and no proof");
    assert_eq!(said(&[0x40, 1, 2, 3], Flags::ACK), Ok(MptcpOption::RemoveAddr(&[1, 2, 3])));
    assert!(said(&[0x40], Flags::ACK).is_err(), "none is removed");
}

#[test]
fn what_else_is_said_of_a_subflow() {
    let dsn = [0, 0, 0, 0, 0, 0, 1, 0];
    let reset = |flags, reason| MptcpOption::Reset { flags: ResetFlags(flags), reason: ResetReason(reason) };
    let table: [(&str, Vec<u8>, MptcpOption<'_>); 7] = [
        ("a backup", vec![0x51], MptcpOption::Priority { backup: true }),
        ("none any more", vec![0x50], MptcpOption::Priority { backup: false }),
        ("a failure", [&[0x60, 0][..], &dsn].concat(), MptcpOption::Fail { from: DataSequence::Full(256) }),
        ("the end", [&[0x70, 0][..], &KEY].concat(), MptcpOption::FastClose { receiver: Key(KEY) }),
        ("a reset", vec![0x80, 5], reset(0, 5)),
        ("a passing one", vec![0x81, 2], reset(1, 2)),
        ("an experiment", vec![0xf0, 1, 2], MptcpOption::Other(0xf)),
    ];
    for (name, body, expected) in table {
        assert_eq!(said(&body, Flags::ACK), Ok(expected), "{name}");
    }
    for wrong in [&[0x51, 1][..], &[0x60, 0, 1], &[0x60], &[0x70, 0, 1, 2], &[0x70], &[0x80], &[0x80, 1, 2]] {
        assert!(said(wrong, Flags::ACK).is_err(), "{wrong:x?}");
    }
    assert_eq!(said(&[], Flags::ACK), Err(OptionError::Truncated));
    assert!(ResetFlags::TRANSIENT.is_transient() && !ResetFlags(0xe).is_transient());
    let words: Vec<String> = (0..8).map(|number| ResetReason(number).to_string()).collect();
    assert_eq!((words[5].as_str(), words[7].as_str()), ("unacceptable performance", "reason 7"));
}

#[test]
fn a_segment_is_read_from_its_headers() {
    let draft = Draft { sequence: 7, acknowledgment: 9, payload: vec![0; 1000], ..Draft::default() }.says(&[0x50]);
    for draft in [draft.clone(), Draft { from: v6(1), to: v6(2), ..draft }] {
        let packet = draft.packet();
        for seen in [packet.len(), 128, 64] {
            let segment = Segment::parse(&packet[..seen]).expect("a segment");
            assert_eq!((segment.source, segment.destination), (draft.from, draft.to));
            assert_eq!((segment.sequence.0, segment.acknowledgment.0, segment.payload), (7, 9, 1000), "{seen} bytes");
            assert_eq!(segment.flags, Flags::ACK);
            assert_eq!(segment.end(), Sequence(1007));
            assert_eq!(segment.mptcp().collect::<Vec<_>>(), [Ok(MptcpOption::Priority { backup: false })]);
        }
        assert_eq!(Segment::parse(&packet[..30]).err(), Some(NoSegment::Truncated));
    }
    assert_eq!(Segment::parse(&[]).err(), Some(NoSegment::Truncated));
    assert_eq!(Segment::parse(&[0x50; 60]).err(), Some(NoSegment::NotTcp));
}

#[test]
fn fragments_and_other_protocols_hold_no_segment() {
    let packet = Draft::default().packet();
    let changed = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        Segment::parse(&packet).err()
    };
    assert_eq!(changed(6, 0x20), Some(NoSegment::Fragment), "more fragments");
    assert_eq!(changed(7, 1), Some(NoSegment::Fragment), "an offset");
    assert_eq!(changed(6, 0x40), None, "don't fragment");
    assert_eq!(changed(9, 17), Some(NoSegment::NotTcp));
    assert_eq!(changed(0, 0x44), Some(NoSegment::Truncated), "a header too short");
    assert_eq!(changed(3, 30), Some(NoSegment::Truncated), "a packet shorter than its headers");
    assert_eq!(changed(32, 0x40), Some(NoSegment::Truncated), "a tcp header too short");
}

#[test]
fn extension_headers_of_ipv6_are_passed_over() {
    let plain = Draft { from: v6(1), to: v6(2), payload: vec![1; 10], ..Draft::default() }.packet();
    let with = |kind: u8, next: u8| {
        let mut packet = plain.clone();
        packet[6] = kind;
        packet.splice(40..40, [next, 0, 0, 0, 0, 0, 0, 0]);
        packet[4..6].copy_from_slice(&38_u16.to_be_bytes());
        packet
    };
    for kind in [0, 43, 60] {
        let packet = with(kind, 6);
        let segment = Segment::parse(&packet).expect("a segment");
        assert_eq!((segment.tcp_at, segment.payload), (48, 10));
    }
    assert_eq!(Segment::parse(&with(44, 6)).err(), Some(NoSegment::NotTcp), "a fragment");
    assert_eq!(Segment::parse(&with(60, 60)).err(), Some(NoSegment::NotTcp), "the header that is promised is none");
}

#[test]
fn options_are_walked_to_the_first_that_is_not_whole() {
    let read = |options: &[u8]| {
        let packet = Draft { options: options.to_vec(), ..Draft::default() }.packet();
        let segment = Segment::parse(&packet).expect("a segment");
        let kinds: Vec<String> = segment.options().map(|option| format!("{option:?}")).collect();
        (kinds.join(" "), segment.has_sack(), segment.window_scale())
    };
    assert_eq!(read(&[2, 4, 5, 0xb4, 1, 3, 3, 7]).0, "MaximumSegmentSize(1460) WindowScale(7)");
    assert_eq!(read(&[3, 3, 99]).2, Some(14), "no further than that");
    assert!(read(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]).1);
    assert!(!read(&[1, 1, 1, 0, 5, 10, 0, 0]).1, "after the end");
    for broken in [[8, 0, 0, 0], [8, 1, 0, 0], [8, 40, 0, 0], [1, 1, 1, 8]] {
        assert_eq!(read(&broken).0, "", "{broken:?}");
    }
}

#[test]
fn sequence_numbers_wrap() {
    let late = Sequence(u32::MAX);
    assert!(late.plus(2).is_after(late) && !late.is_after(late.plus(2)) && !late.is_after(late));
    assert_eq!(late.plus(2), Sequence(1));
    assert_eq!(Sequence(1).since(late), 2);
}

proptest! {
    #[test]
    fn noise_never_panics(packet in proptest::collection::vec(any::<u8>(), 0..120), version in 4..7_u8) {
        let mut packet = packet;
        fuzz::segment(&packet);
        if packet.len() > 9 {
            packet[0] = version << 4 | packet[0] & 7;
            packet[9] = 6;
            packet[6] = if version == 6 { 6 } else { 0x40 };
            packet[7] = 0;
            fuzz::segment(&packet);
        }
    }

    #[test]
    fn options_of_noise_never_panic(
        options in proptest::collection::vec(any::<u8>(), 0..40), flags in any::<u8>(), subtype in 0..16_u8, len in 2..30_u8
    ) {
        let mut options = options;
        if options.len() > 3 {
            (options[0], options[1], options[2]) = (30, len, subtype << 4 | options[2] & 0xf);
        }
        fuzz::segment(&Draft { options, flags: Flags(flags), ..Draft::default() }.packet());
    }
}
