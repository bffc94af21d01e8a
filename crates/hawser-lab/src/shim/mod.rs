//! Shims on hosts of a SCION network, and what is done with them.
//!
//! 1. [`Place`]: the networks, and where client and server are in them.
//! 2. [`ShimPair`]: a shim on each host, with a configuration, a folder and a control socket of its own. Each is asked
//!    for its status until it answers. They are told to end (SIGTERM) when this drops, so that they undo what they set.
//! 3. `files`: a file from client to server, by TCP through the shims or the portals' tunnel, or by quinn beside them.
//! 4. `wire`: what of a SCION flow passed a link, by capture.

pub(crate) mod files;
mod wire;

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_shim::route::{InterfaceIndex, NoSurrogate, ShimEnd, Surrogate};
use hawser_shim::status::{ConnectionStatus, ShimRole, Status, ask};
use hawser_wire::Direction;
use hawser_wire::traffic::{Congestion, Flows, Reliable, Stack, Towards};

pub(crate) use self::wire::scion_flow;
pub use self::wire::{Carried, Wire, scion_links};
use crate::cleanup::Folder;
use crate::error::LabError;
use crate::localnet::{Host, Localnet, Topology};
use crate::process::Process;
use crate::wait::until;

/// The ASes of client and server in two ISDs.
const ISDS: [&str; 2] = ["1-ff00:0:110", "2-ff00:0:210"];
/// The shims' SCION port: one that routers send to (`dispatched_ports`).
pub(crate) const PORT: u16 = 31_000;
/// How long a shim may take to come up, and a connection to have its subflows, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is asked meanwhile.
const GLANCE: Duration = Duration::from_millis(50);
/// What a flow that carries data is called in the status.
const ESTABLISHED: &str = "established";

/// A network, and in which ASes of it client and server are. Plain data.
#[derive(Clone, Debug)]
pub struct Place {
    /// The network.
    pub topology: Topology,
    /// The ASes of client and server.
    pub ends: [&'static str; 2],
}

impl Place {
    /// Two ISDs, as many disjoint paths as links; plain veths without a way.
    ///
    /// # Errors
    /// Never: the network comes along.
    pub fn parallel(links: u8, way: Option<&Direction>) -> Result<Self, LabError> {
        let mut place = Self::of(include_str!("../../topologies/two-isds.toml"), Some(links), ISDS)?;
        if let Some(way) = way {
            place.topology.shape(way);
        }
        Ok(place)
    }

    /// Two ISDs and three paths: the two faster ones share a link.
    pub(crate) fn sharing() -> Result<Self, LabError> {
        Self::of(include_str!("../../topologies/sharing.toml"), None, ISDS)
    }

    /// One path, up and down: the client's line is a plain veth.
    pub(crate) fn three_hops() -> Result<Self, LabError> {
        Self::of(include_str!("../../topologies/three-hops.toml"), None, ["1-ff00:0:111", "1-ff00:0:112"])
    }

    /// Six ASes in two ISDs, 24 paths.
    pub(crate) fn shila() -> Result<Self, LabError> {
        Self::of(include_str!("../../topologies/shila.toml"), None, ["1-ff00:0:111", "2-ff00:0:211"])
    }

    fn of(text: &str, links: Option<u8>, ends: [&'static str; 2]) -> Result<Self, LabError> {
        Ok(Self { topology: Topology::parse(text, "that comes along", None, links)?, ends })
    }
}

/// Two shims. Start answering; ended on drop. One owner.
#[derive(Debug)]
pub struct ShimPair {
    /// Where streams begin.
    pub client: Shim,
    /// Where they are accepted.
    pub server: Shim,
}

/// One of them. Starts answering; ended on drop. One owner.
#[derive(Debug)]
pub struct Shim {
    // The process goes before the folder with what it reads.
    pub(crate) process: Process,
    socket: PathBuf,
    /// The host: where it runs, and applications do.
    pub host: Host,
    /// Its place in SCION.
    pub(crate) end: ShimEnd,
    _folder: Folder,
}

impl ShimPair {
    /// On the first host of the client's AS and of the server's; `program` is the `hawser` executable.
    /// A client has `egress` interfaces: as many paths as a connection may have. The two configurations end in `more`.
    ///
    /// # Errors
    /// [`LabError::Process`] with what a shim said, where it ends or does not answer.
    pub fn start(
        program: &Path,
        net: &Localnet,
        ends: [&str; 2],
        egress: u8,
        select: Criterion,
        more: [&str; 2],
    ) -> Result<Self, LabError> {
        let start = |name, end: usize| {
            let lines = format!("egress = {egress}\nselect = \"{select}\"\n{}", more[end]);
            Shim::start(program, name, net.host(ends[end])?, &lines)
        };
        Ok(Self { server: start("server shim", 1)?, client: start("client shim", 0)? })
    }

