//! A stranger, or a peer that says what it likes, to a portal of its own.

use hawser_core::drops::DropReason;
use hawser_core::endpoint::Endpoint;
use hawser_core::handshake::{Identity, Initiator, Psk, TransportKeys};
use hawser_core::session::SessionSnapshot;
use hawser_core::units::{Ecn, LinkId, PacketNumber, PathId, Time};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{
    AckHead, CipherSet, DATA_HEADER_LEN, DataHeader, EcnCounts, InstanceId, Offer, Protection, TAG_LEN,
    TruncatedNumber, Writer,
};
use std::net::SocketAddr;
use std::time::Duration;

use super::world::{Inbox, World, ms};
use super::{Buffer, Seeded};

pub const PING: u8 = 1;

pub fn offer(instance: u64) -> Offer {
    Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(true), instance: InstanceId(instance) }
}

/// A stranger, or a peer that says what it likes: it speaks to a portal of its own.
pub struct Sender {
    pub portal: Endpoint,
    pub inbox: Inbox,
    pub now: Time,
    pub from: SocketAddr,
    pub keys: Option<TransportKeys>,
    pub number: u64,
    pub rng: Seeded,
    pub sent_bytes: u64,
    pub instance: u64,
}

impl Sender {
    pub fn new() -> Sender {
        let [_, remote] = World::new(&[0], 1).portals;
        let from = "192.0.2.1:1000".parse().expect("an address");
        Sender {
            portal: remote.endpoint,
            inbox: Inbox::default(),
            now: Time::from_nanos(5_000_000_000),
            from,
            keys: None,
            number: 0,
            rng: Seeded(99),
            sent_bytes: 0,
            instance: 77,
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.sent_bytes += bytes.len() as u64;
        let mut bytes = bytes.to_vec();
        self.portal.handle_datagram(self.now, LinkId(0), self.from, None, Ecn::Ect0, &mut bytes, &mut self.inbox);
    }

    /// All that the portal says within `time`.
    pub fn hear(&mut self, time: Duration) -> Vec<(SocketAddr, Vec<u8>)> {
        let end = self.now + time;
        let (mut buffer, mut heard) = (Buffer(vec![0; 65_536]), Vec::new());
        loop {
            for _ in 0..50 {
                self.portal.handle_timeout(self.now, &mut self.inbox);
                while let Some(transmit) = self.portal.poll_transmit(self.now, &mut buffer) {
                    let datagrams = buffer.0[..transmit.len].chunks(transmit.segment_size);
                    heard.extend(datagrams.map(|bytes| (transmit.remote, bytes.to_vec())));
                }
                if self.portal.poll_timeout(self.now).is_none_or(|(at, _)| at > self.now) {
                    break;
                }
            }
            let next = self.portal.poll_timeout(self.now);
            match next {
                Some((at, reason)) if at <= end => {
                    assert!(at > self.now, "it spins: {reason:?}");
                    self.now = at;
                }
                _ => break,
            }
        }
        self.now = end;
        heard
    }

    pub fn initiation(&mut self, key: u8, index: u32) -> (Initiator, Vec<u8>) {
        let (identity, to) = (Identity::new([key; 32]), Identity::new([2; 32]).public());
        let index = HandshakeIndex(index);
        let started =
            Initiator::start(&identity, &to, Psk::default(), offer(self.instance), index, None, &mut self.rng);
        let (initiator, message) = started.expect("a handshake");
        (initiator, message.to_vec())
    }

    /// Does the handshake as the known peer, and holds the keys then.
    pub fn handshake(mut self) -> Sender {
        let (mut initiator, message) = self.initiation(1, 1);
        self.send(&message);
        let heard = self.hear(ms(1));
        let established = initiator.on_response(&heard[0].1).expect("keys");
        self.keys = Some(established.keys);
        self.say(0, |out| out.put_u8(PING));
        self.hear(ms(50));
        let session = self.session().expect("a session");
        assert!(session.age < ms(100) && !session.paths.is_empty());
        self
    }

    /// A datagram of these frames under the keys.
    pub fn seal<E: std::fmt::Debug>(
        &mut self,
        path: u32,
        frames: impl FnOnce(&mut Writer<'_>) -> Result<(), E>,
    ) -> Vec<u8> {
        let mut datagram = vec![0; 1_400];
        let mut out = Writer::new(&mut datagram[DATA_HEADER_LEN..1_400 - TAG_LEN]);
        frames(&mut out).expect("room");
        let len = DATA_HEADER_LEN + out.len() + TAG_LEN;
        datagram.truncate(len);
        let (path, number) = (PathId(path), PacketNumber(self.number));
        self.number += 1;
        let seal = &self.keys.as_ref().expect("keys").send;
        let header = DataHeader { label: seal.label(path), number: TruncatedNumber::of(number) };
        datagram[..DATA_HEADER_LEN].copy_from_slice(&header.encode());
        seal.seal(path, number, &mut datagram).expect("room");
        datagram
    }

    /// Sends one.
    pub fn say<E: std::fmt::Debug>(&mut self, path: u32, frames: impl FnOnce(&mut Writer<'_>) -> Result<(), E>) {
        let datagram = self.seal(path, frames);
        self.send(&datagram);
    }

    pub fn ack(&mut self, path: u32, range: std::ops::RangeInclusive<u64>, ecn: EcnCounts, times: u64) {
        let range = PacketNumber(*range.start())..=PacketNumber(*range.end());
        let head = AckHead { path: PathId(path), delay_us: times, received_at_us: times, ecn };
        self.say(path, |out| head.encode([range], 500, out).map(|_| ()));
    }

    pub fn session(&self) -> Option<SessionSnapshot> {
        self.portal.snapshot(self.now).peers.into_iter().flatten().next()
    }

    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.portal.snapshot(self.now).drops.of(reason)
    }
}
