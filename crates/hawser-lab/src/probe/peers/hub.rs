//! A remote portal that knows many peers.

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

/// Its own inner address, and where the bulk goes: a socket that nobody reads.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const SINK_PORT: u16 = 9;
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(10);

/// The portal. Starts running; ended on drop. One owner.
pub(super) struct Hub {
    // The portal goes before the folder with what it reads.
    portal: Portal,
    key: PublicKey,
    _sink: UdpSocket,
    _folder: Folder,
}

/// The inner address of peer `number`.
pub(super) fn inner_address(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(10, 78, high, low)
}

impl Hub {
    /// Starts it with a peer for each key, and waits until it answers; tells how long that took.
    pub(super) fn start(
        program: &Path,
        bond: &Bond,
        peers: &[PrivateKey],
        traffic: &str,
    ) -> Result<(Self, Duration), LabError> {
        let making = cleanup::making();
        let folder = Folder::new()?;
        let private = new_key()?;
        configure(&folder, "hub", &private, |key_file, socket| configuration(key_file, socket, peers, traffic))?;
        let start = Instant::now();
        let mut portal = Portal::start(program, "hub", &bond.remote, &folder)?;
        drop(making);
        let answer = until(PATIENCE, GLANCE, || portal.process.check().map(|()| portal.status()))?;
        let silent = || portal.process.fault(format!("it did not answer within {} s", PATIENCE.as_secs()));
        answer.ok_or_else(silent)?;
        let startup = start.elapsed();
        let sink = bond.remote.run(|| UdpSocket::bind((ADDRESS, SINK_PORT)))?;
        let sink = sink.map_err(|error| portal.process.fault(format!("no socket on its TUN device: {error}")))?;
        Ok((Self { portal, key: private.public(), _sink: sink, _folder: folder }, startup))
    }

    /// Its public key.
    pub(super) fn key(&self) -> &PublicKey {
        &self.key
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

fn configuration(key_file: &Path, socket: &Path, peers: &[PrivateKey], traffic: &str) -> String {
    let (key_file, socket) = (key_file.display(), socket.display());
    let mut text = format!(
        "[portal]\nprivate_key_file = \"{key_file}\"\nsocket = \"{socket}\"\nlisten = [\"0.0.0.0:{PORT}\"]\n\
         [tun]\naddresses = [\"{ADDRESS}/24\"]\n[traffic]\n{traffic}\n"
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
    fn the_hub_understands_its_configuration() {
        let keys: Vec<_> = (0..300).map(|_| PrivateKey::generate().expect("randomness")).collect();
        let text = configuration(Path::new("/nowhere/key"), Path::new("/nowhere/socket"), &keys, "");
        let config = Config::parse(&text, "hub.toml").expect("a right configuration");
        assert_eq!((config.peers.len(), inner_address(299)), (300, Ipv4Addr::new(10, 78, 1, 43)));
    }
}
