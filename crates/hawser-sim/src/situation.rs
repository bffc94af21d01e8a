//! A situation: links, what happens to them, and what must hold all the same.
//!
//! 1. [`on`] names the links; what follows it changes clocks, traffic and expectations.
//! 2. `run` sends at once: bulk that keeps the tunnel filled, a thin steady flow, a TCP stream, pings.
//! 3. Afterwards the traffic stops, and what the tunnel still holds must drain.
//! 4. Whatever does not hold is a panic that names the situation and its seed.
//!    `HAWSER_SIM_TRACE=100` prints the sessions every 100 ms; `HAWSER_SIM_SEED` sets another seed.
//!
//! Always checked: every byte that came is right, nothing came twice, the TCP stream is complete,
//! both portals are empty at the end. The rest is asked for.

use crate::host::flow::{Ledger, Plan, Sink, Source};
use crate::host::ping::Ping;
use crate::host::tcp::{TcpReceiver, TcpSender};
use crate::net::LinkSpec;
use crate::net::spec::mbit_rate;
use crate::portal::{Clock, Recipe};
use crate::trace;
use crate::world::{Act, HostId, LOCAL, REMOTE, Setup, World};
use hawser_core::congestion::Kind;
use hawser_core::rules::Rules;
use hawser_core::session::Terms;
use hawser_core::units::{ByteCount, LinkGroup, Rate, Time};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

/// The share of a link's bytes that is inner bytes, for the smallest TUN MTU: 59 bytes of headers each.
const INNER_SHARE: f64 = 1280.0 / 1339.0;
/// The bulk's packets queued at the ingress, bytes.
const BACKLOG: u64 = 65_536;
/// Pings each second.
const PING_EVERY: Duration = Duration::from_millis(10);
/// The sparse flow: Mbit/s and bytes a packet.
const THIN: (f64, usize) = (0.1, 200);
/// Bytes of the TCP stream.
const STREAM: u64 = 200_000;
/// What a tunnel may take to drain after the traffic's end: six tries, each a probe timeout.
const DRAIN: Duration = Duration::from_secs(8);
/// Delivery of a sparse flow's packets in order is judged against later packets only.
const ADDRESSES: [[u8; 4]; 2] = [[10, 1, 0, 0], [10, 2, 0, 0]];

/// This many seconds from the start.
pub fn second(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// The address of host `last` behind the portal of `side`.
pub fn address(side: usize, last: u8) -> Ipv4Addr {
    let [a, b, c, _] = ADDRESSES[side];
    Ipv4Addr::new(a, b, c, last)
}

/// What must hold. Everything is optional but what the module says. A plain value.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// From, to (seconds), least share of what the links carry for inner bytes then.
    pub share: Vec<(f64, f64, f64)>,
    /// From, to, the bulk's least rate, Mbit/s of inner packets.
    pub rate: Vec<(f64, f64, f64)>,
    /// From, to, the longest time without any bulk, ms.
    pub gap: Vec<(f64, f64, f64)>,
    /// From, to, the ping's 90th percentile, ms.
    pub ping: Vec<(f64, f64, f64)>,
    /// How many pings may stay unanswered.
    pub pings_lost: Option<usize>,
    /// The share of the bulk's packets that may come out of order; nothing by default.
    pub disorder: f64,
    /// From, to, link, most bytes sent by it: for tiers.
    pub quiet: Vec<(f64, f64, usize, u64)>,
    /// Bytes that may go to addresses that are nobody's any more.
    pub strays: u64,
    /// The stream need not be complete: a portal that restarts may lose it.
    pub stream_may_fail: bool,
}

/// A situation, before it is run. A plain value.
#[derive(Clone)]
pub struct Case {
    links: Vec<LinkSpec>,
    acts: Vec<(f64, Act)>,
    seconds: f64,
    bulk: Plan,
    congestion: Kind,
    rules: Rules,
    terms: Vec<(LinkGroup, Terms)>,
    clocks: Option<[Clock; 2]>,
    both_initiate: bool,
    down: bool,
    seed: u64,
    expect: Expect,
}

