//! A session is captured on its links and read again: by Wireshark with the dissector, and by `hawser decode`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hawser_core::handshake::{Identity, Initiator, Psk, PublicKey};
use hawser_core::packet::checksum;
use hawser_core::packet::inner::{self, Transport};
use hawser_core::units::Random;
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use hawser_decode::PcapWriter;
use hawser_portal::api::PathState;
use hawser_wire::Capture;
use serde_json::Value;

use crate::lab::{ENDPOINT, LOCAL, Lab, REMOTE, REMOTE_V6, ms, states};
use crate::tshark;

/// Ports of the test's own traffic inside the tunnel.
const UDP_PORT: u16 = 7001;
const TCP_PORT: u16 = 7002;
/// Datagrams sent inside the tunnel, each way.
const DATAGRAMS: usize = 120;
/// How much longer each is than the one before. The longest fits IPv6's least MTU, the device's until more is known to fit:
/// a longer one might be sent as fragments, which have no ports.
const STEP: usize = 10;
/// Bytes sent on the stream inside the tunnel: some trains.
const STREAM: usize = 400_000;
/// More than the initiations a second that a portal answers without a cookie (docs/wire.md).
const FLOOD: u32 = 80;
/// How long a single thing may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// The frame of code 0x40.
const LINK_NAME: &str = "LINK_NAME";
/// Frames by their codes (docs/wire.md).
const FRAMES: [&str; 14] = [
    "PADDING",
    "PING",
    "ACK",
    "PATH_CHALLENGE",
    "PATH_RESPONSE",
    "PATH_INFO",
    "GONE",
    "SPLIT",
    "DATA",
    "CLOSE",
    "HOLD",
    "REPAIR",
    "TERMS",
    "PROTECTED",
];
/// Bytes of a pcap file's header, and of each packet's.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// A captured session, and what went through it.
struct Recording {
    lab: Lab,
    /// Payloads of UDP datagrams, sorted.
    datagrams: Vec<Vec<u8>>,
    stream: Vec<u8>,
}

impl Recording {
    /// Two sessions one after the other, with traffic both ways, a link that goes, and a flood of handshakes.
    fn of(protection: &str) -> Self {
        let lab = Lab::new("wire", &format!("[traffic]\nprotection = \"{protection}\"\n"));
        lab.edit("remote.toml", "[portal]\n", "[portal]\nkeylog = \"keys.log\"\n");
        let capture = Capture::start(&lab.remote).expect("it starts");
        let (mut local, remote) = lab.start_both();
        remote.wait_for_log("KEYS ARE WRITTEN TO A FILE");
        let mode = fs::metadata(lab.path("keys.log")).expect("the key log is there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let mut datagrams = send_datagrams(&lab, 0);
        lab.local.set_down("two").expect("it goes down");
        local.wait_for("the path to be down", |status| states(status) != [PathState::Active; 2]);
        local.signal(rustix::process::Signal::TERM);
        assert!(local.wait().success(), "{}", local.log());
        lab.local.set_up("two").expect("it comes up");
        lab.route("two");
        let local = lab.start("local");
        local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
        datagrams.extend(send_datagrams(&lab, 1));
        datagrams.sort();
        let stream = send_stream(&lab);
        flood(&lab);
        drop(local);
        drop(remote);
        fs::write(lab.path("links.pcap"), capture.finish().expect("nothing was dropped")).expect("a file");
        Recording { lab, datagrams, stream }
    }

    fn capture(&self) -> PathBuf {
        self.lab.path("links.pcap")
    }

    /// Runs `hawser decode`; gives what it said on standard output and error.
    fn decode(&self, arguments: &[&str]) -> (Vec<u8>, String) {
        let out = Command::new(env!("CARGO_BIN_EXE_hawser"))
            .args(["decode", "--keylog"])
            .arg(self.lab.path("keys.log"))
            .args(arguments)
            .arg(self.capture())
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{said}");
        (out.stdout, said)
    }

    /// Each datagram as `hawser decode --json` lists it.
    fn listing(&self) -> Vec<Value> {
        let (listed, _) = self.decode(&["--json"]);
        listed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(json).collect()
    }
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("json")
}

/// Sends datagrams of all sizes both ways, over both IP versions, and waits for each; gives their payloads.
fn send_datagrams(lab: &Lab, round: u8) -> Vec<Vec<u8>> {
    let bind = |namespace: &hawser_wire::Namespace, address: String| {
        let bound = namespace.run(|| UdpSocket::bind(address)).expect("the namespace can be entered");
        let socket = bound.expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        socket
    };
    let mut sent = Vec::new();
    for (near, far) in [(LOCAL, REMOTE), ("[fd77::2]", &format!("[{REMOTE_V6}]"))] {
        let (near_at, far_at) = (format!("{near}:{UDP_PORT}"), format!("{far}:{UDP_PORT}"));
        let (here, there) = (bind(&lab.local, near_at.clone()), bind(&lab.remote, far_at.clone()));
        for number in 0..DATAGRAMS {
            let up = number % 2 == 0;
            let mut payload = vec![number as u8; 4 + number * STEP];
            payload[..4].copy_from_slice(&[round, u8::from(up), u8::from(near == LOCAL), number as u8]);
            let (from, to, at) = if up { (&here, &there, &far_at) } else { (&there, &here, &near_at) };
            from.send_to(&payload, at).expect("it goes");
            let mut got = vec![0; 2000];
            let (len, _) = to.recv_from(&mut got).expect("it comes");
            assert_eq!(got[..len], payload);
            sent.push(payload);
        }
    }
    sent
}

/// Sends a stream through the tunnel; gives its bytes.
fn send_stream(lab: &Lab) -> Vec<u8> {
    let bytes: Vec<u8> = (0..STREAM as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let at: SocketAddr = format!("{REMOTE}:{TCP_PORT}").parse().expect("an address");
    let listener = lab.remote.run(|| TcpListener::bind(at)).expect("it can be entered").expect("it listens");
    let sending = bytes.clone();
    let sender = lab.local.spawn_thread("stream", move || {
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE).expect("it connects");
        socket2::SockRef::from(&stream).set_tcp_congestion(b"cubic").expect("the kernel has it");
        stream.write_all(&sending).expect("it goes");
    });
    let (mut stream, _) = listener.accept().expect("it is called");
    stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("it comes");
    sender.expect("it starts").join().expect("it sends");
    assert!(got == bytes, "the stream was changed");
    bytes
}

/// The nth draw is of bytes n.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 = self.0.wrapping_add(1);
        bytes.fill(self.0);
    }
}

