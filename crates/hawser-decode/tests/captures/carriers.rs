//! A datagram is found in whatever carries it.

use crate::support::*;
use hawser_core::wire::DatagramKind;
use hawser_decode::{DecodeError, KeyError, Keys};

const PORT: u16 = 4920;

fn log() -> String {
    key_log("hub", 1, true, "encrypt")
}

#[test]
fn every_link_type_and_transport_over_both_ip_versions_gives_the_inner_packet() {
    let (frame, packet) = data_frame(7, 1, 42);
    let datagram = data(&log(), 3, 9, &frame);
    let record = [&(datagram.len() as u16).to_be_bytes()[..], &datagram].concat();
    for (version, ip) in [(0x0800u16, ipv4 as fn(u8, &[u8]) -> Vec<u8>), (0x86dd, ipv6)] {
        // A port of our own: the label tells what it is.
        let carried =
            [ip(17, &udp(1000, 9999, &datagram)), ip(253, &datagram), ip(6, &tcp(1000, PORT, 100, false, &record))];
        for (packet_on_link, transport) in carried.iter().zip(["udp", "ip", "tcp"]) {
            let protocol = version.to_be_bytes();
            let tagged = [&[2; 12], &[0x81, 0x00, 0x00, 0x05][..], &protocol, packet_on_link].concat();
            let sll = [&[0; 14], &protocol[..], packet_on_link].concat();
            let sll2 = [&protocol[..], &[0; 18], packet_on_link].concat();
            let table = [
                (ETHERNET, ethernet(packet_on_link)),
                (ETHERNET, tagged),
                (RAW, packet_on_link.clone()),
                (SLL, sll),
                (SLL2, sll2),
            ];
            for (link_type, bytes) in table {
                let (got, summary, result) = decoded(&pcap(link_type, &[bytes]), &log());
                assert!(result.is_ok(), "{link_type} {transport} {version:x}: {result:?} {summary}");
                assert_eq!(got.inner, std::slice::from_ref(&packet), "{link_type} {transport} {version:x}");
                assert_eq!(got.times, [1_500_000_000]);
                assert_eq!(got.lines[0]["transport"], transport);
                assert_eq!((got.lines[0]["path"].as_u64(), got.lines[0]["number"].as_u64()), (Some(3), Some(9)));
            }
        }
    }
}

/// A pcapng file of one section and interface with microseconds (draft-ietf-opsawg-pcapng).
fn pcapng(packet: &[u8]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = (body.len().next_multiple_of(4) + 12) as u32;
        let mut block = [kind.to_le_bytes(), len.to_le_bytes()].concat();
        block.extend(body);
        block.resize(len as usize - 4, 0);
        block.extend(len.to_le_bytes());
        block
    };
    let section = [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let len = (packet.len() as u32).to_le_bytes();
    let head = [[0; 4], [0; 4], 2_500_000u32.to_le_bytes(), len, len].concat();
    [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 4, 0]), block(6, &[&head, packet].concat())].concat()
}

#[test]
fn pcapng_is_read_too() {
    let (frame, packet) = data_frame(7, 1, 42);
    let bytes = ethernet(&ipv4(17, &udp(1, PORT, &data(&log(), 3, 9, &frame))));
    let (got, _, result) = decoded(&pcapng(&bytes), &log());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!((got.inner, got.times), (vec![packet], vec![2_500_000_000]));
}

#[test]
fn pieces_are_put_together_and_a_partial_checksum_completed() {
    let mut packet = ipv4(17, &udp(5, 6, b"hawser"));
    // The sum of the pseudo-header, as a sender's kernel leaves it.
    let pseudo: u32 = 0xc000 + 0x0201 + 0xc000 + 0x0202 + 17 + 14;
    let pseudo = ((pseudo & 0xffff) + (pseudo >> 16)) as u16;
    packet[26..28].copy_from_slice(&pseudo.to_be_bytes());
    let piece = |offset: usize, more: bool, bytes: &[u8]| {
        let place = (u16::from(more) << 15 | offset as u16).to_be_bytes();
        [&[0x07, 0, 1], &place[..], &[0x10, 7, 0, 0, 9], bytes].concat()
    };
    let datagrams = [
        data(&log(), 1, 1, &piece(20, false, &packet[20..])),
        data(&log(), 1, 2, &piece(0, true, &packet[..20])),
        data(&log(), 2, 1, &[&[0x08, 0x10, 7, 0, 0, 9], &packet[..]].concat()),
    ];
    let captured: Vec<_> = datagrams.iter().map(|datagram| ipv4(17, &udp(1, PORT, datagram))).collect();
    let (got, summary, result) = decoded(&pcap(RAW, &captured), &log());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!((summary.in_pieces, summary.copies, got.inner.len()), (1, 1, 1));
    // 0x6861 + 0x7773 + 0x6572 + ports 5, 6 + length 14 + pseudo-header, by hand.
    let mut sum = u32::from(pseudo) + 5 + 6 + 14 + 0x6861 + 0x7773 + 0x6572;
    sum = (sum & 0xffff) + (sum >> 16);
    packet[26..28].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    assert_eq!(got.inner[0], packet);
}

