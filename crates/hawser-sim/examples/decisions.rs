//! Whether a change changed any decision: everything that two portals send and deliver, as one number a situation.
//!
//! `cargo run --release -p hawser-sim --example decisions [FROM TO [lines | laws | LAW]]`
//!
//! 1. A seed draws links, traffic, schedulers, controllers, and what happens to the links.
//! 2. The world runs; its journal takes every datagram and delivery with its time, link and bytes.
//! 3. Printed: the seed, the number, how many events there were. `lines` prints every event too.
//!
//! Two trees that decide alike print alike. With a LAW of the policy switched off (`hawser_core::policy::Law`) a seed
//! whose number differs is one that the law decided something in; `laws` counts those of each law.

use hawser_core::congestion::Kind;
use hawser_core::policy::{Law, Tuning};
use hawser_core::rules::{Rule, Rules, Treatment};
use hawser_core::scheduler::Kind as SchedulerKind;
use hawser_core::units::Time;
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::host::tcp::{TcpReceiver, TcpSender};
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::portal::Recipe;
use hawser_sim::random::Seeded;
use hawser_sim::situation::{address, second};
use hawser_sim::topology::Topology;
use hawser_sim::world::journal::Journal;
use hawser_sim::world::{LOCAL, REMOTE, Setup};
use hawser_sim::{Act, World};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Seeds, unless told otherwise.
const SEEDS: (u64, u64) = (0, 120);
/// A situation lasts this long, seconds: a path that is left out is tried again after five.
const SECONDS: f64 = 11.0;
/// No link is faster, Mbit/s: it would take long and decide nothing else.
const FASTEST: f64 = 40.0;
/// Bytes that the greedy source keeps queued.
const BACKLOGS: [u64; 3] = [30_000, 120_000, 600_000];
/// Bytes of the TCP stream: it lasts as long as the situation.
const STREAM: u64 = 1 << 30;
/// UDP's number (IANA).
const UDP: u8 = 17;

/// Step 1, the links: those of a random topology, or a few that are near each other; some let packets overtake.
fn links(seed: u64, rng: &mut Seeded) -> Vec<LinkSpec> {
    let mut links = match seed % 3 {
        0 => Topology::random(seed).links,
        _ => (0..2 + rng.below(3)).map(|_| link(rng.log_between(3.0, 40.0), rng.log_between(18.0, 120.0))).collect(),
    };
    for link in &mut links {
        if rng.chance(0.3) {
            *link = link.clone().reordering(rng.log_between(2.0, 60.0));
        }
        if rng.chance(0.3) {
            *link = link.clone().loss(rng.unit() * 0.03);
        }
        let most = hawser_sim::net::spec::mbit_rate(FASTEST);
        *link = link.clone().both(|way| way.rate = way.rate.min(most));
    }
    if has_tiers(seed) {
        links.iter_mut().skip(1).for_each(|link| link.metric = 1);
    }
    links
}

/// Whether all links but the first are of another tier; the first one is late, and then away, now and then.
fn has_tiers(seed: u64) -> bool {
    seed % 5 == 4
}

/// Step 1, the rules: mostly none, else another scheduler or repairs, for all traffic or for UDP.
fn rules(seed: u64) -> Rules {
    let fec = seed % 7 == 6;
    let scheduler = match seed % 12 {
        3 => SchedulerKind::Weighted,
        7 => SchedulerKind::Flow,
        11 => SchedulerKind::Redundant,
        _ if fec => SchedulerKind::Adaptive,
        _ => return Rules::default(),
    };
    let treatment = Treatment { scheduler, fec, ..Treatment::default() };
    if seed % 24 < 12 {
        Rules::new(Vec::new(), treatment)
    } else {
        Rules::new(vec![Rule { protocol: Some(UDP), treatment, ..Rule::default() }], Treatment::default())
    }
}

