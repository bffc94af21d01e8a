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

use hawser_config::{Keyword, PrivateKey, PublicKey};
use hawser_portal::api::{Client, PathState, PathStatus, Status};
use hawser_scion::EndpointAddr;
use hawser_wire::Namespace;
use ipnet::IpNet;

use crate::cleanup::Folder;
use crate::error::LabError;
use crate::process::Process;
use crate::scenario::TunnelEnd;
use crate::text::quoted;
use crate::topology::{Bond, CLIENT_NETWORK, ENDPOINT, SERVER_NETWORK};
use crate::wait::until;

mod watched;

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

/// Two portals, bonded. Starts with every path active; ended on drop. One owner.
#[derive(Debug)]
pub struct Portals {
    // The processes go before the folder with what they read, and who looks at a portal before it.
    watchers: Vec<Process>,
    pub(crate) local: Portal,
    pub(crate) remote: Portal,
    program: PathBuf,
    pub(crate) remote_key: PublicKey,
    folder: Folder,
}

/// A portal. Starts running; ended on drop.
#[derive(Debug)]
pub(crate) struct Portal {
    pub process: Process,
    /// Where it runs.
    pub host: Namespace,
    /// Where it is asked.
    pub socket: PathBuf,
}

/// What two portals have between them, and what they join. Plain data.
pub(crate) struct Site<'a> {
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
    /// More sections, of both portals.
    pub more: &'a str,
}

impl Site<'_> {
    /// By UDP alone, with nothing joined but the devices, and no more to say.
    pub(crate) fn plain(endpoint: IpAddr, links: String, paths: usize) -> Self {
        let tun = [LOCAL_TUN, REMOTE_TUN].map(|address| vec![parsed(address)]);
        let (transports, behind) = (vec!["udp".to_owned()], [vec![], vec![]]);
        Self { endpoint, scion: None, links, paths, transports, tun, behind, more: "" }
    }

    /// What an end's portal reads, from where `[portal]` has named its files; the other one has this key.
    fn configuration(&self, end: TunnelEnd, key: &PublicKey) -> String {
        let scion = self.scion.map(|endpoint| format!(", \"scion://{endpoint}\"")).unwrap_or_default();
        let at = |address| format!("[\"{}\"{scion}]\n", SocketAddr::new(address, PORT));
        // A stream may come inside TLS where a link's section says so.
        let tls = if self.links.contains("tls = true") { "tls = true\n" } else { "" };
        let listen = || format!("listen = {}transports = {:?}\n{tls}", at(any_of(self.endpoint)), self.transports);
        let endpoints = || format!("endpoints = {}", at(self.endpoint));
        let (own, other, peer, listen, links, endpoints) = match end {
            TunnelEnd::Local => (0, 1, "remote", String::new(), &*self.links, endpoints()),
            TunnelEnd::Remote => (1, 0, "local", listen(), "", String::new()),
        };
        // From the other one is accepted what comes from its device, and from what lies behind it.
        let hosts = self.tun[other].iter().map(|net| IpNet::from(net.addr()));
        let allowed = quoted(hosts.chain(self.behind[other].iter().copied()));
        let (tun, more) = (quoted(&self.tun[own]), self.more);
        format!(
            "{listen}\n[tun]\naddresses = [{tun}]\n\n{links}\
             [[peer]]\nname = \"{peer}\"\npublic_key = \"{key}\"\n{endpoints}allowed_ips = [{allowed}]\n\n{more}\n"
        )
    }
}

impl Portals {
    /// Starts both in a topology, with all its links, and waits until every path is active.
    /// `program` is the `hawser` executable; `traffic` the lines of the section `[traffic]`, mostly none.
    ///
    /// # Errors
    /// [`LabError::Process`] with what a portal said, where it ends or its paths do not become active.
    pub fn start(program: &Path, bond: &Bond, traffic: &str) -> Result<Self, LabError> {
        let paths = usize::from(bond.count);
        let links = (0..paths).map(|index| link_section(&bond.interface(index), "udp", "")).collect();
        let behind = [CLIENT_NETWORK, SERVER_NETWORK].map(|network| vec![network.into()]);
        let more = format!("[traffic]\n{traffic}");
        let site = Site { behind, more: &more, ..Site::plain(ENDPOINT.into(), links, paths) };
        Self::join(program, [&bond.local, &bond.remote], &site)
    }

    /// All steps, wherever it is: the namespaces of the local portal and of the remote one.
    pub(crate) fn join(program: &Path, [local, remote]: [&Namespace; 2], site: &Site<'_>) -> Result<Self, LabError> {
        let folder = Folder::new()?;
        let (local_key, remote_key) = (new_key()?, new_key()?);
        let start = |end: TunnelEnd, namespace, own: &PrivateKey, other: &PrivateKey| {
            configure(folder.path(), end.word(), own, &site.configuration(end, &other.public()))?;
            Portal::start(program, end.word(), namespace, &folder)
        };
        let remote = start(TunnelEnd::Remote, remote, &remote_key, &local_key)?;
        let local = start(TunnelEnd::Local, local, &local_key, &remote_key)?;
        let (program, remote_key) = (program.to_owned(), remote_key.public());
        let mut portals = Self { watchers: Vec::new(), local, remote, program, remote_key, folder };
        portals.wait_active(site.paths)?;
        std::thread::sleep(SETTLE);
        Ok(portals)
    }

