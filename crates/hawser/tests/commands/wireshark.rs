//! contrib/wireshark/hawser.lua names every field of every datagram and frame, over every transport. Needs tshark, not
//! root.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::tshark;

/// A frame's bytes, its name, and what tshark is to say of its fields.
type Case = (&'static [u8], &'static str, &'static [(&'static str, &'static str)]);

/// Every frame of docs/wire.md, by hand.
const FRAMES: &[Case] = &[
    (&[0x01], "PING", &[]),
    (&[0x01, 0, 0, 0], "PADDING", &[("hawser.padding.length", "3")]),
    (
        // Path 5, largest 1000, delay 7, received at 2^30, one more range, first range 2; gap 3, length 4; ECN 1, 2, 3.
        &[0x02, 5, 0x43, 0xe8, 7, 0xc0, 0, 0, 0, 0x40, 0, 0, 0, 0x40, 1, 2, 3, 4, 1, 2, 3],
        "ACK",
        &[
            ("hawser.ack.path", "5"),
            ("hawser.ack.largest", "1000"),
            ("hawser.ack.delay", "7"),
            ("hawser.ack.received_at", "1073741824"),
            ("hawser.ack.more_ranges", "1"),
            ("hawser.ack.first_range", "2"),
            ("hawser.ack.gap", "3"),
            ("hawser.ack.length", "4"),
            ("hawser.ack.acked", "998–1000,989–993"),
            ("hawser.ack.ect0", "1"),
            ("hawser.ack.ect1", "2"),
            ("hawser.ack.ce", "3"),
        ],
    ),
    (&[0x03, 1, 2, 3, 4, 5, 6, 7, 8], "PATH_CHALLENGE", &[("hawser.token", "0102030405060708")]),
    (&[0x04, 8, 7, 6, 5, 4, 3, 2, 1], "PATH_RESPONSE", &[("hawser.token", "0807060504030201")]),
    (
        &[0x05, 0x40, 0x99, 1, 0, 7, 9],
        "PATH_INFO",
        &[
            ("hawser.path_info.path", "153"),
            ("hawser.path_info.state", "1"),
            ("hawser.path_info.metric", "7"),
            ("hawser.path_info.revision", "9"),
        ],
    ),
    (&[0x06, 0x0f, 0xff, 1, 0, 2], "GONE", &[("hawser.gone.bucket", "4095"), ("hawser.gone.upto", "65538")]),
    (
        &[0x07, 1, 2, 0x85, 0x00, 0x30, 0x05, 0, 1, 0, 0xaa, 0xbb],
        "SPLIT",
        &[
            ("hawser.split.id", "258"),
            ("hawser.split.more", "1"),
            ("hawser.split.offset", "1280"),
            ("hawser.data.partial", "1"),
            ("hawser.data.continues", "1"),
            ("hawser.data.unordered", "0"),
            ("hawser.data.spare", "0"),
            ("hawser.data.bucket", "5"),
            ("hawser.data.sequence", "256"),
            ("hawser.split.bytes", "aabb"),
        ],
    ),
    (
        // An IPv4 packet of an experimental protocol from 10.0.0.2 to 10.0.0.1.
        &[0x08, 0x4f, 0xff, 0, 0, 9, 0x45, 0, 0, 22, 0, 0, 0, 0, 64, 254, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 0xab, 0xcd],
        "DATA",
        &[
            ("hawser.data.unordered", "1"),
            ("hawser.data.partial", "0"),
            ("hawser.data.bucket", "4095"),
            ("hawser.data.sequence", "9"),
            ("hawser.data.packet", "450000160000000040fe00000a0000020a000001abcd"),
            ("ip.src", "192.0.2.1,10.0.0.2"),
        ],
    ),
    (&[0x09, 2], "CLOSE", &[("hawser.close.reason", "2")]),
    (&[0x0a, 0x80, 1, 0, 0], "HOLD", &[("hawser.hold.us", "65536")]),
    (
        &[0x0b, 1, 0, 4, 2, 0xde, 0xad],
        "REPAIR",
        &[
            ("hawser.repair.first", "256"),
            ("hawser.repair.count", "4"),
            ("hawser.repair.row", "2"),
            ("hawser.repair.symbol", "dead"),
        ],
    ),
    (
        &[0x0c, 3, 1, 20, 0x80, 1, 0, 0, 5],
        "TERMS",
        &[
            ("hawser.terms.path", "3"),
            ("hawser.terms.flags", "0x01"),
            ("hawser.terms.barred", "1"),
            ("hawser.terms.weight", "20"),
            ("hawser.terms.max_rate", "65536"),
            ("hawser.terms.revision", "5"),
        ],
    ),
    (
        &[0x0d, 0, 9, 0x10, 2, 0, 0, 1, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 254, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1],
        "PROTECTED",
        &[("hawser.protected.symbol", "9"), ("hawser.data.bucket", "2"), ("hawser.data.sequence", "1")],
    ),
    (
        &[0x40, 10, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        "LINK_NAME",
        &[("hawser.link_name.path", "3"), ("hawser.link_name.name", "0102030405060708"), ("hawser.unknown", "09")],
    ),
    (
        &[0x41, 13, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0x53, 0x88, 63],
        "SPEED",
        &[
            ("hawser.speed.run", "3"),
            ("hawser.speed.word", "2"),
            ("hawser.speed.link", "0102030405060708"),
            ("hawser.speed.ms", "5000"),
            ("hawser.speed.bytes", "63"),
        ],
    ),
    (&[0x42, 2, 0xde, 0xad], "FILLER", &[("hawser.filler.bytes", "dead")]),
];

/// A message's first byte, its length, and what tshark is to say of its fields.
type Message = (u8, usize, &'static [(&'static str, &'static str)]);

/// Messages of handshakes.
const MESSAGES: &[Message] = &[
    (
        0x10,
        157,
        &[
            ("hawser.type", "1"),
            ("hawser.flags", "0x00"),
            ("hawser.index", "0x01020304"),
            ("hawser.has_cookie", "1"),
            ("hawser.mac2", "8d8e8f909192939495969798999a9b9c"),
        ],
    ),
    (0x20, 113, &[("hawser.type", "2"), ("hawser.index", "0x01020304"), ("hawser.receiver", "0x05060708")]),
    (0x30, 61, &[("hawser.type", "3"), ("hawser.receiver", "0x01020304")]),
];

const UDP: u8 = 17;
const TCP: u8 = 6;
const HAWSER_PORT: u16 = 4920;

/// A message whose bytes count up; a response's mac2 is zero.
fn message(first: u8, len: usize) -> Vec<u8> {
    let mut message: Vec<u8> = (0..len as u8).collect();
    message[0] = first;
    if first == 0x20 {
        message[len - 16..].fill(0);
    }
    message
}

/// A data datagram in clear.
fn data(label: u32, number: u32, frames: &[u8]) -> Vec<u8> {
    [&[0x40], &label.to_be_bytes()[..], &number.to_be_bytes(), frames, &[0xee; 16]].concat()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    [&1000u16.to_be_bytes()[..], &port.to_be_bytes(), &len.to_be_bytes(), &[0, 0], payload].concat()
}

fn tcp(sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let ports = [1000u16.to_be_bytes(), HAWSER_PORT.to_be_bytes()].concat();
    [&ports[..], &sequence.to_be_bytes(), &[0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0], payload].concat()
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len() as u16).to_be_bytes();
    let tail = [0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    [&[0x45, 0], &len[..], &tail, payload].concat()
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let address = |host| [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host];
    [&[0x60, 0, 0, 0], &len[..], &[protocol, 64], &address(1), &address(2), payload].concat()
}

/// Runs tshark on raw IP packets; gives the values of `fields` for each.
fn tshark(packets: &[Vec<u8>], options: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("packets.pcap");
    let mut file = Vec::new();
    let mut writer = hawser_decode::PcapWriter::new(&mut file).expect("a vector takes all");
    packets.iter().for_each(|packet| writer.packet(0, packet).expect("a vector takes all"));
    std::fs::write(&path, file).expect("a file");
    tshark::run(&path, options, fields)
}

/// Expert infos that must not be there.
const EXPERT: &str = "_ws.expert.message";

#[test]
fn every_field_of_every_message_and_frame_has_its_name_and_value() {
    let mut packets = Vec::new();
    let mut wanted: Vec<Vec<(&str, &str)>> = Vec::new();
    for (first, len, said) in MESSAGES {
        packets.push(ipv4(UDP, &udp(HAWSER_PORT, &message(*first, *len))));
        wanted.push(said.to_vec());
    }
    for (number, (frames, _, said)) in (0..).zip(FRAMES) {
        // Before it, one that leaves no doubt that the label's frames are in clear.
        packets.push(ipv4(UDP, &udp(HAWSER_PORT, &data(7, 100 + number, &[0x01, 0, 0, 0, 0]))));
        wanted.push(vec![("hawser.label", "0x00000007")]);
        packets.push(ipv4(UDP, &udp(HAWSER_PORT, &data(7, number, frames))));
        wanted.push([&[("hawser.tag", "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee")], *said].concat());
    }
    let mut fields: Vec<&str> = wanted.iter().flatten().map(|(field, _)| *field).collect();
    fields.extend([
        "hawser.noise.ephemeral",
        "hawser.noise.static",
        "hawser.noise.payload",
        "hawser.mac1",
        "hawser.salt",
    ]);
    fields.extend(["hawser.cookie", EXPERT, "_ws.col.Info"]);
    fields.sort_unstable();
    fields.dedup();
    let rows = tshark(&packets, &[], &fields);
    assert_eq!(rows.len(), packets.len());
    let value = |row: &[String], field: &str| row[fields.binary_search(&field).expect("it was asked for")].clone();
    for (row, wanted) in rows.iter().zip(&wanted) {
        for (field, said) in wanted {
            assert_eq!(value(row, field), *said, "{field}; {}", value(row, "_ws.col.Info"));
        }
        assert_eq!(value(row, EXPERT), "");
    }
    for (row, (_, name, _)) in rows[MESSAGES.len() + 1..].iter().step_by(2).zip(FRAMES) {
        assert!(value(row, "_ws.col.Info").contains(name), "{name}: {row:?}");
    }
    let sealed_lengths = |row: &[String]| {
        [
            "hawser.noise.ephemeral",
            "hawser.noise.static",
            "hawser.noise.payload",
            "hawser.mac1",
            "hawser.salt",
            "hawser.cookie",
        ]
        .map(|field| value(row, field).len() / 2)
    };
    assert_eq!(sealed_lengths(&rows[0]), [32, 48, 40, 16, 0, 0]);
    assert_eq!(sealed_lengths(&rows[1]), [32, 0, 40, 16, 0, 0]);
    assert_eq!(sealed_lengths(&rows[2]), [0, 0, 0, 0, 24, 32]);
}

#[test]
fn every_transport_carries_datagrams_over_both_ip_versions() {
    let datagram = |number| data(7, number, FRAMES[8].0);
    let record = |number| {
        let datagram = datagram(number);
        [&(datagram.len() as u16).to_be_bytes()[..], &datagram].concat()
    };
    for ip in [ipv4 as fn(u8, &[u8]) -> Vec<u8>, ipv6] {
        // Three records in three segments that cut them anywhere.
        let stream = [record(10), record(11), record(12)].concat();
        let (one, rest) = stream.split_at(30);
        let (two, three) = rest.split_at(45);
        let joined = [datagram(20), datagram(21), datagram(22)].concat();
        let packets = [
            ip(253, &datagram(1)),
            ip(UDP, &udp(HAWSER_PORT, &joined)),
            // A conversation on another port that begins with a handshake.
            ip(UDP, &udp(9999, &message(0x10, 157))),
            ip(UDP, &udp(9999, &datagram(2))),
            ip(TCP, &tcp(99, 0x02, &[])),
            ip(TCP, &tcp(100, 0x10, one)),
            ip(TCP, &tcp(130, 0x10, two)),
            ip(TCP, &tcp(175, 0x10, three)),
        ];
        let rows = tshark(&packets, &[], &["hawser.number", "hawser.record.length", "hawser.malformed"]);
        let numbers: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(numbers[..5], ["1", "20,21,22", "", "2", ""]);
        assert_eq!(numbers[5..].iter().filter(|n| !n.is_empty()).copied().collect::<Vec<_>>().join(","), "10,11,12");
        let lengths: Vec<&str> = rows.iter().flat_map(|row| row[1].split(',')).filter(|l| !l.is_empty()).collect();
        assert_eq!(lengths, vec![(stream.len() / 3 - 2).to_string(); 3]);
        assert!(rows.iter().all(|row| row[2].is_empty()));
    }
}

#[test]
fn what_is_no_datagram_is_told_and_sealed_frames_stay_sealed() {
    let clear = ["-o", "hawser.clear:always"];
    let on = |datagram: &[u8]| ipv4(UDP, &udp(HAWSER_PORT, datagram));
    let table: [(Vec<u8>, &str); 12] = [
        (vec![0x50; 30], "Malformed datagram: unknown type"),
        (message(0x10, 150), "Malformed datagram: wrong length for its type"),
        (data(7, 1, &[])[..20].to_vec(), "Malformed datagram: no room for a tag"),
        (data(7, 1, &[0x03, 1]), "Malformed datagram: truncated"),
        (data(7, 1, &[0x05, 1, 9, 0, 0, 1]), "Malformed datagram: unknown state"),
        (data(7, 1, &[0x06, 0x10, 0, 0, 0, 1]), "Malformed datagram: the bits above the bucket are set"),
        (data(7, 1, &[0x08, 0x80, 0, 0, 0, 1, 0x45]), "Malformed datagram: the spare flag is set"),
        (data(7, 1, &[0x02, 0, 1, 0, 0, 0, 2, 0, 0, 0]), "Malformed datagram: a range runs below zero"),
        (data(7, 1, &[0x0b, 0, 0, 33, 0, 1]), "Malformed datagram: a repair of 1 to 32 symbols"),
        (data(7, 1, &[0x0c, 0, 0, 0, 0, 0]), "Malformed datagram: a weight of zero"),
        (data(7, 1, &[0x7f, 1, 2]), "Frame of another version"),
        (data(7, 1, &[0x5f, 2, 1]), "Malformed datagram: truncated"),
    ];
    let packets: Vec<_> = table.iter().map(|(datagram, _)| on(datagram)).collect();
    let rows = tshark(&packets, &clear, &[EXPERT]);
    for ((datagram, told), row) in table.iter().zip(&rows) {
        assert!(row[0].contains(told), "{datagram:02x?}: {row:?}");
    }
    // What does not read as frames is sealed, and so is all under its label from then on.
    let sealed = data(9, 1, &[0xa7; 40]);
    let rows =
        tshark(&[on(&sealed), on(&data(9, 2, FRAMES[2].0))], &[], &["hawser.sealed", "hawser.frame.type", EXPERT]);
    assert_eq!(rows[0], ["a7".repeat(40), String::new(), String::new()]);
    assert_eq!((rows[1][0].len() / 2, rows[1][1].as_str()), (FRAMES[2].0.len(), ""));
}

#[test]
fn sealed_frames_are_hardly_ever_taken_for_frames_in_clear() {
    const LABELS: u32 = 20_000;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let packets: Vec<_> = (0..LABELS)
        .map(|label| {
            // As long as a probe, as acknowledgements, as a full datagram.
            let mut frames = vec![0; [9, 17, 30, 1300][label as usize % 4]];
            random.fill_bytes(&mut frames);
            ipv4(UDP, &udp(HAWSER_PORT, &data(label, 1, &frames)))
        })
        .collect();
    let rows = tshark(&packets, &[], &["hawser.frame.type", "hawser.sealed"]);
    assert_eq!(rows.len(), packets.len());
    let taken = rows.iter().filter(|row| !row[0].is_empty()).count();
    assert!(taken <= 2, "{taken} of {LABELS}");
    assert!(rows.iter().all(|row| row[0].is_empty() != row[1].is_empty()));
}
