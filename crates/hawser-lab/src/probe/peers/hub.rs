//! A remote portal that knows many peers.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::{Client, Status};
use hawser_wire::traffic::ProcessUsage;

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::portals::{PORT, write_private};
use crate::process::Process;
use crate::topology::Bond;

/// Its own inner address, and where the bulk goes: a socket that nobody reads.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const SINK_PORT: u16 = 9;
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(10);

/// The portal. Starts running; ended on drop. One owner.
pub(super) struct Hub {
    // The process goes before the folder with what it reads.
    process: Process,
    socket: PathBuf,
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
        let private = PrivateKey::generate().map_err(|error| LabError::system("make keys", error))?;
        let file = |name: &str| folder.path().join(name);
        let (key_file, config, socket) = (file("hub.key"), file("hub.toml"), file("hub.sock"));
        let text = configuration(&key_file, &socket, peers, traffic);
        write_private(&key_file, &private.to_base64())
            .and_then(|()| fs::write(&config, text))
            .map_err(|error| LabError::system("write configuration of hub", error))?;
        let start = Instant::now();
        let process = Process::start("hub", &bond.remote, program, &["up", "-c", &config.to_string_lossy()], &folder)?;
        drop(making);
        let process = await_answer(process, &socket, start)?;
        let startup = start.elapsed();
        let sink = bond.remote.run(|| UdpSocket::bind((ADDRESS, SINK_PORT)))?;
        let sink = sink.map_err(|error| process.fault(format!("no socket on its TUN device: {error}")))?;
        Ok((Self { process, socket, key: private.public(), _sink: sink, _folder: folder }, startup))
    }

    /// Its public key.
    pub(super) fn key(&self) -> &PublicKey {
        &self.key
    }

    /// What it has cost so far.
    pub(super) fn usage(&self) -> Result<ProcessUsage, LabError> {
        self.process.usage()
    }

    /// Inner bytes that came from each peer.
    pub(super) fn received(&self) -> Result<Vec<u64>, LabError> {
        Ok(self.status()?.peers.iter().map(|peer| peer.rx_bytes).collect())
    }

    /// How many peers it has a session with.
    pub(super) fn sessions(&mut self) -> Result<usize, LabError> {
        if let Some(status) = self.process.ended()? {
            return Err(self.fault(format!("it ended: {status}")));
        }
        Ok(self.status()?.peers.iter().filter(|peer| peer.handshake_age_s.is_some()).count())
    }

    /// An error that tells what it did.
    pub(super) fn fault(&self, fault: String) -> LabError {
        self.process.fault(fault)
    }

    fn status(&self) -> Result<Status, LabError> {
        Client::status(&self.socket).map_err(|error| self.fault(format!("it does not tell its status: {error}")))
    }
}

fn await_answer(mut process: Process, socket: &Path, start: Instant) -> Result<Process, LabError> {
    while Client::status(socket).is_err() {
        if let Some(status) = process.ended()? {
            return Err(process.fault(format!("it ended: {status}")));
        }
        if start.elapsed() > PATIENCE {
            return Err(process.fault(format!("it did not answer within {} s", PATIENCE.as_secs())));
        }
        thread::sleep(GLANCE);
    }
    Ok(process)
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
