//! A shim on a client's host and one on a server's, in a SCION network that runs.
//!
//! 1. Each gets a configuration and a folder of its own, with its control socket.
//! 2. Each starts, and is asked for its status until it answers.
//! 3. Streams are made by the address that embeds the server's SCION address: no map is needed.
//! 4. They are told to end (SIGTERM) when this drops, so that they undo what they set.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_shim::route::{InterfaceIndex, NoSurrogate, ShimEnd, Surrogate};
use hawser_shim::status::{ConnectionStatus, ShimRole, Status, ask};
use hawser_wire::Namespace;
use hawser_wire::traffic::{Congestion, Flows, Reliable, Stack, Towards};

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::localnet::{Host, Localnet};
use crate::process::Process;
use crate::wait::until;

/// The shims' SCION port: one that routers send to (`dispatched_ports`).
pub(crate) const PORT: u16 = 31_000;
/// How long a shim may take to come up, and a connection to have its subflows, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is asked meanwhile.
const GLANCE: Duration = Duration::from_millis(50);
/// What a flow that carries data is called in the status.
const ESTABLISHED: &str = "established";

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
    /// The host.
    pub host: Host,
    /// Its place in SCION.
    pub(crate) end: ShimEnd,
    _folder: Folder,
}

impl ShimPair {
    /// Steps 1 and 2, on the first host of the client's AS and of the server's; `program` is the `hawser` executable.
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

    /// Step 3: streams of MPTCP with CUBIC from client to server, or back.
    pub(crate) fn flows(&self, towards: Towards, count: usize) -> Flows {
        Flows {
            client: self.client.namespace().clone(),
            server: self.server.namespace().clone(),
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
    /// Steps 1 and 2.
    fn start(program: &Path, name: &str, host: &Host, more: &str) -> Result<Self, LabError> {
        let making = cleanup::making();
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
        drop(making);
        let mut shim = Self { process, socket, host: host.clone(), end, _folder: folder };
        let answer = until(PATIENCE, GLANCE, || shim.process.check().map(|()| shim.status()))?;
        answer.ok_or_else(|| shim.process.fault(format!("it told no status for {} s", PATIENCE.as_secs())))?;
        Ok(shim)
    }

    /// Where it runs, and applications do.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.host.namespace
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