#[test]
fn what_the_capturing_host_held_in_one_is_told_apart() {
    let frames: Vec<_> = (1..=3).map(|number| data_frame(7, u32::from(number), number)).collect();
    let joined: Vec<u8> = (1..).zip(&frames).flat_map(|(number, (frame, _))| data(&log(), 1, number, frame)).collect();
    let (got, _, result) = decoded(&pcap(RAW, &[ipv4(17, &udp(1, PORT, &joined))]), &log());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(got.inner, frames.into_iter().map(|(_, packet)| packet).collect::<Vec<_>>());
}

#[test]
fn a_capture_may_begin_late_and_has_everything_twice_on_two_interfaces() {
    let (frame, packet) = data_frame(7, 0xff_fff0, 1);
    // Paths and numbers far above those that a session begins with.
    let datagram = ipv4(17, &udp(1, PORT, &data(&log(), 900, 5 << 32 | 77, &frame)));
    let next = ipv4(17, &udp(1, PORT, &data(&log(), 1700, 1, &data_frame(7, 0xff_fff1, 1).0)));
    let (got, summary, result) = decoded(&pcap(RAW, &[datagram.clone(), datagram, next]), &log());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(got.inner, [packet.clone(), packet]);
    assert_eq!((summary.opened, summary.repeated), (2, 1));
}

#[test]
fn what_cannot_be_read_is_counted_by_its_reason() {
    let (frame, _) = data_frame(7, 1, 42);
    let good = data(&log(), 3, 9, &frame);
    let mut changed = data(&log(), 3, 10, &frame);
    changed[12] ^= 1;
    let other = data(&key_log("hub", 2, true, "encrypt"), 3, 9, &frame);
    let on = |port, datagram: &[u8]| ipv4(17, &udp(1, port, datagram));
    let mut fragment = on(PORT, &good);
    fragment[6] = 0x20;
    let mut whole = on(PORT, &good);
    whole.truncate(50);
    let response = [&[DatagramKind::Response.first_byte()][..], &[0; 112]].concat();
    let captured = [
        on(PORT, &good),
        on(PORT, &changed),
        on(PORT, &other),
        on(53, &other),
        on(PORT, &[0x51; 40]),
        on(PORT, &response),
        on(PORT, &data(&log(), 3, 11, &[0x7f, 1])),
        fragment,
        whole,
        b"no packet".to_vec(),
    ];
    let (got, summary, result) = decoded(&pcap(RAW, &captured), &log());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(got.inner.len(), 1);
    let counts = [
        summary.packets,
        summary.opened,
        summary.unauthentic,
        summary.no_key,
        summary.malformed,
        summary.handshakes,
        summary.bad_frames,
        summary.fragments,
        summary.cut_short,
    ];
    assert_eq!(counts, [10, 2, 1, 1, 1, 1, 1, 1, 1]);
    let told = summary.to_string();
    for words in ["  2  datagrams opened\n", "  1  fragments of", "  1  datagrams not opened: no key of the log"] {
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn captures_and_key_logs_that_are_none_are_refused() {
    let (frame, packet) = data_frame(7, 1, 42);
    let captured = ipv4(17, &udp(1, PORT, &data(&log(), 3, 9, &frame)));
    let file = pcap(RAW, &[captured.clone(), captured.clone()]);
    let (got, _, result) = decoded(&file[..file.len() - 1], &log());
    assert!(matches!(result, Err(DecodeError::CutShort(2))), "{result:?}");
    assert_eq!(got.inner, [packet], "what was before the cut is there");
    let refused = |file: &[u8], log: &str| decoded(file, log).2.expect_err("refused");
    let wrong = refused(&file, &key_log("hub", 9, true, "encrypt"));
    assert!(matches!(wrong, DecodeError::NoKey(2)), "{wrong:?}");
    let none = refused(&pcap(RAW, &[ipv4(17, &udp(1, 53, b"a question"))]), &log());
    assert!(matches!(none, DecodeError::NoDatagram(1)), "{none:?}");
    let unknown = refused(&pcap(147, &[captured]), &log());
    assert!(matches!(unknown, DecodeError::LinkType(147)), "{unknown:?}");
    for file in [&b""[..], b"text", &[0; 100]] {
        let error = refused(file, &log());
        assert!(matches!(error, DecodeError::NotACapture), "{error:?}");
    }
    assert_eq!(Keys::read("# nothing\n").err(), Some(KeyError::Empty));
    assert!(matches!(Keys::read("\nkeys\n").err(), Some(KeyError::Line { line: 2, .. })));
}
