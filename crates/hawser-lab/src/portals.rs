//! Two real portals as processes in the topology.
//!
//! 1. Keys and configurations are written to a folder of their own.
//! 2. The remote portal starts, then the local one; their control sockets are asked until every path is active.
//!    Then they get a moment to find out what their paths carry.
//! 3. They are told to end (SIGTERM) when this drops, so that they undo what they set; the folder goes last.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_portal::api::{Client, PathState, Status};
use hawser_portal::config::PrivateKey;

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::process::Process;
use crate::topology::{Bond, CLIENT_NETWORK, ENDPOINT, SERVER_NETWORK};

/// Where the remote portal listens. Source: DESIGN section 5.
const PORT: u16 = 4920;
/// How long all paths may take to become active.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a portal is asked meanwhile.
const GLANCE: Duration = Duration::from_millis(20);
/// How long the portals take, once paths are active, to probe their MTU and to raise that of the TUN from 1280. Hosts that
/// send before remember 1280 for ten minutes (ip-sysctl, mtu_expires), which costs every later stream a hundredth.
const SETTLE: Duration = Duration::from_millis(1500);
/// Only the owner may read a key. Source: `hawser up` refuses others.
const KEY_MODE: u32 = 0o600;
/// Addresses inside the tunnel.
const LOCAL_TUN: &str = "10.77.0.2";
const REMOTE_TUN: &str = "10.77.0.1";

/// Two portals, bonded. Starts with every path active; ended on drop. One owner.
#[derive(Debug)]
pub struct Portals {
    // The processes go before the folder with what they read.
    local: Portal,
    remote: Portal,
    program: PathBuf,
    _folder: Folder,
}

/// One of them. Starts running; ended on drop.
#[derive(Debug)]
struct Portal {
    name: &'static str,
    process: Process,
    config: PathBuf,
    socket: PathBuf,
}

impl Portals {
    /// Starts both in a topology, with all its links, and waits until every path is active.
    /// `program` is the `hawser` executable; `traffic` the lines of the section `[traffic]`, mostly none.
    ///
    /// # Errors
    /// [`LabError::Process`] with what a portal said, where it ends or its paths do not become active.
    pub fn start(program: &Path, bond: &Bond, traffic: &str) -> Result<Self, LabError> {
        Self::start_over(program, bond, "udp", traffic)
    }

    /// The same, with links of this transport.
    ///
    /// # Errors
    /// As [`Portals::start`].
    pub fn start_over(program: &Path, bond: &Bond, transport: &str, traffic: &str) -> Result<Self, LabError> {
        let making = cleanup::making();
        let folder = Folder::new()?;
        let generated = || PrivateKey::generate().map_err(|error| LabError::system("make keys", error));
        let (local_key, remote_key) = (generated()?, generated()?);
        let links: String =
            (0..bond.link_count()).map(|index| link_section(&bond.interface(index), transport)).collect();
        let remote = Portal::start(
            program,
            "remote",
            &bond.remote,
            &folder,
            &remote_key,
            &Config {
                listen: &format!("listen = [\"0.0.0.0:{PORT}\"]\ntransports = [\"{transport}\"]\n"),
                tun: REMOTE_TUN,
                links: "",
                peer: ("local", &local_key.public().to_string()),
                endpoints: "",
                allowed: &format!("\"{LOCAL_TUN}/32\", \"{CLIENT_NETWORK}\""),
                traffic,
            },
        )?;
        let local = Portal::start(
            program,
            "local",
            &bond.local,
            &folder,
            &local_key,
            &Config {
                listen: "",
                tun: LOCAL_TUN,
                links: &links,
                peer: ("remote", &remote_key.public().to_string()),
                endpoints: &format!("endpoints = [\"{ENDPOINT}:{PORT}\"]\n"),
                allowed: &format!("\"{REMOTE_TUN}/32\", \"{SERVER_NETWORK}\""),
                traffic,
            },
        )?;
        drop(making);
        let mut portals = Self { local, remote, program: program.to_owned(), _folder: folder };
        portals.wait_active(bond.link_count())?;
        std::thread::sleep(SETTLE);
        Ok(portals)
    }

