//! One run: the receiver starts, the sender sends, and both are asked what they counted.
//!
//! 1. Helpers are made anew, and within an AS the ground, so that no run inherits anything. Portals, and ends in two
//!    ASes, are in the network that stays.
//! 2. Packets: where they are to be paced, a short run as fast as it goes says what 100 % is. Where next to none may be
//!    lost, short runs find how fast that is (`lossless.rs`). Then the run that counts.
//! 3. A file: what arrived must be what was sent, by its hash.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use hawser_scion::EndpointAddr;

use super::Bench;
use super::candidate::{Candidate, Code, Way};
use super::figures::{Count, Counts};
use super::ground::{FIRST_PORT, Ground, LAST_PORT};
use super::helpers::Helpers;
use super::lossless;
use super::memory::MemoryFile;
use super::network::Network;
use super::plan::{Load, Pace, Place, Plan};
use super::tunnel;
use super::worker::Worker;
use crate::cleanup::Folder;
use crate::error::LabError;
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
                    Pace::Share(share) => Some(share * trial(None)?.received_rate()),
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
        let baselines = &self.baselines;
        let programs = [baselines.end(candidate.sender)?, baselines.end(candidate.receiver)?];
        let folder = Folder::new()?;
        if candidate.sender == Code::Session {
            let network = self.network()?;
            let (portals, ground) =
                tunnel::up(&self.hawser, &network.ground(plan.place), network.daemon(), connections)?;
            let helpers = Helpers::of_portals(portals);
            return Ok(Scene { bench: self, candidate, connections, programs, ground, helpers, folder });
        }
        let ground = match plan.place {
            Place::Within => Ground::within()?,
            Place::Between => self.network()?.ground(plan.place),
        };
        let first = ground.receiver_end(candidate.way).host.port();
        let ports = first..first + connections;
        let helpers = Helpers::start(candidate.way, &ground, ports, baselines, &folder)?;
        Ok(Scene { bench: self, candidate, connections, programs, ground, helpers, folder })
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
        if arrived.hash()? != file.hash()? {
            let reason = "another file arrived than was sent".to_owned();
            return Err(LabError::NoFigure { figure: "file", reason });
        }
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
        let [sockets_sender, sockets_receiver] = match &self.helpers.sockets {
            Some([sender, receiver]) => [Some(sender.as_path()), Some(receiver.as_path())],
            None => [None, None],
        };
        let (sender, receiver) = (self.ground.sender_end(), self.ground.receiver_end(self.candidate.way));
        let mut receive = self.arguments(receives, receiver, None, sockets_receiver);
        receive.extend_from_slice(receiving);
        let mut send = self.arguments(sends, sender, Some(receiver), sockets_sender);
        send.extend_from_slice(sending);

        let [theirs_sends, theirs_receives] = &self.programs;
        let start = |name, namespace, theirs: &Option<PathBuf>, arguments: &[String]| {
            let program = theirs.as_deref().unwrap_or(&self.bench.hawser);
            Worker::start(name, namespace, program, arguments, &self.folder)
        };
        let mut taker = start("receiver", &self.ground.receiver.namespace, theirs_receives, &receive)?;
        taker.wait_ready(PATIENCE)?;
        let before = self.helpers.cpu()?;
        let mut giver = start("sender", &self.ground.sender.namespace, theirs_sends, &send)?;
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
        let [sender_helper, receiver_helper] = [0, 1].map(|end: usize| after[end].saturating_sub(before[end]));
        Ok(Counts { sent, received, sender_helper, receiver_helper, overhead: self.ground.overhead() })
    }

    /// What an end is told: the same words for theirs and ours.
    fn arguments(
        &self,
        task: &str,
        local: EndpointAddr,
        remote: Option<EndpointAddr>,
        dispatcher: Option<&Path>,
    ) -> Vec<String> {
        let Candidate { sender, receiver, way, .. } = self.candidate;
        let code = if remote.is_some() { sender } else { receiver };
        let mut words: Vec<String> = match code {
            Code::Hawser | Code::HawserPlain | Code::Bulk | Code::Session => OWN.map(str::to_owned).to_vec(),
            Code::Classic | Code::Snet | Code::SnetQueues => Vec::new(),
        };
        words.push(task.to_owned());
        words.push(format!("--local={local}"));
        words.extend(remote.map(|remote| format!("--remote={remote}")));
        words.push(format!("--connections={}", self.connections));
        if way != Way::Dispatcher {
            words.extend([format!("--first-port={FIRST_PORT}"), format!("--last-port={LAST_PORT}")]);
        }
        words.extend(dispatcher.map(|socket| format!("--dispatcher={}", socket.display())));
        match code {
            Code::SnetQueues => words.push("--queues".to_owned()),
            Code::HawserPlain => words.push("--no-trains".to_owned()),
            Code::Classic | Code::Snet | Code::Hawser | Code::Bulk | Code::Session => {}
        }
        if let Some(route) = &self.ground.route {
            let [senders, receivers] = route.routers;
            words.push(format!("--next-hop={}", if remote.is_some() { senders } else { receivers }));
            if remote.is_some() {
                words.push(format!("--path={}", hex(&route.dataplane)));
            }
        }
        words
    }
}

impl Counts {
    /// Packets a second that arrived.
    #[expect(clippy::cast_precision_loss, reason = "packets of a second")]
    pub(super) fn received_rate(&self) -> f64 {
        let Count { packets, seconds, .. } = self.received;
        packets as f64 / seconds
    }
}
