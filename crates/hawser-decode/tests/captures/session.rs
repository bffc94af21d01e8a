//! A whole session over two links, with new keys amid it, some loss, and both protections: what goes in comes out of
//! its capture.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::support::*;
use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, Event, Link, PeerConfig};
use hawser_core::handshake::secrets::KeyLogEntry;
use hawser_core::handshake::{Identity, Psk, REKEY_AFTER};
use hawser_core::packet::Offload;
use hawser_core::policy::Tuning;
use hawser_core::session::{Buffers, Settings, Sink};
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkGroup, LinkId, Random, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};

const REMOTE: &str = "192.0.2.2:4920";
/// How often the portals speak.
const STEP: Duration = Duration::from_millis(20);
/// One datagram of this many is lost behind the capture.
const LOST: usize = 23;

struct Seeded(u64);

impl Random for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 33) as u8;
        }
    }
}

struct Buffer(Vec<u8>);

impl Buffers for Buffer {
    fn spare(&mut self, _: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }
}

struct Portal {
    endpoint: Endpoint,
    remote: bool,
    keys: String,
}

/// What comes home is not looked at.
struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: &[u8], _: bool) {}
}

impl Portal {
    fn new(ours: u8, theirs: u8, protection: Protection, allowed: &str) -> Portal {
        let remote = ours == 2;
        let endpoint: Option<SocketAddr> = (!remote).then(|| REMOTE.parse().expect("an address"));
        let config = Config {
            identity: Identity::new([ours; 32]),
            offer: Offer { protection, ciphers: CipherSet::for_machine(true), instance: InstanceId(u64::from(ours)) },
            settings: Settings { congestion: Kind::Bbr, max_link_mtu: 1500, tuning: Tuning::default() },
            peers: vec![PeerConfig {
                public_key: Identity::new([theirs; 32]).public(),
                psk: Psk::default(),
                endpoints: endpoint.into_iter().collect(),
                ranks: Vec::new(),
                allowed_ips: vec![allowed.parse().expect("a prefix")],
            }],
        };
        let mut endpoint = Endpoint::new(config, Box::new(Seeded(u64::from(ours))));
        endpoint.tell_keys();
        for id in 0..if remote { 1 } else { 2 } {
            let group = LinkGroup(id);
            let link = Link {
                id: LinkId(id),
                group,
                preference: 0,
                metric: 0,
                transport: Transport::Udp,
                ipv4: true,
                ipv6: false,
                opens: !remote,
                up: true,
            };
            endpoint.add_link(START, link);
        }
        Portal { endpoint, remote, keys: String::new() }
    }

    fn address(&self, link: LinkId) -> SocketAddr {
        let local = format!("192.0.2.1:{}", 1000 + link.0);
        if self.remote { REMOTE } else { &local }.parse().expect("an address")
    }

    fn send(&mut self, now: Time, packet: &[u8], offload: Offload) {
        self.endpoint.read_buffer()[..packet.len()].copy_from_slice(packet);
        self.endpoint.handle_inner(now, packet.len(), offload);
    }
}

const START: Time = Time::from_nanos(1_000_000_000);

/// Everything that was captured, and every inner packet as it should come out.
struct Recording {
    file: Vec<u8>,
    logs: [String; 2],
    inner: Vec<Vec<u8>>,
}

/// A UDP packet of the inner network; with its checksum partial, and complete.
fn inner(up: bool, number: u32) -> (Vec<u8>, Vec<u8>) {
    let payload = [&number.to_be_bytes()[..], &vec![number as u8; (number % 900) as usize]].concat();
    let mut packet = ipv4(17, &udp(1000, 2000, &payload));
    packet[12..20].copy_from_slice(if up { &[10, 0, 0, 2, 10, 0, 0, 1] } else { &[10, 0, 0, 1, 10, 0, 0, 2] });
    let ip = |at: usize| IpAddr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let pseudo = hawser_core::packet::checksum::pseudo(ip(12), ip(16), 17, packet.len() - 20);
    packet[26..28].copy_from_slice(&pseudo.to_be_bytes());
    let mut complete = packet.clone();
    let sum = hawser_core::packet::checksum::sum(&packet[20..]);
    complete[26..28].copy_from_slice(&(!sum).to_be_bytes());
    (packet, complete)
}

