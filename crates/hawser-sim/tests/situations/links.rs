//! Rules that name links: who goes where, and what never does.

use hawser_core::congestion::Kind;
use hawser_core::rules::{Rule, RuleId, Rules, Treatment, Via};
use hawser_core::scheduler::{Kind as Scheduler, Weight};
use hawser_core::session::Terms;
use hawser_core::units::LinkTag;
use hawser_core::wire::{DATA_HEADER_LEN, Frame, Frames, Protection, TAG_LEN};
use hawser_sim::Act;
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::portal::Recipe;
use hawser_sim::random::Seeded;
use hawser_sim::situation::{address, second};
use hawser_sim::world::{LOCAL, REMOTE, Setup, World};
use std::cell::RefCell;
use std::rc::Rc;

/// Random topologies with random cuts, each in both directions.
const WORLDS: u64 = 24;
/// The hosts of flows that a rule is about, and of others.
const BOUND: u8 = 10;
const FREE: u8 = 11;
/// Bytes of an inner packet.
const PACKET: usize = 1_200;

fn name(number: usize) -> LinkTag {
    LinkTag::of(&format!("link{number}"))
}

/// What goes to the host of bound flows, on either side, gets this.
fn rules(via: &Via, treatment: Treatment) -> Rules {
    let to = |side| Some(ipnet::IpNet::from(std::net::IpAddr::from(address(side, BOUND))));
    let rule = |side| Rule { destination: to(side), via: via.clone(), treatment, ..Rule::default() };
    Rules::new(vec![rule(LOCAL), rule(REMOTE)], Treatment::default())
}

/// A world whose links have names, whose inner packets are not encrypted, and that sends both kinds of flows one way.
struct Bench {
    world: World,
    bound: Rc<RefCell<Ledger>>,
    free: Rc<RefCell<Ledger>>,
    down: bool,
}

/// What a side sent: by link, bytes of datagrams with packets of bound flows, and with others.
type Carried = Rc<RefCell<Vec<[u64; 2]>>>;

impl Bench {
    /// Bound and free flows send at these rates, Mbit/s.
    fn new(seed: u64, links: &[LinkSpec], rules: &Rules, down: bool, seconds: f64, mbit: [f64; 2]) -> Bench {
        let recipe = |side| Recipe {
            protection: Protection::Authenticate,
            rules: rules.clone(),
            terms: match side {
                LOCAL => (0..links.len()).map(|at| (group(at), named(at))).collect(),
                _ => Vec::new(),
            },
            ..Recipe::of(side, Kind::Bbr)
        };
        let recipes = [recipe(LOCAL), recipe(REMOTE)];
        let mut world = World::new(Setup { seed, links: links.to_vec(), recipes, clocks: None, both_initiate: false });
        let (from, to) = if down { (REMOTE, LOCAL) } else { (LOCAL, REMOTE) };
        let ledgers = [Rc::<RefCell<Ledger>>::default(), Rc::<RefCell<Ledger>>::default()];
        for ((ledger, host), mbit) in ledgers.iter().zip([BOUND, FREE]).zip(mbit) {
            // The first packets wait for a session, and for what its links are called.
            let plan = Plan { from: second(1.0), until: second(seconds), ..Plan::steady(mbit, PACKET) };
            let (here, there) = (address(from, host), address(to, host));
            world.add_host(from, here, Source::new(plan, here, there, Rc::clone(ledger)));
            world.add_host(to, there, Sink(Rc::clone(ledger)));
        }
        let [bound, free] = ledgers;
        Bench { world, bound, free, down }
    }

    /// From now on every datagram with inner packets is looked into.
    fn watch(&mut self) -> Carried {
        let carried: Carried = Rc::new(RefCell::new(vec![[0; 2]; self.world.links.len()]));
        let noted = Rc::clone(&carried);
        let sender = if self.down { REMOTE } else { LOCAL };
        self.world.witness = Some(Box::new(move |_, side, link, bytes| {
            if side == sender
                && let Some(bound) = bears(bytes)
            {
                noted.borrow_mut()[link][usize::from(!bound)] += bytes.len() as u64;
            }
        }));
        carried
    }

    fn run(&mut self, until: f64) -> &mut Self {
        self.world.run_until(second(until));
        self
    }

    fn bound_bytes(&self, from: f64, to: f64) -> u64 {
        self.bound.borrow().bytes_between(second(from), second(to))
    }

    fn free_bytes(&self, from: f64, to: f64) -> u64 {
        self.free.borrow().bytes_between(second(from), second(to))
    }
}

