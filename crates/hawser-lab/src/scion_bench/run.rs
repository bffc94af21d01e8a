//! One run: the receiver starts, the sender sends, and both are asked what they counted.
//!
//! 1. Helpers are made anew, and within an AS the ground, so that no run inherits anything. Portals, and ends in two
//!    ASes, are in the network that stays.
//! 2. Packets: where they are to be paced, a short run as fast as it goes says what 100 % is. Where next to none may be
//!    lost, short runs find how fast that is. Then the run that counts.
//! 3. A file: what arrived must be what was sent, by its hash.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use hawser_scion::conn::PortRange;

use super::figures::Counts;
use super::ground::{Ground, Network};
use super::helpers::Helpers;
use super::plan::{Candidate, Code, Load, Pace, Place, Plan, Way};
use super::worker::{MemoryFile, OWN, Worker};
use super::{Bench, LabError, once};
use crate::cleanup::Folder;
use crate::contender::Programs;
use crate::experiment::{Findings, Planned};
use crate::go::GoModule;
use crate::localnet::DISPATCHED;
use crate::options::case_count;
use crate::text::hex;

/// A module: the files of its own folder, and those that both have.
macro_rules! module {
    ($name:literal, $folder:literal) => {
        GoModule {
            name: $name,
            files: &[
                ("go.mod", include_str!(concat!("../../scion-baselines/", $folder, "/go.mod"))),
                ("go.sum", include_str!(concat!("../../scion-baselines/", $folder, "/go.sum"))),
                ("network.go", include_str!(concat!("../../scion-baselines/", $folder, "/network.go"))),
                ("main.go", include_str!("../../scion-baselines/program/main.go")),
                ("order.go", include_str!("../../scion-baselines/program/order.go")),
                ("blast.go", include_str!("../../scion-baselines/program/blast.go")),
                ("queues.go", include_str!("../../scion-baselines/program/queues.go")),
                ("file.go", include_str!("../../scion-baselines/program/file.go")),
            ],
            packages: &["."],
        }
    };
}

/// Over snet of v0.15.1.
const SNET: GoModule = module!("scion-snet", "snet");
/// Over snet of v0.11.0, the last that speaks to a dispatcher.
const CLASSIC: GoModule = module!("scion-snet-classic", "classic");
/// What either's program is called: the last part of its module's name.
const PROGRAM: &str = "baseline";
/// How long packets may wait in buffers after the last was sent.
const DRAIN: Duration = Duration::from_millis(300);
/// How long a run as fast as it goes lasts, to know what a share of it is.
const CALIBRATION: Duration = Duration::from_secs(1);
/// Halves taken to find a rate without loss: to within a 64th of what arrives at full speed.
const HALVES: u32 = 6;
/// The slowest that a file may be sent, in bytes a second: 16 Mbit/s.
const SLOWEST: u64 = 2_000_000;
/// Connections of a case, at most.
const MOST_CONNECTIONS: u8 = 100;
/// Both ends.
const ENDS: [&str; 2] = ["sender", "receiver"];
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// Everything of a run but what is sent. One owner.
struct Scene<'b> {
    /// This executable.
    hawser: &'b Path,
    candidate: Candidate,
    connections: u16,
    /// The sender's and the receiver's; none where that is this executable.
    programs: [Option<PathBuf>; 2],
    // They end before the namespaces that they are in.
    helpers: Helpers,
    ground: Ground,
    folder: Folder,
}

impl Bench {
    /// Steps 1 to 3.
    pub(super) fn run(&self, planned: &Planned<'_>) -> Result<Findings, LabError> {
        let series = planned.series;
        let (candidate, plan) = (Candidate::of(series.contender)?, Plan::of(&series.workload)?);
        let connections = case_count(series.case.x, "connections", MOST_CONNECTIONS)?;
        let scene = self.scene(candidate, plan, connections.into())?;
        match plan.load {
            Load::Packets { bytes, pace } => {
                let trial = |rate| scene.packets(bytes, rate, CALIBRATION);
                let rate = match pace {
                    Pace::Full => None,
                    Pace::Share(share) => Some(share * trial(None)?.received.rate()),
                    Pace::Lossless(most) => Some(fastest(most, trial)?),
                };
                Ok(scene.packets(bytes, rate, series.workload.duration)?.of_packets())
            }
            Load::File { bytes } => Ok(scene.file(bytes)?.of_file()),
        }
    }

