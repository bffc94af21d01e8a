//! A year of a home's line, in virtual time: DSL (of both IP versions), LTE and Starlink to a remote portal.
//!
//! ```text
//!   hosts -- local portal ==[ DSL, LTE, Starlink ]== remote portal -- hosts
//! ```
//!
//! 1. [`run`] draws faults by one seed, as the table of [`kind`] has it ([`Fault`]); at night they are fewer.
//! 2. Beside most faults of a day somebody calls, from five seconds before to ten seconds after; now and then there are
//!    web pages. Nights and pauses are idle: the time goes from deadline to deadline ([`talk`]).
//! 3. A fault begins, may do things while it lasts, and ends ([`strike`]); lines are as all that last make them
//!    ([`lines`]).
//! 4. Every packet has its place in the account ([`account`]), every datagram is seen by the watch ([`watch`]). Every
//!    second of a call, and once a minute otherwise, portals are held against their bounds ([`crate::bounds`]); and
//!    where a line was whole for [`watch::SETTLED`], both portals use one, and the call goes on.
//! 5. When nothing was wrong and nothing said for a while, portals hold no packets, and what did not come was counted.
//!
//! What does not hold is a panic; the seed and the command that replays it are printed with it.

pub mod account;
pub mod fault;
pub mod kind;
pub mod lines;
mod look;
pub mod report;
mod strike;
pub mod talk;
pub mod watch;

use crate::events::EventQueue;
use crate::net::Datagram;
use crate::portal::{Clock, Recipe};
use crate::random::Seeded;
use crate::world::{LOCAL, REMOTE, Setup, World};
use account::{Account, Gauge};
use fault::Fault;
use hawser_core::congestion::Kind as Congestion;
use hawser_core::drops::NAMES;
use hawser_core::units::Time;
use kind::{AT_NIGHT, KINDS, Kind};
use lines::{LINES, normal};
use report::Report;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use talk::{Burst, Orders, Talker};
use watch::Nonces;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// How long a night is, from midnight; idle bytes are counted from a while after its beginning.
const NIGHT: Duration = Duration::from_secs(6 * 3_600);
const CALM: Duration = Duration::from_secs(600);
/// The reconnection comes in this part of the night.
const RECONNECTS: (f64, f64) = (2.0, 5.0);
/// The share of faults by day that somebody calls beside, and from when to when.
const CALLED: f64 = 0.35;
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(10);
/// A web page is asked for this often by day.
const PAGES: f64 = 72.0;
/// Looks while somebody calls, and otherwise.
const LOOK: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(60);
/// How fast both clocks are, parts per million: quartz, one way and the other.
const PPM: [i32; 2] = [40, -60];

/// Which year, and how much of it. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// Days.
    pub days: u64,
}

/// What is going to happen.
enum Happens {
    /// The next fault of this row is drawn.
    Draw(usize),
    Begin(Fault),
    Tick(u64),
    End(u64),
    /// Nobody measures the gaps beside this fault any more.
    Measured(Fault),
    Page,
    Look,
    /// The night is calm, or is over.
    Calm(bool),
}

/// All of it. Made by [`run`].
struct Year {
    world: World,
    /// Draws faults, calls and pages.
    rng: Seeded,
    /// Draws what is of a fault's own: how often it draws depends on what portals send.
    dice: Seeded,
    agenda: EventQueue<Happens>,
    /// The faults that last now.
    live: Vec<Fault>,
    /// When the last fault ended that was on a line, or general.
    wrong_until: [Time; LINES.len()],
    general_until: Time,
    orders: Rc<RefCell<Orders>>,
    account: Rc<RefCell<Account>>,
    nonces: Rc<RefCell<Nonces>>,
    call_since: Time,
    quiet_since: Time,
    /// When a whole line was last used by both portals.
    unused_since: Time,
    look_at: Time,
    next_fault: u64,
    /// Faults of late, with when they ended, or will: for those beside each other.
    lately: Vec<(u64, Time, Time)>,
    /// By side: what portals that were killed had dropped, by reason, and the final drops of all until the last rest.
    dropped: [[u64; NAMES.len()]; 2],
    settled: [u64; 2],
    recorded: [Vec<Datagram>; 2],
    peer_removed: bool,
    /// In an idle night: when it began, and the bytes of each line at that time.
    idle_from: Option<(Time, [u64; LINES.len()])>,
    /// The same of the last look.
    looked: (Time, [u64; LINES.len()]),
    report: Report,
    /// `HAWSER_SIM_TRACE`: faults are printed as they come.
    talks: bool,
}