fn group(at: usize) -> hawser_core::units::LinkGroup {
    hawser_core::units::LinkGroup(at as u16)
}

fn named(at: usize) -> Terms {
    Terms { name: name(at), ..Terms::default() }
}

/// Whether a datagram bears a packet of a bound flow, or a repair, which only those have; none where it bears no inner
/// packet.
fn bears(datagram: &[u8]) -> Option<bool> {
    let is_data = datagram.first().is_some_and(|first| first >> 4 == 4) && datagram.len() > DATA_HEADER_LEN + TAG_LEN;
    let frames = is_data.then(|| &datagram[DATA_HEADER_LEN..datagram.len() - TAG_LEN])?;
    let bound = |packet: &[u8]| packet.get(19) == Some(&BOUND);
    Frames::new(frames).flatten().find_map(|frame| match frame {
        Frame::Data(data) => Some(bound(data.packet)),
        Frame::Protected(frame) => Some(bound(frame.data.packet)),
        Frame::Split(split) if split.offset == 0 => Some(bound(split.bytes)),
        Frame::Repair(_) => Some(true),
        _ => None,
    })
}

/// Some links, and what happens to them.
struct Drawn {
    links: Vec<LinkSpec>,
    acts: Vec<(f64, Act)>,
    via: Via,
    treatment: Treatment,
}

/// Seconds until nothing happens to links any more, and until the end.
const STORM: f64 = 8.0;
const END: f64 = 14.0;

fn drawn(seed: u64) -> Drawn {
    let mut rng = Seeded::new(seed);
    let count = 2 + rng.below(3) as usize;
    let mut one = |_| {
        let lossy = if rng.chance(0.5) { 0.02 * rng.unit() } else { 0.0 };
        let metric = u16::from(rng.chance(0.2));
        link(rng.log_between(2.0, 20.0), rng.log_between(5.0, 120.0)).loss(lossy).metric(metric)
    };
    let links: Vec<LinkSpec> = (0..count).map(&mut one).collect();
    let mut acts = Vec::new();
    for at in 0..count {
        let mut now = 1.0 + 2.0 * rng.unit();
        while now < STORM - 1.0 {
            let (acts_here, lasts) = (storm(&mut rng, at), 0.1 + 2.0 * rng.unit());
            acts.push((now, acts_here[0].clone()));
            acts.push(((now + lasts).min(STORM), acts_here[1].clone()));
            now += lasts + 0.2 + 2.0 * rng.unit();
        }
    }
    let named = 1 + rng.below(count as u64 - 1) as usize;
    let first = rng.below(count as u64) as usize;
    let chosen: Vec<usize> = (0..named).map(|at| (first + at) % count).collect();
    let scheduler =
        [Scheduler::Adaptive, Scheduler::Weighted, Scheduler::Flow, Scheduler::Redundant][rng.below(4) as usize];
    let weight = |at: &usize| (name(*at), Weight::new(1 + *at as u8).expect("not zero"));
    let via = match scheduler == Scheduler::Weighted && rng.chance(0.5) {
        true => Via::by_weight(chosen.iter().map(weight).collect(), true),
        false => Via::in_order(&chosen.iter().map(|at| name(*at)).collect::<Vec<_>>(), true),
    };
    let treatment = Treatment {
        scheduler,
        fec: rng.chance(0.5),
        resend: rng.chance(0.8),
        priority: rng.below(7) as i8 - 3,
        ..Treatment::default()
    };
    Drawn { links, acts, via, treatment }
}

/// Something that happens to a link, and its end.
fn storm(rng: &mut Seeded, at: usize) -> [Act; 2] {
    let barred = Terms { barred: true, ..named(at) };
    match rng.below(6) {
        0 => [Act::Cut(at), Act::Heal(at)],
        1 => [Act::CutUp(at), Act::Heal(at)],
        2 => [Act::CutDown(at), Act::Heal(at)],
        3 => [Act::Down(at), Act::Up(at)],
        4 => [Act::Stall(at), Act::Resume(at)],
        _ => [Act::Terms(at, barred), Act::Terms(at, named(at))],
    }
}

/// Bytes of bound flows by links that their rule does not name, and whether they came at the end, in the world of a
/// seed.
fn leaks(seed: u64, down: bool, strict: bool) -> (u64, bool) {
    let Drawn { links, acts, via, treatment } = drawn(seed);
    let via = Via { strict, ..via };
    let mut bench = Bench::new(seed, &links, &rules(&via, treatment), down, END, [6.0, 4.0]);
    let carried = bench.watch();
    acts.into_iter().for_each(|(at, act)| bench.world.at(second(at), act));
    bench.run(END);
    let named = |at: &usize| via.links.iter().any(|(link, _)| *link == name(*at));
    let leaked = (0..links.len()).filter(|at| !named(at)).map(|at| carried.borrow()[at][0]).sum();
    (leaked, bench.bound_bytes(END - 2.0, END) > 0)
}