    /// Step 1.
    fn scene(&self, candidate: Candidate, plan: Plan, connections: u16) -> Result<Scene<'_>, LabError> {
        let Programs { hawser, cache } = &self.programs;
        let programs = [program(cache, candidate.sender)?, program(cache, candidate.receiver)?];
        let folder = Folder::new()?;
        let network = || once(&self.network, Network::up);
        let (helpers, ground) = if candidate.sender == Code::Session {
            Helpers::portals(hawser, &network()?.ground(plan.place), connections)?
        } else {
            let ground = match plan.place {
                Place::Within => Ground::within()?,
                Place::Between => network()?.ground(plan.place),
            };
            let first = ground.receiver_end(candidate.way).host.port();
            let ports = first..first + connections;
            (Helpers::start(candidate.way, &ground, ports, cache, &folder)?, ground)
        };
        Ok(Scene { hawser, candidate, connections, programs, helpers, ground, folder })
    }
}

/// The program that sends and receives, kept in a cache; none where that is this executable.
fn program(cache: &Path, code: Code) -> Result<Option<PathBuf>, LabError> {
    let module = match code {
        Code::Classic => CLASSIC,
        Code::Snet | Code::SnetQueues => SNET,
        Code::Hawser | Code::HawserPlain | Code::Bulk | Code::Session => return Ok(None),
    };
    module.build(cache, &say).map(|folder| Some(folder.join(PROGRAM)))
}

/// Tells what takes long.
pub(super) fn say(line: &str) {
    tracing::info!("{line}");
    eprintln!("{line}");
}

impl Scene<'_> {
    /// Step 2.
    fn packets(&self, bytes: usize, rate: Option<f64>, duration: Duration) -> Result<Counts, LabError> {
        let mut sending = vec![format!("--duration={}ms", duration.as_millis()), format!("--payload={bytes}")];
        sending.extend(rate.map(|rate| format!("--rate={rate:.0}")));
        self.together(["send", "receive"], [&sending, &[]], duration)
    }

    /// Step 3.
    fn file(&self, bytes: u64) -> Result<Counts, LabError> {
        let (file, arrived) = (MemoryFile::random(bytes)?, MemoryFile::empty(bytes)?);
        let sending = [format!("--file={}", file.path().display())];
        let receiving = [format!("--file={}", arrived.path().display()), format!("--size={bytes}")];
        let tasks = match self.candidate.sender {
            Code::Session => ["send-stream", "receive-stream"],
            Code::Bulk => ["send-bulk", "receive-bulk"],
            _ => ["send-file", "receive-file"],
        };
        let counts = self.together(tasks, [&sending, &receiving], Duration::from_secs(bytes / SLOWEST))?;
        arrived.check(&file)?;
        Ok(counts)
    }

    /// The receiver first; its helper's time from when it is ready to its end.
    fn together(&self, tasks: [&str; 2], more: [&[String]; 2], time: Duration) -> Result<Counts, LabError> {
        let start = |end: usize| self.start(end, tasks[end], more[end]);
        let mut taker = start(RECEIVER)?;
        let before = self.helpers.cpu()?;
        let sent = start(SENDER)?.finish(time)?;
        thread::sleep(DRAIN);
        let after = self.helpers.cpu()?;
        if tasks[SENDER] == "send" {
            taker.stop();
        }
        let received = taker.finish(Duration::ZERO)?;
        if received.bytes == 0 {
            let reason = format!("nothing of {} packets arrived", sent.packets);
            return Err(LabError::refused("measure packets", reason));
        }
        let helpers = [SENDER, RECEIVER].map(|end| after[end].saturating_sub(before[end]));
        Ok(Counts { sent, received, helpers, overhead: self.ground.overhead() })
    }

    /// Starts the sender or the receiver, told the same words whether it is theirs or ours.
    fn start(&self, end: usize, task: &str, more: &[String]) -> Result<Worker, LabError> {
        let Self { candidate, programs, ground, .. } = self;
        let (theirs, receiver) = (programs[end].as_deref(), ground.receiver_end(candidate.way));
        let (local, remote) = if end == SENDER { (ground.sender_end(), Some(receiver)) } else { (receiver, None) };
        let mut words: Vec<String> = if theirs.is_some() { Vec::new() } else { OWN.map(str::to_owned).to_vec() };
        words.extend([task.to_owned(), format!("--local={local}"), format!("--connections={}", self.connections)]);
        words.extend(remote.map(|remote| format!("--remote={remote}")));
        if candidate.way != Way::Dispatcher {
            let PortRange { first, last } = DISPATCHED;
            words.extend([format!("--first-port={first}"), format!("--last-port={last}")]);
        }
        words.extend(self.helpers.sockets[end].as_ref().map(|socket| format!("--dispatcher={}", socket.display())));
        match [candidate.sender, candidate.receiver][end] {
            Code::SnetQueues => words.push("--queues".to_owned()),
            Code::HawserPlain => words.push("--no-trains".to_owned()),
            Code::Classic | Code::Snet | Code::Hawser | Code::Bulk | Code::Session => {}
        }
        if let Some(path) = ground.paths.as_ref().map(|paths| &paths[end]) {
            words.extend(path.next_hop.map(|router| format!("--next-hop={router}")));
            words.extend(remote.map(|_| format!("--path={}", hex(path.dataplane.as_bytes()))));
        }
        words.extend_from_slice(more);
        let host = [&ground.sender, &ground.receiver][end];
        let program = theirs.unwrap_or(self.hawser);
        Worker::start(ENDS[end], &host.namespace, program, &words, &self.folder)
    }
}