/// Sends the remote portal initiations as a stranger who knows its key, until it asks for a cookie.
fn flood(lab: &Lab) {
    let text = fs::read_to_string(lab.path("local.toml")).expect("a configuration");
    let key = text.split("public_key = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a key");
    let key = hawser_config::PublicKey::parse(key).expect("a key");
    let offer =
        Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(false), instance: InstanceId(1) };
    let (stranger, remote) = (Identity::new([7; 32]), PublicKey(*key.as_bytes()));
    let socket = lab.local.run(|| UdpSocket::bind("192.0.1.1:0")).expect("it can be entered").expect("a socket");
    socket.set_read_timeout(Some(ms(100))).expect("it can be set");
    let mut rng = Counting(0);
    let answered = (0..5).any(|_| {
        for index in (0..FLOOD).map(HandshakeIndex) {
            let started = Initiator::start(&stranger, &remote, Psk::default(), offer, index, None, &mut rng);
            let (_, message) = started.expect("a message");
            socket.send_to(&message, (ENDPOINT, 4920)).expect("it goes");
        }
        socket.recv_from(&mut [0; 200]).is_ok_and(|(len, _)| len == 61)
    });
    assert!(answered, "no cookie reply");
}

/// The packets of a pcap file.
fn packets(file: &[u8]) -> Vec<&[u8]> {
    let mut begun = Vec::new();
    PcapWriter::new(&mut begun).expect("a vector takes all");
    let mut rest = file.strip_prefix(&begun[..]).expect("the header of a capture");
    assert_eq!(begun.len(), FILE_HEADER);
    let mut packets = Vec::new();
    while let Some((header, tail)) = rest.split_first_chunk::<PACKET_HEADER>() {
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        packets.push(&tail[..len]);
        rest = &tail[len..];
    }
    assert!(rest.is_empty());
    packets
}

