//! Whether a network is whole.
//!
//! 1. Each AS's daemon is asked for its paths to every other AS, all at once.
//! 2. It is whole when each has one at least, and every link is a path of its own between its ends.
//! 3. What is missing is asked for again; a process that has ended ends the wait.

use std::time::{Duration, Instant};

use hawser_scion::{Fingerprint, InterfaceId, IsdAs, PathInterface};
use serde::Deserialize;

use super::{Host, Localnet};
use crate::error::LabError;

/// How often daemons are asked: they ask their control service as often, and it takes turns of a second.
const GLANCE: Duration = Duration::from_millis(200);

/// What `scion showpaths` prints. Plain data.
#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    paths: Vec<ShownPath>,
}

/// A path that it prints. Plain data.
#[derive(Deserialize)]
struct ShownPath {
    #[serde(default)]
    hops: Vec<ShownHop>,
}

/// An interface that it prints. Plain data.
#[derive(Deserialize)]
struct ShownHop {
    isd_as: String,
    interface: u16,
}

/// What one AS must have towards another. Plain data.
struct Wanted {
    from: Host,
    to: IsdAs,
    /// Paths that must be among them.
    direct: Vec<Fingerprint>,
}

impl Localnet {
    /// Waits until the network is whole; gives how long that took from its start.
    ///
    /// # Errors
    /// Where it is not in time, or a process has ended.
    pub fn wait_ready(&self, patience: Duration) -> Result<Duration, LabError> {
        let late = Instant::now() + patience;
        let mut wanted = self.wanted();
        loop {
            wanted = self.missing(wanted);
            if wanted.is_empty() {
                return Ok(self.begun.elapsed());
            }
            self.all_run()?;
            if Instant::now() > late {
                let pairs: Vec<String> =
                    wanted.iter().map(|wanted| format!("{} to {}", wanted.from.isd_as, wanted.to)).collect();
                return Err(self.fault(format!(
                    "after {} s there are no paths {}",
                    patience.as_secs(),
                    pairs.join(", ")
                )));
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Step 3: a process that has ended is a fault, told with its log.
    fn all_run(&self) -> Result<(), LabError> {
        for service in &self.processes {
            if !service.process.runs() {
                return Err(service.process.fault("it has ended"));
            }
        }
        Ok(())
    }

    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for from in self.hosts.iter().filter(|host| host.number == 1) {
            for to in self.topology.ases.iter().map(|plan| plan.id).filter(|&to| to != from.isd_as) {
                wanted.push(Wanted { from: from.clone(), to, direct: self.direct(from.isd_as, to) });
            }
        }
        wanted
    }

    /// The paths over one link between two ASes.
    fn direct(&self, from: IsdAs, to: IsdAs) -> Vec<Fingerprint> {
        let mut found = Vec::new();
        for (link, addresses) in self.topology.links.iter().zip(&self.layout.links) {
            for (near, far) in [(0, 1), (1, 0)] {
                if link.ends[near] == from && link.ends[far] == to {
                    let crossing = [near, far].map(|end| PathInterface {
                        isd_as: link.ends[end],
                        id: InterfaceId(addresses.ends[end].interface),
                    });
                    found.push(Fingerprint::new(crossing));
                }
            }
        }
        found
    }

    /// Steps 1 and 2: what is not there yet.
    fn missing(&self, wanted: Vec<Wanted>) -> Vec<Wanted> {
        let lacks = |wanted: &Wanted| {
            let paths = self.paths(&wanted.from, wanted.to).unwrap_or_default();
            paths.is_empty() || wanted.direct.iter().any(|direct| !paths.contains(direct))
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                wanted.into_iter().map(|wanted| scope.spawn(move || lacks(&wanted).then_some(wanted))).collect();
            asked.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
        })
    }

    /// The paths that a host's daemon has to an AS now.
    ///
    /// # Errors
    /// Where the daemon does not answer.
    pub fn paths(&self, from: &Host, to: IsdAs) -> Result<Vec<Fingerprint>, LabError> {
        let mut command = from.namespace.command(&self.services.program("scion").to_string_lossy());
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
