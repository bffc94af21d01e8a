//! A remote portal that knows many peers, by itself or as a hub's member; two share one machine.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::Status;

use super::LabError;
use crate::cleanup::{self, Folder};
use crate::portals::{PORT, Portal, configure, new_key};
use crate::topology::Bond;
use crate::wait::until;

/// Its own inner address, the first one's, and where the bulk goes: a socket that nobody reads.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SINK_PORT: u16 = 9;
const TTL: u8 = 64;
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(10);
const NAME: &str = "remote";

/// The portal. Starts running; ended on drop. One owner.
pub(super) struct Remote {
    // The portal goes before the folder with what it reads.
    pub(super) portal: Portal,
    pub(super) key: PublicKey,
    /// Where it listens.
    pub(super) port: u16,
    _sink: UdpSocket,
    _folder: Folder,
}

/// The inner address of peer `number`.
fn inner_address(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(10, 78, high, low)
}

/// An inner packet of peer `number`, of this many bytes: a datagram to the sink.
pub(super) fn inner_packet(number: usize, bytes: usize) -> Vec<u8> {
    let source = inner_address(number);
    let headers = PacketBuilder::ipv4(source.octets(), ADDRESS.octets(), TTL).udp(SINK_PORT, SINK_PORT);
    let payload = vec![0; bytes - headers.size(0)];
    let mut packet = Vec::new();
    headers.write(&mut packet, &payload).expect("memory takes everything");
    packet
}

impl Remote {
    /// Starts the one of this number with a peer for each key, and waits until it answers; tells how long that took.
    /// `more` is the rest of its configuration.
    pub(super) fn start(
        program: &Path,
        bond: &Bond,
        number: u8,
        peers: &[PrivateKey],
        more: &str,
    ) -> Result<(Self, Duration), LabError> {
        let making = cleanup::making();
        let folder = Folder::new()?;
        let private = new_key()?;
        configure(folder.path(), NAME, &private, &configuration(number, peers, more))?;
        let start = Instant::now();
        let mut portal = Portal::start(program, NAME, &bond.remote, &folder)?;
        drop(making);
        let answer = until(PATIENCE, GLANCE, || portal.process.check().map(|()| portal.status()))?;
        let silent = || portal.process.fault(format!("it did not answer within {} s", PATIENCE.as_secs()));
        answer.ok_or_else(silent)?;
        let startup = start.elapsed();
        let sink = bond.remote.run(|| UdpSocket::bind((address(number), SINK_PORT)))?;
        let sink = sink.map_err(|error| portal.process.fault(format!("no socket on its TUN device: {error}")))?;
        let (key, port) = (private.public(), port(number));
        Ok((Self { portal, key, port, _sink: sink, _folder: folder }, startup))
    }

    /// Inner bytes that came from each peer.
    pub(super) fn received(&self) -> Result<Vec<u64>, LabError> {
        Ok(self.status()?.peers.iter().map(|peer| peer.rx_bytes).collect())
    }

    /// How many peers it has a session with.
    pub(super) fn sessions(&mut self) -> Result<usize, LabError> {
        self.portal.process.check()?;
        Ok(self.status()?.peers.iter().filter(|peer| peer.handshake_age_s.is_some()).count())
    }

    fn status(&self) -> Result<Status, LabError> {
        self.portal.status().ok_or_else(|| self.portal.process.fault("it does not tell its status"))
    }
}

fn address(number: u8) -> Ipv4Addr {
    let [first, second, third, last] = ADDRESS.octets();
    Ipv4Addr::new(first, second, third + number, last)
}

fn port(number: u8) -> u16 {
    PORT + u16::from(number)
}

/// From where `[portal]` has named its files.
fn configuration(number: u8, peers: &[PrivateKey], more: &str) -> String {
    let (port, address) = (port(number), address(number));
    let mut text = format!(
        "listen = [\"0.0.0.0:{port}\"]\n[tun]\nname = \"many{number}\"\naddresses = [\"{address}/24\"]\n{more}\n"
    );
    for (number, key) in peers.iter().enumerate() {
        let (public, address) = (key.public(), inner_address(number));
        text += &format!(
            "[[peer]]\nname = \"peer{number}\"\npublic_key = \"{public}\"\nallowed_ips = [\"{address}/32\"]\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use hawser_config::Config;

    use super::*;

    #[test]
    fn portals_understand_their_configurations() {
        let keys: Vec<_> = (0..300).map(|_| PrivateKey::generate().expect("randomness")).collect();
        for (number, more) in [(0, "[traffic]\n"), (1, "[hub]\n[traffic]\n")] {
            let files = "[portal]\nprivate_key_file = \"/nowhere/key\"\nsocket = \"/nowhere/socket\"\n";
            let text = files.to_owned() + &configuration(number, &keys, more);
            let config = Config::parse(&text, "remote.toml").expect("a right configuration");
            assert_eq!((config.peers.len(), config.hub.is_some()), (300, number == 1));
        }
        assert_eq!(inner_address(299), Ipv4Addr::new(10, 78, 1, 43));
    }
}
