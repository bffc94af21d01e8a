//! The thread of a link: it carries packets between the two TUN devices by the pipes' schedule.
//!
//! 1. Obey what the holder of the link asked for.
//! 2. Read all that waits in both TUNs at once, so that the only queue is the modelled one.
//! 3. Deliver what has arrived; look again for answers that this caused.
//! 4. Publish the counters.
//! 5. Rest: a busy link for a grain of time, so that it costs a bounded number of wakes; another until a packet
//!    comes or the schedule says.
//!
//! The schedule is absolute and lives in the pipes: a late wake delays packets, but takes no rate away.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::counters::Counters;
use super::pipe::Pipe;
use super::slab::{BUFFER_BYTES, Packet};
use super::spec::{Direction, Way};
use super::tun::Tun;
use crate::clock::{Moment, keep_time, timespec};

/// The least time from one wake to the next on a busy link, and how late a packet may be for it. A wake costs as
/// much processor time as six packets (30 µs, with the wakes it causes): this keeps them to 2000 a second.
const GRAIN: Duration = Duration::from_micros(500);
/// A link is busy while it has work more often than this.
const BUSY: Duration = Duration::from_millis(1);
/// Packets read from one TUN before anything is delivered.
const BATCH: usize = 256;
/// Rounds of reading and delivering before a rest: a delivery causes answers, and they more.
const ROUNDS: usize = 4;
/// What the holder of a link asks of its thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Change one way's settings.
    Set(Way, Box<Direction>),
    /// Let one way's packets vanish, or no longer.
    BlackHole(Way, bool),
    /// Lose what is on the way.
    Cut,
    /// End.
    Stop,
}

/// A command and where to say that it is done.
pub(crate) type Request = (Command, SyncSender<()>);

/// What engine and holder share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Written to wake the thread. An eventfd.
    pub wake: OwnedFd,
    /// Of both ways, as of the thread's last wake. Each side holds it for a copy of plain data and takes no other
    /// lock meanwhile, so that nobody waits long and no two wait for each other.
    pub counters: Mutex<[Counters; 2]>,
}

/// The thread's state. Starts idle. One owner: the thread.
#[derive(Debug)]
pub(crate) struct Engine {
    tuns: [Tun; 2],
    pipes: [Pipe; 2],
    requests: Receiver<Request>,
    shared: Arc<Shared>,
    /// When each TUN was last found empty: what is read next has arrived since.
    emptied: [Moment; 2],
    batch: Vec<Packet>,
    /// When there last was something to do.
    worked: Moment,
}

impl Engine {
    /// An engine for the ends' TUNs and the settings from A to B and from B to A.
    pub(crate) fn new(
        tuns: [Tun; 2],
        settings: [Direction; 2],
        requests: Receiver<Request>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            tuns,
            pipes: settings.map(Pipe::new),
            requests,
            shared,
            emptied: [Moment::now(); 2],
            batch: Vec::with_capacity(BATCH),
            worked: Moment::default(),
        }
    }

    /// Runs until it is told to stop, or its holder is gone.
    pub(crate) fn run(mut self) {
        keep_time();
        while self.obey() {
            let woke = Moment::now();
            let mut busy = false;
            if self.carry() {
                busy = woke - self.worked < BUSY;
                self.worked = woke;
            }
            self.publish();
            self.rest(woke, busy);
        }
    }

    /// Step 1: false where the thread is to end.
    fn obey(&mut self) -> bool {
        while let Ok((command, done)) = self.requests.try_recv() {
            let stop = matches!(command, Command::Stop);
            match command {
                Command::Set(way, settings) => {
                    self.pipes[way.index()].change(*settings, Moment::now());
                }
                Command::BlackHole(way, on) => self.pipes[way.index()].set_black_hole(on),
                Command::Cut => self.pipes.iter_mut().for_each(Pipe::cut),
                Command::Stop => {}
            }
            self.publish();
            // Who asked may have stopped waiting.
            let _ = done.send(());
            if stop {
                return false;
            }
        }
        true
    }

    /// Steps 2 and 3: whether there was anything to do.
    fn carry(&mut self) -> bool {
        let mut worked = false;
        for _ in 0..ROUNDS {
            for way in Way::BOTH {
                worked |= self.read(way);
            }
            let delivered = Way::BOTH.map(|way| self.deliver(way));
            if delivered == [false; 2] {
                break;
            }
            worked = true;
        }
        worked
    }

    /// Step 2: everything that waits on one end. It came while nobody looked, at unknown times: taken as spread
    /// evenly, so that a queue of few packets neither runs dry nor overflows for our wakes.
    fn read(&mut self, way: Way) -> bool {
        let (tun, pipe) = (&self.tuns[way.index()], &mut self.pipes[way.index()]);
        while self.batch.len() < BATCH {
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
            self.batch.push(packet);
        }
        let now = Moment::now();
        let since = std::mem::replace(&mut self.emptied[way.index()], now);
        let since = (now - GRAIN).max(since);
        let (mut arrived, count) = (since, u32::try_from(self.batch.len()).unwrap_or(1));
        let any = count > 0;
        for packet in self.batch.drain(..) {
            arrived = arrived + (now - since) / count;
            pipe.offer(packet, arrived);
        }
        any
    }

    /// Step 3: everything that has arrived at the other end.
    fn deliver(&mut self, way: Way) -> bool {
        let (tun, pipe) = (&self.tuns[1 - way.index()], &mut self.pipes[way.index()]);
        let now = Moment::now();
        pipe.advance(now);
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
        let counters = [&self.pipes[0], &self.pipes[1]].map(|pipe| pipe.counters(now));
        *self.shared.counters.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = counters;
    }

    /// Step 5.
    fn rest(&mut self, woke: Moment, busy: bool) {
        if busy {
            (woke + GRAIN).sleep_until();
            return;
        }
        let next = self.pipes.iter().filter_map(Pipe::next_event).min();
        let now = Moment::now();
        let timeout = next.map(|next| timespec(next.since(now).as_nanos().try_into().unwrap_or(0)));
        let mut sources = [
            PollFd::new(&self.tuns[0], PollFlags::IN),
            PollFd::new(&self.tuns[1], PollFlags::IN),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        // A poll that fails (a signal) is a short rest: the loop looks at everything anyway.
        let _ = poll(&mut sources, timeout.as_ref());
        if !sources[2].revents().is_empty() {
            // Resets the eventfd; the requests themselves are in the channel.
            let _ = rustix::io::read(self.shared.wake.as_fd(), &mut [0; size_of::<u64>()]);
        }
        self.emptied = [Moment::now(); 2];
    }
}