/// What was decoded of the test's own traffic: UDP payloads, sorted, and the stream's bytes. Checksums are right.
fn read_inner(packets: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut datagrams, mut stream) = (Vec::new(), BTreeMap::new());
    for packet in packets {
        let parsed = inner::parse(packet).expect("a whole packet");
        let transport = &packet[usize::from(parsed.transport_at)..];
        if matches!(parsed.transport, Transport::Tcp { .. } | Transport::Udp) {
            let pseudo = checksum::pseudo(parsed.source, parsed.destination, parsed.protocol, transport.len());
            assert!(checksum::verifies(pseudo, transport), "a wrong checksum: {parsed:?}");
        }
        let payload = parsed.header_len().map(|len| &packet[len..]);
        match (parsed.transport, parsed.ports, payload) {
            (Transport::Udp, Some((_, UDP_PORT)), Some(payload)) => datagrams.push(payload.to_vec()),
            (Transport::Tcp { .. }, Some((_, TCP_PORT)), Some(payload)) => {
                let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                stream.insert(sequence, payload);
            }
            _ => {}
        }
    }
    datagrams.sort();
    (datagrams, in_order(&stream))
}

/// The bytes of a stream by their sequence numbers: its SYN has no payload and begins it.
fn in_order(segments: &BTreeMap<u32, &[u8]>) -> Vec<u8> {
    let start =
        segments.keys().copied().find(|at| segments[at].is_empty() && segments.contains_key(&at.wrapping_add(1)));
    let start = start.expect("the beginning of a stream").wrapping_add(1);
    let mut bytes: Vec<(u32, &[u8])> = segments.iter().map(|(at, bytes)| (at.wrapping_sub(start), *bytes)).collect();
    bytes.retain(|(_, bytes)| !bytes.is_empty());
    bytes.sort();
    let mut all = Vec::new();
    for (at, bytes) in bytes {
        all.extend_from_slice(&bytes[all.len().saturating_sub(at as usize).min(bytes.len())..]);
    }
    all
}

/// What tshark says of the packets that pass a filter.
fn tshark(capture: &Path, clear: &str, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    // A portal that is not there yet is answered for by ICMP, with the datagram in it.
    tshark::run(capture, &["-o", clear, "-Y", &format!("({filter}) && !icmp")], fields)
}

/// The dissector's preference: whether frames are in clear, it finds out by itself, or is told.
const GUESS: &str = "hawser.clear:guess";
const CLEAR: &str = "hawser.clear:always";

/// The fields of each type of datagram that are in clear, with the type's code and its name in the listing.
const DATAGRAMS_IN_CLEAR: [(&str, &str, &[&str]); 4] = [
    (
        "1",
        "initiation",
        &[
            "hawser.index",
            "hawser.noise.ephemeral",
            "hawser.noise.static",
            "hawser.noise.payload",
            "hawser.mac1",
            "hawser.mac2",
            "hawser.has_cookie",
        ],
    ),
    (
        "2",
        "response",
        &[
            "hawser.index",
            "hawser.receiver",
            "hawser.noise.ephemeral",
            "hawser.noise.payload",
            "hawser.mac1",
            "hawser.mac2",
        ],
    ),
    ("3", "cookie reply", &["hawser.receiver", "hawser.salt", "hawser.cookie"]),
    ("4", "data", &["hawser.label", "hawser.number", "hawser.tag"]),
];
const SEALED: &str = "hawser.sealed";
const FRAME_TYPE: &str = "hawser.frame.type";
const PORT: &str = "udp.dstport";

/// What tshark said of each packet of the portals' port: its values by field.
struct Dissected(Vec<BTreeMap<String, Vec<String>>>);

impl Dissected {
    fn of(capture: &Path, clear: &str) -> Self {
        let mut fields = vec!["hawser.type", SEALED, FRAME_TYPE, PORT];
        fields.extend(DATAGRAMS_IN_CLEAR.iter().flat_map(|(_, _, fields)| fields.iter().copied()));
        fields.sort_unstable();
        fields.dedup();
        let split = |(field, values): (&&str, &String)| {
            let values = values.split(',').filter(|value| !value.is_empty()).map(str::to_owned);
            ((*field).to_owned(), values.collect())
        };
        let rows = tshark(capture, clear, "udp.port == 4920", &fields);
        Dissected(rows.iter().map(|row| fields.iter().zip(row).map(split).collect()).collect())
    }

    /// Each packet once. What an interface dropped for want of buffers was captured, and the portal sends the same
    /// bytes again: the listing has those frames once.
    fn once(&self) -> Self {
        Dissected(self.0.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect())
    }

