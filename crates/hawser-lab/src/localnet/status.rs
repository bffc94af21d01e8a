//! What a network looks like now: for `hawser scion net status`, and for experiments that count costs.

use std::path::PathBuf;

use hawser_scion::IsdAs;
use hawser_wire::Way;
use serde::{Deserialize, Serialize};

use super::network::NetLink;
use super::ready::at_once;
use super::topology::AsPlan;
use super::{Host, Localnet, Service};

/// Lines of a process's log that are told.
const LOG_LINES: usize = 3;

/// A network. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// The folder of the programs that it runs, and of `scion`.
    pub programs: PathBuf,
    /// Since it was started, in seconds.
    pub up_s: f64,
    /// How long it took to be whole, in seconds; none while it is not.
    pub ready_s: Option<f64>,
    /// Why it does not become whole.
    pub fault: Option<String>,
    /// Resident memory of all processes, in bytes.
    pub memory_bytes: u64,
    /// Processor time of all processes, in seconds.
    pub cpu_s: f64,
    /// In the order of the topology.
    pub ases: Vec<AsStatus>,
    /// Between every two ASes with hosts.
    pub paths: Vec<PathsStatus>,
    /// In the order of the topology.
    pub links: Vec<LinkStatus>,
}

/// An AS. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AsStatus {
    /// As `1-ff00:0:110`.
    pub isd_as: String,
    /// Whether it is of the core.
    pub core: bool,
    /// Of router and control service.
    pub namespace: String,
    /// Its hosts.
    pub hosts: Vec<HostStatus>,
    /// Its processes.
    pub processes: Vec<ProcessStatus>,
}

/// A host. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostStatus {
    /// Counted from 1.
    pub number: usize,
    /// Where applications run: `ip netns exec NAMESPACE …`.
    pub namespace: String,
    /// Its address.
    pub address: String,
    /// Its daemon's.
    pub daemon: String,
}

/// A process. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The AS it belongs to.
    pub isd_as: String,
    /// `router`, `control`, `daemon1`, `shim1` …
    pub role: String,
    /// Its id.
    pub pid: u32,
    /// Whether it runs still.
    pub running: bool,
    /// Resident memory, in bytes.
    pub memory_bytes: u64,
    /// Processor time, in seconds.
    pub cpu_s: f64,
    /// How many errors it has logged.
    pub errors: usize,
    /// The last of them.
    pub log: Vec<String>,
}

/// Paths from one AS to another. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathsStatus {
    /// The AS whose daemon was asked.
    pub from: String,
    /// The other one.
    pub to: String,
    /// As `scion showpaths` writes them.
    pub paths: Vec<String>,
    /// Why the daemon did not answer.
    pub fault: Option<String>,
}

/// A link. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Its name, and that of its interfaces.
    pub name: String,
    /// `core`, `child` or `peer`.
    pub kind: String,
    /// Its first end, and its interface there.
    pub a: String,
    /// Its second.
    pub b: String,
    /// `up` or `cut`.
    pub state: String,
    /// What the emulator does with packets from the first end; none for a plain veth.
    pub emulated: Option<EmulatedStatus>,
    /// From the first end.
    pub a_to_b: WayStatus,
    /// And back.
    pub b_to_a: WayStatus,
}

/// How an emulated link is set now, from its first end. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EmulatedStatus {
    /// None: unlimited.
    pub rate_mbps: Option<f64>,
    /// One way.
    pub delay_ms: f64,
}

/// What one way of a link has carried. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WayStatus {
    /// Delivered.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Lost in the queue.
    pub dropped: u64,
    /// Lost on the way.
    pub lost: u64,
}

impl Localnet {
    /// All of it. What takes time (each daemon is asked for its paths) takes it here.
    pub fn status(&self) -> Status {
        let ases: Vec<_> = self.topology.ases.iter().map(|plan| self.as_status(plan)).collect();
        let processes = || ases.iter().flat_map(|one| &one.processes);
        Status {
            name: self.topology.name.clone(),
            programs: self.services.clone(),
            up_s: self.begun.elapsed().as_secs_f64(),
            ready_s: None,
            fault: None,
            memory_bytes: processes().map(|process| process.memory_bytes).sum(),
            cpu_s: processes().map(|process| process.cpu_s).sum(),
            paths: at_once(self.pairs(), |(from, to)| paths_status(from, to)),
            links: self.links.iter().map(link_status).collect(),
            ases,
        }
    }

    fn as_status(&self, plan: &AsPlan) -> AsStatus {
        let host = |host: &Host| HostStatus {
            number: host.number,
            namespace: host.namespace.name().to_owned(),
            address: host.address.to_string(),
            daemon: host.daemon.to_string(),
        };
        AsStatus {
            isd_as: plan.id.to_string(),
            core: plan.core,
            namespace: self.routers[&plan.id].name().to_owned(),
            hosts: self.hosts.iter().filter(|host| host.isd_as == plan.id).map(host).collect(),
            processes: self.processes.iter().filter(|one| one.isd_as == plan.id).map(Service::status).collect(),
        }
    }
}

fn paths_status(from: &Host, to: IsdAs) -> PathsStatus {
    let paths = from.paths(to);
    PathsStatus {
        from: from.isd_as.to_string(),
        to: to.to_string(),
        fault: paths.as_ref().err().map(ToString::to_string),
        paths: paths.unwrap_or_default().iter().map(|path| path.interfaces.to_string()).collect(),
    }
}

impl Service {
    /// Whether it runs, and what it costs.
    fn status(&self) -> ProcessStatus {
        let usage = self.process.usage().ok();
        let log = self.process.log();
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        ProcessStatus {
            isd_as: self.isd_as.to_string(),
            role: self.role.clone(),
            pid: self.process.id(),
            running: self.process.runs(),
            memory_bytes: usage.map_or(0, |usage| usage.resident),
            cpu_s: usage.map_or(0.0, |usage| usage.cpu.as_secs_f64()),
            errors: lines.len(),
            log: lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|&line| line.to_owned()).collect(),
        }
    }
}

fn link_status(link: &NetLink) -> LinkStatus {
    let [a, b] = link.interfaces.map(|interface| interface.to_string());
    let [a_to_b, b_to_a] = link.counters().map(|counters| WayStatus {
        packets: counters.packets_out,
        bytes: counters.bytes_out,
        dropped: counters.dropped_by_queue + counters.dropped_by_codel,
        lost: counters.lost + counters.vanished + counters.cut,
    });
    let emulated = link.emulated.as_ref().map(|link| link.settings(Way::AToB)).map(|way| EmulatedStatus {
        rate_mbps: way.mean_rate().map(|rate| rate.bits_per_second() as f64 / 1e6),
        delay_ms: way.delay.as_secs_f64() * 1e3,
    });
    let (name, kind) = (link.plan.name.clone(), link.plan.kind.to_string());
    let state = if link.is_cut() { "cut" } else { "up" }.to_owned();
    LinkStatus { name, kind, a, b, state, emulated, a_to_b, b_to_a }
}
