//! Two real portals as processes in the topology.
//!
//! 1. Keys and configurations are written to a folder of their own.
//! 2. The remote portal starts, then the local one; their control sockets are asked until every path is active.
//!    Then they get a moment to find out what their paths carry.
//! 3. They are told to end (SIGTERM) when this drops, so that they undo what they set; the folder goes last.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::{Client, PathState, Status};
use hawser_scion::EndpointAddr;
use hawser_wire::Namespace;
use ipnet::IpNet;

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::process::Process;
use crate::scenario::TunnelEnd;
use crate::topology::{Bond, CLIENT_NETWORK, ENDPOINT, SERVER_NETWORK};
use crate::wait::until;

mod settings;
mod watched;

pub(crate) use settings::link_section;
use settings::{Config, allowed};
pub(crate) use watched::{Browser, WATCHED};

/// Where the remote portal listens: the port of docs/configuration.md.
pub(crate) const PORT: u16 = 4920;
/// How long all paths may take to become active.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a portal is asked meanwhile.
const GLANCE: Duration = Duration::from_millis(20);
/// How long the portals take, once paths are active, to probe their MTU and to raise that of the TUN from 1280. Hosts
/// that send before remember 1280 for ten minutes (ip-sysctl, mtu_expires), which costs every later stream a hundredth.
const SETTLE: Duration = Duration::from_millis(1500);
/// Only the owner may read a key. Source: `hawser up` refuses others.
const KEY_MODE: u32 = 0o600;
/// Addresses inside the tunnel, with their network.
pub(crate) const LOCAL_TUN: &str = "10.77.0.2/24";
pub(crate) const REMOTE_TUN: &str = "10.77.0.1/24";

/// Where two portals run, and what they join. Plain data.
pub(crate) struct Site<'a> {
    pub local: &'a Namespace,
    pub remote: &'a Namespace,
    /// The remote portal's address.
    pub endpoint: IpAddr,
    /// Where it is reached over SCION, too.
    pub scion: Option<EndpointAddr>,
    /// The local portal's links: [`link_section`]s.
    pub links: String,
    /// How many of their paths are to become active.
    pub paths: usize,
    /// What the remote portal listens by.
    pub transports: Vec<String>,
    /// The devices' addresses: local, remote.
    pub tun: [Vec<IpNet>; 2],
    /// What else is joined: networks behind the local portal, behind the remote one.
    pub behind: [Vec<IpNet>; 2],
    /// Lines of the section `[traffic]`.
    pub traffic: &'a str,
    /// More sections, of both portals.
    pub more: &'a str,
}

impl<'a> Site<'a> {
    /// By UDP alone, with nothing joined but the devices, and no more to say.
    pub(crate) fn plain(
        local: &'a Namespace,
        remote: &'a Namespace,
        endpoint: IpAddr,
        links: String,
        paths: usize,
    ) -> Self {
        let tun = [LOCAL_TUN, REMOTE_TUN].map(|address| vec![parsed(address)]);
        let transports = vec!["udp".to_owned()];
        let behind = [vec![], vec![]];
        Self { local, remote, endpoint, scion: None, links, paths, transports, tun, behind, traffic: "", more: "" }
    }
}

/// Two portals, bonded. Starts with every path active; ended on drop. One owner.
#[derive(Debug)]
pub struct Portals {
    // The processes go before the folder with what they read, and who looks at a portal before it.
    watchers: Vec<Process>,
    local: Portal,
    remote: Portal,
    program: PathBuf,
    remote_key: PublicKey,
    folder: Folder,
}

/// A portal. Starts running; ended on drop.
#[derive(Debug)]
pub(crate) struct Portal {
    name: String,
    pub process: Process,
    socket: PathBuf,
}

impl Portals {
    /// Starts both in a topology, with all its links, and waits until every path is active.
    /// `program` is the `hawser` executable; `traffic` the lines of the section `[traffic]`, mostly none.
    ///
    /// # Errors
    /// [`LabError::Process`] with what a portal said, where it ends or its paths do not become active.
    pub fn start(program: &Path, bond: &Bond, traffic: &str) -> Result<Self, LabError> {
        let section = |index| link_section(&bond.interface(index), "udp", "");
        let (links, paths) = ((0..bond.link_count()).map(section).collect(), bond.link_count());
        let behind = [CLIENT_NETWORK, SERVER_NETWORK].map(|network| vec![network.into()]);
        let plain = Site::plain(&bond.local, &bond.remote, ENDPOINT.into(), links, paths);
        Self::join(program, &Site { behind, traffic, ..plain })
    }