    /// How often each type of frame is there.
    fn frames(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for code in self.values(None, FRAME_TYPE) {
            let code = usize::from_str_radix(code.trim_start_matches("0x"), 16).expect("a number");
            *counts.entry(FRAMES.get(code).unwrap_or(&LINK_NAME).to_string()).or_default() += 1;
        }
        counts
    }

    /// All values of a field, in packets whose datagrams are of this type; they are of one.
    fn values(&self, kind: Option<&str>, field: &str) -> Vec<&str> {
        let of_kind = |row: &&BTreeMap<String, Vec<String>>| {
            kind.is_none_or(|kind| row["hawser.type"].first().is_some_and(|first| first == kind))
        };
        self.0.iter().filter(of_kind).flat_map(|row| row[field].iter().map(String::as_str)).collect()
    }
}

/// Every datagram is dissected to its last field in clear, and none is malformed.
fn assert_dissected(recording: &Recording, clear: &str, listing: &[Value]) -> Dissected {
    let faulty = "hawser.malformed || hawser.reserved || hawser.unknown_frame || (hawser && _ws.malformed)";
    assert_eq!(tshark(&recording.capture(), clear, faulty, &["frame.number"]), [[""; 0]; 0]);
    let dissected = Dissected::of(&recording.capture(), clear);
    assert!(dissected.0.iter().all(|row| !row["hawser.type"].is_empty()), "a packet was not dissected");
    for (code, name, fields) in DATAGRAMS_IN_CLEAR {
        let listed = listing.iter().filter(|line| line["type"] == name).count();
        assert!(listed > 0, "no {name}");
        for field in fields.iter().chain(&["hawser.type"]) {
            assert_eq!(dissected.values(Some(code), field).len(), listed, "{field} of a {name}");
        }
    }
    dissected
}

/// How often the listing has each type of frame.
fn frames(listing: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for frame in listing.iter().flat_map(|line| line["frames"].as_array().into_iter().flatten()) {
        *counts.entry(frame["type"].as_str().expect("a name").to_owned()).or_default() += 1;
    }
    counts
}

fn assert_decoded(recording: &Recording) {
    let inner = recording.lab.path("inner.pcap");
    let (_, said) = recording.decode(&["-o", inner.to_str().expect("a name")]);
    assert!(!said.contains("not opened"), "{said}");
    let file = fs::read(&inner).expect("it was written");
    let packets = packets(&file);
    assert!(said.contains(&format!(" {}  inner packets\n", packets.len())), "{said}");
    let (datagrams, stream) = read_inner(&packets);
    assert_eq!(datagrams.len(), recording.datagrams.len(), "{said}");
    assert!(datagrams == recording.datagrams, "datagrams came back changed");
    assert!(stream == recording.stream, "the stream came back changed: {} bytes", stream.len());
}

#[test]
fn a_session_in_clear_is_dissected_to_its_frames_and_decoded() {
    let recording = Recording::of("authenticate");
    assert_decoded(&recording);
    let listing = recording.listing();
    let dissected = assert_dissected(&recording, CLEAR, &listing);
    let listed = frames(&listing);
    assert_eq!(dissected.once().frames(), listed);
    // A label of few datagrams does not tell; one of inner packets does.
    let guessed = assert_dissected(&recording, GUESS, &listing).once().frames();
    assert_eq!(guessed["DATA"], listed["DATA"]);
    for name in ["PING", "ACK", "PATH_CHALLENGE", "PATH_RESPONSE", "PATH_INFO", "DATA", "CLOSE", "HOLD", LINK_NAME] {
        assert!(listed.contains_key(name), "no {name} in {listed:?}");
    }
    assert_eq!(dissected.values(None, SEALED).len(), 0);
    // Wireshark's own dissectors read the inner packets; a veth pair's capture has each way once.
    let inner = dissected.values(None, PORT).into_iter().filter(|port| *port == UDP_PORT.to_string()).count();
    assert!(inner >= recording.datagrams.len(), "{inner} of {}", recording.datagrams.len());
}

#[test]
fn a_sealed_session_is_dissected_to_its_header_and_decoded() {
    let recording = Recording::of("encrypt");
    assert_decoded(&recording);
    let listing = recording.listing();
    let dissected = assert_dissected(&recording, GUESS, &listing);
    assert_eq!(dissected.values(None, FRAME_TYPE).len(), 0);
    let data = listing.iter().filter(|line| line["type"] == "data").count();
    assert_eq!(dissected.values(None, SEALED).len(), data);
}
