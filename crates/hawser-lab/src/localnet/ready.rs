//! Whether a network is whole.
//!
//! 1. Each AS's daemon is asked for its paths to every other AS, all at once.
//! 2. It is whole when each has one at least, and every link is a path of its own between its ends.
//! 3. What is missing is asked for again; a process that has ended ends the wait.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use hawser_scion::daemon::{DaemonAddr, DaemonClient, Refresh};
use hawser_scion::select::listed;
use hawser_scion::{EndpointAddr, IsdAs, Path};

use super::{Host, Localnet};
use crate::background::runtime;
use crate::error::LabError;
use crate::text::told;
use crate::wait::until;

/// How often daemons are asked: they ask their control service as often, and it takes turns of a second.
const GLANCE: Duration = Duration::from_millis(200);

impl Localnet {
    /// Waits until the network is whole; gives how long that took from its start.
    ///
    /// # Errors
    /// Where it is not in time, or a process has ended.
    pub fn wait_ready(&self, patience: Duration) -> Result<Duration, LabError> {
        let mut missing = self.pairs();
        let whole = until(patience, GLANCE, || {
            let left: Vec<_> = at_once(missing.drain(..), |pair| (!self.is_joined(pair)).then_some(pair));
            missing.extend(left.into_iter().flatten());
            if missing.is_empty() {
                return Ok(Some(self.begun.elapsed()));
            }
            let ended = self.processes.iter().find(|service| !service.process.runs());
            ended.map_or(Ok(None), |service| Err(service.process.fault("it has ended")))
        })?;
        whole.ok_or_else(|| {
            let pairs: Vec<String> = missing.iter().map(|(from, to)| format!("{} to {to}", from.isd_as)).collect();
            self.fault(format!("after {} s there are no paths {}", patience.as_secs(), pairs.join(", ")))
        })
    }

    /// The first host of each AS that has one, and each other AS.
    pub(super) fn pairs(&self) -> Vec<(&Host, IsdAs)> {
        let all = || self.topology.ases.iter().map(|plan| plan.id);
        let firsts = self.hosts.iter().filter(|host| host.number == 1);
        firsts.flat_map(|from| all().filter(move |to| *to != from.isd_as).map(move |to| (from, to))).collect()
    }

    /// Steps 1 and 2, for a pair.
    fn is_joined(&self, (from, to): (&Host, IsdAs)) -> bool {
        let paths = from.paths(to).unwrap_or_default();
        let mut direct = self.links.iter().filter_map(|link| link.path(from.isd_as, to));
        !paths.is_empty() && direct.all(|way| paths.iter().any(|path| path.interfaces == way))
    }
}

impl Host {
    /// A port of its.
    pub(crate) fn endpoint(&self, port: u16) -> EndpointAddr {
        EndpointAddr::new(self.isd_as, SocketAddr::new(self.address, port))
    }

    /// The paths that its daemon has to an AS now, as `scion showpaths` lists them.
    ///
    /// # Errors
    /// Where the daemon does not answer.
    pub fn paths(&self, to: IsdAs) -> Result<Vec<Path>, LabError> {
        let action = format!("ask the daemon of {} for paths to {to}", self.isd_as);
        let failed = |error: &dyn std::error::Error| LabError::refused(&action, told(error));
        let address = self.daemon.to_string().parse::<DaemonAddr>().map_err(|error| failed(&error))?;
        let ask = || {
            runtime().map_err(|error| failed(&error))?.block_on(async {
                let client = DaemonClient::new(address).map_err(|error| failed(&error))?;
                client.paths(to, Refresh::No).await.map_err(|error| failed(&error))
            })
        };
        let known = self.namespace.run(ask)??.paths;
        Ok(listed(&known).into_iter().map(|place| known[place].clone()).collect())
    }
}

/// Does this with all of them at once, each in a thread of its own; the results are in their order.
pub(crate) fn at_once<W: Send, T: Send, C: FromIterator<T>>(
    all: impl IntoIterator<Item = W>,
    work: impl Fn(W) -> T + Sync,
) -> C {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
