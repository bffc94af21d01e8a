//! Random topologies, against tuning to a table: the bond against the same core on its best link alone.
//!
//! 1. [`Topology::random`] draws one to four links by a seed.
//! 2. [`Topology::compare`] keeps a greedy source busy, on all links and on each that could be the
//!    best alone, for as long as the slowest round trip needs and the byte budget allows.
//! 3. [`compare_all`] does that for many seeds, on all cores of the machine.

use crate::host::flow::{Ledger, Plan, Sink, Source};
use crate::net::spec::mbit_rate;
use crate::net::{LinkSpec, link};
use crate::portal::Recipe;
use crate::random::Seeded;
use crate::situation::address;
use crate::world::{LOCAL, REMOTE, Setup, World};
use hawser_core::congestion::Kind;
use hawser_core::units::{ByteCount, Rate, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What is drawn from (issue "Bond two links", tests): Mbit/s, round trips in ms, shares lost,
/// buffers in bandwidth-delay products.
const RATES: (f64, f64) = (1.0, 500.0);
const ROUND_TRIPS: (f64, f64) = (1.0, 300.0);
const LOSS: f64 = 0.03;
const BUFFERS: (f64, f64) = (0.2, 4.0);
/// The share of links that lose anything.
const LOSSY: f64 = 0.5;
/// No buffer is smaller, bytes: five packets. A fifth of a short product would hold none.
const BUFFER_MIN: u64 = 7_500;
/// After the start, the controllers find their rates in this time and this number of round trips.
const WARM: (Duration, u32) = (Duration::from_millis(500), 5);
/// The measurement lasts at least this long and this number of round trips.
const MEASURE: (Duration, u32) = (Duration::from_millis(1_000), 5);
/// It goes on until the links could have carried this, or for `LONGEST`.
const BUDGET: ByteCount = ByteCount(12_000_000);
const LONGEST: Duration = Duration::from_secs(6);
/// The source keeps the queue this full: what a congestion-controlled sender leaves at CoDel's target.
const BACKLOG: Duration = Duration::from_millis(20);
/// And at least this full, bytes.
const BACKLOG_MIN: ByteCount = ByteCount(32_768);

/// Links drawn by a seed. A plain value.
#[derive(Clone)]
pub struct Topology {
    /// The seed.
    pub seed: u64,
    /// The links.
    pub links: Vec<LinkSpec>,
}

/// What a greedy source got. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Got {
    /// Inner bytes at the far side.
    pub goodput: Rate,
    /// From the ingress queue to delivery in order: median and 95th percentile.
    pub delay: [Duration; 2],
    /// Packets that came.
    pub packets: u64,
    /// Those of them that came out of order.
    pub late: u64,
}

/// The bond and the best link. A plain value.
#[derive(Clone)]
pub struct Comparison {
    /// What was compared.
    pub topology: Topology,
    /// All links together.
    pub bond: Got,
    /// The best of them alone, and which.
    pub best: (usize, Got),
}

impl Topology {
    /// One to four links.
    pub fn random(seed: u64) -> Self {
        let mut rng = Seeded::new(seed);
        let count = 1 + rng.below(4);
        let links = (0..count).map(|_| random_link(&mut rng)).collect();
        Topology { seed, links }
    }

    fn longest_trip(&self) -> Duration {
        self.links.iter().map(|link| link.up.delay + link.down.delay).max().unwrap_or_default()
    }

    /// What the slowest link's round trip, its buffer and the ingress queue take together.
    pub fn longest_delay(&self) -> Duration {
        let through = |link: &LinkSpec| link.up.delay + link.down.delay + link.up.rate.time_for(link.up.queue);
        let slowest = self.links.iter().map(through).max().unwrap_or_default();
        slowest + self.rate().time_for(self.backlog())
    }

    /// How full the source keeps the queue.
    fn backlog(&self) -> ByteCount {
        self.rate().bytes_in(BACKLOG).max(BACKLOG_MIN)
    }

    fn rate(&self) -> Rate {
        Rate(self.links.iter().map(|link| link.up.rate.0).sum())
    }

    /// When the measurement begins and ends.
    fn window(&self) -> (Time, Time) {
        let trip = self.longest_trip();
        let warm = WARM.0 + trip * WARM.1;
        let least = MEASURE.0 + trip * MEASURE.1;
        let measure = self.rate().time_for(BUDGET).clamp(least, LONGEST.max(least));
        (Time::ZERO + warm, Time::ZERO + warm + measure)
    }