    /// Step 2: both portals must see all paths active, for each sends by those it sees.
    fn wait_active(&mut self, paths: usize) -> Result<(), LabError> {
        let late = Instant::now() + PATIENCE;
        while self.active_paths() != [paths; 2] {
            if let Some(status) = self.local.process.ended()? {
                return Err(self.local.process.fault(format!("it ended: {status}")));
            }
            if let Some(status) = self.remote.process.ended()? {
                return Err(self.remote.process.fault(format!("it ended: {status}")));
            }
            if Instant::now() > late {
                let [local, remote] = self.active_paths();
                let remote_said = self.remote.process.log_end();
                let fault = format!("{local} of {paths} paths became active, at the remote portal {remote}");
                return Err(self.local.process.fault(format!("{fault}, which said:\n{remote_said}\nbut")));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// How many paths are active in the eyes of each: local, remote.
    fn active_paths(&self) -> [usize; 2] {
        [self.local.active_paths(), self.remote.active_paths()]
    }

    /// Process ids: local, remote.
    #[must_use]
    pub fn ids(&self) -> [u32; 2] {
        [self.local.process.id(), self.remote.process.id()]
    }

    /// The processes: local, remote.
    pub(crate) fn processes(&self) -> [&Process; 2] {
        [&self.local.process, &self.remote.process]
    }

    /// Kills the remote portal (SIGKILL): nothing is undone.
    ///
    /// # Errors
    /// Where what follows, [`Killed::restart`], fails.
    pub fn kill_remote(self) -> Killed {
        let Self { local, remote, program, _folder } = self;
        let Portal { name, process, config, socket } = remote;
        process.kill();
        Killed { local, remote: Remains { name, config, socket }, program, folder: _folder }
    }
}

/// The local portal alone, after the remote one was killed. One owner.
#[derive(Debug)]
pub struct Killed {
    local: Portal,
    remote: Remains,
    program: PathBuf,
    folder: Folder,
}

/// What a killed portal leaves.
#[derive(Debug)]
struct Remains {
    name: &'static str,
    config: PathBuf,
    socket: PathBuf,
}

impl Killed {
    /// Starts the remote portal again, with what it had; does not wait.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn restart(self, bond: &Bond) -> Result<Portals, LabError> {
        let _making = cleanup::making();
        let Self { local, remote: Remains { name, config, socket }, program, folder } = self;
        let arguments = ["up", "-c", &config.to_string_lossy()];
        let process = Process::start(&process_name(name), &bond.remote, &program, &arguments, &folder)?;
        Ok(Portals { local, remote: Portal { name, process, config, socket }, program, _folder: folder })
    }
}

/// What goes into a configuration. Plain data.
struct Config<'a> {
    listen: &'a str,
    tun: &'a str,
    links: &'a str,
    /// Name and public key.
    peer: (&'a str, &'a str),
    endpoints: &'a str,
    allowed: &'a str,
    traffic: &'a str,
}

impl Portal {
    fn start(
        program: &Path,
        name: &'static str,
        namespace: &hawser_wire::Namespace,
        folder: &Folder,
        key: &PrivateKey,
        config: &Config<'_>,
    ) -> Result<Self, LabError> {
        let file = |ending: &str| folder.path().join(format!("{name}.{ending}"));
        let (key_file, config_file, socket) = (file("key"), file("toml"), file("sock"));
        let text = config.text(&key_file, &socket);
        write_private(&key_file, &key.to_base64())
            .and_then(|()| fs::write(&config_file, text))
            .map_err(|error| LabError::system(format!("write configuration of {name}"), error))?;
        let arguments = ["up", "-c", &config_file.to_string_lossy()];
        let process = Process::start(&process_name(name), namespace, program, &arguments, folder)?;
        Ok(Self { name, process, config: config_file, socket })
    }

    fn status(&self) -> Option<Status> {
        // No answer is an answer: it is not up yet, or no longer.
        Client::status(&self.socket).ok()
    }

    fn active_paths(&self) -> usize {
        let peers = self.status().map(|status| status.peers).unwrap_or_default();
        peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.state == PathState::Active).count()
    }
}

impl Config<'_> {
    fn text(&self, key_file: &Path, socket: &Path) -> String {
        let Self { listen, tun, links, peer: (peer, public_key), endpoints, allowed, traffic } = self;
        let (key_file, socket) = (key_file.display(), socket.display());
        format!(
            "[portal]\nprivate_key_file = \"{key_file}\"\nsocket = \"{socket}\"\n{listen}\n\
             [tun]\naddresses = [\"{tun}/24\"]\n\n{links}\
             [[peer]]\nname = \"{peer}\"\npublic_key = \"{public_key}\"\n{endpoints}allowed_ips = [{allowed}]\n\n\
             [traffic]\n{traffic}\n"
        )
    }
}

/// A link by the interface of its name.
fn link_section(interface: &str, transport: &str) -> String {
    format!("[[link]]\nname = \"{interface}\"\ninterface = \"{interface}\"\ntransport = \"{transport}\"\n\n")
}

fn process_name(portal: &str) -> String {
    format!("{portal} portal")
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(KEY_MODE).open(path)?;
    writeln!(file, "{text}")
}

#[cfg(test)]
mod tests {
    use hawser_portal::config::Config as Parsed;

    use super::*;

    #[test]
    fn a_portal_understands_its_configuration() {
        let key = PrivateKey::generate().expect("randomness").public().to_string();
        let text = Config {
            listen: "listen = [\"0.0.0.0:4920\"]\n",
            tun: LOCAL_TUN,
            links: "[[link]]\nname = \"link1\"\ninterface = \"link1\"\n\n",
            peer: ("remote", &key),
            endpoints: "endpoints = [\"198.51.100.7:4920\"]\n",
            allowed: "\"10.2.0.0/24\"",
            traffic: "congestion = \"cubic\"\n",
        }
        .text(Path::new("/nowhere/key"), Path::new("/nowhere/socket"));
        let config = Parsed::parse(&text, "lab.toml");
        assert!(config.is_ok(), "{text}\n{config:?}");
    }
}