#[test]
fn a_strict_rule_never_leaks_whatever_is_cut() {
    let seeds = match std::env::var("HAWSER_SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("HAWSER_SIM_SEED is a number")],
        Err(_) => (0..WORLDS).collect(),
    };
    for seed in &seeds {
        for down in [false, true] {
            let (leaked, came) = leaks(*seed, down, true);
            assert_eq!(leaked, 0, "seed {seed}, down {down}: bytes by links that the rule does not name");
            assert!(came, "seed {seed}, down {down}: nothing comes once all links are back");
        }
    }
    // The same rules, where they are not strict, do go elsewhere: each third is enough to know.
    let loose: Vec<u64> = seeds.into_iter().step_by(3).collect();
    let elsewhere = loose.iter().filter(|seed| leaks(**seed, false, false).0 > 0).count();
    assert!(elsewhere * 4 > loose.len(), "of {} rules that are not strict {elsewhere} went elsewhere", loose.len());
}

/// Bound and free bytes by link from one second to another, all else as it is.
fn between(bench: &mut Bench, from: f64, to: f64) -> Vec<[u64; 2]> {
    bench.run(from);
    let carried = bench.watch();
    bench.run(to);
    bench.world.witness = None;
    carried.take()
}

fn loose(links: &[usize]) -> Via {
    Via::in_order(&links.iter().map(|at| name(*at)).collect::<Vec<_>>(), false)
}

#[test]
fn each_flow_goes_by_its_link_and_by_the_other_only_while_that_is_cut() {
    let pair = [link(20.0, 20.0), link(20.0, 40.0)];
    for down in [false, true] {
        let mut bench = Bench::new(7, &pair, &rules(&loose(&[1, 0]), Treatment::default()), down, 9.0, [15.0, 10.0]);
        bench.world.at(second(4.0), Act::Cut(1));
        bench.world.at(second(6.0), Act::Heal(1));
        let before = between(&mut bench, 2.0, 4.0);
        let cut = between(&mut bench, 4.5, 6.0);
        let after = between(&mut bench, 7.5, 9.0);
        for (what, [first, second]) in [("before", [&before[0], &before[1]]), ("after", [&after[0], &after[1]])] {
            assert!(first[0] == 0 && second[0] > 1_000_000, "{what}, down {down}: {first:?}, {second:?}");
        }
        assert!(cut[0][0] > 500_000 && cut[1][0] == 0, "while it is cut, down {down}: {cut:?}");
    }
}

#[test]
fn a_rule_reaches_a_link_that_all_other_traffic_leaves_alone() {
    let links = [link(20.0, 20.0), link(20.0, 40.0).metric(9)];
    for down in [false, true] {
        let mut bench = Bench::new(7, &links, &rules(&loose(&[1]), Treatment::default()), down, 4.0, [17.0, 17.0]);
        let [first, second] = between(&mut bench, 2.0, 4.0)[..] else { panic!("two links") };
        assert!(first[0] == 0 && second[1] == 0, "down {down}: {first:?}, {second:?}");
        assert!(first[1] > 3_000_000 && second[0] > 3_000_000, "both are full, down {down}: {first:?}, {second:?}");
    }
}

#[test]
fn weights_of_a_rule_hold_within_two_per_cent_whatever_the_links_have() {
    let links = [link(40.0, 20.0), link(40.0, 30.0), link(40.0, 40.0)];
    let weight = |parts| Weight::new(parts).expect("not zero");
    let via = Via::by_weight(vec![(name(0), weight(3)), (name(2), weight(1))], true);
    let treatment = Treatment { scheduler: Scheduler::Weighted, ..Treatment::default() };
    for down in [false, true] {
        let mut bench = Bench::new(7, &links, &rules(&via, treatment), down, 6.0, [44.0, 20.0]);
        let carried = between(&mut bench, 2.0, 6.0);
        let share = carried[0][0] as f64 / (carried[0][0] + carried[2][0]) as f64;
        assert!(carried[1][0] == 0 && (share - 0.75).abs() < 0.02 * 0.75, "down {down}: {share}, {carried:?}");
        assert!(carried[1][1] > 1_000_000, "others use the third, down {down}: {carried:?}");
    }
}

