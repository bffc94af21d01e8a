//! One run: the receiver starts, the sender sends, and both are asked what they counted.
//!
//! 1. Helpers are made anew, and within an AS the ground, so that no run inherits anything. Portals, and ends in two
//!    ASes, are in the network that stays.
//! 2. Packets: where they are to be paced, a short run as fast as it goes says what 100 % is. Where next to none may be
//!    lost, short runs find how fast that is (`lossless.rs`). Then the run that counts.
//! 3. A file: what arrived must be what was sent, by its hash.

use std::path::PathBuf;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use super::candidate::{Candidate, Code, Way};
use super::figures::Counts;
use super::ground::{FIRST_PORT, Ground, LAST_PORT, Route};
use super::helpers::Helpers;
use super::memory::MemoryFile;
use super::network::Network;
use super::plan::{Load, Pace, Place, Plan};
use super::worker::Worker;
use super::{Bench, LabError, lossless, programs};
use crate::cleanup::Folder;
use crate::experiment::{Findings, Planned};
use crate::options::case_count;
use crate::text::hex;

/// How long an end may take to start, and to tell what it counted.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long packets may wait in buffers after the last was sent.
const DRAIN: Duration = Duration::from_millis(300);
/// How long a run as fast as it goes lasts, to know what a share of it is.
const CALIBRATION: Duration = Duration::from_secs(1);
/// The slowest that a file may be sent, in bytes a second: 16 Mbit/s.
const SLOWEST: u64 = 2_000_000;
/// Connections of a case, at most.
const MOST_CONNECTIONS: u8 = 100;
/// What the file's bytes come from.
const FILE_SEED: u64 = 1;
/// This executable's command for ends of our own.
const OWN: [&str; 2] = ["scion", "blast"];
/// Both ends.
const ENDS: [&str; 2] = ["sender", "receiver"];
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// Everything of a run but what is sent. One owner.
struct Scene<'b> {
    bench: &'b Bench,
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
    pub(crate) fn run(&self, planned: &Planned<'_>) -> Result<Findings, LabError> {
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
                    Pace::Lossless(most) => Some(lossless::fastest(most, trial)?),
                };
                Ok(scene.packets(bytes, rate, series.workload.duration)?.of_packets())
            }
            Load::File { bytes } => Ok(scene.file(&*self.file(bytes)?)?.of_file()),
        }
    }

    /// The network of ASes: comes up once.
    fn network(&self) -> Result<&Network, LabError> {
        match self.network.get() {
            Some(network) => Ok(network),
            None => Network::up().map(|network| self.network.get_or_init(|| network)),
        }
    }

    /// The file that is sent: made once.
    fn file(&self, bytes: u64) -> Result<Rc<MemoryFile>, LabError> {
        let mut kept = self.file.borrow_mut();
        if let Some(file) = kept.as_ref().filter(|file| file.bytes() == bytes) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(MemoryFile::random(bytes, FILE_SEED)?);
        *kept = Some(Rc::clone(&file));
        Ok(file)
    }

    /// Step 1.
    fn scene(&self, candidate: Candidate, plan: Plan, connections: u16) -> Result<Scene<'_>, LabError> {
        let programs = [programs::end(&self.cache, candidate.sender)?, programs::end(&self.cache, candidate.receiver)?];
        let folder = Folder::new()?;
        let (helpers, ground) = if candidate.sender == Code::Session {
            let network = self.network()?;
            Helpers::portals(&self.hawser, &network.ground(plan.place), network.daemon, connections)?
        } else {
            let ground = match plan.place {
                Place::Within => Ground::within()?,
                Place::Between => self.network()?.ground(plan.place),
            };
            let first = ground.receiver_end(candidate.way).host.port();
            let ports = first..first + connections;
            (Helpers::start(candidate.way, &ground, ports, &self.cache, &folder)?, ground)
        };
        Ok(Scene { bench: self, candidate, connections, programs, helpers, ground, folder })
    }
}

