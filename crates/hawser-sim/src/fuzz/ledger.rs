//! What was sent by whom, and what came of it: the invariants that hold after every step.

use super::portal::{HUB, inner_address};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Bytes of the IPv4 and UDP headers of an inner packet, and of its name behind them.
pub const HEAD: usize = 28;
const NAME: usize = 8;
/// The least and most of an inner packet: an empty one, and one that no path carries in one piece.
pub const LENGTHS: (u64, u64) = ((HEAD + NAME) as u64, 2_000);
/// Names of packets that the liar makes begin with this bit.
pub const LIARS: u64 = 1 << 63;
/// A data datagram's first byte.
const DATA: u8 = 0x40;

/// An inner packet that a portal was given.
struct Given {
    to: usize,
    hash: u64,
    came: bool,
}

/// Everything sent. Empty at first; the fuzzer owns it.
#[derive(Default)]
pub struct Ledger {
    given: Vec<Given>,
    /// Before these, nobody is missed.
    since: usize,
    /// Label and number of each data datagram, and what it was.
    nonces: HashMap<(usize, [u8; 8]), u64>,
    digest: DefaultHasher,
    came: u64,
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// An IPv4 packet of UDP with this name in it.
pub fn write(source: [u8; 4], destination: [u8; 4], len: usize, flow: u16, name: u64) -> Vec<u8> {
    let mut packet = vec![name as u8; len.max(HEAD + NAME)];
    let len = packet.len() as u16;
    packet[..HEAD].fill(0);
    (packet[0], packet[8], packet[9]) = (0x45, 64, 17);
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&destination);
    packet[20..22].copy_from_slice(&(1_000 + flow).to_be_bytes());
    packet[22..24].copy_from_slice(&2_000_u16.to_be_bytes());
    packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    packet[HEAD..HEAD + NAME].copy_from_slice(&name.to_be_bytes());
    packet
}

impl Ledger {
    /// A new inner packet from one portal to another, which is expected once at most.
    pub fn packet(&mut self, from: usize, to: usize, len: usize, flow: u16) -> Vec<u8> {
        let name = self.given.len() as u64;
        let packet = write(inner_address(from), inner_address(to), len, flow, name);
        self.given.push(Given { to, hash: hash(&packet), came: false });
        packet
    }

    /// An inner packet came out of a portal.
    pub fn on_delivered(&mut self, place: usize, packet: &[u8]) {
        packet.hash(&mut self.digest);
        assert!(packet.len() >= HEAD + NAME, "portal {place} delivers a packet that nobody sent: {packet:02x?}");
        let name = u64::from_be_bytes(*packet[HEAD..].first_chunk().expect("a name"));
        if name & LIARS != 0 {
            let source = inner_address(super::liar::PLACE);
            assert!(place == HUB && packet[12..16] == source, "portal {place} delivers a lie: {packet:02x?}");
            return;
        }
        let given = self.given.get_mut(name as usize);
        let given = given.unwrap_or_else(|| panic!("portal {place} delivers what nobody sent: {packet:02x?}"));
        assert_eq!(given.to, place, "packet {name} came to another");
        assert_eq!(given.hash, hash(packet), "packet {name} was changed: {packet:02x?}");
        assert!(!given.came, "packet {name} came twice to portal {place}");
        given.came = true;
        self.came += 1;
    }

    /// A portal sent a datagram.
    pub fn on_datagram(&mut self, place: usize, bytes: &[u8]) {
        bytes.hash(&mut self.digest);
        if bytes[0] == DATA {
            let nonce = *bytes[1..].first_chunk().expect("a header");
            let before = self.nonces.insert((place, nonce), hash(bytes));
            assert_eq!(before, None, "portal {place} uses a nonce again: label and number {nonce:02x?}");
        }
    }

    /// Nobody is missed of those until now.
    pub fn forget(&mut self) {
        self.since = self.given.len();
    }

    /// Those that did not come since, with whom they were for.
    pub fn missing(&self) -> Vec<(usize, usize)> {
        let since = self.given.iter().enumerate().skip(self.since);
        since.filter(|(_, given)| !given.came).map(|(name, given)| (name, given.to)).collect()
    }

    /// Packets given, and how many came.
    pub fn packets(&self) -> (u64, u64) {
        (self.given.len() as u64, self.came)
    }

    /// All of it as one number.
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }
}
