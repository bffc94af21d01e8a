//! A remote portal that knows many peers, by itself or as a hub's member; two share one machine.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::Status;

use super::{LabError, MEBIBYTE};
use crate::cleanup::{self, Folder};
use crate::portals::{PORT, Portal, configure, new_key};
use crate::topology::Bond;
use crate::wait::until;

/// Its own inner address, where it is the first one, and where the bulk goes: a socket that nobody reads.
pub(super) const ADDRESS: Ipv4Addr = address(0);
const SINK_PORT: u16 = 9;
const TTL: u8 = 64;
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(10);
/// Without a hub all initiate at once from one address, of which 20 a second are answered under load (docs/wire.md):
/// ten seconds, and twice as much for initiations that were lost.
const HANDSHAKES: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const ASKING: Duration = Duration::from_millis(200);
const NAME: &str = "remote";

/// The portal. Starts running; ended on drop. One owner.
pub(super) struct Remote {
    // The portal goes before the folder with what it reads.
    pub(super) portal: Portal,
    pub(super) key: PublicKey,
    /// Where it listens.
    pub(super) port: u16,
    /// How long it took until it answered.
    pub(super) startup: Duration,
    /// What it held before any session, bytes.
    pub(super) idle: u64,
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
    /// Starts the one of this number with a peer for each key, and waits until it answers. `more` is the rest of its
    /// configuration.
    pub(super) fn start(
        program: &Path,
        bond: &Bond,
        number: u8,
        peers: &[PrivateKey],
        more: &str,
    ) -> Result<Self, LabError> {
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
        let (startup, idle) = (start.elapsed(), portal.process.usage()?.resident);
        let sink = bond.remote.run(|| UdpSocket::bind((address(number), SINK_PORT)))?;
        let sink = sink.map_err(|error| portal.process.fault(format!("no socket on its TUN device: {error}")))?;
        let (key, port) = (private.public(), PORT + u16::from(number));
        Ok(Self { portal, key, port, startup, idle, _sink: sink, _folder: folder })
    }

    /// Inner bytes that came from each peer.
    pub(super) fn received(&self) -> Result<Vec<u64>, LabError> {
        Ok(self.status()?.peers.iter().map(|peer| peer.rx_bytes).collect())
    }

    /// Waits until it has a session with this many peers.
    pub(super) fn await_sessions(&mut self, wanted: usize) -> Result<(), LabError> {
        let mut there = 0;
        let all = until(HANDSHAKES, ASKING, || {
            self.portal.process.check()?;
            there = self.status()?.peers.iter().filter(|peer| peer.handshake_age_s.is_some()).count();
            Ok((there >= wanted).then_some(()))
        })?;
        all.ok_or_else(|| self.portal.process.fault(format!("{there} of {wanted} sessions began")))
    }

    /// What one of this many sessions costs it at most, MiB.
    pub(super) fn peer_mib(&self, sessions: usize) -> Result<f64, LabError> {
        let most = self.portal.process.usage()?.resident_most;
        Ok((most - self.idle) as f64 / MEBIBYTE / sessions as f64)
    }

    fn status(&self) -> Result<Status, LabError> {
        self.portal.status().ok_or_else(|| self.portal.process.fault("it does not tell its status"))
    }
}

const fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, number, 1)
}

/// From where `[portal]` has named its files.
fn configuration(number: u8, peers: &[PrivateKey], more: &str) -> String {
    let (port, address) = (PORT + u16::from(number), address(number));
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
    use super::*;
    use crate::portals::understood;

    #[test]
    fn portals_understand_their_configurations() {
        let keys: Vec<_> = (0..300).map(|_| PrivateKey::generate().expect("randomness")).collect();
        for (number, more) in [(0, "[traffic]\n"), (1, "[hub]\n[traffic]\n")] {
            let config = understood(&configuration(number, &keys, more));
            assert_eq!((config.peers.len(), config.hub.is_some()), (300, number == 1));
        }
        assert_eq!(inner_address(299), Ipv4Addr::new(10, 78, 1, 43));
    }
}
