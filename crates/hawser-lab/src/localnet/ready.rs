//! Whether a network is whole.
//!
//! 1. Each AS's daemon is asked for its paths to every other AS, all at once.
//! 2. It is whole when each has one at least, and every link is a path of its own between its ends.
//! 3. What is missing is asked for again; a process that has ended ends the wait.

use std::time::Duration;

use hawser_scion::{Fingerprint, InterfaceId, IsdAs, PathInterface};
use serde::Deserialize;

use super::{Host, Localnet};
use crate::error::LabError;
use crate::wait::until;

/// How often daemons are asked: they ask their control service as often, and it takes turns of a second.
const GLANCE: Duration = Duration::from_millis(200);

/// What `scion showpaths` prints. Plain data.
#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    paths: Vec<ShownPath>,
}

#[derive(Deserialize)]
struct ShownPath {
    #[serde(default)]
    hops: Vec<ShownHop>,
}

#[derive(Deserialize)]
struct ShownHop {
    isd_as: String,
    interface: u16,
}

impl Localnet {
    /// Waits until the network is whole; gives how long that took from its start.
    ///
    /// # Errors
    /// Where it is not in time, or a process has ended.
    pub fn wait_ready(&self, patience: Duration) -> Result<Duration, LabError> {
        let mut missing = self.pairs();
        let whole = until(patience, GLANCE, || {
            let left = at_once(std::mem::take(&mut missing), |pair| (!self.is_joined(pair)).then_some(pair));
            missing = left.into_iter().flatten().collect();
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
        let paths = self.paths(from, to).unwrap_or_default();
        let mut direct =
            self.layout.at(&self.topology, from.isd_as).filter(|(link, _, near)| link.ends[1 - near] == to);
        !paths.is_empty()
            && direct.all(|(link, places, near)| {
                let crossed =
                    |end: usize| PathInterface { isd_as: link.ends[end], id: InterfaceId(places.ends[end].interface) };
                paths.contains(&Fingerprint::new([near, 1 - near].map(crossed)))
            })
    }

    /// The paths that a host's daemon has to an AS now.
    ///
    /// # Errors
    /// Where the daemon does not answer.
    pub fn paths(&self, from: &Host, to: IsdAs) -> Result<Vec<Fingerprint>, LabError> {
        let mut command = from.namespace.command(&self.services.join("scion").to_string_lossy());
        command.args(["showpaths", "--no-probe", "--format", "json", "-m", "100", "--sciond"]);
        command.arg(from.daemon.to_string()).arg(to.to_string()).env("GOMAXPROCS", "1");
        let output = command.output().map_err(|error| LabError::system("run scion showpaths", error))?;
        let told = |error: serde_json::Error| LabError::Refused {
            action: format!("ask the daemon of {} for paths to {to}: {error}", from.isd_as),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let shown: Shown = serde_json::from_slice(&output.stdout).map_err(told)?;
        let path = |path: ShownPath| {
            let hop = |hop: ShownHop| {
                Some(PathInterface { isd_as: hop.isd_as.parse().ok()?, id: InterfaceId(hop.interface) })
            };
            Fingerprint::new(path.hops.into_iter().filter_map(hop))
        };
        Ok(shown.paths.into_iter().map(path).collect())
    }
}

/// Asks for all of them at once; the answers are in their order.
pub(super) fn at_once<W: Send, T: Send>(all: Vec<W>, ask: impl Fn(W) -> T + Sync) -> Vec<T> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let asked: Vec<_> = all.into_iter().map(|one| scope.spawn(move || ask(one))).collect();
        asked.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}
