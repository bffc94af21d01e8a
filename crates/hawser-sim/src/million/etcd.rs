//! etcd as a hub's members use it (hawser-etcd): servers that are queues, and what each member's driver writes there.
//!
//! 1. A member owns a peer, and has its epoch to write ([`Etcd::own`]); it misses another member, and says so in its
//!    load ([`Etcd::miss`]), which is written every ten seconds anyway. Leases are renewed without a write.
//! 2. Its driver writes one thing at a time: forty epochs, and the load only where no epoch is due (`driver.rs`,
//!    `begin_to_write`). That they are written it knows by its watch alone: after 50 ms it writes the same again.
//! 3. The leader writes all that came meanwhile as one group.
//! 4. Each server tells the members that watch there, one after the other, and each of them takes in one answer after
//!    the other.

mod driver;
mod figures;

pub use figures::{Figures, Writes};

use super::costs::Costs;
use crate::events::EventQueue;
use driver::{Driver, Request, What};
use hawser_core::units::Time;
use std::time::Duration;

/// Servers; members begin with different ones.
const SERVERS: usize = 3;
/// How long a driver waits for its watch (hawser-etcd, WATCH_BEHIND).
const WATCH_BEHIND: Duration = Duration::from_millis(50);
/// Between two loads of a member (hawser-portal, LOAD_EVERY): it changes with every flow. What is written at rest is
/// counted over as long.
const LOAD_EVERY: Duration = Duration::from_secs(10);

/// A member hears that another one misses somebody. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// When.
    pub at: Time,
    /// Who hears it.
    pub member: u32,
    /// Who is missed.
    pub missed: u32,
}

enum Step {
    Own { member: usize, wave: bool },
    Miss { member: usize, missed: u32 },
    Load { member: usize },
    Write { member: usize },
    Arrive(Request),
    Commit,
    Answer { member: usize },
    Seen { member: usize },
}

/// Servers, drivers, and what is under way between them. Nothing is at first; the million's world owns it.
pub struct Etcd {
    costs: Costs,
    /// From each member to the leader, and back.
    ways: Vec<Duration>,
    drivers: Vec<Driver>,
    waiting: Vec<Request>,
    /// What is being written.
    group: Vec<Request>,
    /// Until when each server tells, and each member takes in.
    telling: [Time; SERVERS],
    taking: Vec<Time>,
    events: EventQueue<Step>,
    told: Vec<Told>,
    /// Epochs of the wave that not all members know.
    left: usize,
    /// Keys and transactions of each second.
    seconds: Vec<[u64; 2]>,
    longest: [Duration; 3],
    again: u64,
    /// When all knew, and how many epochs.
    known: Vec<(Time, usize)>,
}

impl Etcd {
    /// Members by how far each is; their loads change at times that `first` gives.
    pub fn new(costs: Costs, ways: Vec<Duration>, mut first: impl FnMut() -> Time) -> Self {
        let mut events = EventQueue::default();
        (0..ways.len()).for_each(|member| events.push(first(), Step::Load { member }));
        Etcd {
            costs,
            drivers: ways.iter().map(|_| Driver::default()).collect(),
            waiting: Vec::new(),
            group: Vec::new(),
            telling: [Time::ZERO; SERVERS],
            taking: vec![Time::ZERO; ways.len()],
            ways,
            events,
            told: Vec::new(),
            left: 0,
            seconds: Vec::new(),
            longest: [Duration::ZERO; 3],
            again: 0,
            known: Vec::new(),
        }
    }

    /// Step 1: a member owns a peer from then on; whether that is one of the wave's.
    pub fn own(&mut self, member: u32, at: Time, wave: bool) {
        self.left += usize::from(wave);
        self.events.push(at, Step::Own { member: member as usize, wave });
    }

    /// Step 1: a member misses another one from then on.
    pub fn miss(&mut self, member: u32, missed: u32, at: Time) {
        self.events.push(at, Step::Miss { member: member as usize, missed });
    }

    /// A member does nothing more, and is told nothing.
    pub fn kill(&mut self, member: u32) {
        self.drivers[member as usize].dead = true;
    }

    /// All that happens until then; who is told of members that are missed, perhaps later.
    pub fn advance(&mut self, until: Time) -> Vec<Told> {
        while let Some(at) = self.events.next_at().filter(|at| *at <= until) {
            self.step(at);
        }
        std::mem::take(&mut self.told)
    }

