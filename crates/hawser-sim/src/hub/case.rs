//! What a member's death, and what is like it, costs users: drawn by seed, run, and judged.
//!
//! 1. [`Case::draw`]: two links, the ways beyond them to both members, and what happens at [`FAULT`].
//! 2. [`Case::run`]: a TCP stream each way, a call, and a ping a hundred times a second, beside it; or more of these.
//! 3. [`Outcome`]: the longest gap, what was lost, whether the streams live, how often the peer moved.

use super::{Act, Setup, World};
use crate::host::flow::{Ledger, Plan, Sink, Source};
use crate::host::ping::{Echo, Ping};
use crate::net::{LinkSpec, link};
use crate::random::Seeded;
use crate::situation::address;
use crate::tcp::Transfer;
use crate::tcp::hosts::{ReceiverHost, SenderHost};
use crate::world::{LOCAL, REMOTE};
use hawser_core::units::{ByteCount, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// When packets begin to flow, seconds: the standby's session is idle soon afterwards.
const BEGINS: f64 = 9.5;
/// From then until the fault the standby's cost is counted.
const CALM: f64 = 11.0;
/// When it happens, and when it is over.
const FAULT: f64 = 14.0;
const HEALS: f64 = 17.0;
/// The run ends then.
const END: f64 = 21.0;
/// Who is active at first, and who takes over.
const ACTIVE: usize = 0;
const STANDBY: usize = 1;
/// What follows the fault is looked at in steps of this, and how many there are.
const STEP: Duration = Duration::from_millis(100);
const STEPS: u32 = 15;
/// A ping this often; a call's packet as often, of as many bytes as G.711's 20 ms take in IPv4, UDP and RTP (RFC 3551).
const PING: Duration = Duration::from_millis(10);
const CALL: (f64, usize) = (0.08, 200);

/// What happens. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The active member's machine dies.
    Killed,
    /// Its portal is stopped, and goes on after three seconds; the machine's routes stay.
    Stopped,
    /// One link's way to it is cut, for three seconds.
    LinkCut,
    /// What the peer sends to it is lost, by all links, for three seconds; it still sends.
    DeafOwner,
    /// What it sends is lost; it still hears.
    MuteOwner,
    /// The routing daemons' session with it is cut for three seconds: packets for the peer come to the standby.
    Unrouted,
    /// The operator drains it.
    Drained,
    /// The same, and the one that owns from then on is stopped 0.3 s later, for three seconds.
    Forsaken,
    /// Its portal ends in order.
    Closed,
    /// The peer's links are away, for half a second: nobody moves.
    LinksAway,
}

/// All of them.
pub const FAULTS: [Fault; 10] = [
    Fault::Killed,
    Fault::Stopped,
    Fault::LinkCut,
    Fault::DeafOwner,
    Fault::MuteOwner,
    Fault::Unrouted,
    Fault::Drained,
    Fault::Forsaken,
    Fault::Closed,
    Fault::LinksAway,
];

impl Fault {
    /// How often the peer is to move.
    pub fn moves(self) -> usize {
        match self {
            Fault::LinkCut | Fault::LinksAway => 0,
            // There, back, and there again once that one goes on.
            Fault::Forsaken => 3,
            _ => 1,
        }
    }

    /// What it does, seconds from the start.
    fn acts(self) -> Vec<(f64, Act)> {
        let all = |holes| (0..2).flat_map(move |link| [(FAULT, holes, link), (HEALS, [false; 2], link)]);
        let to_owner = |holes| all(holes).map(|(at, holes, link)| (at, Act::Holes(link, ACTIVE, holes))).collect();
        match self {
            Fault::Killed => vec![(FAULT, Act::Kill(ACTIVE)), (HEALS, Act::Start(ACTIVE))],
            Fault::Stopped => vec![(FAULT, Act::Freeze(ACTIVE)), (HEALS, Act::Thaw(ACTIVE))],
            Fault::LinkCut => {
                vec![(FAULT, Act::Holes(0, ACTIVE, [true; 2])), (HEALS, Act::Holes(0, ACTIVE, [false; 2]))]
            }
            Fault::DeafOwner => to_owner([true, false]),
            Fault::MuteOwner => to_owner([false, true]),
            Fault::Unrouted => vec![(FAULT, Act::Unroute(ACTIVE, true)), (HEALS, Act::Unroute(ACTIVE, false))],
            Fault::Drained => vec![(FAULT, Act::Drain(ACTIVE))],
            Fault::Forsaken => {
                let stopped = FAULT + 0.3;
                vec![(FAULT, Act::Drain(ACTIVE)), (stopped, Act::Freeze(STANDBY)), (stopped + 3.0, Act::Thaw(STANDBY))]
            }
            Fault::Closed => vec![(FAULT, Act::Close(ACTIVE)), (HEALS, Act::Start(ACTIVE))],
            Fault::LinksAway => {
                let away = |at, holes| {
                    (0..2).flat_map(move |link| [ACTIVE, STANDBY].map(|of| (at, Act::Holes(link, of, holes))))
                };
                away(FAULT, [true; 2]).chain(away(FAULT + 0.5, [false; 2])).collect()
            }
        }
    }
}

