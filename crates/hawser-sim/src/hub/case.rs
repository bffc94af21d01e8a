//! What a member's death, and what is like it, costs users: drawn by seed, run, and judged.
//!
//! 1. [`Case::draw`]: two links, the ways beyond them to both members, and what happens ([`Fault`]).
//! 2. [`Case::run`]: a TCP stream each way, a call, and a ping a hundred times a second, beside it; or more of these.
//! 3. [`Outcome`]: the longest gap, what was lost, whether the streams live, how often the peer moved.

pub use super::fault::{FAULTS, Fault};
pub use super::outcome::Outcome;

use super::outcome::{Looked, ms};
use super::{Setup, World};
use crate::host::flow::{Ledger, Plan, Sink, Source};
use crate::host::ping::{Echo, Ping};
use crate::net::{LinkSpec, link};
use crate::random::Seeded;
use crate::situation::{address, second};
use crate::tcp::Transfer;
use crate::tcp::hosts::{ReceiverHost, SenderHost};
use crate::world::{LOCAL, REMOTE};
use hawser_core::rules::Rules;
use hawser_core::units::ByteCount;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// When packets begin to flow, seconds: the standby's session is idle soon afterwards.
const BEGINS: f64 = 9.5;
/// From then until the fault the standby's cost is counted.
pub(super) const CALM: f64 = 11.0;
/// When it happens, and when it is over.
pub(super) const FAULT: f64 = 14.0;
pub(super) const HEALS: f64 = 17.0;
/// The run ends then.
pub(super) const END: f64 = 21.0;
/// For how long bulk is looked at after a fault, seconds: as long as before it, from [`CALM`] on.
pub(super) const BULK_FOR: f64 = 2.8;
/// Who is active at first, and who takes over.
pub(super) const ACTIVE: usize = 0;
pub(super) const STANDBY: usize = 1;
/// A ping this often; a call's packet as often, of as many bytes as G.711's 20 ms take in IPv4, UDP and RTP (RFC 3551).
const PING: Duration = Duration::from_millis(10);
const CALL: (f64, usize) = (0.08, 200);
/// Each of the two links of a home in the tests with real processes (hawser-lab, `hub`): Mbit/s, the round trip and the
/// queue, ms.
const HOME: (f64, f64, f64) = (10.0, 20.0, 100.0);

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

    /// The same with this many calls each way; one by default. Panics unless it is 1 to 100: each has addresses of its
    /// own.
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

    /// The same by the links that a home of the tests with real processes has.
    pub fn by_links_of_a_home(self) -> Self {
        let (mbit, trip, queue) = HOME;
        let home = || (link(mbit, trip).queue_ms(queue), [Duration::ZERO; 2]);
        Case { links: vec![home(), home()], ..self }
    }

    /// Step 2.
    pub fn run(&self) -> Outcome {
        let mut world = World::new(Setup { seed: self.seed, links: self.links.clone(), rules: Rules::default() });
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
        let calls = calls.map(|way| way.iter().map(|ledger| ledger.take()).collect());
        let looked = Looked { world: &world, calls, ping, streams: [up, down], over: self.fault.over() };
        Outcome { standby, claims, lapses, ..Outcome::judge(&looked) }
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
