//! The program on frames, one by one, without a line (linux/bpf.h, `BPF_PROG_TEST_RUN`): what it does with each, and
//! why.

use std::net::{SocketAddr, UdpSocket};

use aya::programs::{TestRun, TestRunOptions, Xdp};
use hawser_wire::{End, Namespace, veth};

use super::frame::{Outer, SERVICE_VLAN, UDP_LEN, VLAN, datagram, extended, message, template};
use super::host::namespace;
use crate::packet::{Echo, ScmpView, Traceroute};
use crate::xdp::bypass::{counters, open_program};
use crate::xdp::layout::{Entry, Key};
use crate::xdp::pins::Pins;
use crate::xdp::whitelist::Whitelist;
use crate::xdp::{Bypass, Counters, Left, Wanted, detach};
use crate::{InterfaceId, IsdAs};

/// On the whitelist, with a socket; on it, without one; not on it, with a socket.
pub const OPEN: u16 = 31000;
pub const CLOSED: u16 = 31001;
pub const UNLISTED: u16 = 31002;
/// XDP_PASS (linux/bpf.h).
const PASS: u32 = 2;
/// Bytes of the largest frame, and more.
const ROOM: usize = 1 << 17;

/// A host that has the program, on loopback, where nothing else passes.
pub struct Bench {
    pub namespace: Namespace,
    program: Xdp,
    pins: Pins,
    _sockets: [UdpSocket; 2],
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    Forwarded(u16),
    Left(Left),
    NotScion,
}