    /// Step 2: both portals must see all paths active, for each sends by those it sees.
    fn wait_active(&mut self, paths: usize) -> Result<(), LabError> {
        let mut seen = [0; 2];
        let all = until(PATIENCE, GLANCE, || {
            self.local.process.check()?;
            self.remote.process.check()?;
            seen = self.statuses().map(|status| status.iter().flat_map(active).count());
            Ok((seen == [paths; 2]).then_some(()))
        })?;
        all.ok_or_else(|| {
            let [local, remote] = seen;
            let remote_said = self.remote.process.log_end();
            let fault = format!("{local} of {paths} paths became active, at the remote portal {remote}");
            self.local.process.fault(format!("{fault}, which said:\n{remote_said}\nbut"))
        })
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
    pub(crate) fn start_again(&mut self, end: TunnelEnd) -> Result<(), LabError> {
        let portal = if end == TunnelEnd::Local { &mut self.local } else { &mut self.remote };
        *portal = Portal::start(&self.program, end.word(), &portal.host, &self.folder)?;
        Ok(())
    }
}

impl Portal {
    /// Starts it with the configuration `NAME.toml` in a folder, which names `NAME.sock` there.
    pub(crate) fn start(program: &Path, name: &str, host: &Namespace, folder: &Folder) -> Result<Self, LabError> {
        let [config, socket] = ["toml", "sock"].map(|ending| folder.path().join(format!("{name}.{ending}")));
        let arguments = ["up", "-c", &config.to_string_lossy()];
        let process = Process::start(&format!("{name} portal"), host, program, &arguments, folder)?;
        Ok(Self { process, host: host.clone(), socket })
    }

    /// What it says; none while it does not answer.
    pub(crate) fn status(&self) -> Option<Status> {
        // No answer is an answer: it is not up yet, or no longer.
        Client::status(&self.socket).ok()
    }
}

/// The paths that are active.
pub(crate) fn active(status: &Status) -> impl Iterator<Item = &PathStatus> {
    status.peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.state == PathState::Active)
}

pub(crate) fn parsed(address: &str) -> IpNet {
    address.parse().expect("an address of this file")
}

/// A new key.
pub(crate) fn new_key() -> Result<PrivateKey, LabError> {
    PrivateKey::generate().map_err(|error| LabError::system("make keys", error))
}

/// Writes what a portal reads into a folder: `NAME.portal`, its key, and `NAME.toml`. Its section `[portal]` names the
/// key's file and where its socket will be (`NAME.sock`), and goes on with `rest`.
pub(crate) fn configure(folder: &Path, name: &str, key: &PrivateKey, rest: &str) -> Result<(), LabError> {
    let [key_file, config, socket] = ["portal", "toml", "sock"].map(|ending| folder.join(format!("{name}.{ending}")));
    let files = [("private_key_file", &key_file), ("socket", &socket)];
    let files = files.map(|(what, path)| format!("{what} = \"{}\"\n", path.display())).concat();
    write_private(&key_file, &key.to_base64())
        .and_then(|()| write_private(&config, &format!("[portal]\n{files}{rest}")))
        .map_err(|error| LabError::system(format!("write configuration of {name}"), error))
}

pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(KEY_MODE).open(path)?;
    writeln!(file, "{text}")
}

/// Every address of a family.
pub(crate) fn any_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A link by the interface of its name, with more lines.
pub(crate) fn link_section(interface: &str, transport: &str, more: &str) -> String {
    format!("[[link]]\nname = \"{interface}\"\ninterface = \"{interface}\"\ntransport = \"{transport}\"\n{more}\n")
}

/// What a portal understands of what goes on with `rest` after [`configure`]'s lines.
#[cfg(test)]
pub(crate) fn understood(rest: &str) -> hawser_config::Config {
    let text = format!("[portal]\nprivate_key_file = \"/nowhere/key\"\nsocket = \"/nowhere/socket\"\n{rest}");
    hawser_config::Config::parse(&text, "portal.toml").unwrap_or_else(|error| panic!("{text}\n{error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portals_understand_their_configurations() {
        let key = new_key().expect("randomness").public();
        let links = "[[link]]\nname = \"link1\"\ninterface = \"link1\"\n\n".to_owned();
        let site = Site {
            behind: ["10.1.0.0/24", "10.2.0.0/24"].map(|network| vec![parsed(network)]),
            more: "[traffic]\ncongestion = \"cubic\"\n[[rule]]\ndscp = \"ef\"\nscheduler = \"redundant\"\n",
            ..Site::plain([198, 51, 100, 7].into(), links, 1)
        };
        for end in [TunnelEnd::Local, TunnelEnd::Remote] {
            understood(&site.configuration(end, &key));
        }
    }
}
