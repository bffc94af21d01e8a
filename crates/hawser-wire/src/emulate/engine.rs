//! The thread of a link, or of all links on one medium: it carries packets between TUN devices by the pipes' schedule.
//!
//! 1. Obey what the holder of a link asked for.
//! 2. Read all that waits in the TUNs at once, so that the only queue is the modelled one.
//! 3. Deliver what has arrived; look again for answers that this caused.
//! 4. Publish the counters.
//! 5. Rest: a busy link for a grain of time, so that it costs a bounded number of wakes; another until a packet
//!    comes or the schedule says.
//!
//! The schedule is absolute and lives in the pipes: a late wake delays packets, but takes no rate away.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use smallvec::SmallVec;

use super::air::Air;
use super::backend::Timekeeping;
use super::counters::Counters;
use super::medium::Medium;
use super::pipe::Pipe;
use super::slab::{BUFFER_BYTES, Packet};
use super::spec::{Direction, Way};
use super::tun::Tun;
use crate::clock::{Moment, keep_time, timespec};

/// The least time from one wake to the next on a busy link. A wake costs as much processor time as six packets (30 µs,
/// with the wakes it causes): this keeps them to 2000 a second.
const GRAIN: Duration = Duration::from_micros(500);
/// A packet in flight is delivered at the wake that is nearest: on a busy link up to half a grain early or late.
const EARLY: Duration = Duration::from_micros(250);
/// A link is busy while it has work more often than this.
const BUSY: Duration = Duration::from_millis(1);
/// Packets read from one TUN before anything is delivered.
const BATCH: usize = 256;
/// Rounds of reading and delivering before a rest: a delivery causes answers, and they more.
const ROUNDS: usize = 4;
/// Descriptors that are watched without an allocation: those of four links on one medium.
const WATCHED: usize = 9;
/// Ends of a link, and so TUNs and pipes.
const ENDS: usize = 2;

/// A link among those of one thread. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId(pub u64);

/// What the holder of a link asks of its thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Carry one link more.
    Add(Box<Line>),
    /// Change one way's settings.
    Set(LinkId, Way, Box<Direction>),
    /// Let one way's packets vanish, or no longer.
    BlackHole(LinkId, Way, bool),
    /// Lose what is on the way.
    Cut(LinkId),
    /// Carry it no longer.
    Remove(LinkId),
    /// End.
    Stop,
}

/// A command and where to say that it is done.
pub(crate) type Request = (Command, SyncSender<()>);

/// A link to be carried. One owner.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its name among those of the thread.
    pub id: LinkId,
    /// Both ends' interfaces.
    pub tuns: [Tun; ENDS],
    /// From a to b, and back.
    pub settings: [Direction; ENDS],
    /// Where its counters go.
    pub published: Arc<Published>,
}

/// Both ways' counters, as of the thread's last wake. Each side holds them for a copy of plain data and takes no other
/// lock meanwhile, so that nobody waits long and no two wait for each other.
pub(crate) type Published = Mutex<[Counters; ENDS]>;

/// What engine and holders share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Written to wake the thread. An eventfd.
    pub wake: OwnedFd,
    /// How well the thread keeps time, once it runs.
    pub timekeeping: OnceLock<Timekeeping>,
}

/// The thread's state. Starts idle, without a link. One owner: the thread.
///
/// The n-th link has places 2 n and 2 n + 1: at either, the TUN of an end and the pipe that leads away from it.
#[derive(Debug)]
pub(crate) struct Engine {
    links: Vec<(LinkId, Arc<Published>)>,
    tuns: Vec<Tun>,
    pipes: Vec<Pipe>,
    /// When each TUN was last found empty: what is read next has arrived since.
    emptied: Vec<Moment>,
    air: Option<Air>,
    requests: Receiver<Request>,
    shared: Arc<Shared>,
    batch: Vec<Arrived>,
    /// When there last was something to do.
    worked: Moment,
}

/// A packet that was read: when it came, by which place.
type Arrived = (Moment, usize, Packet);

impl Engine {
    /// An engine for the links of a medium, or for one without.
    pub(crate) fn new(medium: Option<Medium>, requests: Receiver<Request>, shared: Arc<Shared>) -> Self {
        Self {
            links: Vec::new(),
            tuns: Vec::new(),
            pipes: Vec::new(),
            emptied: Vec::new(),
            air: medium.map(Air::new),
            requests,
            shared,
            batch: Vec::with_capacity(BATCH),
            worked: Moment::default(),
        }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) {
        // Set once, here.
        let _ = self.shared.timekeeping.set(keep_time());
        while self.obey() {
            let woke = Moment::now();
            let busy = woke - self.worked < BUSY;
            let worked = self.carry(if busy { EARLY } else { Duration::ZERO });
            if worked {
                self.worked = woke;
            }
            self.publish();
            self.rest(woke, busy && worked);
        }
    }

    /// Step 1: false where the thread is to end.
    fn obey(&mut self) -> bool {
        while let Ok((command, done)) = self.requests.try_recv() {
            let stop = matches!(command, Command::Stop);
            self.carry_out(command);
            self.publish();
            // Who asked may have stopped waiting.
            let _ = done.send(());
            if stop {
                return false;
            }
        }
        true
    }

