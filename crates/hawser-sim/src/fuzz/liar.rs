//! A peer of the hub's that has valid keys, and says under them what it likes.

use super::ledger::{LIARS, write};
use super::portal::{HOMES, HUB, identity, inner_address, offer};
use crate::random::Seeded;
use hawser_core::handshake::{Initiator, Psk, TransportKeys};
use hawser_core::units::{PacketNumber, PathId, Random};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{
    AckHead, DATA_HEADER_LEN, DataHeader, EcnCounts, FlowBucket, FlowSequence, Gone, Hold, LinkState, PathChallenge,
    PathInfo, ReservedFrame, TAG_LEN, TermsFrame, Token, TruncatedNumber, Writer,
};
use std::net::SocketAddr;

/// Its number among the portals.
pub const PLACE: usize = HOMES + 1;
/// Room for the frames of a datagram.
const ROOM: usize = 1_300;
/// A CLOSE is said this seldom, for afterwards nothing is heard.
const CLOSES: u64 = 200;

/// The liar. Without keys at first; the fuzzer owns it.
pub struct Liar {
    pub address: SocketAddr,
    instance: u64,
    initiation: Option<Initiator>,
    keys: Option<TransportKeys>,
    numbers: u64,
    told: u64,
}

impl Liar {
    pub fn new(rng: &mut Seeded) -> Self {
        let address = SocketAddr::from(([203, 0, 113, 66], 6_666));
        Liar { address, instance: rng.next_u64(), initiation: None, keys: None, numbers: 0, told: 0 }
    }

    /// An initiation, of the same start or of another.
    pub fn handshake(&mut self, rng: &mut Seeded) -> Option<Vec<u8>> {
        if rng.chance(0.3) {
            self.instance = rng.next_u64();
        }
        let index = HandshakeIndex(rng.next_u64() as u32);
        let (ours, hub) = (identity(PLACE), identity(HUB).public());
        let started = Initiator::start(&ours, &hub, Psk::default(), offer(self.instance), index, None, rng);
        let (initiator, message) = started.ok()?;
        self.initiation = Some(initiator);
        Some(message.to_vec())
    }

    /// Something came for it: a response, or what it cannot use.
    pub fn hear(&mut self, bytes: &[u8]) {
        let established = self.initiation.as_mut().and_then(|initiation| initiation.on_response(bytes).ok());
        if let Some(established) = established {
            (self.keys, self.numbers) = (Some(established.keys), 0);
        }
    }

    /// A datagram of frames under its keys; none while it has none.
    pub fn say(&mut self, rng: &mut Seeded) -> Option<Vec<u8>> {
        let mut datagram = vec![0; DATA_HEADER_LEN + ROOM + TAG_LEN];
        let mut out = Writer::new(&mut datagram[DATA_HEADER_LEN..DATA_HEADER_LEN + ROOM]);
        for _ in 0..=rng.below(4) {
            // One that has no room is left out.
            let _ = self.frame(&mut out, rng);
        }
        let len = DATA_HEADER_LEN + out.len() + TAG_LEN;
        datagram.truncate(len);
        let keys = self.keys.as_ref()?;
        let path = PathId([rng.below(4), rng.below(24), rng.below(300)][rng.below(3) as usize] as u32);
        self.numbers += [1, 1, 1, rng.below(200), rng.below(1 << 20)][rng.below(5) as usize];
        let number = PacketNumber(self.numbers.saturating_sub(if rng.chance(0.1) { rng.below(70) } else { 0 }));
        let header = DataHeader { label: keys.send.label(path), number: TruncatedNumber::of(number) };
        datagram[..DATA_HEADER_LEN].copy_from_slice(&header.encode());
        keys.send.seal(path, number, &mut datagram).ok()?;
        Some(datagram)
    }