/// The highest rate at which next to nothing, at most `most` percent, is lost: in packets a second, by trials at rates
/// (`None` is as fast as it goes). Source: RFC 2544 section 26.1, "Throughput".
///
/// Sent as fast as it goes: what arrives then is more than can be without loss, unless nothing was lost. Between that
/// and nothing, halves: a rate that loses too much bounds it from above, another from below.
fn fastest(most: f64, mut trial: impl FnMut(Option<f64>) -> Result<Counts, LabError>) -> Result<f64, LabError> {
    let full = trial(None)?;
    if full.loss_percent() <= most {
        return Ok(full.received.rate());
    }
    let (mut good, mut bad) = (0.0, full.received.rate());
    for _ in 0..HALVES {
        let rate = f64::midpoint(good, bad);
        if trial(Some(rate))?.loss_percent() <= most {
            good = rate;
        } else {
            bad = rate;
        }
    }
    if good == 0.0 {
        let reason = format!("even {bad:.0} packets a second lose more than {most} %");
        return Err(LabError::refused("measure rate without loss", reason));
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::super::figures::Count;
    use super::*;

    /// What carries `lossless` packets a second, and of more than that loses an eighth.
    fn carrier(lossless: u64, limit: u64) -> impl FnMut(Option<f64>) -> Result<Counts, LabError> {
        move |rate| {
            let sent = rate.map_or(limit, |rate| rate as u64);
            let received = if sent > lossless { sent - sent / 8 } else { sent };
            let count = |packets| Count { packets, seconds: 1.0, ..Count::default() };
            Ok(Counts { sent: count(sent), received: count(received), ..Counts::default() })
        }
    }

    #[test]
    fn the_rate_is_found_from_below_to_within_a_64th() {
        assert_eq!(fastest(0.1, carrier(100_000, 90_000)).expect("a rate"), 90_000.0, "nothing is lost at full speed");
        for lossless in [10_000, 34_000, 60_000] {
            let found = fastest(0.1, carrier(lossless, 80_000)).expect("a rate");
            let most = lossless as f64;
            assert!(found <= most && found > most - 70_000.0 / 64.0 - 1.0, "{found} of {most}");
        }
        let error = fastest(0.1, carrier(0, 80_000)).expect_err("what always loses has none").to_string();
        assert!(error.contains("packets a second lose more than 0.1 %"), "{error}");
    }
}
