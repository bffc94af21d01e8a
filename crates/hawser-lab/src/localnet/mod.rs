//! A SCION network on this machine: the reference implementation's router, control service and daemon in namespaces.
//!
//! 1. [`Topology`] says what it is: read from a file, or one of those that come along (`parse`).
//! 2. [`services()`]: Go builds the programs, when they are first asked for, at pinned versions.
//! 3. [`Localnet::start`]: addresses (`layout`), certificates and configurations (`config`), namespaces and links
//!    (`network`), processes.
//! 4. [`Localnet::wait_ready`]: every daemon has paths to every AS, and over every link (`ready`).
//! 5. Links may be cut, restored and changed; [`Localnet::status`] tells what runs. Drop removes everything.
//!
//! `supervise` is what keeps a network after `hawser scion net up`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hawser_scion::IsdAs;
use hawser_wire::Namespace;

use crate::cleanup::Folder;
use crate::error::LabError;
use crate::go::{self, GoModule};
use crate::process::Process;

mod config;
mod layout;
mod network;
mod parse;
mod ready;
mod status;
pub mod supervise;
mod topology;

pub(crate) use config::dispatcher_settings;
pub(crate) use layout::ROUTER_PORT;
pub use network::NetLink;
pub(crate) use network::UPLINK;
pub(crate) use parse::DISPATCHED;
pub(crate) use ready::at_once;
pub use status::{AsStatus, EmulatedStatus, HostStatus, LinkStatus, PathsStatus, ProcessStatus, Status, WayStatus};
pub use topology::{Announced, AsPlan, Family, LinkKind, LinkPlan, Topology};

use layout::{Layout, LinkLayout};

/// How long a network may take until it is whole, on a machine with much else to do; alone it takes seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// One processor is enough for a service that idles, and more would only cost memory. And that the QUIC library cannot
/// size a buffer is no error of a service.
const ENVIRONMENT: [(&str, &str); 2] = [("GOMAXPROCS", "1"), ("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")];

/// v0.15.1: what networks run.
pub(crate) const SERVICES: GoModule = GoModule {
    name: "scion-services",
    files: &[("go.mod", include_str!("../../go/scion/go.mod")), ("go.sum", include_str!("../../go/scion/go.sum"))],
    packages: &[
        "github.com/scionproto/scion/router/cmd/router",
        "github.com/scionproto/scion/control/cmd/control",
        "github.com/scionproto/scion/daemon/cmd/daemon",
        "github.com/scionproto/scion/dispatcher/cmd/dispatcher",
        "github.com/scionproto/scion/scion/cmd/scion",
        "github.com/scionproto/scion/scion-pki/cmd/scion-pki",
    ],
};
/// v0.11.0: the last one with a dispatcher between applications and the network.
pub(crate) const CLASSIC: GoModule = GoModule {
    name: "scion-classic",
    files: &[
        ("go.mod", include_str!("../../go/scion-classic/go.mod")),
        ("go.sum", include_str!("../../go/scion-classic/go.sum")),
    ],
    packages: &[
        "github.com/scionproto/scion/dispatcher/cmd/dispatcher",
        "github.com/scionproto/scion/daemon/cmd/daemon",
    ],
};

/// The folder with what networks run: `router`, `control`, `daemon`, `dispatcher`, `scion`, `scion-pki`; built where it
/// is not in the cache yet, and what takes long is told on standard error.
///
/// # Errors
/// [`LabError::Missing`] where there is no Go, [`LabError::Refused`] where it cannot build.
pub fn services() -> Result<PathBuf, LabError> {
    SERVICES.build(&go::cache(), &|line| eprintln!("{line}"))
}

/// A running network. It starts without any path, and is removed on drop; may be used from any thread.
#[derive(Debug)]
pub struct Localnet {
    // Processes go before the thread that started them, and both before the links, which go before their namespaces.
    processes: Vec<Service>,
    _keep: Sender<()>,
    /// All links, in the order of the topology.
    pub links: Vec<NetLink>,
    /// Namespaces of router and control service.
    routers: BTreeMap<IsdAs, Namespace>,
    /// All hosts, in the order of the topology.
    pub hosts: Vec<Host>,
    /// What it is.
    pub topology: Topology,
    folder: Folder,
    /// The folder of the programs that it runs.
    pub services: PathBuf,
    begun: Instant,
}

/// A host of an AS, with a daemon. Plain data; clones name the same namespace.
#[derive(Clone, Debug)]
pub struct Host {
    /// The AS.
    pub isd_as: IsdAs,
    /// Counted from 1 in its AS.
    pub number: usize,
    /// Where applications run.
    pub namespace: Namespace,
    /// Its address.
    pub address: IpAddr,
    /// Where its daemon listens, as seen from itself.
    pub daemon: SocketAddr,
}

/// A running process of the reference implementation. One owner.
#[derive(Debug)]
struct Service {
    isd_as: IsdAs,
    role: String,
    process: Process,
}

impl Localnet {
    /// Builds the services if need be, starts a network under its topology's name, and waits until it is whole.
    ///
    /// # Errors
    /// Where there is no root or no Go, a process fails, or paths do not come.
    pub fn up(topology: &Topology) -> Result<Self, LabError> {
        let localnet = Self::start(topology, &services()?)?;
        localnet.wait_ready(PATIENCE)?;
        Ok(localnet)
    }

