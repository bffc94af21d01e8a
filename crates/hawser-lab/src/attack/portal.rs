//! Hostile datagrams against a portal, by an interface of their own.
//!
//! 1. An attacker's host is joined to the remote portal's.
//! 2. Genuine datagrams are recorded before the portal, and initiations made that know its public key.
//! 3. Thrown are, in turns: noise that looks like each kind of datagram, recorded ones again, cut ones, initiations
//!    with a right mac1 from a stranger.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use etherparse::{SlicedPacket, TransportSlice};
use hawser_core::handshake::{Identity, Initiator, Psk, PublicKey};
use hawser_core::units::Random;
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use hawser_sim::random::Seeded;
use hawser_wire::{Namespace, veth};
use ipnet::IpNet;
use socket2::{Domain, Protocol, Socket, Type};

use super::{Arsenal, Attack};
use crate::error::LabError;
use crate::portals::PORT;
use crate::topology::end_at;

/// Genuine datagrams that are recorded, and how long that may take.
const RECORDED: usize = 512;
const RECORDING: Duration = Duration::from_secs(3);
/// Initiations of a stranger: more than the 256 that a responder remembers (docs/wire.md).
const INITIATIONS: usize = 1_024;
/// Bytes of noise, as many as a full datagram carries.
const NOISE: usize = 1_400;
/// First bytes of datagrams of each kind (docs/wire.md): the type above four zero bits.
const KINDS: [u8; 4] = [0x10, 0x20, 0x30, 0x40];
/// The interface, and both ends' addresses, of a network of 24 bits.
const INTERFACE: &str = "hostile0";
const PORTAL: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);
const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 2);
/// IPv4 in an Ethernet frame (RFC 894).
const ETHERTYPE_IPV4: u16 = 0x0800;

/// Begins an attack on the portal at this address of a namespace, which has this public key. It must have traffic to be
/// recorded.
///
/// # Errors
/// Where nothing comes to the portal's port, or the kernel refuses.
pub(crate) fn begin(remote: &Namespace, endpoint: IpAddr, key: &[u8; 32], per_second: u32) -> Result<Attack, LabError> {
    let attacker = Namespace::new("attacker")?;
    veth(&end_at(&attacker, INTERFACE, ATTACKER), &end_at(remote, INTERFACE, PORTAL), 1500)?;
    attacker.add_route(IpNet::from(endpoint), Some(PORTAL.into()), None)?;
    let arsenal = PortalArsenal::new(record(remote)?, key)?;
    let ends = [SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0), SocketAddr::new(endpoint, PORT)];
    Attack::start(&attacker, arsenal, ends, per_second)
}

/// Step 2: what comes to the portal's port.
fn record(remote: &Namespace) -> Result<Vec<Vec<u8>>, LabError> {
    let failed = |error| LabError::system("record datagrams", error);
    let protocol = Protocol::from(i32::from(ETHERTYPE_IPV4.to_be()));
    let open = || Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol));
    let mut socket = remote.run(open)?.map_err(failed)?;
    socket.set_read_timeout(Some(RECORDING)).map_err(failed)?;
    let (late, mut packet, mut recorded) = (Instant::now() + RECORDING, vec![0; 65_536], Vec::new());
    while recorded.len() < RECORDED && Instant::now() < late {
        let len = socket.read(&mut packet).map_err(failed)?;
        recorded.extend(datagram(&packet[..len]).map(<[u8]>::to_vec));
    }
    if recorded.is_empty() {
        return Err(failed(io::Error::other("none came to the portal's port")));
    }
    Ok(recorded)
}

/// The payload of a UDP packet to the portal's port.
fn datagram(packet: &[u8]) -> Option<&[u8]> {
    let Some(TransportSlice::Udp(udp)) = SlicedPacket::from_ip(packet).ok()?.transport else { return None };
    (udp.destination_port() == PORT && !udp.payload().is_empty()).then(|| udp.payload())
}

/// What is thrown, and whose turn it is. Begins with noise; the attack's thread owns it.
struct PortalArsenal {
    recorded: Vec<Vec<u8>>,
    initiations: Vec<Vec<u8>>,
    noise: Vec<u8>,
    rng: Seeded,
    turn: usize,
}

impl PortalArsenal {
    fn new(recorded: Vec<Vec<u8>>, key: &[u8; 32]) -> Result<Self, LabError> {
        let failed = |error| LabError::system("make initiations", io::Error::other(error));
        let mut rng = Seeded::new(1);
        let stranger = Identity::new([0x5a; 32]);
        let offer = Offer {
            protection: Protection::Encrypt,
            ciphers: CipherSet::for_machine(true),
            instance: InstanceId(rng.next_u64()),
        };
        let key = PublicKey(*key);
        let mut initiations = Vec::new();
        for index in (0..INITIATIONS as u32).map(HandshakeIndex) {
            let started = Initiator::start(&stranger, &key, Psk::default(), offer, index, None, &mut rng);
            initiations.push(started.map_err(failed)?.1.to_vec());
        }
        Ok(Self { recorded, initiations, noise: vec![0; NOISE], rng, turn: 0 })
    }
}

impl Arsenal for PortalArsenal {
    /// Step 3.
    fn next(&mut self) -> &[u8] {
        self.turn += 1;
        let round = self.turn / 4;
        let again = &self.recorded[round % self.recorded.len()];
        match self.turn % 4 {
            0 => {
                // New noise in the header is enough: the rest is noise to the portal anyway.
                self.rng.fill(&mut self.noise[..16]);
                self.noise[0] = if round % 8 == 7 { self.noise[0] } else { KINDS[round % KINDS.len()] };
                let lengths = [61, 113, 157, NOISE];
                &self.noise[..lengths[(round / KINDS.len()) % lengths.len()]]
            }
            1 => again,
            2 => &again[..round % again.len()],
            _ => &self.initiations[round % self.initiations.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    #[test]
    fn every_kind_of_hostile_datagram_is_thrown() {
        let recorded = vec![vec![0x40; 100], vec![0x40; 90]];
        let key = Identity::new([7; 32]).public();
        let mut arsenal = PortalArsenal::new(recorded.clone(), &key.0).expect("initiations are made");
        let mut seen = [0; 4];
        for _ in 0..4_000 {
            let (turn, bytes) = (arsenal.turn + 1, arsenal.next().to_vec());
            seen[turn % 4] += 1;
            match turn % 4 {
                1 => assert!(recorded.contains(&bytes)),
                2 => assert!(bytes.len() < 100 && bytes.iter().all(|byte| *byte == 0x40)),
                3 => assert_eq!((bytes[0], bytes.len()), (0x10, 157)),
                _ => assert!([61, 113, 157, NOISE].contains(&bytes.len())),
            }
        }
        assert_eq!(seen, [1000; 4]);
    }

    #[test]
    fn only_datagrams_to_the_portal_are_recorded() {
        let full: &[u8] = &[7; 12];
        for (port, payload, recorded) in [(PORT, full, Some(full)), (PORT, &full[..0], None), (PORT ^ 1, full, None)] {
            let mut packet = Vec::new();
            let udp = PacketBuilder::ipv4([10, 66, 0, 2], [10, 66, 0, 1], 64).udp(40_000, port);
            udp.write(&mut packet, payload).expect("memory takes everything");
            assert_eq!(datagram(&packet), recorded);
        }
    }
}
