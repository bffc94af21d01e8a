//! Sends files: a call, then a session, and another where one breaks.
//!
//! ```text
//!            an answer              RESULT of every file
//!  Calling ------------> Session -----------------------> done
//!     ^  |                  |
//!     |  | patience         | silence, worn keys, every path too narrow
//!     |  v                  |
//!     | failed              |
//!     +---------------------+
//! ```
//!
//! 1. [`lanes`]: a socket for each path. 2. [`Run::call`]. 3. [`Run::session`]: what comes, what is due, what was read,
//!    what goes; then it sleeps until something happens. 4. Paths are renewed as whoever knows them says.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_bulk::Layout;
use hawser_bulk::digest::Digest;
use hawser_bulk::sender::{Call, Called, End, Event, Heard, SendPlan, Sender, layout_of};
use hawser_bulk::trust::offer;
use hawser_bulk::wire::{Have, Reason, Verdict};
use hawser_core::units::{Random, Time};
use hawser_net::machine;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::lanes::{Lane, follow, lanes, progress};
use super::order::{Progress, SendError, SendOrder, Sent};
use super::reader::{Read, Reader, Source};
use super::wake::{Clock, SystemRandom, Wake};
use crate::conn;
use crate::path::Path;

/// Bytes that a path sends in a row before others are looked after: three trains.
const TURN: usize = 180_000;
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// How often paths are looked for that were renewed.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How long after a file was busy it is offered once more: whoever was cut off gives way after two seconds.
const BUSY_FOR: Duration = Duration::from_millis(500);
/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);
/// Datagrams that the keys may seal: the protocol's own bound.
const MOST_DATAGRAMS: u64 = u64::MAX;

/// Sends files, and returns when each has its result. `renew` tells the paths to the destination as they are now, where
/// they have changed; `tell` hears of progress four times a second, and may end it.
///
/// # Errors
/// [`SendError`]. What has arrived stays at the receiver: the same order goes on with it.
pub fn send(
    order: &SendOrder,
    renew: impl FnMut() -> Option<Vec<Path>>,
    tell: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Sent, SendError> {
    let sources = Source::open_all(&order.files)?;
    let lanes = lanes(order)?;
    let wake = Wake::new().map_err(|error| system("make an eventfd", error))?;
    let mut run = Run {
        order,
        files: vec![(None, None); sources.len()],
        sources,
        lanes,
        wake,
        clock: Clock::start(),
        began: Instant::now(),
        advanced: Instant::now(),
        told: None,
        renewed: Instant::now(),
        unreachable: false,
        busy_since: None,
        progress: Progress::default(),
        arrived_before: 0,
        renew,
        tell,
    };
    run.all()
}

/// What goes on. Calling at first; the packet thread owns it.
struct Run<'o, R, T> {
    order: &'o SendOrder,
    sources: Vec<Arc<Source>>,
    /// What became of each, and its digest.
    files: Vec<(Option<Verdict>, Option<Digest>)>,
    lanes: Vec<Lane>,
    wake: Wake,
    clock: Clock,
    began: Instant,
    /// When anything last arrived, or the receiver was heard that has all of it and is at work.
    advanced: Instant,
    told: Option<Instant>,
    renewed: Instant,
    unreachable: bool,
    /// Since when another transfer has a file.
    busy_since: Option<Instant>,
    progress: Progress,
    /// Bytes that had arrived before this session.
    arrived_before: u64,
    renew: R,
    tell: T,
}

/// What a session keeps beside its core.
struct Work {
    sender: Sender,
    layout: Layout,
    /// Which files of the order it offers: those that have no result yet.
    files: Vec<usize>,
    have: Vec<Option<Have>>,
    answered: usize,
    /// Another transfer has one of them, or the receiver would begin anew with it.
    busy: bool,
    reader: Option<Reader>,
}