    /// Goes on until all members know all epochs of the wave, or until then.
    pub fn finish(&mut self, until: Time) {
        while let Some(at) = self.events.next_at().filter(|at| self.left > 0 && *at <= until) {
            self.step(at);
        }
    }

    fn step(&mut self, now: Time) {
        let Some(step) = self.events.pop_due(now) else { return };
        match step {
            Step::Own { member, wave } => {
                self.drivers[member].due.push_back(wave);
                self.write(now, member);
            }
            Step::Miss { member, missed } => {
                self.drivers[member].misses.push(missed);
                self.drivers[member].load = true;
                self.write(now, member);
            }
            Step::Load { member } => {
                self.drivers[member].load = true;
                self.events.push(now + LOAD_EVERY, Step::Load { member });
                self.write(now, member);
            }
            Step::Write { member } => self.write(now, member),
            Step::Arrive(request) => {
                self.waiting.push(request);
                if self.group.is_empty() {
                    self.begin_group(now);
                }
            }
            Step::Commit => {
                std::mem::take(&mut self.group).iter().for_each(|request| self.commit(now, request));
                self.begin_group(now);
            }
            Step::Answer { member } => {
                self.drivers[member].writing = false;
                self.write(now, member);
            }
            Step::Seen { member } => {
                let driver = &mut self.drivers[member];
                driver.due.drain(..std::mem::take(&mut driver.written));
                self.write(now, member);
            }
        }
    }

    /// Step 2.
    fn write(&mut self, now: Time, member: usize) {
        let driver = &mut self.drivers[member];
        if driver.dead || driver.writing || (driver.due.is_empty() && !driver.load) {
            return;
        }
        if now < driver.pause {
            return self.events.push(driver.pause, Step::Write { member });
        }
        let what = if driver.due.is_empty() {
            driver.load = false;
            What::Load(std::mem::take(&mut driver.misses))
        } else {
            driver.pause = now + WATCH_BEHIND;
            driver.next_epochs()
        };
        driver.writing = true;
        let came = now + self.ways[member];
        self.events.push(came, Step::Arrive(Request { member, what, came }));
    }

    /// Step 3.
    fn begin_group(&mut self, now: Time) {
        self.group = std::mem::take(&mut self.waiting);
        if self.group.is_empty() {
            return;
        }
        let keys: usize = self.group.iter().map(|request| request.keys().max(1)).sum();
        self.events.push(now + self.costs.commit + self.costs.write * keys as u32, Step::Commit);
    }

    /// Step 3: it is on the disks.
    fn commit(&mut self, now: Time, request: &Request) {
        self.longest[0] = self.longest[0].max(now.since(request.came));
        let second = now.since(Time::ZERO).as_secs() as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, [0; 2]);
        }
        self.seconds[second][0] += request.keys() as u64;
        self.seconds[second][1] += 1;
        self.events.push(now + self.ways[request.member], Step::Answer { member: request.member });
        if request.what == What::Again {
            self.again += 1;
        } else {
            self.tell(now, request);
        }
    }

    /// Step 4.
    fn tell(&mut self, now: Time, request: &Request) {
        let (mut last, has_epochs) = (now, matches!(request.what, What::Epochs(..)));
        for server in 0..SERVERS {
            let members = (server..self.drivers.len()).step_by(SERVERS);
            let watching: Vec<usize> = members.filter(|member| !self.drivers[*member].dead).collect();
            let each = self.costs.answer + self.costs.event * request.keys() as u32;
            let sent = self.telling[server].max(now) + each * watching.len() as u32;
            self.telling[server] = sent;
            self.longest[1] = self.longest[1].max(sent.since(now));
            for member in watching {
                let came = sent + self.ways[member];
                let work = if has_epochs { self.costs.take_in } else { Duration::ZERO };
                let known = self.taking[member].max(came) + work;
                self.taking[member] = known;
                self.longest[2] = self.longest[2].max(known.since(came));
                last = last.max(known);
                self.on_known(known, member, request);
            }
        }
        if let What::Epochs(_, wave) = request.what
            && wave > 0
        {
            self.left -= wave;
            self.known.push((last, wave));
        }
    }

    /// A member has taken it in, then.
    fn on_known(&mut self, at: Time, member: usize, request: &Request) {
        match &request.what {
            What::Load(misses) => {
                let told = misses.iter().map(|missed| Told { at, member: member as u32, missed: *missed });
                self.told.extend(told);
            }
            _ if member == request.member => self.events.push(at, Step::Seen { member }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
