//! A remote portal that knows many peers, by itself or as a hub's member; two share one machine.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::Status;
use hawser_wire::traffic::ProcessUsage;

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::portals::{PORT, Portal, configure, new_key};
use crate::topology::Bond;
use crate::wait::until;

/// Its own inner address, the first one's, and where the bulk goes: a socket that nobody reads.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const SINK_PORT: u16 = 9;
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(10);
const NAME: &str = "remote";

/// The portal. Starts running; ended on drop. One owner.
pub(super) struct Remote {
    // The portal goes before the folder with what it reads.
    portal: Portal,
    key: PublicKey,
    port: u16,
    _sink: UdpSocket,
    _folder: Folder,
}

/// The inner address of peer `number`.
pub(super) fn inner_address(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(10, 78, high, low)
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
        configure(&folder, NAME, &private, |key_file, socket| configuration(key_file, socket, number, peers, more))?;
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

    /// Its public key.
    pub(super) fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What it has cost so far.
    pub(super) fn usage(&self) -> Result<ProcessUsage, LabError> {
        self.portal.process.usage()
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

    /// An error that tells what it did.
    pub(super) fn fault(&self, fault: String) -> LabError {
        self.portal.process.fault(fault)
    }

    fn status(&self) -> Result<Status, LabError> {
        self.portal.status().ok_or_else(|| self.fault("it does not tell its status".to_owned()))
    }
}

fn address(number: u8) -> Ipv4Addr {
    let [first, second, third, last] = ADDRESS.octets();
    Ipv4Addr::new(first, second, third + number, last)
}

fn port(number: u8) -> u16 {
    PORT + u16::from(number)
}

fn configuration(key_file: &Path, socket: &Path, number: u8, peers: &[PrivateKey], more: &str) -> String {
    let (key_file, socket, port, address) = (key_file.display(), socket.display(), port(number), address(number));
    let mut text = format!(
        "[portal]\nprivate_key_file = \"{key_file}\"\nsocket = \"{socket}\"\n\
         listen = [\"0.0.0.0:{port}\"]\n[tun]\nname = \"many{number}\"\naddresses = [\"{address}/24\"]\n{more}\n"
    );
    for (number, key) in peers.iter().enumerate() {
        let (public, address) = (key.public(), inner_address(number));
        // Writing to a string cannot fail.
        let _ = write!(
            text,
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
            let text = configuration(Path::new("/nowhere/key"), Path::new("/nowhere/socket"), number, &keys, more);
            let config = Config::parse(&text, "remote.toml").expect("a right configuration");
            assert_eq!((config.peers.len(), config.hub.is_some()), (300, number == 1));
        }
        assert_eq!(inner_address(299), Ipv4Addr::new(10, 78, 1, 43));
    }
}
