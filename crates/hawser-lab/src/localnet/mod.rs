//! A SCION network on this machine: the reference implementation's router, control service and daemon in namespaces.
//!
//! 1. [`Topology`] says what it is: read from a file (`parse`, `check`), or one of those that come along (`find`).
//! 2. [`Services`]: Go builds the programs, once, at pinned versions.
//! 3. [`Localnet::start`]: addresses (`layout`), certificates and configurations (`config`), namespaces and links
//!    (`network`), processes.
//! 4. [`Localnet::wait_ready`]: every daemon has paths to every AS, and over every link (`ready`).
//! 5. Links may be cut, restored and changed; [`Localnet::status`] tells what runs. Drop removes everything.
//!
//! `supervise` is what keeps a network after `hawser scion net up`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_scion::IsdAs;
use hawser_wire::Namespace;

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::go;
use crate::process::Process;

mod check;
mod config;
mod find;
mod keeper;
mod layout;
mod network;
mod parse;
mod ready;
mod services;
mod status;
pub mod supervise;
mod topology;

pub use network::NetLink;
pub use services::Services;
pub use status::{AsStatus, EmulatedStatus, HostStatus, LinkStatus, PathsStatus, ProcessStatus, Status, WayStatus};
pub use topology::{Announced, AsPlan, Family, LinkKind, LinkPlan, PortRange, Topology};

use keeper::Keeper;
use layout::Layout;
use network::Network;

/// How long a network may take until it is whole, on a machine with much else to do; alone it takes seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// One processor is enough for a service that idles, and more would only cost memory. And that the QUIC library cannot
/// size a buffer is no error of a service.
const ENVIRONMENT: [(&str, &str); 2] = [("GOMAXPROCS", "1"), ("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")];

/// A running network. It starts without any path, and is removed on drop; may be used from any thread.
#[derive(Debug)]
pub struct Localnet {
    name: String,
    // Processes go before the thread that keeps them, and before their namespaces.
    processes: Vec<Service>,
    _keeper: Keeper,
    network: Network,
    hosts: Vec<Host>,
    topology: Topology,
    layout: Layout,
    folder: Arc<Folder>,
    services: Services,
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

/// A process that is to be started. Plain data.
struct Start {
    isd_as: IsdAs,
    role: String,
    program: PathBuf,
    config: PathBuf,
    namespace: Namespace,
}

impl Localnet {
    /// Builds the services if need be, starts a network under its topology's name, and waits until it is whole.
    ///
    /// # Errors
    /// Where there is no root or no Go, a process fails, or paths do not come.
    pub fn up(topology: &Topology) -> Result<Self, LabError> {
        let services = Services::build(&go::cache(), &|line| eprintln!("{line}"))?;
        let localnet = Self::start(&topology.name, topology, &services)?;
        localnet.wait_ready(PATIENCE)?;
        Ok(localnet)
    }

    /// Step 3, under a name.
    ///
    /// # Errors
    /// Where there is no root, or a process does not start.
    pub fn start(name: &str, topology: &Topology, services: &Services) -> Result<Self, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let _making = cleanup::making();
        let begun = Instant::now();
        let folder = Arc::new(Folder::new()?);
        let layout = Layout::of(topology);
        config::write(topology, &layout, services, folder.path())?;
        let network = Network::build(name, topology, &layout)?;
        let hosts = hosts(&network, &layout);
        let keeper = Keeper::new()?;
        let starts = starts(topology, &network, services, &folder);
        let inside = Arc::clone(&folder);
        let processes =
            keeper.run(move || starts.into_iter().map(|start| start.run(&inside)).collect::<Result<_, _>>());
        let ended =
            || LabError::Network { network: name.to_owned(), fault: "the thread that starts it ended".to_owned() };
        let processes = processes.ok_or_else(ended)??;
        Ok(Self {
            name: name.to_owned(),
            processes,
            _keeper: keeper,
            network,
            hosts,
            topology: topology.clone(),
            layout,
            folder,
            services: services.clone(),
            begun,
        })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The programs it runs.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// All hosts, in the order of the topology.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
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
        let index = self.topology.ases.iter().position(|plan| plan.id.to_string() == isd_as);
        let index = index.ok_or_else(|| self.fault(format!("there is no AS {isd_as}")))?;
        Ok(&self.network.ases[index].router)
    }

    /// All links, in the order of the topology.
    #[must_use]
    pub fn links(&self) -> &[NetLink] {
        &self.network.links
    }

    /// A link by its name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn link(&self, name: &str) -> Result<&NetLink, LabError> {
        let found = self.network.links.iter().find(|link| link.name() == name);
        found.ok_or_else(|| self.fault(format!("there is no link {name}")))
    }

    /// The folder with an AS's configuration, for programs that take `--config-dir`.
    #[must_use]
    pub fn config_dir(&self, isd_as: IsdAs) -> PathBuf {
        config::folder_of(self.folder.path(), isd_as)
    }

    fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::Network { network: self.name.clone(), fault: fault.into() }
    }
}

impl Drop for Localnet {
    fn drop(&mut self) {
        // What they keep goes with the folder: there is nothing that they would have to undo.
        self.processes.drain(..).for_each(|service| service.process.kill());
    }
}

fn hosts(network: &Network, layout: &Layout) -> Vec<Host> {
    let of = |(built, addresses): (&network::AsNetwork, &layout::AsLayout)| {
        let daemon = SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), config::DAEMON_PORT);
        let hosts = built.hosts.iter().zip(&addresses.hosts).zip(1..);
        let isd_as = addresses.id;
        let host = move |((namespace, address), number): ((&Namespace, &IpAddr), usize)| Host {
            isd_as,
            number,
            namespace: namespace.clone(),
            address: *address,
            daemon,
        };
        hosts.map(host).collect::<Vec<_>>()
    };
    network.ases.iter().zip(&layout.ases).flat_map(of).collect()
}

/// Routers first: what others send before there is one is lost, and retransmitted a second later.
fn starts(topology: &Topology, network: &Network, services: &Services, folder: &Folder) -> Vec<Start> {
    let mut starts = Vec::new();
    for (plan, built) in topology.ases.iter().zip(&network.ases) {
        let configs = config::folder_of(folder.path(), plan.id);
        let mut add = |rank: u8, role: String, program: &str, config: String, namespace: &Namespace| {
            let (program, config) = (services.program(program), configs.join(config));
            starts.push((rank, Start { isd_as: plan.id, role, program, config, namespace: namespace.clone() }));
        };
        add(0, "router".to_owned(), "router", "br.toml".to_owned(), &built.router);
        add(1, "control".to_owned(), "control", "cs.toml".to_owned(), &built.router);
        for (host, number) in built.hosts.iter().zip(1..) {
            add(2, format!("daemon{number}"), "daemon", format!("sd{number}.toml"), host);
            if plan.shim {
                add(2, format!("shim{number}"), "dispatcher", format!("disp{number}.toml"), host);
            }
        }
    }
    starts.sort_by_key(|(rank, _)| *rank);
    starts.into_iter().map(|(_, start)| start).collect()
}

impl Start {
    fn run(self, folder: &Folder) -> Result<Service, LabError> {
        let name = format!("{}.{}", config::name_of(self.isd_as), self.role);
        let config = self.config.to_string_lossy();
        let arguments = ["--config", &*config];
        let process = Process::start_with(&name, &self.namespace, &self.program, &arguments, &ENVIRONMENT, folder)?;
        Ok(Service { isd_as: self.isd_as, role: self.role, process })
    }
}