fn record(protection: Protection) -> Recording {
    let mut portals = [Portal::new(1, 2, protection, "10.0.0.1/32"), Portal::new(2, 1, protection, "10.0.0.2/32")];
    let (mut captured, mut expected, mut now, mut count) = (Vec::new(), Vec::new(), START, 0);
    let end = START + REKEY_AFTER + Duration::from_secs(8);
    let partial = Offload { needs_csum: true, csum_start: 20, csum_offset: 6, ..Offload::default() };
    while now < end {
        // Traffic before and after the keys change, not all the time: the capture stays small.
        let busy = now.since(START) > Duration::from_secs(1) && end.since(now) > Duration::from_secs(1);
        if busy && (now.as_nanos() / 1_000_000_000).is_multiple_of(7) {
            for portal in &mut portals {
                let number = expected.len() as u32;
                let (packet, complete) = inner(!portal.remote, number);
                let plain = number.is_multiple_of(3);
                let (packet, offload) = if plain { (&complete, Offload::default()) } else { (&packet, partial) };
                portal.send(now, packet, offload);
                expected.push(complete);
            }
        }
        for portal in &mut portals {
            portal.endpoint.handle_timeout(now, &mut Nowhere);
        }
        while (0..2).any(|from| speak(now, &mut portals, from, &mut captured, &mut count)) {}
        for portal in &mut portals {
            tell(portal);
        }
        now = now + STEP;
    }
    expected.sort();
    let [local, remote] = portals;
    Recording { file: pcap(RAW, &captured), logs: [local.keys, remote.keys], inner: expected }
}

/// Moves what one has to say to the other; tells whether it was anything.
fn speak(now: Time, portals: &mut [Portal; 2], from: usize, captured: &mut Vec<Vec<u8>>, count: &mut usize) -> bool {
    let mut buffer = Buffer(vec![0; 65_536]);
    let Some(transmit) = portals[from].endpoint.poll_transmit(now, &mut buffer) else { return false };
    let source = portals[from].address(transmit.link);
    let to = &mut portals[1 - from];
    for datagram in buffer.0[..transmit.len].chunks(transmit.segment_size) {
        captured.push(ipv4(17, &udp(source.port(), transmit.remote.port(), datagram)));
        *count += 1;
        if count.is_multiple_of(LOST) {
            continue;
        }
        let link = LinkId(if to.remote { 0 } else { transmit.remote.port() - 1000 });
        let mut datagram = datagram.to_vec();
        to.endpoint.handle_datagram(now, link, source, None, Ecn::NotEct, &mut datagram, &mut Nowhere);
    }
    true
}

fn tell(portal: &mut Portal) {
    while let Some(event) = portal.endpoint.poll_event() {
        if let Event::Keys { new, secrets, .. } = event {
            portal.keys += &KeyLogEntry { peer: "other".to_owned(), new, secrets: *secrets }.line();
        }
    }
}

#[test]
fn inner_packets_come_out_of_a_capture_each_once_with_either_portals_keys() {
    for protection in [Protection::Encrypt, Protection::Authenticate] {
        let recording = record(protection);
        let Recording { file, logs: [local, remote], inner } = &recording;
        assert_eq!((local.lines().count(), remote.lines().count()), (2, 2), "the keys changed once");
        assert!(inner.len() > 1_000);
        for log in [local, remote, &format!("{local}{remote}")] {
            let (mut got, summary, result) = decoded(file, log);
            assert!(result.is_ok(), "{result:?}");
            assert_eq!((summary.refused(), summary.repeated, summary.bad_frames), (0, 0, 0), "{summary}");
            got.inner.sort();
            assert!(got.inner == *inner, "{} of {}: {summary}", got.inner.len(), inner.len());
            assert!(summary.copies > 0, "nothing was retransmitted: {summary}");
        }
    }
}

#[test]
fn keys_of_a_part_of_the_capture_open_that_part() {
    let Recording { file, logs: [local, _], .. } = record(Protection::Encrypt);
    let second = local.lines().nth(1).expect("the next keys");
    let (got, summary, result) = decoded(&file, second);
    assert!(result.is_ok(), "{result:?}");
    assert!(summary.opened > 0 && summary.no_key > 0 && summary.unauthentic == 0, "{summary}");
    assert!(!got.inner.is_empty());
}