    /// All steps, wherever it is.
    ///
    /// # Errors
    /// As [`Portals::start`].
    pub(crate) fn join(program: &Path, site: &Site<'_>) -> Result<Self, LabError> {
        let making = cleanup::making();
        let folder = Folder::new()?;
        let (local_key, remote_key) = (new_key()?, new_key()?);
        let scion = site.scion.map(|endpoint| format!(", \"scion://{endpoint}\"")).unwrap_or_default();
        let listen = SocketAddr::new(any_of(site.endpoint), PORT);
        let call = SocketAddr::new(site.endpoint, PORT);
        let start = |name, namespace, key: &PrivateKey, config: &Config<'_>| {
            configure(&folder, name, key, |key_file, socket| config.text(key_file, socket))?;
            Portal::start(program, name, namespace, &folder)
        };
        // A stream may come inside TLS where a link's section says so.
        let tls = if site.links.contains("tls = true") { "tls = true\n" } else { "" };
        let [local_tun, remote_tun] = &site.tun;
        let [behind_local, behind_remote] = &site.behind;
        let remote = Config {
            listen: &format!("listen = [\"{listen}\"{scion}]\ntransports = {:?}\n{tls}", site.transports),
            tun: remote_tun,
            links: "",
            peer: ("local", &local_key.public().to_string()),
            endpoints: "",
            allowed: &allowed(local_tun, behind_local),
            traffic: site.traffic,
            more: site.more,
        };
        let remote = start("remote", site.remote, &remote_key, &remote)?;
        let local = Config {
            listen: "",
            tun: local_tun,
            links: &site.links,
            peer: ("remote", &remote_key.public().to_string()),
            endpoints: &format!("endpoints = [\"{call}\"{scion}]\n"),
            allowed: &allowed(remote_tun, behind_remote),
            traffic: site.traffic,
            more: site.more,
        };
        let local = start("local", site.local, &local_key, &local)?;
        drop(making);
        let (program, remote_key) = (program.to_owned(), remote_key.public());
        let mut portals = Self { watchers: Vec::new(), local, remote, program, remote_key, folder };
        portals.wait_active(site.paths)?;
        std::thread::sleep(SETTLE);
        Ok(portals)
    }

    /// Step 2: both portals must see all paths active, for each sends by those it sees.
    fn wait_active(&mut self, paths: usize) -> Result<(), LabError> {
        let active = until(PATIENCE, GLANCE, || {
            self.local.process.check()?;
            self.remote.process.check()?;
            Ok((self.active_paths() == [paths; 2]).then_some(()))
        })?;
        active.ok_or_else(|| {
            let [local, remote] = self.active_paths();
            let remote_said = self.remote.process.log_end();
            let fault = format!("{local} of {paths} paths became active, at the remote portal {remote}");
            self.local.process.fault(format!("{fault}, which said:\n{remote_said}\nbut"))
        })
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

    /// The remote portal's public key.
    pub(crate) fn remote_key(&self) -> &PublicKey {
        &self.remote_key
    }

    /// Where the local portal is asked.
    pub(crate) fn local_socket(&self) -> &Path {
        &self.local.socket
    }

    /// What the local portal says; none while it does not answer.
    #[must_use]
    pub fn local_status(&self) -> Option<Status> {
        self.local.status()
    }

    /// What both say: local, remote; none of one that does not answer.
    pub(crate) fn statuses(&self) -> [Option<Status>; 2] {
        [self.local.status(), self.remote.status()]
    }

    /// The processes: local, remote.
    pub(crate) fn processes(&self) -> [&Process; 2] {
        [&self.local.process, &self.remote.process]
    }

    /// Starts an end's portal, which was killed, with what it had; does not wait.
    pub(crate) fn start_again(&mut self, end: TunnelEnd, namespace: &Namespace) -> Result<(), LabError> {
        let _making = cleanup::making();
        let portal = if end == TunnelEnd::Local { &mut self.local } else { &mut self.remote };
        *portal = Portal::start(&self.program, &portal.name, namespace, &self.folder)?;
        Ok(())
    }
}

impl Portal {
    /// Starts it with the configuration `NAME.toml` in a folder, which names `NAME.sock` there.
    pub(crate) fn start(program: &Path, name: &str, namespace: &Namespace, folder: &Folder) -> Result<Self, LabError> {
        let [config, socket] = ["toml", "sock"].map(|ending| folder.path().join(format!("{name}.{ending}")));
        let arguments = ["up", "-c", &config.to_string_lossy()];
        let process = Process::start(&format!("{name} portal"), namespace, program, &arguments, folder)?;
        Ok(Self { name: name.to_owned(), process, socket })
    }

    /// What it says; none while it does not answer.
    pub(crate) fn status(&self) -> Option<Status> {
        // No answer is an answer: it is not up yet, or no longer.
        Client::status(&self.socket).ok()
    }

    fn active_paths(&self) -> usize {
        let peers = self.status().map(|status| status.peers).unwrap_or_default();
        peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.state == PathState::Active).count()
    }
}

/// Every address of a family.
fn any_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

pub(crate) fn parsed(address: &str) -> IpNet {
    address.parse().expect("an address of this file")
}

/// A new key.
pub(crate) fn new_key() -> Result<PrivateKey, LabError> {
    PrivateKey::generate().map_err(|error| LabError::system("make keys", error))
}

/// Writes what a portal reads: its key, and what `text` makes of that file and of where its socket will be.
pub(crate) fn configure(
    folder: &Folder,
    name: &str,
    key: &PrivateKey,
    text: impl FnOnce(&Path, &Path) -> String,
) -> Result<(), LabError> {
    let [key_file, config, socket] =
        ["key", "toml", "sock"].map(|ending| folder.path().join(format!("{name}.{ending}")));
    write_private(&key_file, &key.to_base64())
        .and_then(|()| fs::write(&config, text(&key_file, &socket)))
        .map_err(|error| LabError::system(format!("write configuration of {name}"), error))
}

pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(KEY_MODE).open(path)?;
    writeln!(file, "{text}")
}
