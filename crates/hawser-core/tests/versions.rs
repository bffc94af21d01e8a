//! Portals of unlike versions: what either alone knows is not sent, and what comes all the same is skipped, or kept by
//! its sender.

use crate::support;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::{Config, Endpoint, Event};
use hawser_core::handshake::{Identity, TransportKeys};
use hawser_core::handshake::{Initiator, Psk};
use hawser_core::packet::Offload;
use hawser_core::session::{Direction, Reach, SpeedError, SpeedRun, Terms};
use hawser_core::units::{ByteCount, Ecn, LinkGroup, LinkId, PacketNumber, PathId, PeerId, Time};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{
    Capabilities, CipherSet, DATA_HEADER_LEN, DataHeader, Frame, Frames, HubFrame, HubFrameType, InstanceId, Offer,
    Protection, ReservedFrame, TAG_LEN, TruncatedNumber, Version, Writer,
};
use std::net::SocketAddr;
use std::time::Duration;
use support::{Buffer, Delivered, Seeded, endpoint, link, packet, peer};

const PORTAL: u8 = 2;
const PEER: u8 = 1;
const DATA: u8 = 0x08;
const PING: u8 = 0x01;

/// A peer that says what it likes to a portal, and hears what that says.
struct Peer {
    portal: Endpoint,
    delivered: Delivered,
    keys: TransportKeys,
    next: u64,
    now: Time,
}

fn from() -> SocketAddr {
    "192.0.2.1:1000".parse().expect("an address")
}

impl Peer {
    /// A session of a peer that speaks `version` with a portal of ours; none: of a peer that does not say it.
    fn speaking(version: Option<Version>) -> Peer {
        let mut portal = endpoint(PORTAL, vec![peer(PEER, &[], "10.0.0.2/32")]);
        let mut now = Time::from_nanos(1_000_000_000);
        portal.add_link(now, link(0, hawser_core::transport::Transport::Udp, false));
        portal.set_terms(LinkGroup(0), Terms { barred: true, ..Terms::default() });
        let offer =
            Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(true), instance: InstanceId(77) };
        let offer = version.map_or(offer, |version| offer.speaking(version));
        let (ours, theirs) = (Identity::new([PEER; 32]), Identity::new([PORTAL; 32]).public());
        let started = Initiator::start(&ours, &theirs, Psk::default(), offer, HandshakeIndex(1), None, &mut Seeded(3));
        let (mut initiator, mut message) = started.expect("a handshake");
        let mut delivered = Delivered::default();
        portal.handle_datagram(now, LinkId(0), from(), None, Ecn::NotEct, &mut message, &mut delivered);
        let mut buffer = Buffer(vec![0; 65_536]);
        let answer = portal.poll_transmit(now, &mut buffer).expect("a response");
        let established = initiator.on_response(&buffer.0[..answer.len]).expect("keys");
        assert_eq!(established.peer_offer.version(), Version::OURS, "the portal says what it speaks");
        now = now + Duration::from_millis(10);
        let mut peer = Peer { portal, delivered, keys: established.keys, next: 0, now };
        peer.say(&[PING]);
        peer
    }

    fn say(&mut self, frames: &[u8]) {
        let mut datagram = vec![0; DATA_HEADER_LEN + frames.len() + TAG_LEN];
        let (path, number) = (PathId(self.side()), PacketNumber(self.next));
        self.next += 1;
        let header = DataHeader { label: self.keys.send.label(path), number: TruncatedNumber::of(number) };
        datagram[..DATA_HEADER_LEN].copy_from_slice(&header.encode());
        datagram[DATA_HEADER_LEN..][..frames.len()].copy_from_slice(frames);
        self.keys.send.seal(path, number, &mut datagram).expect("room");
        let Peer { portal, delivered, now, .. } = self;
        portal.handle_datagram(*now, LinkId(0), from(), None, Ecn::NotEct, &mut datagram, delivered);
    }

    /// The lowest bit of our path ids.
    fn side(&self) -> u32 {
        u32::from(Identity::new([PEER; 32]).public().0 > Identity::new([PORTAL; 32]).public().0)
    }

    /// All frames that the portal says within a second, as text, and the numbers that it acknowledges.
    fn hear(&mut self) -> (Vec<String>, Vec<u64>) {
        let (mut heard, mut acked, mut buffer) = (Vec::new(), Vec::new(), Buffer(vec![0; 65_536]));
        for _ in 0..100 {
            self.portal.handle_timeout(self.now, &mut self.delivered);
            while let Some(transmit) = self.portal.poll_transmit(self.now, &mut buffer) {
                for datagram in buffer.0[..transmit.len].chunks_mut(transmit.segment_size) {
                    self.read(datagram, &mut heard, &mut acked);
                }
            }
            self.now = self.now + Duration::from_millis(10);
        }
        (heard, acked)
    }

    fn read(&self, datagram: &mut [u8], heard: &mut Vec<String>, acked: &mut Vec<u64>) {
        if datagram[0] >> 4 != 4 {
            return;
        }
        let header = DataHeader::decode(&mut hawser_core::wire::Reader::new(datagram)).expect("a header");
        let path = PathId(self.side());
        let Ok(frames) = self.keys.recv.open(path, header.number.expand(Some(PacketNumber(50))), datagram) else {
            return;
        };
        for frame in Frames::new(frames) {
            let frame = frame.expect("a frame that we know");
            if let Frame::Ack(ack) = &frame {
                acked.extend(ack.ranges().flat_map(|range| range.start().0..=range.end().0));
            }
            heard.push(format!("{frame:?}").split(['(', ' ']).next().unwrap_or_default().to_owned());
        }
    }

    fn version(&self) -> Version {
        let snapshot = self.portal.snapshot(self.now);
        snapshot.peers[0].as_ref().expect("a session").version
    }

    fn told(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.portal.poll_event()).collect()
    }
}