/// Prints how a run is replayed, should it end in a panic.
struct Replay(Plan);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Plan { seed, days } = self.0;
            eprintln!("replay: cargo run --release -p hawser-sim --example year -- --seed {seed} --days {days}");
        }
    }
}

/// A year by that plan; `live` tells the bytes that live on the heap, and `morning` is told of each day that is over.
///
/// # Panics
/// Where something does not hold.
pub fn run(plan: Plan, live: &dyn Fn() -> i64, morning: &mut dyn FnMut(&Report)) -> Report {
    let _replay = Replay(plan);
    let mut year = Year::new(plan);
    for day in 0..plan.days {
        year.pass(Time::ZERO + DAY * day as u32 + NIGHT);
        year.report.memory.push(live());
        morning(&year.report);
        year.pass(Time::ZERO + DAY * (day + 1) as u32);
    }
    year.finish()
}

impl Year {
    fn new(plan: Plan) -> Self {
        let mut rng = Seeded::new(plan.seed);
        let recipes = [LOCAL, REMOTE].map(|side| Recipe::of(side, Congestion::Bbr));
        let clocks = PPM.map(|ppm| Clock { offset: Duration::from_nanos(rng.below(1 << 50)), ppm });
        let setup =
            Setup { seed: rng.below(u64::MAX), links: normal(), recipes, clocks: Some(clocks), both_initiate: false };
        let mut world = World::new(setup);
        let (dice, (orders, account, nonces)) = (rng.fork(), Default::default());
        for side in [LOCAL, REMOTE] {
            let talker = Talker::new(side, Rc::clone(&orders), Rc::clone(&account));
            world.add_host(side, account::address(side), talker);
        }
        let seen: Rc<RefCell<Nonces>> = Rc::clone(&nonces);
        world.witness = Some(Box::new(move |now, side, _, bytes| seen.borrow_mut().note(now, side, bytes)));
        let mut year = Year {
            world,
            rng,
            dice,
            agenda: EventQueue::default(),
            live: Vec::new(),
            wrong_until: [Time::ZERO; LINES.len()],
            general_until: Time::ZERO,
            orders,
            account,
            nonces,
            call_since: Time::ZERO,
            quiet_since: Time::ZERO,
            unused_since: Time::ZERO,
            look_at: Time::ZERO,
            next_fault: 0,
            lately: Vec::new(),
            dropped: [[0; NAMES.len()]; 2],
            settled: [0; 2],
            recorded: Default::default(),
            peer_removed: false,
            idle_from: None,
            looked: (Time::ZERO, [0; LINES.len()]),
            report: Report::for_days(plan.days),
            talks: std::env::var_os("HAWSER_SIM_TRACE").is_some(),
        };
        year.plan_ahead(plan.days);
        year
    }

    /// What is known from the beginning: nights, and the first of each kind.
    fn plan_ahead(&mut self, days: u64) {
        for (index, row) in KINDS.iter().enumerate() {
            if let Some(wait) = row.wait(&mut self.rng) {
                self.agenda.push(Time::ZERO + wait, Happens::Draw(index));
            }
        }
        for day in 0..days {
            let midnight = Time::ZERO + DAY * day as u32;
            let hour = RECONNECTS.0 + self.rng.unit() * (RECONNECTS.1 - RECONNECTS.0);
            let fault = self.draw(Kind::Reconnect, midnight + HOUR.mul_f64(hour));
            self.agenda.push(fault.from, Happens::Begin(fault));
            self.agenda.push(midnight + CALM, Happens::Calm(true));
            self.agenda.push(midnight + NIGHT, Happens::Calm(false));
        }
        self.look_later(SELDOM);
        self.agenda.push(Time::ZERO + NIGHT, Happens::Page);
    }