#[test]
fn flows_of_other_rules_do_not_wait_for_a_strict_one_whose_link_is_gone() {
    let pair = [link(20.0, 20.0), link(20.0, 40.0)];
    let via = Via { strict: true, ..loose(&[1]) };
    // A link that loses, so that there is always something to be retransmitted by it.
    let lossy = [pair[0].clone(), pair[1].clone().loss(0.05)];
    let mut bench = Bench::new(7, &lossy, &rules(&via, Treatment::default()), false, 9.0, [15.0, 18.0]);
    bench.world.at(second(3.0), Act::Cut(1));
    bench.world.at(second(6.0), Act::Heal(1));
    bench.run(9.0);
    assert_eq!(bench.bound_bytes(3.2, 6.0), 0, "nothing goes elsewhere");
    let free = bench.free_bytes(4.0, 6.0) as f64 * 8.0 / 2e6;
    assert!(free > 17.0, "{free} Mbit/s of 18 by the link that is left");
    assert!(bench.bound_bytes(7.5, 9.0) > 1_000_000, "and it goes again");
}

#[test]
fn a_high_priority_leaves_first_and_a_low_one_is_not_starved() {
    let one = [link(20.0, 20.0)];
    let treatment = |priority| Treatment { priority, ..Treatment::default() };
    let share = |priority| {
        let mut bench = Bench::new(7, &one, &rules(&Via::default(), treatment(priority)), false, 8.0, [30.0, 30.0]);
        bench.run(8.0);
        let (bound, free) = (bench.bound_bytes(3.0, 8.0) as f64, bench.free_bytes(3.0, 8.0) as f64);
        bound / (bound + free)
    };
    let (high, same, low) = (share(3), share(0), share(-3));
    assert!((0.45..0.55).contains(&same), "{same}");
    assert!((0.92..0.96).contains(&high), "16 of 17 bytes: {high}");
    assert!((0.04..0.08).contains(&low), "and the last one: {low}");
}

#[test]
fn rules_change_while_packets_flow_and_each_keeps_its_count() {
    let pair = [link(20.0, 20.0), link(20.0, 40.0)];
    let strict = |at: usize| Via { strict: true, ..loose(&[at]) };
    let mut bench = Bench::new(7, &pair, &rules(&strict(0), Treatment::default()), false, 8.0, [15.0, 10.0]);
    let first = between(&mut bench, 2.0, 4.0);
    let now = |bench: &Bench| bench.world.portals[LOCAL].clock.show(bench.world.now);
    let shown = now(&bench);
    bench.world.portals[LOCAL].endpoint.set_rules(shown, rules(&strict(1), Treatment::default()));
    // What was taken from the queue before is on its way.
    let then = between(&mut bench, 4.5, 7.0);
    assert!(first[1][0] == 0 && then[0][0] == 0, "{first:?}, {then:?}");
    assert!(first[0][0] > 1_000_000 && then[1][0] > 1_000_000, "{first:?}, {then:?}");
    let snapshot = bench.world.portals[LOCAL].endpoint.snapshot(now(&bench));
    // The first rules' numbers are 1 and 2, and packets of theirs may be under way.
    assert_eq!(snapshot.rules, [RuleId(3), RuleId(4)]);
    let paths = &snapshot.peers[0].as_ref().expect("a session").paths;
    let counted =
        |at: usize, rule: u16| paths[at].by_rule.iter().find(|(of, _)| of.0 == rule).map_or(0, |(_, sent)| sent.0);
    assert!(counted(0, 2) > 0 && counted(1, 2) == 0, "{paths:?}");
    assert!(counted(1, 4) > then[1][0] && counted(0, 4) == 0, "headers count too: {paths:?}");
}

#[test]
fn what_no_link_may_carry_is_dropped_and_counted_and_the_rest_is_quiet() {
    let pair = [link(20.0, 20.0), link(20.0, 40.0)];
    let via = Via::in_order(&[LinkTag::of("nobody's")], true);
    let mut bench = Bench::new(7, &pair, &rules(&via, Treatment::default()), false, 4.0, [5.0, 5.0]);
    bench.run(8.0);
    assert_eq!(bench.bound_bytes(0.0, 8.0), 0);
    let snapshot = bench.world.portals[LOCAL].endpoint.snapshot(bench.world.portals[LOCAL].clock.show(bench.world.now));
    let dropped = snapshot.drops.of(hawser_core::drops::DropReason::NoLink);
    assert!(dropped > 50, "{dropped} packets");
    assert_eq!(snapshot.trains.0, 0, "nothing of it is held");
}