/// A fault and where it happens. A plain value.
#[derive(Clone, Debug)]
pub struct Case {
    /// Decides all that is random.
    pub seed: u64,
    /// What happens.
    pub fault: Fault,
    calls: u8,
    streams: usize,
    links: Vec<(LinkSpec, [Duration; 2])>,
}

/// What users had of it. Plain data; times in ms.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The longest time without an answered ping from just before the fault on, and the round trip of the slowest path.
    pub gap: f64,
    /// The same of three seconds before: what this traffic does by itself.
    pub gap_before: f64,
    /// The same of the call that waited longest, to the server and back.
    pub call_gap: [f64; 2],
    /// Packets of the calls that were sent, lost and came twice, both ways.
    pub sent: [u64; 2],
    /// See `sent`.
    pub lost: [u64; 2],
    /// See `sent`.
    pub twice: [u64; 2],
    /// Pings that were not answered.
    pub pings_lost: usize,
    /// How long the streams stood still, to the server and back.
    pub streams: [f64; 2],
    /// Both streams brought something in the last two seconds, and nothing wrong.
    pub lives: bool,
    /// Moves, and the delay of the first after the fault.
    pub moves: usize,
    /// See `moves`.
    pub moved_after: f64,
    /// What members refused.
    pub refused: u64,
    /// Bytes that the streams brought in the two seconds after the fault, over those of the two before, both ways.
    pub kept: [f64; 2],
    /// The ping's median before the fault.
    pub ping: f64,
    /// Its 90th percentile in each tenth of a second from the fault on, for a second and a half.
    pub ping_after: Vec<f64>,
    /// Datagrams a second and link that the peer sent to the standby before the fault.
    pub standby: f64,
    /// Claims a second that the owner heard before the fault.
    pub claims: f64,
    /// How often the owner's lease was over before the next claim came, until the fault.
    pub lapses: u64,
}

fn second(at: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(at)
}