/// A situation on these links: six seconds of traffic to the remote portal.
pub fn on(links: &[LinkSpec]) -> Case {
    Case {
        links: links.to_vec(),
        acts: Vec::new(),
        seconds: 6.0,
        bulk: Plan::greedy(BACKLOG),
        congestion: Kind::Bbr,
        rules: Rules::default(),
        terms: Vec::new(),
        clocks: None,
        both_initiate: false,
        down: false,
        seed: 1,
        expect: Expect::default(),
    }
}

impl Case {
    /// Something happens at that second.
    pub fn at(mut self, second: f64, act: Act) -> Self {
        self.acts.push((second, act));
        self
    }

    /// Traffic for this many seconds.
    pub fn lasts(mut self, seconds: f64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Another bulk.
    pub fn bulk(mut self, plan: Plan) -> Self {
        self.bulk = plan;
        self
    }

    /// The bulk goes to the local portal.
    pub fn downwards(mut self) -> Self {
        self.down = true;
        self
    }

    /// Another controller.
    pub fn congestion(mut self, kind: Kind) -> Self {
        self.congestion = kind;
        self
    }

    /// Both portals treat flows so.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The local portal offers a link on these terms.
    pub fn terms(mut self, link: usize, terms: Terms) -> Self {
        self.terms.push((LinkGroup(link as u16), terms));
        self
    }

    /// These clocks.
    pub fn clocks(mut self, clocks: [Clock; 2]) -> Self {
        self.clocks = Some(clocks);
        self
    }

    /// Both portals initiate.
    pub fn both_initiate(mut self) -> Self {
        self.both_initiate = true;
        self
    }

    /// Another seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// At least this share of what the links carry, from the second third of the time on.
    pub fn share(self, least: f64) -> Self {
        let (from, to) = (self.seconds / 3.0, self.seconds);
        self.share_between(from, to, least)
    }

    /// At least this share between two seconds.
    pub fn share_between(mut self, from: f64, to: f64, least: f64) -> Self {
        self.expect.share.push((from, to, least));
        self
    }

    /// At least this many Mbit/s of bulk between two seconds.
    pub fn rate(mut self, from: f64, to: f64, mbit: f64) -> Self {
        self.expect.rate.push((from, to, mbit));
        self
    }

    /// Never longer than this many ms without bulk between two seconds.
    pub fn gap(mut self, from: f64, to: f64, ms: f64) -> Self {
        self.expect.gap.push((from, to, ms));
        self
    }

    /// Nine of ten pings between two seconds are back within this many ms.
    pub fn ping(mut self, from: f64, to: f64, ms: f64) -> Self {
        self.expect.ping.push((from, to, ms));
        self
    }

    /// At most this many pings are lost.
    pub fn pings_lost(mut self, most: usize) -> Self {
        self.expect.pings_lost = Some(most);
        self
    }

    /// This share of the bulk may be out of order.
    pub fn disorder(mut self, share: f64) -> Self {
        self.expect.disorder = share;
        self
    }

    /// A link sends at most this many bytes between two seconds.
    pub fn quiet(mut self, from: f64, to: f64, link: usize, bytes: u64) -> Self {
        self.expect.quiet.push((from, to, link, bytes));
        self
    }

    /// This many bytes may go to addresses that are nobody's any more.
    pub fn strays(mut self, bytes: u64) -> Self {
        self.expect.strays = bytes;
        self
    }

    /// The TCP stream may fail.
    pub fn stream_may_fail(mut self) -> Self {
        self.expect.stream_may_fail = true;
        self
    }

    /// Steps 2 to 4; what was seen is given back for more to be asked.
    pub fn run(mut self, name: &str) -> Seen {
        if let Ok(seed) = std::env::var("HAWSER_SIM_SEED") {
            self.seed = seed.parse().expect("HAWSER_SIM_SEED is a number");
        }
        let mut running = Running::new(self, name);
        running.go();
        running.judge()
    }
}

/// What a situation left. No default.
pub struct Seen {
    /// The world at the end.
    pub world: World,
    /// The bulk's packets.
    pub bulk: Rc<RefCell<Ledger>>,
    /// The sparse flow's.
    pub thin: Rc<RefCell<Ledger>>,
}

struct Running {
    case: Case,
    name: String,
    world: World,
    bulk: Rc<RefCell<Ledger>>,
    thin: Rc<RefCell<Ledger>>,
    ping: HostId,
    stream: HostId,
    /// By `quiet`'s expectations: bytes sent by then, at their beginnings and ends.
    counted: Vec<(u64, u64)>,
}

impl Running {
    fn new(case: Case, name: &str) -> Self {
        let recipes = [LOCAL, REMOTE].map(|side| Recipe {
            rules: case.rules.clone(),
            terms: if side == LOCAL { case.terms.clone() } else { Vec::new() },
            ..Recipe::of(side, case.congestion)
        });
        let setup = Setup {
            seed: case.seed,
            links: case.links.clone(),
            recipes,
            clocks: case.clocks,
            both_initiate: case.both_initiate,
        };
        let mut world = World::new(setup);
        let until = second(case.seconds);
        let (from, to) = if case.down { (REMOTE, LOCAL) } else { (LOCAL, REMOTE) };
        let (bulk, thin) = (Rc::<RefCell<Ledger>>::default(), Rc::<RefCell<Ledger>>::default());
        let steady = Plan::steady(THIN.0, THIN.1);
        for (plan, ledger, host) in [(case.bulk, &bulk, 10), (steady, &thin, 11)] {
            let plan = Plan { until: until.min(plan.until), ..plan };
            let source = Source::new(plan, address(from, host), address(to, host), Rc::clone(ledger));
            world.add_host(from, address(from, host), source);
            world.add_host(to, address(to, host), Sink(Rc::clone(ledger)));
        }
        let stream = world.add_host(to, address(to, 12), TcpReceiver::new(address(to, 12)));
        world.add_host(
            from,
            address(from, 12),
            TcpSender::new(address(from, 12), address(to, 12), second(0.5), STREAM),
        );
        // Before it every session is young, and first initiations may be lost.
        let ping = Ping::new(address(from, 13), address(to, 12), PING_EVERY, second(1.5), until);
        let ping = world.add_host(from, address(from, 13), ping);
        for (at, act) in &case.acts {
            world.at(second(*at), act.clone());
        }
        Running { case, name: name.to_owned(), world, bulk, thin, ping, stream, counted: Vec::new() }
    }