    /// Streams of MPTCP with CUBIC from client to server, or back, by the address that embeds the server's SCION
    /// address: no map is needed.
    pub(crate) fn flows(&self, towards: Towards, count: usize) -> Flows {
        Flows {
            client: self.client.host.namespace.clone(),
            server: self.server.host.namespace.clone(),
            destination: SocketAddr::new(self.server.address().into(), 0),
            kind: Reliable { stack: Stack::Mptcp, congestion: Congestion::Cubic },
            towards,
            count,
        }
    }

    /// Waits until a connection of the client has this many established flows; gives it.
    pub(crate) fn wait_flows(&self, flows: usize) -> Result<ConnectionStatus, LabError> {
        let mut counts: Vec<usize> = Vec::new();
        let whole = until(PATIENCE, GLANCE, || {
            let connections = self.client.connections();
            counts = connections.iter().map(established).collect();
            Ok(connections.into_iter().find(|connection| established(connection) >= flows))
        })?;
        let fault = || format!("of its connections none has {flows} flows, but {counts:?}");
        whole.ok_or_else(|| self.client.process.fault(fault()))
    }
}

/// How many flows of a connection carry data.
fn established(connection: &ConnectionStatus) -> usize {
    connection.flows.iter().filter(|flow| flow.state == ESTABLISHED).count()
}

impl Shim {
    /// With its configuration, which ends in `more`.
    fn start(program: &Path, name: &str, host: &Host, more: &str) -> Result<Self, LabError> {
        let folder = Folder::new()?;
        let [config, socket] = ["shim.toml", "shim.sock"].map(|file| folder.path().join(file));
        let local = host.endpoint(PORT);
        let unfit = |error: NoSurrogate| LabError::refused(format!("configure the {name}"), error.to_string());
        let end = ShimEnd::new(local).map_err(unfit)?;
        let (daemon, control) = (host.daemon, socket.display());
        let text = format!("[shim]\nlocal = \"{local}\"\ndaemon = \"{daemon}\"\ncontrol = \"{control}\"\n{more}\n");
        let written = std::fs::write(&config, text);
        written.map_err(|error| LabError::system(format!("write configuration of the {name}"), error))?;
        let arguments = ["shim", "-c", &config.to_string_lossy()];
        let process = Process::start(name, &host.namespace, program, &arguments, &folder)?;
        let mut shim = Self { process, socket, host: host.clone(), end, _folder: folder };
        let answer = until(PATIENCE, GLANCE, || shim.process.check().map(|()| shim.status()))?;
        answer.ok_or_else(|| shim.process.fault(format!("it told no status for {} s", PATIENCE.as_secs())))?;
        Ok(shim)
    }

    /// At which address its host's servers are reached.
    #[must_use]
    pub fn address(&self) -> Ipv6Addr {
        Surrogate { end: self.end, interface: InterfaceIndex::INGRESS }.address()
    }

    /// What it says; none while it does not answer.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        // No answer is an answer: it is not up yet, or no longer.
        ask(&self.socket).ok()
    }

    /// Its connections as a client; empty while it does not answer.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionStatus> {
        let connections = self.status().map(|status| status.connections).unwrap_or_default();
        connections.into_iter().filter(|connection| connection.role == ShimRole::Client).collect()
    }

    /// What it said.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_that_comes_along_is_right() {
        let sizes = |place: Result<Place, LabError>| {
            let Place { topology, ends } = place.expect("no fault");
            for end in ends {
                assert!(topology.ases.iter().any(|plan| plan.id.to_string() == end && plan.hosts > 0), "{end}");
            }
            (topology.ases.len(), topology.links.len())
        };
        assert_eq!(sizes(Place::parallel(8, None)), (2, 8));
        assert_eq!(sizes(Place::sharing()), (4, 5));
        assert_eq!(sizes(Place::three_hops()), (3, 2));
        assert_eq!(sizes(Place::shila()), (6, 12));
    }
}
