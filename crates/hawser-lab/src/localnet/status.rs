//! What a network looks like now: for `hawser scion net status`, and for experiments that count costs.

use std::path::PathBuf;
use std::time::Duration;

use hawser_scion::IsdAs;
use hawser_wire::traffic::ProcessUsage;
use hawser_wire::{Counters, Direction};
use serde::{Deserialize, Serialize};

use super::Localnet;
use super::network::NetLink;
use super::topology::LinkPlan;
use crate::error::LabError;

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
    ///
    /// # Errors
    /// Where a link's interface is gone.
    pub fn status(&self) -> Result<Status, LabError> {
        let processes = self.processes();
        let links = self.topology.links.iter().zip(&self.layout.links).zip(&self.network.links);
        let links = links.map(|((plan, addresses), link)| {
            let interfaces = addresses.ends.map(|end| end.interface);
            link_status(plan, interfaces, link)
        });
        let ases = self.topology.ases.iter().zip(&self.network.ases).map(|(plan, built)| AsStatus {
            isd_as: plan.id.to_string(),
            core: plan.core,
            namespace: built.router.name().to_owned(),
            hosts: self.hosts.iter().filter(|host| host.isd_as == plan.id).map(host_status).collect(),
            processes: processes.iter().filter(|process| process.isd_as == plan.id.to_string()).cloned().collect(),
        });
        Ok(Status {
            name: self.name.clone(),
            programs: self.services.folder().to_owned(),
            up_s: self.begun.elapsed().as_secs_f64(),
            ready_s: None,
            fault: None,
            memory_bytes: processes.iter().map(|process| process.memory_bytes).sum(),
            cpu_s: processes.iter().map(|process| process.cpu_s).sum(),
            ases: ases.collect(),
            paths: self.all_paths(),
            links: links.collect::<Result<_, _>>()?,
        })
    }

    /// What runs, and what it costs.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessStatus> {
        let of = |service: &super::Service| {
            let usage = service.process.usage().ok();
            let log = service.process.log();
            let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
            ProcessStatus {
                isd_as: service.isd_as.to_string(),
                role: service.role.clone(),
                pid: service.process.id(),
                running: service.process.runs(),
                memory_bytes: usage.map_or(0, |usage: ProcessUsage| usage.resident),
                cpu_s: usage.map_or(0.0, |usage| usage.cpu.as_secs_f64()),
                errors: lines.len(),
                log: lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|&line| line.to_owned()).collect(),
            }
        };
        self.processes.iter().map(of).collect()
    }

    fn all_paths(&self) -> Vec<PathsStatus> {
        let destinations: Vec<IsdAs> = self.topology.ases.iter().map(|plan| plan.id).collect();
        let ask = |host: &super::Host| -> Vec<PathsStatus> {
            let others = destinations.iter().filter(|&&to| to != host.isd_as);
            let status = others.map(|&to| {
                let paths = self.paths(host, to);
                PathsStatus {
                    from: host.isd_as.to_string(),
                    to: to.to_string(),
                    fault: paths.as_ref().err().map(ToString::to_string),
                    paths: paths.unwrap_or_default().iter().map(ToString::to_string).collect(),
                }
            });
            status.collect()
        };
        std::thread::scope(|scope| {
            let firsts = self.hosts.iter().filter(|host| host.number == 1);
            let asked: Vec<_> = firsts.map(|host| scope.spawn(move || ask(host))).collect();
            asked.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }
}

fn host_status(host: &super::Host) -> HostStatus {
    HostStatus {
        number: host.number,
        namespace: host.namespace.name().to_owned(),
        address: host.address.to_string(),
        daemon: host.daemon.to_string(),
    }
}

fn link_status(plan: &LinkPlan, interfaces: [u16; 2], link: &NetLink) -> Result<LinkStatus, LabError> {
    let [a, b] = [0, 1].map(|end| format!("{}#{}", plan.ends[end], interfaces[end]));
    let [a_to_b, b_to_a] = link.counters()?.map(way_status);
    Ok(LinkStatus {
        name: plan.name.clone(),
        kind: plan.kind.name().to_owned(),
        a,
        b,
        state: if link.is_cut() { "cut" } else { "up" }.to_owned(),
        emulated: link.emulated().map(|link| emulated_status(&link.settings(hawser_wire::Way::AToB))),
        a_to_b,
        b_to_a,
    })
}

fn emulated_status(way: &Direction) -> EmulatedStatus {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    #[expect(clippy::cast_precision_loss, reason = "rates are far below 2^52 bit/s")]
    let mbps = way.mean_rate().map(|rate| rate.bits_per_second() as f64 / 1e6);
    EmulatedStatus { rate_mbps: mbps, delay_ms: ms(way.delay) }
}

fn way_status(counters: Counters) -> WayStatus {
    WayStatus {
        packets: counters.packets_out,
        bytes: counters.bytes_out,
        dropped: counters.dropped_by_queue + counters.dropped_by_codel,
        lost: counters.lost + counters.vanished + counters.cut,
    }
}