    /// Step 3; `services` is the folder of the programs. All is done by a thread that lives as long as the network: a
    /// process is told to end when the thread that started it ends, and whoever makes a network may be a test's thread.
    ///
    /// # Errors
    /// Where there is no root, or a process does not start.
    pub fn start(topology: &Topology, services: &Path) -> Result<Self, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let (owned, services) = (topology.clone(), services.to_owned());
        let ((keep, kept), (tell, told)) = (channel(), channel());
        thread::spawn(move || {
            // Nobody waits where this very call has panicked.
            let _ = tell.send(Self::build(owned, services, keep));
            // Its owner says nothing: it is gone when this returns.
            let _ = kept.recv();
        });
        let fault = "the thread that starts it ended".to_owned();
        told.recv().map_err(|_| LabError::Network { network: topology.name.clone(), fault })?
    }

    fn build(topology: Topology, services: PathBuf, keep: Sender<()>) -> Result<Self, LabError> {
        let begun = Instant::now();
        let folder = Folder::new()?;
        let layout = Layout::of(&topology);
        config::write(&layout, &services, folder.path())?;
        let (mut routers, mut hosts) = (BTreeMap::new(), Vec::new());
        for addresses in &layout.ases {
            let (router, own) = network::namespaces(&topology.name, addresses)?;
            routers.insert(addresses.plan.id, router);
            hosts.extend(own);
        }
        let link = |addresses: &LinkLayout<'_>| NetLink::build(addresses, addresses.plan.ends.map(|id| &routers[&id]));
        let links = layout.links.iter().map(link).collect::<Result<_, _>>()?;
        let processes = Vec::new();
        let mut net = Self { processes, _keep: keep, links, routers, hosts, topology, folder, services, begun };
        net.processes = net.start_all()?;
        Ok(net)
    }

    /// Routers first: what others send before there is one is lost, and retransmitted a second later.
    fn start_all(&self) -> Result<Vec<Service>, LabError> {
        let mut started = Vec::new();
        let mut start = |isd_as: IsdAs, role: String, program: &str, config: String, namespace: &Namespace| {
            let mut command = namespace.command(&self.services.join(program).to_string_lossy());
            command.arg("--config").arg(self.config_dir(isd_as).join(config)).envs(ENVIRONMENT);
            let name = format!("{}.{role}", config::name_of(isd_as));
            let process = Process::launch(&name, command, Stdio::null(), &self.folder)?;
            started.push(Service { isd_as, role, process });
            Ok::<_, LabError>(())
        };
        for (role, config) in [("router", "br.toml"), ("control", "cs.toml")] {
            for (&isd_as, namespace) in &self.routers {
                start(isd_as, role.to_owned(), role, config.to_owned(), namespace)?;
            }
        }
        for Host { isd_as, number, namespace, .. } in &self.hosts {
            start(*isd_as, format!("daemon{number}"), "daemon", format!("sd{number}.toml"), namespace)?;
            if self.topology.find(*isd_as).is_some_and(|plan| plan.shim) {
                start(*isd_as, format!("shim{number}"), "dispatcher", format!("disp{number}.toml"), namespace)?;
            }
        }
        Ok(started)
    }

    /// The first host of an AS, written as `1-ff00:0:111`.
    ///
    /// # Errors
    /// Where there is none.
    pub fn host(&self, isd_as: &str) -> Result<&Host, LabError> {
        let found = self.hosts.iter().find(|host| host.isd_as.to_string() == isd_as);
        found.ok_or_else(|| self.fault(format!("there is no host in AS {isd_as}")))
    }

    /// The namespace of an AS's router and control service.
    ///
    /// # Errors
    /// Where there is no such AS.
    pub fn router(&self, isd_as: &str) -> Result<&Namespace, LabError> {
        let router = isd_as.parse().ok().and_then(|id: IsdAs| self.routers.get(&id));
        router.ok_or_else(|| self.fault(format!("there is no AS {isd_as}")))
    }

    /// A link by its name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn link(&self, name: &str) -> Result<&NetLink, LabError> {
        let found = self.links.iter().find(|link| link.plan.name == name);
        found.ok_or_else(|| self.fault(format!("there is no link {name}")))
    }

    /// The folder with an AS's configuration, for programs that take `--config-dir`.
    pub fn config_dir(&self, isd_as: IsdAs) -> PathBuf {
        config::folder_of(self.folder.path(), isd_as)
    }

    fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::Network { network: self.topology.name.clone(), fault: fault.into() }
    }
}

impl Drop for Localnet {
    fn drop(&mut self) {
        // What they keep goes with the folder: there is nothing that they would have to undo.
        self.processes.drain(..).for_each(|service| service.process.kill());
    }
}

/// The hosts of a topology's first AS, joined by veths, without any program.
pub(crate) fn bare_hosts(topology: &Topology) -> Result<Vec<Host>, LabError> {
    network::namespaces(&topology.name, &Layout::of(topology).ases[0]).map(|(_, hosts)| hosts)
}