    /// Step 2 and 3.
    fn go(&mut self) {
        self.counted = vec![(0, 0); self.case.expect.quiet.len()];
        let quiet = self.case.expect.quiet.clone();
        let mut moments: Vec<(f64, usize, bool)> = Vec::new();
        for (which, (from, to, ..)) in quiet.iter().enumerate() {
            moments.extend([(*from, which, true), (*to, which, false)]);
        }
        moments.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (at, which, begins) in moments {
            self.pass_until(second(at));
            let link = &self.world.links[quiet[which].2];
            let sent = link.up.counters.sent_bytes + link.down.counters.sent_bytes;
            let counted = &mut self.counted[which];
            if begins { counted.0 = sent } else { counted.1 = sent }
        }
        self.pass_until(second(self.case.seconds) + DRAIN);
    }

    /// Lets the time pass, and says how it goes if asked to.
    fn pass_until(&mut self, end: Time) {
        let Some(step) = std::env::var("HAWSER_SIM_TRACE").ok() else { return self.world.run_until(end) };
        let step = Duration::from_millis(step.parse().expect("HAWSER_SIM_TRACE is a number of ms"));
        while self.world.now < end {
            let start = self.world.now;
            self.world.run_until(end.min(start + step));
            let bytes = self.bulk.borrow().bytes_between(start, self.world.now);
            println!("{}", trace::line(&self.world, Rate::of(ByteCount(bytes), step).as_bits() as f64 / 1e6));
        }
    }

    /// What all links together carry for inner packets from one second to another, by what they are
    /// like at the start and at the end, whichever is less.
    fn capacity(&self) -> Rate {
        let way = |up: bool, link: &crate::world::VirtualLink| if up { link.up.way.rate } else { link.down.way.rate };
        let live = self.world.links.iter().map(|link| way(!self.case.down, link).0);
        Rate(live.sum::<u64>()).scale(INNER_SHARE)
    }

    /// Step 4.
    fn judge(self) -> Seen {
        self.judge_bulk();
        self.judge_others();
        self.judge_end();
        Seen { world: self.world, bulk: self.bulk, thin: self.thin }
    }

    #[track_caller]
    fn holds(&self, holds: bool, what: impl FnOnce() -> String) {
        assert!(holds, "{} (seed {}): {}", self.name, self.case.seed, what());
    }