    fn draw(&mut self, kind: Kind, from: Time) -> Fault {
        self.next_fault += 1;
        Fault::draw(self.next_fault, &KINDS[kind as usize], from, &mut self.rng)
    }

    /// Lets the time pass, and what is to happen.
    fn pass(&mut self, end: Time) {
        while let Some(at) = self.agenda.next_at().filter(|at| *at <= end) {
            self.world.run_until(at);
            while let Some(happens) = self.agenda.pop_due(at) {
                self.happen(happens);
            }
        }
        self.world.run_until(end);
    }

    fn happen(&mut self, happens: Happens) {
        let now = self.world.now;
        match happens {
            Happens::Draw(row) => self.next_of(row),
            Happens::Begin(fault) => self.on_begin(fault),
            Happens::Tick(number) => {
                self.tick(number);
                self.tick_later(number);
            }
            Happens::End(number) => self.on_end(number),
            Happens::Measured(fault) => self.measured(&fault),
            Happens::Page => {
                if !is_night(now) {
                    self.page();
                }
                let wait = -(1.0 - self.rng.unit()).ln() * DAY.as_secs_f64() / PAGES;
                self.agenda.push(now + Duration::from_secs_f64(wait), Happens::Page);
            }
            // A call that began since brought it forward.
            Happens::Look if now != self.look_at => {}
            Happens::Look => {
                self.look();
                let next = if self.orders.borrow().call_until > now { LOOK } else { SELDOM };
                self.look_later(next);
            }
            Happens::Calm(begins) => {
                self.count_idle();
                self.idle_from = begins.then(|| (now, self.carried()));
            }
        }
    }

    /// Steps 1 and 2: a fault of this row comes, perhaps beside a call; and when the next is drawn.
    fn next_of(&mut self, row: usize) {
        let now = self.world.now;
        let wait = KINDS[row].wait(&mut self.rng).expect("a row that is drawn");
        self.agenda.push(now + wait, Happens::Draw(row));
        if is_night(now) {
            if self.rng.chance(AT_NIGHT) {
                let fault = self.draw(KINDS[row].kind, now);
                self.agenda.push(now, Happens::Begin(fault));
            }
            return;
        }
        let called = self.rng.chance(CALLED);
        let fault = self.draw(KINDS[row].kind, if called { now + BEFORE } else { now });
        if called {
            self.call(fault.until + AFTER);
            let from = if fault.row.scope == kind::Scope::Portal { fault.until } else { fault.from };
            self.account.borrow_mut().gauges.push(Gauge::new(fault.number, from));
            self.agenda.push(fault.until + AFTER, Happens::Measured(fault.clone()));
        }
        self.agenda.push(fault.from, Happens::Begin(fault));
    }

    fn call(&mut self, until: Time) {
        let now = self.world.now;
        let mut orders = self.orders.borrow_mut();
        if orders.call_until <= now {
            self.call_since = now;
            self.account.borrow_mut().last_call = [now; 2];
            self.look_at = now + LOOK;
            self.agenda.push(self.look_at, Happens::Look);
        }
        orders.call_until = orders.call_until.max(until);
    }

    fn on_begin(&mut self, fault: Fault) {
        let of_kind = &mut self.report.kinds[fault.row.kind as usize];
        of_kind.faults += 1;
        let now = self.world.now;
        self.lately.retain(|(_, _, until)| *until + AFTER > now);
        self.lately.push((fault.number, fault.from, fault.until));
        self.agenda.push(fault.until, Happens::End(fault.number));
        self.tell("begins", &fault);
        let (number, ticks) = (fault.number, fault.tick().is_some());
        self.quiet_since = now;
        self.live.push(fault.clone());
        self.begin(&fault);
        if ticks {
            self.tick_later(number);
        }
    }