/// Step 1, what happens: a link or two go and come back, change their rate, delay or loss.
fn acts(seed: u64, count: usize, rng: &mut Seeded) -> Vec<(f64, Act)> {
    let mut acts = Vec::new();
    if has_tiers(seed) {
        let late = (2..9).map(|second| f64::from(second) * 1.1);
        acts.extend(late.flat_map(|at| {
            let away = at + rng.log_between(0.02, 0.7);
            [(at, Act::Cut(0)), (away, Act::Heal(0))]
        }));
    }
    for _ in 0..rng.below(3) {
        let (link, at) = (rng.below(count as u64) as usize, 1.0 + rng.unit() * 5.0);
        let back = at + 0.2 + rng.unit() * 3.0;
        match rng.below(6) {
            0 => acts.extend([(at, Act::Cut(link)), (back, Act::Heal(link))]),
            1 => acts.extend([(at, Act::Down(link)), (back, Act::Up(link))]),
            2 => acts.push((at, Act::Rate(link, rng.log_between(0.2, FASTEST)))),
            3 => acts.push((at, Act::RoundTrip(link, rng.log_between(5.0, 200.0)))),
            4 => acts.push((at, Act::Loss(link, rng.unit() * 0.05))),
            _ => acts.extend([(at, Act::Rate(link, 0.1)), (back, Act::Rate(link, 20.0))]),
        }
    }
    acts
}

/// Step 1: all of it.
fn world(seed: u64, tuning: Tuning) -> World {
    let rng = &mut Seeded::new(seed ^ 0x5eed);
    let links = links(seed, rng);
    let congestion = match seed % 8 {
        5 => Kind::Cubic,
        6 => Kind::Olia,
        _ => Kind::Bbr,
    };
    let recipes = [LOCAL, REMOTE].map(|side| Recipe { rules: rules(seed), tuning, ..Recipe::of(side, congestion) });
    let count = links.len();
    let mut world = World::new(Setup { seed, links, recipes, clocks: None, both_initiate: false });
    let (from, to) = if rng.chance(0.5) { (LOCAL, REMOTE) } else { (REMOTE, LOCAL) };
    let greedy = Plan {
        from: second(rng.unit() * 2.0),
        until: second(4.0 + rng.unit() * 8.0),
        flows: 1 + rng.below(4) as u16,
        train: 1 + rng.below(8) as u16,
        ..Plan::greedy(BACKLOGS[rng.below(3) as usize])
    };
    for (host, plan) in [(10, greedy), (11, Plan::steady(0.3, 200))] {
        let ledger = Rc::<RefCell<Ledger>>::default();
        // A third of the situations has the stream alone: the greedy source never lets a window grow.
        if host == 10 && seed % 3 == 1 {
            continue;
        }
        let source = Source::new(plan, address(from, host), address(to, host), Rc::clone(&ledger));
        world.add_host(from, address(from, host), source);
        world.add_host(to, address(to, host), Sink(ledger));
    }
    world.add_host(to, address(to, 12), TcpReceiver::new(address(to, 12)));
    let sender = TcpSender::new(address(from, 12), address(to, 12), second(0.3), STREAM);
    world.add_host(from, address(from, 12), sender);
    for (at, act) in acts(seed, count, rng) {
        world.at(second(at), act);
    }
    world
}

/// Step 2.
fn run(seed: u64, tuning: Tuning, lines: bool) -> Journal {
    let mut world = world(seed, tuning);
    world.journal = Some(Journal::new(lines));
    world.run_until(Time::ZERO + std::time::Duration::from_secs_f64(SECONDS));
    world.journal.take().expect("put there above")
}

/// Step 3.
fn print(seeds: Range<u64>, tuning: Tuning, lines: bool) {
    for seed in seeds {
        let journal = run(seed, tuning, lines);
        journal.lines.iter().flatten().for_each(|line| println!("{line}"));
        println!("seed {seed:3} {:016x} {} events", journal.hash, journal.events);
    }
}

/// In how many situations each law decides anything.
fn count_laws(seeds: Range<u64>) {
    let hash = |tuning| move |seed| run(seed, tuning, false).hash;
    let as_ever: Vec<u64> = seeds.clone().map(hash(Tuning::default())).collect();
    for law in Law::all() {
        let without = seeds.clone().map(hash(Tuning::neutral(*law)));
        let differing = without.zip(&as_ever).filter(|(without, with)| without != *with).count();
        println!("{:18} decides something in {differing:3} of {}: {}", law.name, as_ever.len(), law.about);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise| arguments.get(at).map_or(otherwise, |text| text.parse().expect("a seed"));
    let seeds = number(0, SEEDS.0)..number(1, SEEDS.1);
    match arguments.get(2).map(String::as_str) {
        None => print(seeds, Tuning::default(), false),
        Some("lines") => print(seeds, Tuning::default(), true),
        Some("laws") => count_laws(seeds),
        Some(name) => print(seeds, Tuning::neutral(Law::named(name).expect("the name of a law")), false),
    }
}