    fn judge_bulk(&self) {
        let (bulk, expect) = (self.bulk.borrow(), &self.case.expect);
        let rate = |from, to| {
            let bytes = bulk.bytes_between(second(from), second(to));
            Rate::of(ByteCount(bytes), second(to).since(second(from)))
        };
        for &(from, to, least) in &expect.share {
            let (got, all) = (rate(from, to), self.capacity());
            let share = got.0 as f64 / all.0 as f64;
            self.holds(share >= least, || {
                format!("{share:.3} of {} Mbit/s from {from} to {to} s, not {least}", all.as_bits() as f64 / 1e6)
            });
        }
        for &(from, to, least) in &expect.rate {
            let got = rate(from, to);
            self.holds(got >= mbit_rate(least), || {
                format!("{} bit/s from {from} to {to} s, not {least} Mbit/s", got.as_bits())
            });
        }
        for &(from, to, most) in &expect.gap {
            let gap = bulk.longest_gap(second(from), second(to)).as_secs_f64() * 1e3;
            self.holds(gap <= most, || format!("a gap of {gap:.0} ms from {from} to {to} s, more than {most}"));
        }
        let late = bulk.out_of_order();
        let disorder = late.len() as f64 / bulk.arrivals.len().max(1) as f64;
        self.holds(disorder <= expect.disorder, || {
            let when = [late.first(), late.last()].map(|at| at.map_or(0.0, |at| at.as_nanos() as f64 / 1e9));
            format!(
                "{} of {} packets out of order, from {:.2} to {:.2} s",
                late.len(),
                bulk.arrivals.len(),
                when[0],
                when[1]
            )
        });
        for (what, ledger) in [("bulk", &*bulk), ("thin", &*self.thin.borrow())] {
            self.holds(ledger.corrupt == 0, || format!("{} corrupt packets, {what}", ledger.corrupt));
            self.holds(ledger.duplicates == 0, || format!("{} packets came twice, {what}", ledger.duplicates));
            self.holds(!ledger.arrivals.is_empty(), || format!("nothing came, {what}"));
        }
    }

    fn judge_others(&self) {
        let expect = &self.case.expect;
        let stream: &TcpReceiver = self.world.host(self.stream);
        self.holds(stream.corrupt == 0, || format!("{} bytes of the stream are wrong", stream.corrupt));
        self.holds(stream.bytes == STREAM || expect.stream_may_fail, || {
            format!("{} of {STREAM} bytes of the stream", stream.bytes)
        });
        let ping: &Ping = self.world.host(self.ping);
        for &(from, to, most) in &expect.ping {
            let trip = ping.quantile(second(from), second(to), 0.9).as_secs_f64() * 1e3;
            self.holds(trip <= most, || format!("ping {trip:.1} ms from {from} to {to} s, more than {most}"));
        }
        if let Some(most) = expect.pings_lost {
            let lost = ping.lost(Time::NEVER);
            self.holds(lost <= most, || format!("{lost} pings lost, more than {most}"));
        }
        for ((from, to, link, most), (before, after)) in expect.quiet.iter().zip(&self.counted) {
            let sent = after - before;
            self.holds(sent <= *most, || {
                format!("link {link} sent {sent} bytes from {from} to {to} s, more than {most}")
            });
        }
    }

    /// Nothing is held at the end, on either side.
    fn judge_end(&self) {
        for (side, portal) in self.world.portals.iter().enumerate().filter(|(_, portal)| !portal.stopped) {
            let trains = portal.endpoint.snapshot(portal.clock.show(self.world.now)).trains;
            self.holds(trains == ByteCount::ZERO, || format!("side {side} still holds {trains:?} of inner packets"));
            let session = portal.session(self.world.now);
            self.holds(session.is_some(), || format!("side {side} has no session at the end"));
            let Some(session) = session else { continue };
            let rests = [session.queued, session.retransmit, session.held];
            self.holds(rests == [ByteCount::ZERO; 3], || {
                format!("side {side} still has queued, retransmit, held: {rests:?}")
            });
        }
        let strays: u64 = self.world.strays.values().map(|stray| stray.bytes).sum();
        self.holds(strays <= self.case.expect.strays, || format!("datagrams to nobody: {:?}", self.world.strays));
    }
}