    /// Says what happens, if asked to.
    fn tell(&self, what: &str, fault: &Fault) {
        if self.talks {
            let (at, name) = (self.world.now.as_nanos() as f64 / 1e9, fault.row.name);
            println!("{at:.3} {name} {what} line {:?} severity {:.2}", fault.line, fault.severity);
        }
    }

    fn tick_later(&mut self, number: u64) {
        let tick = self.live.iter().find(|fault| fault.number == number).and_then(Fault::tick);
        if let Some(tick) = tick {
            self.agenda.push(self.world.now + tick, Happens::Tick(number));
        }
    }

    fn on_end(&mut self, number: u64) {
        let place = self.live.iter().position(|fault| fault.number == number).expect("a fault that lasts");
        let fault = self.live.swap_remove(place);
        self.tell("ends", &fault);
        self.end(&fault);
        self.note_wrong(&fault);
    }

    /// Something is wrong until now.
    fn note_wrong(&mut self, fault: &Fault) {
        let now = self.world.now;
        self.quiet_since = now;
        for (place, line) in LINES.into_iter().enumerate() {
            if fault.is_on(line) || fault.takes(line) {
                self.wrong_until[place] = now;
            }
        }
        if fault.is_general() {
            self.general_until = now;
        }
    }

    fn look_later(&mut self, wait: Duration) {
        self.look_at = self.world.now + wait;
        self.agenda.push(self.look_at, Happens::Look);
    }

    /// What the call felt of a fault.
    fn measured(&mut self, fault: &Fault) {
        let now = self.world.now;
        let mut account = self.account.borrow_mut();
        let place = account.gauges.iter().position(|gauge| gauge.fault == fault.number).expect("it was measured");
        let gap = account.gauges.swap_remove(place).read(now).as_secs_f32();
        let beside = self.lately.iter().any(|(other, from, until)| {
            *other != fault.number && *from <= fault.until + AFTER && *until + AFTER >= fault.from
        });
        let of_kind = &mut self.report.kinds[fault.row.kind as usize];
        if beside {
            of_kind.beside_others += 1;
            of_kind.gaps.worst_beside_others = of_kind.gaps.worst_beside_others.max(gap);
        } else {
            of_kind.gaps.alone.push(gap);
        }
    }

    /// A web page: requests, and what comes back for them.
    fn page(&mut self) {
        self.quiet_since = self.world.now;
        let (now, flow) = (self.world.now, 1 + self.dice.below(6) as u16);
        let packets = self.dice.log_between(5.0, 120.0) as u32;
        let mut orders = self.orders.borrow_mut();
        orders.burst(Burst { at: now, side: LOCAL, flow, packets: 3, len: 400 });
        let later = now + Duration::from_millis(80);
        orders.burst(Burst { at: later, side: REMOTE, flow, packets, len: 1_200 });
    }

    fn finish(mut self) -> Report {
        self.report.packets = self.account.borrow().totals;
        self.report.drops = [LOCAL, REMOTE].map(|side| self.drops(side));
        self.report.lines = LINES.map(|line| {
            let link = &self.world.links[line];
            [&link.up, &link.down].map(|way| {
                let counters = way.counters;
                [counters.dropped, counters.lost, counters.vanished, counters.damaged]
            })
        });
        self.report.handshakes_lost += self.world.handshakes_lost.unwrap_or(0);
        let nonces = self.nonces.borrow();
        self.report.sealed = (nonces.seen, nonces.labels);
        self.report
    }
}

/// Whether everybody sleeps.
fn is_night(now: Time) -> bool {
    now.as_nanos() as u128 % DAY.as_nanos() < NIGHT.as_nanos()
}