    /// Step 2, for these of its links.
    pub fn measure(&self, links: &[LinkSpec], kind: Kind) -> Got {
        let (from, to) = self.window();
        let setup = Setup {
            seed: self.seed,
            links: links.to_vec(),
            recipes: [LOCAL, REMOTE].map(|side| Recipe::of(side, kind)),
            clocks: None,
            both_initiate: false,
        };
        let mut world = World::new(setup);
        let ledger = Rc::<RefCell<Ledger>>::default();
        let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
        let plan = Plan { until: to, ..Plan::greedy(self.backlog().0) };
        world.add_host(LOCAL, ends[LOCAL], Source::new(plan, ends[LOCAL], ends[REMOTE], Rc::clone(&ledger)));
        world.add_host(REMOTE, ends[REMOTE], Sink(Rc::clone(&ledger)));
        world.run_until(to);
        let ledger = ledger.borrow();
        Got {
            goodput: Rate::of(ByteCount(ledger.bytes_between(from, to)), to.since(from)),
            delay: [0.5, 0.95].map(|share| ledger.delay_quantile(from, to, share)),
            packets: ledger.arrivals.len() as u64,
            late: ledger.out_of_order().len() as u64,
        }
    }

    /// Step 2.
    pub fn compare(&self, kind: Kind) -> Comparison {
        let bond = self.measure(&self.links, kind);
        let mut order: Vec<usize> = (0..self.links.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.links[*index].up.rate));
        let mut best = (0, Got::default());
        for index in order {
            // A link cannot be better than its rate.
            if self.links[index].up.rate <= best.1.goodput {
                break;
            }
            let alone = match self.links.len() {
                1 => bond,
                _ => self.measure(&self.links[index..=index], kind),
            };
            if alone.goodput > best.1.goodput {
                best = (index, alone);
            }
        }
        Comparison { topology: self.clone(), bond, best }
    }
}

fn random_link(rng: &mut Seeded) -> LinkSpec {
    let mbit = rng.log_between(RATES.0, RATES.1);
    let trip = rng.log_between(ROUND_TRIPS.0, ROUND_TRIPS.1);
    let loss = if rng.chance(LOSSY) { rng.unit() * LOSS } else { 0.0 };
    let products = rng.log_between(BUFFERS.0, BUFFERS.1);
    let spec = link(mbit, trip).loss(loss);
    let product = mbit_rate(mbit).bytes_in(Duration::from_secs_f64(trip / 1e3));
    spec.both(|way| way.queue = product.scale(products).max(ByteCount(BUFFER_MIN)))
}

impl Comparison {
    /// The bond's goodput over the best link's.
    pub fn ratio(&self) -> f64 {
        self.bond.goodput.0 as f64 / (self.best.1.goodput.0 as f64).max(1.0)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbit = |rate: Rate| rate.as_bits() as f64 / 1e6;
        let ms = |delay: Duration| delay.as_secs_f64() * 1e3;
        let ends = |got: &Got| {
            format!("{:7.2} Mbit/s {:6.1}/{:6.1} ms", mbit(got.goodput), ms(got.delay[0]), ms(got.delay[1]))
        };
        write!(
            f,
            "{:.3} seed {:3} bond {} {:.2} % late best {} (link {}):",
            self.ratio(),
            self.topology.seed,
            ends(&self.bond),
            self.bond.late as f64 / self.bond.packets.max(1) as f64 * 100.0,
            ends(&self.best.1),
            self.best.0
        )?;
        for link in &self.topology.links {
            let trip = link.up.delay + link.down.delay;
            let buffer = link.up.rate.time_for(link.up.queue);
            let loss = match link.up.loss {
                crate::net::Loss::Random(share) => share * 100.0,
                _ => 0.0,
            };
            write!(
                f,
                " [{:.1} Mbit/s {:.0} ms {loss:.1} % buffer {:.0} ms]",
                mbit(link.up.rate),
                ms(trip),
                ms(buffer)
            )?;
        }
        Ok(())
    }
}

/// Step 3: comparisons of the topologies of these seeds, worst first.
pub fn compare_all(seeds: std::ops::Range<u64>, kind: Kind) -> Vec<Comparison> {
    let seeds: Vec<u64> = seeds.collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let comparison = Topology::random(*seed).compare(kind);
            done.lock().expect("no worker panics with the lock").push(comparison);
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let mut done = done.into_inner().expect("no worker panics with the lock");
    done.sort_by(|one, other| one.ratio().total_cmp(&other.ratio()));
    done
}