    fn frame(&mut self, out: &mut Writer<'_>, rng: &mut Seeded) -> Option<()> {
        let path = PathId(rng.below(40) as u32);
        let bucket = {
            let buckets = if rng.chance(0.5) { 4 } else { 4_096 };
            FlowBucket::new(rng.below(buckets) as u16)?
        };
        let near = [8, 300, 1 << 24][rng.below(3) as usize];
        let sequence = FlowSequence::of(rng.below(near));
        match rng.below(14) {
            0 => out.put_u8(1).ok(),
            1 => PathChallenge { token: Token(rng.next_u64().to_be_bytes()) }.encode(out).ok(),
            2 => out.put_u8(4).and_then(|()| out.put_u64(rng.next_u64())).ok(),
            3 => {
                let state = [LinkState::Usable, LinkState::Down, LinkState::Closed][rng.below(3) as usize];
                PathInfo { path, state, metric: rng.below(3) as u16, revision: rng.below(1 << 20) }.encode(out).ok()
            }
            4 => Gone { bucket, upto: sequence }.encode(out).ok(),
            5 => Hold { hold_us: rng.below(10_000_000) }.encode(out).ok(),
            6 => {
                let (barred, weight) = (rng.chance(0.5), 1 + rng.below(255) as u8);
                TermsFrame { path, barred, weight, max_kbit: rng.below(1 << 30), revision: rng.below(99) }
                    .encode(out)
                    .ok()
            }
            7 => {
                let high = rng.below(3_000);
                let head = AckHead {
                    path,
                    delay_us: rng.below(1 << 20),
                    received_at_us: rng.below(1 << 40),
                    ecn: EcnCounts { ect0: rng.below(1 << 20), ect1: 0, ce: rng.below(1 << 10) },
                };
                let low = high.saturating_sub(rng.below(500));
                head.encode(std::iter::once(PacketNumber(low)..=PacketNumber(high)), 1_000, out).map(drop).ok()
            }
            8 => {
                let bytes = [0x2a; 20];
                let kind = 0x40 + rng.below(0x40) as u8;
                ReservedFrame::new(kind, &bytes[..rng.below(20) as usize])?.encode(out).ok()
            }
            9 => self.piece(out, bucket, sequence, rng),
            10 | 11 => self.inner(out, bucket, sequence, rng),
            12 if rng.below(CLOSES) == 0 => out.put_u8(9).and_then(|()| out.put_u8(0)).ok(),
            _ => (0..rng.below(40)).try_for_each(|_| out.put_u8(rng.below(256) as u8).ok()),
        }
    }

    /// DATA or PROTECTED; its source may be somebody else's.
    fn inner(&mut self, out: &mut Writer<'_>, bucket: FlowBucket, at: FlowSequence, rng: &mut Seeded) -> Option<()> {
        self.told += 1;
        let source = inner_address([PLACE, PLACE, 1, HUB, 9][rng.below(5) as usize]);
        let destination = inner_address([HUB, HUB, 1, 2][rng.below(4) as usize]);
        let packet = write(source, destination, 40 + rng.below(300) as usize, 7, LIARS | self.told);
        if rng.chance(0.3) {
            out.put_u8(0x0d).ok()?;
            out.put_u16(rng.below(1 << 16) as u16).ok()?;
        } else {
            out.put_u8(0x08).ok()?;
        }
        out.put_u16((rng.below(8) as u16) << 12 | bucket.get()).ok()?;
        out.put_u24(at.get()).ok()?;
        out.put_bytes(&packet).ok()
    }

    /// SPLIT or REPAIR, of whatever.
    fn piece(&mut self, out: &mut Writer<'_>, bucket: FlowBucket, at: FlowSequence, rng: &mut Seeded) -> Option<()> {
        if rng.chance(0.5) {
            out.put_u8(0x0b).ok()?;
            out.put_u16(rng.below(1 << 16) as u16).ok()?;
            out.put_u8(1 + rng.below(32) as u8).ok()?;
            out.put_u8(rng.below(128) as u8).ok()?;
        } else {
            out.put_u8(0x07).ok()?;
            out.put_u16(rng.below(6) as u16).ok()?;
            out.put_u16((rng.below(2) as u16) << 15 | rng.below(3_000) as u16).ok()?;
            out.put_u16((rng.below(8) as u16) << 12 | bucket.get()).ok()?;
            out.put_u24(at.get()).ok()?;
        }
        (0..=rng.below(60)).try_for_each(|_| out.put_u8(rng.below(256) as u8).ok())
    }
}