fn reserved(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut room = [0; 100];
    let mut out = Writer::new(&mut room);
    ReservedFrame::new(kind, bytes).expect("of the range").encode(&mut out).expect("room");
    out.written().to_vec()
}

fn data(number: u16) -> Vec<u8> {
    [&[DATA, 0, 5, 0, 0, number as u8][..], &packet(number)].concat()
}

#[test]
fn frames_of_the_reserved_range_are_skipped_and_what_follows_is_read() {
    for kind in [0x40, 0x5f, 0x60, 0x7f] {
        let mut peer = Peer::speaking(Some(Version::OURS));
        peer.say(&[reserved(kind, &[0xff; 7]), data(0)].concat());
        assert_eq!(peer.delivered.0.len(), 1, "type {kind:#04x}");
        assert_eq!(peer.hear().1.iter().filter(|number| **number == 1).count().min(1), 1, "and acknowledged");
    }
}

#[test]
fn a_datagram_with_an_unknown_frame_delivers_nothing_and_is_not_acknowledged() {
    for unknown in [&[0x0e_u8, 0][..], &[0x3f], &[0x80, 1], &[0xff], &[0x41, 9, 0]] {
        let mut peer = Peer::speaking(Some(Version::OURS));
        // Known frames before it do not count either: whoever sent them keeps them, and sends them otherwise.
        peer.say(&[&[PING], unknown].concat());
        peer.say(&data(0));
        let (_, acked) = peer.hear();
        assert!(!acked.contains(&1) && acked.contains(&2), "{unknown:02x?}: {acked:?}");
        assert_eq!(peer.delivered.0.len(), 1);
    }
}