impl Bench {
    /// Ports are on the whitelist for every address.
    pub fn new(tag: &str) -> Bench {
        let namespace = namespace(tag);
        let (sockets, program, pins) = namespace
            .run(|| {
                let mut bypass = Bypass::load().expect("the kernel takes the program (this test needs root)");
                bypass.attach("lo", Wanted::Generic, false).expect("it attaches");
                for port in [OPEN, CLOSED] {
                    bypass.allow(port.try_into().expect("not 0")).expect("room");
                }
                let sockets = [OPEN, UNLISTED].map(|port| UdpSocket::bind(("::", port)).expect("a socket"));
                let pins = Pins::find().expect("a namespace").expect("a file system");
                (sockets, open_program(&pins).expect("it is pinned"), pins)
            })
            .expect("the namespace is there");
        Bench { namespace, program, pins, _sockets: sockets }
    }

    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.run(work).expect("the namespace is there")
    }

    /// Runs the program on a frame, and returns the frame as it left it. To be called within `run`.
    pub fn pass(&self, frame: &[u8]) -> Vec<u8> {
        let mut out = vec![0; ROOM];
        let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), ..TestRunOptions::new() };
        let done = self.program.test_run(options).expect("it runs");
        assert_eq!(done.return_value, PASS, "no packet is dropped");
        out.truncate(done.data_size_out as usize);
        out
    }

    /// What becomes of a frame, by the counters, and that nothing else of it is changed.
    pub fn fate(&self, outer: &Outer, frame: &[u8]) -> Fate {
        self.run(|| {
            let before = counters(&self.pins).expect("they are there");
            let passed = self.pass(frame);
            let after = counters(&self.pins).expect("they are there");
            let fate = counted(&before, &after, outer, &passed);
            match fate {
                Fate::Forwarded(port) => assert_only_forwarded(outer, frame, &passed, port),
                _ => assert_eq!(passed, frame, "left as it is"),
            }
            fate
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let detached = self.namespace.run(|| detach(&[]));
        if !std::thread::panicking() {
            detached.expect("the namespace is there").expect("it detaches");
        }
    }
}

fn counted(before: &Counters, after: &Counters, outer: &Outer, passed: &[u8]) -> Fate {
    assert_eq!(after.packets, before.packets + 1);
    let reasons = Left::ALL.into_iter().filter(|&reason| after.left_for(reason) != before.left_for(reason));
    let reasons: Vec<Left> = reasons.collect();
    match (after.forwarded - before.forwarded, &reasons[..]) {
        (1, []) => Fate::Forwarded(u16_at(passed, outer.udp_at() + 2)),
        (0, &[reason]) => Fate::Left(reason),
        (0, []) => Fate::NotScion,
        (forwarded, reasons) => panic!("{forwarded} forwarded and left for {reasons:?}"),
    }
}

/// The port is changed and the checksum fits, and not one byte else.
pub fn assert_only_forwarded(outer: &Outer, frame: &[u8], passed: &[u8], port: u16) {
    let at = outer.udp_at();
    let mut expected = frame.to_vec();
    expected[at + 2..at + 4].copy_from_slice(&port.to_be_bytes());
    expected[at + 6..at + 8].copy_from_slice(&passed[at + 6..at + 8]);
    assert_eq!(passed, expected, "only the port and the checksum");
    match (u16_at(frame, at + 6), u16_at(passed, at + 6)) {
        (0, after) => assert_eq!(after, 0, "no checksum stays no checksum"),
        (_, after) => {
            assert_ne!(after, 0, "a checksum does not become none");
            let sum = outer.udp_checksum(&passed[at..]);
            let before = outer.udp_checksum(&frame[at..]);
            assert_eq!(sum, before, "as right or wrong as it was");
        }
    }
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The two families: what is outside, and the application's address.
pub fn families() -> [(Outer, SocketAddr); 2] {
    [
        (Outer::new("127.0.0.2:50000", "127.0.0.1:30041"), SocketAddr::from(([127, 0, 0, 1], OPEN))),
        (Outer::new("[::1]:50000", "[::1]:30041"), "[::1]:31000".parse().expect("an address")),
    ]
}

/// Hosts of SCION need not be of one family with each other.
const SOURCES: [&str; 2] = ["10.20.0.1:4000", "[fd20::1]:4000"];

#[test]
fn what_is_for_an_open_port_on_the_whitelist_goes_there() {
    let bench = Bench::new("xfwd");
    for (outer, application) in families() {
        for source in SOURCES.map(|text| text.parse().expect("an address")) {
            for segments in [&[][..], &[2], &[2, 2], &[3, 2, 4], &[1, 1, 62]] {
                for tags in [&[][..], &[VLAN], &[SERVICE_VLAN, VLAN]] {
                    let outer = Outer { tags: tags.to_vec(), ..outer.clone() };
                    let packet = datagram(&template(source, application, segments), b"to the application");
                    let fate = bench.fate(&outer, &outer.frame(&packet));
                    assert_eq!(fate, Fate::Forwarded(OPEN), "{outer:?} {source} {segments:?}");
                }
            }
        }
    }
}

#[test]
fn extensions_are_passed_over() {
    let bench = Bench::new("xext");
    let (hops, ends) = (200, 201);
    let table: [(&[(u8, u8)], Fate); 7] = [
        (&[(hops, 0)], Fate::Forwarded(OPEN)),
        (&[(ends, 3)], Fate::Forwarded(OPEN)),
        (&[(hops, 255), (ends, 7)], Fate::Forwarded(OPEN)),
        (&[(ends, 0), (hops, 0)], Fate::Left(Left::Extension)),
        (&[(hops, 0), (hops, 0)], Fate::Left(Left::Extension)),
        (&[(ends, 0), (ends, 0)], Fate::Left(Left::Extension)),
        (&[(hops, 0), (ends, 0), (ends, 0)], Fate::Left(Left::Extension)),
    ];
    for (outer, application) in families() {
        let packet = datagram(&template(application, application, &[2]), b"behind extensions");
        for (extensions, expected) in &table {
            let fate = bench.fate(&outer, &outer.frame(&extended(&packet, extensions)));
            assert_eq!(fate, *expected, "{extensions:?}");
        }
    }
}

#[test]
fn whatever_else_is_left_alone_for_a_reason() {
    let bench = Bench::new("xleft");
    for (outer, application) in families() {
        let port = |port| SocketAddr::new(application.ip(), port);
        let packet = |destination| datagram(&template(application, destination, &[2]), b"sixteen bytes ..");
        let good = packet(application);
        let header = usize::from(good[5]) * 4;
        let with = |at: usize, value: u8| {
            let mut packet = good.clone();
            packet[at] = value;
            packet
        };
        let stranger = if outer.destination.is_ipv4() { "127.0.0.9:31000" } else { "[fd00::9]:31000" };
        let other_family = if outer.destination.is_ipv4() { "[::1]:31000" } else { "127.0.0.1:31000" };
        let address = |text: &str| text.parse().expect("an address");
        let table = [
            ("not on the whitelist", packet(port(UNLISTED)), Left::Port),
            ("the dispatcher's own port", packet(port(30041)), Left::Port),
            ("nobody listens", packet(port(CLOSED)), Left::Socket),
            ("another host", packet(address(stranger)), Left::Address),
            ("a host of the other family", packet(address(other_family)), Left::Address),
            ("a service as destination", with(9, 0x40 | good[9] & 0xf), Left::Address),
            ("a service as source", with(9, good[9] & 0xf0 | 4), Left::Address),
            ("version 1", with(0, 0x10), Left::Malformed),
            ("a header of 0 bytes", with(5, 0), Left::Malformed),
            ("a header that ends in the path", with(5, good[5] - 1), Left::Malformed),
            ("a header that goes on behind the path", with(5, good[5] + 1), Left::Malformed),
            ("a header longer than the packet", with(5, 255), Left::Malformed),
            ("a payload longer than the packet", with(7, good[7] + 1), Left::Malformed),
            ("a payload longer than any packet", with(6, 255), Left::Malformed),
            ("an empty path with hops", with(8, 0), Left::Malformed),
            ("a one-hop path", with(8, 2), Left::Path),
            ("an epic path", with(8, 3), Left::Path),
            ("a path type that is not known", with(8, 77), Left::Path),
            ("tcp", with(4, 6), Left::Protocol),
            ("a protocol that is not known", with(4, 255), Left::Protocol),
            ("a udp length that is too large", with(header + 5, 25), Left::Malformed),
            ("a udp length that is too small", with(header + 5, 7), Left::Malformed),
            ("nothing", Vec::new(), Left::Malformed),
            ("half a header", good[..20].to_vec(), Left::Malformed),
            ("text", b"GET / HTTP/1.1\r\nHost: dispatcher.example:30041\r\n\r\n".to_vec(), Left::Malformed),
        ];
        for (what, packet, reason) in table {
            assert_eq!(bench.fate(&outer, &outer.frame(&packet)), Fate::Left(reason), "{what}: {outer:?}");
        }
        assert_eq!(bench.fate(&outer, &outer.frame(&good)), Fate::Forwarded(OPEN));
        // What follows the datagram is the application's to judge.
        assert_eq!(bench.fate(&outer, &outer.frame(&with(header + 5, 23))), Fate::Forwarded(OPEN));
    }
}

#[test]
fn a_path_must_fill_its_header() {
    let bench = Bench::new("xpath");
    for (outer, application) in families() {
        let good = datagram(&template(application, application, &[2, 3]), b"by a path");
        let meta = 28 + if application.is_ipv4() { 8 } else { 32 };
        // Segments of this many hops in the same 80 bytes.
        let table: [([u32; 3], bool); 6] = [
            ([2, 3, 0], true),
            ([4, 1, 0], true),
            ([0, 5, 0], false),
            ([5, 0, 0], false),
            ([2, 0, 3], false),
            ([0, 0, 0], false),
        ];
        for ([first, second, third], fits) in table {
            let mut packet = good.clone();
            packet[meta..meta + 4].copy_from_slice(&(first << 12 | second << 6 | third).to_be_bytes());
            let expected = if fits { Fate::Forwarded(OPEN) } else { Fate::Left(Left::Malformed) };
            assert_eq!(bench.fate(&outer, &outer.frame(&packet)), expected, "{first} {second} {third}");
        }
    }
}

#[test]
fn outer_headers_that_are_not_plain_are_left_alone() {
    let bench = Bench::new("xouter");
    let [(v4, application4), (v6, application6)] = families();
    let good4 = v4.frame(&datagram(&template(application4, application4, &[]), b"plain"));
    let good6 = v6.frame(&datagram(&template(application6, application6, &[]), b"plain"));
    let options = {
        let mut frame = good4.clone();
        frame[14] = 0x46;
        frame[17] += 4;
        frame.splice(34..34, [1; 4]);
        frame
    };
    let with = |frame: &[u8], at: usize, value: u8| {
        let mut frame = frame.to_vec();
        frame[at] = value;
        frame
    };
    let fragment4 = with(&good4, 20, 0x20);
    let port = 30_040u16.to_be_bytes();
    let table = [
        ("options", &v4, options, Fate::Left(Left::Outer)),
        ("a first fragment", &v4, fragment4, Fate::Left(Left::Outer)),
        ("a later fragment", &v4, with(&good4, 21, 1), Fate::NotScion),
        ("ipv4 in an ipv6 frame", &v4, with(&good4, 13, 0xdd), Fate::NotScion),
        ("a total length that is too small", &v4, with(&good4, 17, 30), Fate::Left(Left::Malformed)),
        ("a udp length that is too large", &v4, with(&good4, 39, 255), Fate::Left(Left::Malformed)),
        ("a udp length that is too small", &v4, with(&good4, 39, 7), Fate::Left(Left::Malformed)),
        ("another port", &v4, with(&good4, 37, port[1]), Fate::NotScion),
        ("tcp", &v4, with(&good4, 23, 6), Fate::NotScion),
        ("a fragment header", &v6, with(&good6, 20, 44), Fate::NotScion),
        ("hop-by-hop options", &v6, with(&good6, 20, 0), Fate::NotScion),
        ("a payload length that is too small", &v6, with(&good6, 19, 20), Fate::Left(Left::Malformed)),
        ("a frame that ends in its ip header", &v4, good4[..30].to_vec(), Fate::NotScion),
        ("a frame that ends in its udp header", &v4, good4[..38].to_vec(), Fate::NotScion),
        ("a frame that ends behind its udp header", &v4, good4[..42].to_vec(), Fate::Left(Left::Malformed)),
        ("a frame of 14 bytes", &v4, good4[..14].to_vec(), Fate::NotScion),
    ];
    for (what, outer, frame, expected) in table {
        assert_eq!(bench.fate(outer, &frame), expected, "{what}");
    }
    let three = Outer { tags: vec![VLAN; 3], ..v4.clone() };
    let packet = datagram(&template(application4, application4, &[]), b"three tags");
    assert_eq!(bench.fate(&three, &three.frame(&packet)), Fate::NotScion);
    // Padding to Ethernet's least length is no part of the packet.
    let padded = [&good4[..], &[0; 6]].concat();
    assert_eq!(bench.fate(&v4, &padded), Fate::Forwarded(OPEN));
}

#[test]
fn control_messages_go_to_whoever_asked_or_sent() {
    let bench = Bench::new("xscmp");
    let interface = InterfaceId(7);
    let isd_as = IsdAs::default();
    for (outer, application) in families() {
        let router = template(outer.source, application, &[2]);
        let sent = |from: SocketAddr| datagram(&template(from, outer.source, &[2, 2]), &[7; 2000]);
        let (ours, unlisted) = (sent(application), sent(SocketAddr::new(application.ip(), UNLISTED)));
        let stranger = if application.is_ipv4() { "127.0.0.9:31000" } else { "[fd00::9]:31000" };
        let not_ours = sent(stranger.parse().expect("an address"));
        let echo = |id| Echo { id, seq: 1, data: b"data" };
        let traceroute = |id| Traceroute { id, seq: 1, isd_as, interface };
        let asked = message(&template(application, outer.source, &[]), &ScmpView::EchoRequest(echo(OPEN)));
        let traced = message(&template(application, outer.source, &[]), &ScmpView::TracerouteRequest(traceroute(OPEN)));
        let answered = message(&template(application, outer.source, &[]), &ScmpView::EchoReply(echo(OPEN)));
        let scmp = || Fate::Left(Left::Scmp);
        let unreachable = |quoted| ScmpView::DestinationUnreachable { code: 4, quoted };
        let table = [
            ("an echo reply", ScmpView::EchoReply(echo(OPEN)), Fate::Forwarded(OPEN)),
            ("an echo reply for another", ScmpView::EchoReply(echo(UNLISTED)), Fate::Left(Left::Port)),
            ("a traceroute reply", ScmpView::TracerouteReply(traceroute(OPEN)), Fate::Forwarded(OPEN)),
            ("an echo request", ScmpView::EchoRequest(echo(OPEN)), scmp()),
            ("a traceroute request", ScmpView::TracerouteRequest(traceroute(OPEN)), scmp()),
            ("an unknown message", ScmpView::Unknown { kind: 100, code: 0, body: &[0; 8] }, scmp()),
            ("unreachable", unreachable(&ours), Fate::Forwarded(OPEN)),
            ("too big", ScmpView::PacketTooBig { mtu: 1280, quoted: &ours }, Fate::Forwarded(OPEN)),
            (
                "a wrong parameter",
                ScmpView::ParameterProblem { code: 1, pointer: 2, quoted: &ours },
                Fate::Forwarded(OPEN),
            ),
            (
                "an interface down",
                ScmpView::ExternalInterfaceDown { isd_as, interface, quoted: &ours },
                Fate::Forwarded(OPEN),
            ),
            (
                "an as that does not connect",
                ScmpView::InternalConnectivityDown { isd_as, ingress: interface, egress: interface, quoted: &ours },
                Fate::Forwarded(OPEN),
            ),
            ("about another's packet", unreachable(&unlisted), Fate::Left(Left::Port)),
            ("about another host's packet", unreachable(&not_ours), Fate::Left(Left::Address)),
            ("about an echo", unreachable(&asked), Fate::Forwarded(OPEN)),
            ("about a traceroute", unreachable(&traced), Fate::Forwarded(OPEN)),
            ("about an answer", unreachable(&answered), scmp()),
            ("about nothing", unreachable(&[]), scmp()),
            ("about a beginning", unreachable(&ours[..50]), scmp()),
            ("about text", unreachable(&[b'x'; 100]), scmp()),
        ];
        for (what, view, expected) in table {
            let packet = message(&router, &view);
            assert_eq!(bench.fate(&outer, &outer.frame(&packet)), expected, "{what}: {outer:?}");
        }
    }
}

#[test]
fn checksums_stay_what_they_are() {
    let bench = Bench::new("xsum");
    for (outer, application) in families() {
        let packet = datagram(&template(application, application, &[]), b"with any checksum");
        let frame = outer.frame(&packet);
        let at = outer.udp_at() + 6;
        // None; the one that would become none, and its neighbours; wrong ones at both ends.
        let becomes_0 = OPEN - 30_041;
        for check in [0, 1, becomes_0 - 1, becomes_0, becomes_0 + 1, 0x7fff, 0xfffe, 0xffff] {
            let mut frame = frame.clone();
            frame[at..at + 2].copy_from_slice(&check.to_be_bytes());
            assert_eq!(bench.fate(&outer, &frame), Fate::Forwarded(OPEN), "{check:#x}");
        }
        // Every complete checksum, as payloads come by.
        for n in 0..200u16 {
            let packet = datagram(&template(application, application, &[]), &n.wrapping_mul(40_503).to_be_bytes());
            assert_eq!(bench.fate(&outer, &outer.frame(&packet)), Fate::Forwarded(OPEN), "payload {n}");
            assert_eq!(outer.udp_checksum(&outer.frame(&packet)[outer.udp_at()..]), 0, "it was right");
        }
    }
}

#[test]
fn a_port_of_one_address_is_no_other_addresses() {
    let bench = Bench::new("xaddr");
    let outer = Outer::new("127.0.0.2:50000", "127.0.0.1:30041");
    let port = UNLISTED;
    let packet = |host: &str| {
        let destination = SocketAddr::new(host.parse().expect("an address"), port);
        let outer = Outer { destination: SocketAddr::new(destination.ip(), 30_041), ..outer.clone() };
        outer.frame(&datagram(&template(outer.source, destination, &[]), b"to one address"))
    };
    bench.run(|| {
        let pins = Pins::find().expect("a namespace").expect("a file system");
        let mut whitelist = Whitelist::open(&pins.whitelist()).expect("a map").expect("it is there");
        let key = Key::new("127.0.0.1".parse().expect("an address"), port);
        whitelist.put(key, Entry::default()).expect("room");
    });
    assert_eq!(bench.fate(&outer, &packet("127.0.0.1")), Fate::Forwarded(port));
    assert_eq!(bench.fate(&outer, &packet("127.0.0.3")), Fate::Left(Left::Port));
}

#[test]
fn what_is_for_a_host_behind_this_one_is_left_alone() {
    let bench = Bench::new("xtrans");
    bench.namespace.set_forwarding(true).expect("a router");
    let behind = namespace("xbehind");
    let near = End::new(&bench.namespace, "v0", &["10.99.0.1/24", "fd99::1/64"]);
    veth(&near, &End::new(&behind, "v0", &[]), 1500).expect("a line");
    for (outer, application) in families() {
        let behind = if application.is_ipv4() { "10.99.0.5" } else { "fd99::5" };
        let behind = SocketAddr::new(behind.parse().expect("an address"), OPEN);
        let before = if application.is_ipv4() { "10.98.0.5:50000" } else { "[fd98::5]:50000" };
        let source = before.parse().expect("an address");
        let transit = Outer { source, destination: SocketAddr::new(behind.ip(), 30_041), ..outer.clone() };
        let packet = datagram(&template(source, behind, &[]), b"passing by");
        assert_eq!(bench.fate(&transit, &transit.frame(&packet)), Fate::Left(Left::Transit), "{transit:?}");
        let packet = datagram(&template(outer.source, application, &[]), b"for this host");
        assert_eq!(bench.fate(&outer, &outer.frame(&packet)), Fate::Forwarded(OPEN), "{outer:?}");
    }
}

#[test]
fn a_frame_has_room_for_its_headers() {
    let [(outer, application), _] = families();
    let packet = datagram(&template(application, application, &[]), b"x");
    assert_eq!(outer.frame(&packet).len(), outer.udp_at() + UDP_LEN + packet.len());
}