/// When a step from the fault on begins.
fn step_at(step: u32) -> Time {
    second(FAULT) + STEP * step
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Case {
    /// Step 1.
    pub fn draw(seed: u64, fault: Fault) -> Self {
        let mut rng = Seeded::new(seed);
        let mut one = |mbit: (f64, f64), trip: (f64, f64)| {
            let (mbit, trip) = (rng.log_between(mbit.0, mbit.1), rng.log_between(trip.0, trip.1));
            let loss = if rng.chance(0.5) { rng.unit() * 0.003 } else { 0.0 };
            let spec = link(mbit, trip).queue_ms(rng.log_between(20.0, 80.0)).loss(loss).jitter(rng.unit() * 3.0);
            (spec, [(); 2].map(|()| rng.up_to(Duration::from_millis(8))))
        };
        let links = vec![one((8.0, 40.0), (8.0, 30.0)), one((4.0, 20.0), (15.0, 60.0))];
        Case { seed, fault, calls: 1, streams: 1, links }
    }

    /// The same with this many calls each way; one by default. Panics unless it is 1 to 100: each has addresses of its own.
    pub fn with_calls(self, calls: u8) -> Self {
        assert!((1..=100).contains(&calls), "{calls} calls");
        Case { calls, ..self }
    }

    /// The same with this many streams to the server; one by default.
    pub fn with_streams(self, streams: usize) -> Self {
        Case { streams, ..self }
    }

    /// The same by links of this part of the rates.
    pub fn with_rates(mut self, part: f64) -> Self {
        for (spec, _) in &mut self.links {
            for way in [&mut spec.up, &mut spec.down] {
                (way.rate, way.queue) = (way.rate.scale(part), ByteCount((way.queue.0 as f64 * part) as u64));
            }
        }
        self
    }

    /// Step 2.
    pub fn run(&self) -> Outcome {
        let mut world = World::new(Setup { seed: self.seed, links: self.links.clone() });
        let ends = |host| [LOCAL, REMOTE].map(|side| address(side, host));
        let bulk = [
            Transfer::bulk(second(BEGINS + 0.5), second(END)).asked(),
            Transfer::bulk(second(BEGINS + 0.7), second(END)),
        ];
        let streams = |world: &mut World, from: usize, host, transfers: &[Transfer]| {
            let (ends, to) = (ends(host), 1 - from);
            let sender = SenderHost::new(ends[from], ends[to], transfers, self.seed);
            world.add_host(from, ends[from], sender);
            world.add_host(to, ends[to], ReceiverHost::new(ends[to], ends[from], transfers, self.seed))
        };
        let down = streams(&mut world, REMOTE, 10, &bulk[..1]);
        let up = streams(&mut world, LOCAL, 11, &vec![bulk[1]; self.streams]);
        let call = |world: &mut World, from: usize, number: u8| {
            // 14 is the ping's.
            let host = if number == 0 { 12 } else { 14 + 2 * number } + from as u8;
            let (ends, to, ledger) = (ends(host), 1 - from, Rc::<RefCell<Ledger>>::default());
            let begins = second(BEGINS) + Duration::from_millis(number.into());
            let plan = Plan { from: begins, until: second(END - 1.0), ..Plan::steady(CALL.0, CALL.1) };
            world.add_host(from, ends[from], Source::new(plan, ends[from], ends[to], Rc::clone(&ledger)));
            world.add_host(to, ends[to], Sink(Rc::clone(&ledger)));
            ledger
        };
        let calls =
            [LOCAL, REMOTE].map(|from| Vec::from_iter((0..self.calls).map(|number| call(&mut world, from, number))));
        let pinged = ends(14);
        let ping = Ping::new(pinged[LOCAL], pinged[REMOTE], PING, second(BEGINS), second(END - 1.0));
        let ping = world.add_host(LOCAL, pinged[LOCAL], ping);
        world.add_host(REMOTE, pinged[REMOTE], Echo::default());
        for (at, act) in self.fault.acts() {
            world.at(second(at), act);
        }
        world.run_until(second(CALM));
        let (before, claims) = (world.to_standby, world.claims(ACTIVE));
        world.run_until(second(FAULT));
        let standby = (world.to_standby - before) as f64 / (FAULT - CALM) / self.links.len() as f64;
        let (claims, lapses) = ((world.claims(ACTIVE) - claims) as f64 / (FAULT - CALM), world.lapses(ACTIVE));
        world.run_until(second(END));
        Outcome {
            standby,
            claims,
            lapses,
            ..self.judge(&world, calls.map(|way| way.iter().map(|ledger| ledger.take()).collect()), ping, [up, down])
        }
    }

    /// Step 3.
    fn judge(
        &self,
        world: &World,
        calls: [Vec<Ledger>; 2],
        ping: crate::host::HostId,
        streams: [crate::host::HostId; 2],
    ) -> Outcome {
        let (from, to) = (second(FAULT - 0.1), second(END - 1.0));
        let ping: &Ping = world.host(ping);
        let receivers = streams.map(|host| &world.host::<ReceiverHost>(host).receivers[0]);
        let after = world.moved.iter().find(|(at, _)| *at >= second(FAULT));
        let bytes = |receiver: &crate::tcp::receiver::Receiver, from: f64| {
            receiver.bytes_between(second(from), second(from + 2.0))
        };
        let sum = |of: &dyn Fn(&Ledger) -> u64| calls.each_ref().map(|way| way.iter().map(of).sum());
        Outcome {
            gap: ms(ping.longest_gap(from, to)),
            gap_before: ms(ping.longest_gap(second(CALM), from)),
            call_gap: calls
                .each_ref()
                .map(|way| way.iter().map(|call| ms(call.longest_gap(from, to))).fold(0.0, f64::max)),
            sent: sum(&|call| call.sent()),
            lost: sum(&|call| call.sent() - call.arrivals.len() as u64),
            twice: sum(&|call| call.duplicates),
            pings_lost: ping.lost(to - Duration::from_secs(1)),
            streams: receivers.map(|receiver| ms(receiver.longest_gap(from, to))),
            lives: receivers.iter().all(|receiver| bytes(receiver, END - 2.0) > 0 && receiver.corrupt == 0)
                && calls.iter().flatten().all(|ledger| ledger.corrupt == 0),
            moves: world.moved.len(),
            moved_after: after.map_or(f64::NAN, |(at, _)| ms(at.since(second(FAULT)))),
            refused: (0..2).map(|member| world.drops(member).of(hawser_core::drops::DropReason::NotOwner)).sum(),
            kept: receivers.map(|receiver| bytes(receiver, FAULT) as f64 / bytes(receiver, FAULT - 2.0).max(1) as f64),
            ping: ms(ping.quantile(second(FAULT - 2.0), second(FAULT), 0.5)),
            ping_after: (0..STEPS).map(|step| ms(ping.quantile(step_at(step), step_at(step + 1), 0.9))).collect(),
            standby: f64::NAN,
            claims: f64::NAN,
            lapses: 0,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} {:?}:", self.seed, self.fault)?;
        for (spec, beyond) in &self.links {
            let mbit = spec.up.rate.as_bits() as f64 / 1e6;
            let trips = beyond.map(|delay| ms(spec.up.delay + spec.down.delay + delay * 2));
            write!(f, " [{mbit:.0} Mbit/s, {:.0} and {:.0} ms]", trips[0], trips[1])?;
        }
        Ok(())
    }
}