impl<R, T> Run<'_, R, T>
where
    R: FnMut() -> Option<Vec<Path>>,
    T: FnMut(&Progress) -> ControlFlow<()>,
{
    fn all(&mut self) -> Result<Sent, SendError> {
        loop {
            let called = self.call()?;
            match self.session(called)? {
                // Results are what counts, however the session ended that brought the last one.
                _ if self.files.iter().all(|(result, _)| result.is_some()) => return Ok(self.sent()),
                End::Done | End::Silent | End::Rekey | End::NoPath => {}
                End::Closed(Reason::Protocol) | End::Protocol => {
                    return Err(SendError::Protocol { destination: self.order.destination });
                }
                End::Closed(_) => return Err(SendError::Stopped { destination: self.order.destination }),
            }
        }
    }

    /// Step 2.
    fn call(&mut self) -> Result<Called, SendError> {
        let (now, mut random) = (self.clock.now(), SystemRandom);
        let wishes = offer(machine::has_aes());
        let call = Call::new(&self.order.trust, wishes, self.lanes.len(), now, &mut random);
        let mut call = call.ok_or(SendError::NoPeer)?;
        loop {
            let now = self.clock.now();
            while let Some((lane, initiation)) = call.poll_transmit(now, &mut random) {
                // A path that cannot send is one that does not answer.
                let _ = self.lanes[lane].conn.send(&initiation);
            }
            let mut called = None;
            for (at, lane) in self.lanes.iter().enumerate() {
                let take = |datagram: conn::Datagram<'_>| {
                    called = called.take().or_else(|| call.handle_datagram(now, at, datagram.payload));
                };
                lane.conn.try_recv_batch(take).map_err(|error| system("receive", error))?;
            }
            if let Some(called) = called {
                return Ok(called);
            }
            self.hear_routers(|_, _| {});
            self.look(None)?;
            self.sleep(call.deadline())?;
        }
    }

    /// Step 3.
    fn session(&mut self, called: Called) -> Result<End, SendError> {
        let mut work = self.begin(called)?;
        self.arrived_before = self.finished();
        loop {
            let now = self.clock.now();
            self.receive(now, &mut work.sender)?;
            work.sender.handle_timeout(now);
            if let Some(end) = self.heed(&mut work)? {
                self.note(&work.sender);
                self.progress.paths = progress(&self.lanes, &work.sender);
                return Ok(end);
            }
            if work.busy {
                return self.wait_for_other(now, &mut work.sender);
            }
            self.load(&mut work)?;
            let more = self.transmit(now, &mut work.sender)?;
            self.note(&work.sender);
            if let Err(error) = self.look(Some(&work.sender)) {
                work.sender.stop();
                self.transmit(now, &mut work.sender)?;
                return Err(error);
            }
            if !more {
                self.sleep(work.sender.poll_timeout(self.clock.now()))?;
            }
        }
    }

    /// Offers the files that have no result yet: the receiver would refuse the others, or take them once more.
    fn begin(&self, called: Called) -> Result<Work, SendError> {
        let files: Vec<usize> = (0..self.files.len()).filter(|file| self.files[*file].0.is_none()).collect();
        let plan = SendPlan {
            files: files.iter().map(|file| self.sources[*file].info.clone()).collect(),
            payloads: self.lanes.iter().map(|lane| lane.conn.max_payload()).collect(),
            answered: (called.path, called.round_trip),
            law: self.order.law,
            ceiling: self.order.ceiling,
            most_datagrams: MOST_DATAGRAMS,
            seed: SystemRandom.next_u64(),
        };
        let (sender, layout) = (Sender::new(self.clock.now(), called.keys, &plan)?, layout_of(&plan)?);
        let have = vec![None; files.len()];
        Ok(Work { sender, layout, files, have, answered: 0, busy: false, reader: None })
    }

    /// Bytes of files that have their names.
    fn finished(&self) -> u64 {
        let good = self.sources.iter().zip(&self.files).filter(|(_, (result, _))| *result == Some(Verdict::Good));
        good.map(|(source, _)| source.info.size).sum()
    }

    /// A file is busy: waits before it is offered once more, unless that lasts too long already.
    fn wait_for_other(&mut self, now: Time, sender: &mut Sender) -> Result<End, SendError> {
        sender.stop();
        self.transmit(now, sender)?;
        if self.busy_since.get_or_insert_with(Instant::now).elapsed() >= self.order.patience {
            return Err(SendError::Busy { destination: self.order.destination });
        }
        std::thread::sleep(BUSY_FOR);
        // It answers: how long it may be busy is counted apart.
        self.advanced = Instant::now();
        Ok(End::Silent)
    }

    fn receive(&mut self, now: Time, sender: &mut Sender) -> Result<(), SendError> {
        let (mut datagram, mut heard) = (Vec::new(), false);
        for (at, lane) in self.lanes.iter().enumerate() {
            let take = |came: conn::Datagram<'_>| {
                datagram.clear();
                datagram.extend_from_slice(came.payload);
                heard |= sender.handle_datagram(now, at, &mut datagram) == Heard::Ours;
            };
            lane.conn.try_recv_batch(take).map_err(|error| system("receive", error))?;
        }
        // An end that looks through a large file has nothing to say for minutes, but acknowledges marks.
        if heard && sender.is_waiting() {
            self.advanced = Instant::now();
        }
        self.hear_routers(|at, event| match event {
            conn::Event::NoOther { .. } => sender.handle_dead(now, at),
            conn::Event::MtuLowered { max_payload, .. } => sender.handle_payload(now, at, max_payload),
            _ => {}
        });
        Ok(())
    }

    fn hear_routers(&mut self, mut each: impl FnMut(usize, conn::Event)) {
        for (at, lane) in self.lanes.iter().enumerate() {
            while let Some(event) = lane.conn.next_event() {
                self.unreachable |= matches!(event, conn::Event::Unreachable { .. });
                each(at, event);
            }
        }
    }

    /// What happened in the session; its end, if it has one.
    fn heed(&mut self, work: &mut Work) -> Result<Option<End>, SendError> {
        let mut end = None;
        while let Some(event) = work.sender.poll_event() {
            match event {
                Event::Answered(file, verdict, have) => self.answered(work, file, verdict, have)?,
                // What it has of this name is another file: it begins anew when this one is offered once more.
                Event::Result(_, Verdict::Busy) => work.busy = true,
                Event::Result(file, verdict) => {
                    self.files[work.files[file]].0 = Some(verdict);
                    self.advanced = Instant::now();
                }
                Event::Path(..) => {}
                Event::Ended(why) => end = Some(why),
            }
        }
        Ok(end)
    }

    fn answered(&mut self, work: &mut Work, file: usize, verdict: Verdict, have: Have) -> Result<(), SendError> {
        work.answered += 1;
        match verdict {
            Verdict::Good => {
                let blocks = work.layout.blocks_of(file);
                let there = blocks.clone().filter(|block| have.has(block - blocks.start));
                let there: u64 = there.map(|block| work.layout.block_len(hawser_bulk::BlockId(block)) as u64).sum();
                self.arrived_before += there;
                work.have[file] = Some(have);
            }
            Verdict::Busy => work.busy = true,
            refused => self.files[work.files[file]].0 = Some(refused),
        }
        if work.answered == work.have.len() && !work.busy {
            (self.advanced, self.busy_since) = (Instant::now(), None);
            // What is there in a later session was sent in an earlier one.
            if self.progress.bytes == 0 {
                self.progress.resumed = self.arrived_before;
            }
            let taken = (0..work.have.len()).filter(|file| work.have[*file].is_some());
            self.progress.bytes = self.finished() + taken.map(|file| work.layout.size(file)).sum::<u64>();
            let sources = work.files.iter().map(|file| Arc::clone(&self.sources[*file])).collect();
            let layout = work.layout.clone();
            let reader = Reader::start(sources, layout, work.have.clone(), self.wake.clone());
            work.reader = Some(reader.map_err(|error| system("start the thread that reads", error))?);
        }
        Ok(())
    }

    /// Takes what was read.
    fn load(&mut self, work: &mut Work) -> Result<(), SendError> {
        let Some(reader) = &work.reader else { return Ok(()) };
        self.wake.calm();
        while let Some(free) = work.sender.take_free() {
            reader.give_back(free);
        }
        // Digests of what was there come when nothing is left to load.
        while work.sender.wants_block() {
            match reader.next() {
                Some(Read::Block(block, bytes)) => work.sender.load(block, bytes),
                Some(Read::Digest(file, digest)) => {
                    self.files[work.files[file]].1 = Some(digest);
                    work.sender.tell_digest(file, digest);
                }
                Some(Read::Failed(error)) => {
                    work.sender.stop();
                    self.transmit(self.clock.now(), &mut work.sender)?;
                    return Err(error.into());
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Sends what may go now, a turn for each path; says whether there is more.
    fn transmit(&mut self, now: Time, sender: &mut Sender) -> Result<bool, SendError> {
        let mut more = false;
        for at in 0..self.lanes.len() {
            let lane = &mut self.lanes[at];
            if lane.full {
                lane.full = !lane.conn.flush().unwrap_or(true);
                if lane.full {
                    continue;
                }
            }
            let mut bytes = 0;
            sender.begin_batch(at);
            let fill = |batch: &mut conn::Batch<'_>| {
                while bytes < TURN
                    && let Some(packet) = sender.poll_transmit(now, at)
                {
                    // What does not fit is lost, as far as the core knows; it hears why from the connection.
                    let _ = batch.push(packet.len, |out| {
                        let sealed = sender.seal(&packet, out);
                        debug_assert!(sealed.is_ok(), "{sealed:?}");
                    });
                    bytes += packet.len;
                }
            };
            match lane.conn.try_send_batch(fill) {
                Ok(sent) => lane.full = sent.left_over,
                Err(conn::SendError::Socket(error)) => return Err(system("send", error)),
                // The path expired, or the kernel refuses: it falls silent, as far as the core knows.
                Err(_) => {}
            }
            more |= bytes >= TURN && !lane.full;
        }
        Ok(more)
    }

    /// Progress as it is now.
    fn note(&mut self, sender: &Sender) {
        let arrived = self.arrived_before + sender.arrived();
        if arrived > self.progress.arrived {
            self.advanced = Instant::now();
        }
        self.progress.arrived = arrived;
    }

    /// What is due now and then: patience, progress, renewal. Without a sender it is being called.
    fn look(&mut self, sender: Option<&Sender>) -> Result<(), SendError> {
        let (now, destination, after) = (Instant::now(), self.order.destination, self.order.patience);
        if now - self.advanced >= after {
            let unreachable = self.unreachable;
            return Err(match sender.is_none() && self.progress.arrived == 0 {
                true => SendError::NoAnswer { destination, after, unreachable },
                false => SendError::Stalled { destination, after },
            });
        }
        if self.told.is_none_or(|told| now - told >= TELL_EVERY) {
            self.told = Some(now);
            if let Some(sender) = sender {
                self.progress.paths = progress(&self.lanes, sender);
            }
            self.progress.elapsed = now - self.began;
            if (self.tell)(&self.progress).is_break() {
                return Err(SendError::Interrupted);
            }
        }
        if now - self.renewed >= RENEW_EVERY {
            self.renewed = now;
            // Step 4.
            if let Some(paths) = (self.renew)() {
                follow(&self.lanes, &paths);
            }
        }
        Ok(())
    }

    /// Sleeps until a datagram comes, a block was read, a full socket has room, or it is time.
    fn sleep(&self, until: Time) -> Result<(), SendError> {
        let wait = until.since(self.clock.now()).min(LONGEST_SLEEP);
        let wait = wait.try_into().map_err(|_| system("sleep", Errno::INVAL))?;
        let mut fds = Vec::with_capacity(self.lanes.len() + 1);
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        for lane in &self.lanes {
            let events = if lane.full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::new(&lane.conn, events));
        }
        match poll(&mut fds, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(system("sleep", error)),
        }
    }

    fn sent(&mut self) -> Sent {
        self.progress.elapsed = self.began.elapsed();
        self.progress.arrived = self.progress.bytes;
        // The last word on progress.
        let _ = (self.tell)(&self.progress);
        let files = self.sources.iter().zip(&self.files);
        let file = |(source, (verdict, digest)): (&Arc<Source>, &(Option<Verdict>, Option<Digest>))| {
            (source.info.clone(), verdict.unwrap_or(Verdict::Stopped), *digest)
        };
        Sent { files: files.map(file).collect(), progress: self.progress.clone() }
    }
}

pub(super) fn system(step: &'static str, error: impl Into<io::Error>) -> SendError {
    SendError::System { step, source: error.into() }
}