    fn carry_out(&mut self, command: Command) {
        let now = Moment::now();
        match command {
            Command::Add(line) => {
                let Line { id, tuns, settings, published } = *line;
                self.links.push((id, published));
                self.tuns.extend(tuns);
                self.pipes.extend(settings.map(|settings| Pipe::new(settings, now)));
                self.emptied.extend([now; ENDS]);
            }
            Command::Set(id, way, settings) => {
                self.advance(now);
                if let Some(place) = self.place(id, way) {
                    self.pipes[place].change(*settings, now);
                }
            }
            Command::BlackHole(id, way, on) => {
                if let Some(place) = self.place(id, way) {
                    self.pipes[place].set_black_hole(on);
                }
            }
            Command::Cut(id) => {
                for place in Way::BOTH.map(|way| self.place(id, way)).into_iter().flatten() {
                    self.pipes[place].cut();
                }
            }
            Command::Remove(id) => {
                if let Some(first) = self.place(id, Way::AToB) {
                    self.links.remove(first / ENDS);
                    self.tuns.drain(first..first + ENDS);
                    self.pipes.drain(first..first + ENDS);
                    self.emptied.drain(first..first + ENDS);
                }
            }
            Command::Stop => {}
        }
    }

    /// Where a link's way is; None once it is removed.
    fn place(&self, id: LinkId, way: Way) -> Option<usize> {
        self.links.iter().position(|(link, _)| *link == id).map(|link| link * ENDS + way.index())
    }

    /// Steps 2 and 3, packets that land a little later included: whether there was anything to do.
    fn carry(&mut self, early: Duration) -> bool {
        let mut worked = false;
        for _ in 0..ROUNDS {
            (0..self.tuns.len()).for_each(|place| self.read(place));
            worked |= !self.batch.is_empty();
            self.offer();
            self.advance(Moment::now());
            let mut delivered = false;
            for place in 0..self.tuns.len() {
                delivered |= self.deliver(place, early);
            }
            if !delivered {
                break;
            }
            worked = true;
        }
        worked
    }

    /// Step 2: everything that waits on one end. It came while nobody looked, at unknown times: taken as spread
    /// evenly, so that a queue of few packets neither runs dry nor overflows for our wakes, however late one is.
    fn read(&mut self, place: usize) {
        let (tun, pipe) = (&self.tuns[place], &mut self.pipes[place]);
        let first = self.batch.len();
        while self.batch.len() - first < BATCH {
            let Some(mut packet) = pipe.slab.lend() else {
                if tun.read(&mut [0; BUFFER_BYTES]).is_none() {
                    break;
                }
                pipe.refuse();
                continue;
            };
            let Some(length) = tun.read(pipe.slab.buffer(packet)) else {
                pipe.slab.take_back(packet);
                break;
            };
            packet.length = u32::try_from(length).unwrap_or(0);
            self.batch.push((Moment::default(), place, packet));
        }
        let now = Moment::now();
        let since = std::mem::replace(&mut self.emptied[place], now);
        let count = u32::try_from(self.batch.len() - first).unwrap_or(1).max(1);
        let apart = (now - since) / count;
        let mut moment = since + apart / 2;
        for (arrived, _, _) in &mut self.batch[first..] {
            *arrived = moment;
            moment = moment + apart;
        }
    }

    /// Step 2: into the queues; on a medium in the order of arrival, since they wait for each other.
    fn offer(&mut self) {
        if self.air.is_some() {
            self.batch.sort_unstable_by_key(|&(arrived, place, packet)| (arrived, place, packet));
        }
        for (arrived, place, packet) in self.batch.drain(..) {
            if let Some(air) = &mut self.air {
                air.advance(&mut self.pipes, arrived);
            }
            // After a late wake it may have come just now: it leaves no sooner than a grain before.
            self.pipes[place].offer(packet, arrived, self.emptied[place] - GRAIN);
        }
    }

    /// Sends what may go up to now.
    fn advance(&mut self, now: Moment) {
        self.pipes.iter_mut().for_each(|pipe| pipe.advance(now));
        if let Some(air) = &mut self.air {
            air.advance(&mut self.pipes, now);
        }
    }

    /// Step 3: everything that has arrived at the other end.
    fn deliver(&mut self, place: usize, early: Duration) -> bool {
        let (tun, pipe) = (&self.tuns[place ^ 1], &mut self.pipes[place]);
        let now = Moment::now() + early;
        let mut any = false;
        while let Some(packet) = pipe.due(now) {
            let taken = tun.write(pipe.slab.bytes(packet));
            pipe.delivered(packet, taken);
            any = true;
        }
        any
    }

    /// Step 4.
    fn publish(&self) {
        let now = Moment::now();
        for ((_, published), pipes) in self.links.iter().zip(self.pipes.chunks_exact(ENDS)) {
            let counters = [&pipes[0], &pipes[1]].map(|pipe| pipe.counters(now));
            *published.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = counters;
        }
    }

    /// Step 5.
    fn rest(&mut self, woke: Moment, busy: bool) {
        if busy {
            (woke + GRAIN).sleep_until();
            return;
        }
        let turn = self.air.as_ref().and_then(Air::next_event);
        let next = self.pipes.iter().filter_map(Pipe::next_event).chain(turn).min();
        let now = Moment::now();
        let timeout = next.map(|next| timespec(next.since(now).as_nanos().try_into().unwrap_or(0)));
        let mut sources: SmallVec<[PollFd; WATCHED]> = SmallVec::new();
        sources.push(PollFd::new(&self.shared.wake, PollFlags::IN));
        sources.extend(self.tuns.iter().map(|tun| PollFd::new(tun, PollFlags::IN)));
        // A poll that fails (a signal) is a short rest: the loop looks at everything anyway.
        let _ = poll(&mut sources, timeout.as_ref());
        if !sources[0].revents().is_empty() {
            // Resets the eventfd; the requests themselves are in the channel.
            let _ = rustix::io::read(self.shared.wake.as_fd(), &mut [0; size_of::<u64>()]);
        }
        self.emptied.fill(Moment::now());
    }
}