impl Scene<'_> {
    /// Step 2.
    fn packets(&self, bytes: usize, rate: Option<f64>, duration: Duration) -> Result<Counts, LabError> {
        let mut sending = vec![format!("--duration={}ms", duration.as_millis()), format!("--payload={bytes}")];
        sending.extend(rate.map(|rate| format!("--rate={rate:.0}")));
        self.together(["send", "receive"], &sending, &[], duration + PATIENCE)
    }

    /// Step 3.
    fn file(&self, file: &MemoryFile) -> Result<Counts, LabError> {
        let arrived = MemoryFile::empty(file.bytes())?;
        let sending = [format!("--file={}", file.path().display())];
        let receiving = [format!("--file={}", arrived.path().display()), format!("--size={}", file.bytes())];
        let time = PATIENCE + Duration::from_secs(file.bytes() / SLOWEST);
        let tasks = match self.candidate.sender {
            Code::Session => ["send-stream", "receive-stream"],
            Code::Bulk => ["send-bulk", "receive-bulk"],
            _ => ["send-file", "receive-file"],
        };
        let counts = self.together(tasks, &sending, &receiving, time)?;
        arrived.check(file)?;
        Ok(counts)
    }

    /// The receiver first; its helper's time from when it is ready to its end.
    fn together(
        &self,
        [sends, receives]: [&str; 2],
        sending: &[String],
        receiving: &[String],
        time: Duration,
    ) -> Result<Counts, LabError> {
        let mut taker = self.start(RECEIVER, receives, receiving)?;
        taker.wait_ready(PATIENCE)?;
        let before = self.helpers.cpu()?;
        let mut giver = self.start(SENDER, sends, sending)?;
        giver.wait_ready(PATIENCE)?;
        let sent = giver.finish(time)?;
        thread::sleep(DRAIN);
        let after = self.helpers.cpu()?;
        if sends == "send" {
            taker.stop();
        }
        let received = taker.finish(PATIENCE)?;
        if received.bytes == 0 {
            let reason = format!("nothing of {} packets arrived", sent.packets);
            return Err(LabError::NoFigure { figure: "packets", reason });
        }
        let helpers = [SENDER, RECEIVER].map(|end| after[end].saturating_sub(before[end]));
        Ok(Counts { sent, received, helpers, overhead: self.ground.overhead() })
    }

    /// Starts the sender or the receiver, told the same words whether it is theirs or ours.
    fn start(&self, end: usize, task: &str, more: &[String]) -> Result<Worker, LabError> {
        let Self { bench, candidate, programs, ground, .. } = self;
        let (theirs, receiver) = (programs[end].as_deref(), ground.receiver_end(candidate.way));
        let (local, remote) = if end == SENDER { (ground.sender_end(), Some(receiver)) } else { (receiver, None) };
        let mut words: Vec<String> = if theirs.is_some() { Vec::new() } else { OWN.map(str::to_owned).to_vec() };
        words.extend([task.to_owned(), format!("--local={local}"), format!("--connections={}", self.connections)]);
        words.extend(remote.map(|remote| format!("--remote={remote}")));
        if candidate.way != Way::Dispatcher {
            words.extend([format!("--first-port={FIRST_PORT}"), format!("--last-port={LAST_PORT}")]);
        }
        words.extend(self.helpers.sockets[end].as_ref().map(|socket| format!("--dispatcher={}", socket.display())));
        match [candidate.sender, candidate.receiver][end] {
            Code::SnetQueues => words.push("--queues".to_owned()),
            Code::HawserPlain => words.push("--no-trains".to_owned()),
            Code::Classic | Code::Snet | Code::Hawser | Code::Bulk | Code::Session => {}
        }
        if let Some(Route { dataplane, routers }) = &ground.route {
            words.push(format!("--next-hop={}", routers[end]));
            words.extend(remote.map(|_| format!("--path={}", hex(dataplane))));
        }
        words.extend_from_slice(more);
        let host = [&ground.sender, &ground.receiver][end];
        let program = theirs.unwrap_or(&bench.hawser);
        Worker::start(ENDS[end], &host.namespace, program, &words, &self.folder)
    }
}