#[test]
fn terms_go_only_to_who_knows_them() {
    let without = Version { revision: 9, capabilities: Version::OURS.capabilities.without(Capabilities::TERMS) };
    let cases = [(Some(Version::OURS), true), (Some(without), false), (None, true)];
    for (version, told) in cases {
        let mut local = support::Portal::new(PEER, PORTAL, &["198.51.100.1:4920"], "10.0.0.1/32");
        let config = Config {
            identity: Identity::new([PORTAL; 32]),
            offer: offer_of(version.unwrap_or(Version::UNSAID)),
            settings: settings(),
            peers: vec![peer(PEER, &[], "10.0.0.2/32")],
        };
        let mut remote = support::Portal::new(PORTAL, PEER, &[], "10.0.0.2/32");
        remote.endpoint = Endpoint::new(config, Box::new(Seeded(2)));
        let mut now = Time::from_nanos(1_000_000_000);
        local.endpoint.set_terms(LinkGroup(0), Terms { barred: true, ..Terms::default() });
        local.endpoint.add_link(now, link(0, hawser_core::transport::Transport::Udp, true));
        remote.endpoint.add_link(now, link(0, hawser_core::transport::Transport::Udp, false));
        for _ in 0..200 {
            support::step(now, &mut local, &mut remote);
            now = now + Duration::from_millis(1);
        }
        // The remote portal sends nothing by a barred link, if it was told.
        let bytes = packet_back();
        remote.endpoint.read_buffer()[..bytes.len()].copy_from_slice(&bytes);
        remote.endpoint.handle_inner(now, bytes.len(), Offload::default());
        for _ in 0..50 {
            support::step(now, &mut local, &mut remote);
            now = now + Duration::from_millis(1);
        }
        assert_eq!(local.delivered.0.is_empty(), told, "{version:?}");
    }
}

fn settings() -> hawser_core::session::Settings {
    hawser_core::session::Settings {
        congestion: hawser_core::congestion::Kind::Bbr,
        max_link_mtu: 1500,
        tuning: hawser_core::policy::Tuning::default(),
    }
}

fn offer_of(version: Version) -> Offer {
    let ciphers = CipherSet::for_machine(true);
    Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(5) }.speaking(version)
}

fn packet_back() -> Vec<u8> {
    let mut bytes = packet(0);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    bytes
}

#[test]
fn a_peer_of_another_version_is_named_once_a_session() {
    let later = Version { revision: 7, capabilities: Capabilities::SKIPS };
    for (said, theirs) in [(Some(Version::OURS), None), (Some(later), Some(later)), (None, Some(Version::UNSAID))] {
        let mut peer = Peer::speaking(said);
        let told = peer.told();
        let named: Vec<_> = told.iter().filter(|event| matches!(event, Event::OtherVersion { .. })).collect();
        let wanted = theirs.map(|theirs| Event::OtherVersion { peer: PeerId(0), theirs, ours: Version::OURS });
        assert_eq!(named, wanted.iter().collect::<Vec<_>>());
        assert_eq!(peer.version(), said.unwrap_or(Version::UNSAID), "the status tells it too");
    }
}

#[test]
fn a_claim_to_who_has_no_hub_is_counted_and_changes_nothing() {
    let mut peer = Peer::speaking(Some(Version::OURS_IN_HUB));
    peer.hear();
    let acked: &[u8] = &[0x43, 3, 1, 2, 3, PING];
    for frames in [acked, &[0x60, 1, 9]] {
        peer.say(frames);
    }
    let frame = HubFrame::new(HubFrameType::ClaimAck, &[1]).expect("a byte");
    assert!(!peer.portal.say_to_hub(peer.now, PeerId(0), frame, Reach::All), "nor does it say anything");
    let drops = peer.portal.snapshot(peer.now).drops;
    assert_eq!((drops.of(DropReason::NoHub), drops.of(DropReason::BadFrame)), (2, 0));
    assert!(!peer.told().iter().any(|event| matches!(event, Event::HubSaid { .. } | Event::OtherVersion { .. })));
}

#[test]
fn a_speed_test_is_asked_of_nobody_who_does_not_know_it() {
    let without = Version { revision: 1, capabilities: Version::OURS.capabilities.without(Capabilities::SPEED) };
    for (version, is_old) in [(None, true), (Some(without), true), (Some(Version::OURS), false)] {
        let mut peer = Peer::speaking(version);
        peer.hear();
        let time = Duration::from_secs(1);
        let run = SpeedRun { direction: Direction::Down, link: None, time, bytes: ByteCount(1_000) };
        let begun = peer.portal.measure_speed(peer.now, PeerId(0), run);
        assert_eq!(begun == Err(SpeedError::OldPeer), is_old, "{version:?}: {begun:?}");
    }
}
