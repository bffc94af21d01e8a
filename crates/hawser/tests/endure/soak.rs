//! Hours of traffic between two portals over two links, and every few seconds something that goes wrong.
//!
//! 1. TCP both ways at a bounded rate, numbered UDP both ways, and pings, for as long as HAWSER_SOAK_S says.
//! 2. One fault after the other, drawn by HAWSER_SEED; portals are restarted at first only, so that memory is that of
//!    processes which live for the rest. It is regarded once their history of an hour is full, which grows until then.
//! 3. After each fault every flow must come back in its time; what does not is a miss, and many make it stop.
//! 4. The figures: by kind how many, the longest gap, the packets lost and what was counted meanwhile; memory's slope.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_portal::api::PathState;
use hawser_wire::{Counters, Moment, Way};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde::Serialize;
use serde_json::{Value, json};

use crate::census::{Process, Tally, grown};
use crate::faults::{Fault, Field, Kind};
use crate::figures;
use crate::flows::{Flows, Lost};
use crate::lab::{REMOTE, ms, states};
use crate::slope::slope;

/// Each stream's rate, in Mbit/s.
pub const STREAM_MBPS: u64 = 20;
/// From one request of the ping to the next.
const PING: Duration = Duration::from_millis(100);
/// Until each flow is heard again, whatever its bound: longer, and it is dead.
const PATIENCE: Duration = Duration::from_secs(30);
/// From this part of the time on portals live.
const RESTARTS: f64 = 0.15;
/// How much later their memory is regarded, in seconds: an hour of history, whose rows are pages nobody touched before,
/// and a minute.
const WARM_S: f64 = 3_660.0;
/// The soak ends after this many misses.
const MISSES: usize = 200;
/// The figures so far are written after this many faults.
const SAVED: usize = 50;

/// A fault and what came of it. Plain data.
#[derive(Serialize)]
struct Episode {
    #[serde(flatten)]
    fault: Fault,
    at_s: f64,
    took_ms: u64,
    /// The longest silence of each flow, in the order of [`Flows::NAMES`].
    gaps_ms: [u64; 4],
    udp: [Lost; 2],
    drops: [BTreeMap<String, u64>; 2],
    links: BTreeMap<&'static str, u64>,
    misses: Vec<String>,
    #[serde(skip)]
    span: (Moment, Moment),
}

/// A soak under way.
struct Soak {
    field: Field,
    flows: Flows,
    tallies: [Tally; 2],
    counted: Counted,
    dice: ChaCha8Rng,
    start: Moment,
    episodes: Vec<Episode>,
    /// Of both portals, with the seconds since the start.
    census: Vec<(f64, [Process; 2])>,
}

/// What portals and links have counted so far.
#[derive(Clone, Default)]
struct Counted {
    drops: [BTreeMap<String, u64>; 2],
    links: BTreeMap<&'static str, u64>,
}

#[test]
fn two_portals_live_through_hours_of_faults() {
    let (seconds, seed) = (figures::given("HAWSER_SOAK_S", 7_200), figures::given("HAWSER_SEED", 1));
    eprintln!("{seconds} s, seed {seed}");
    let on = figures::on();
    let command = format!("make endure CASE=soak SOAK_S={seconds} SEED={seed}");
    let mut soak = Soak::begin(seed);
    let time = Duration::from_secs(seconds);
    let ping = soak.field.lab.ping(REMOTE, PING, time).start().expect("a ping");
    while soak.start + time > Moment::now() && soak.misses().count() < MISSES && soak.all_live() {
        let restarts = soak.seconds() < seconds as f64 * RESTARTS;
        soak.one(restarts);
        if soak.episodes.len().is_multiple_of(SAVED) {
            soak.settle_accounts();
            figures::write("soak-so-far", &command, &soak.figures(seconds as f64));
        }
    }
    ping.stop();
    let ping = ping.finish().expect("a report");
    // What was sent last has time to come.
    std::thread::sleep(ms(1_000));
    soak.settle_accounts();
    let wrong: Vec<String> = soak.flows.heard().iter().filter_map(|heard| heard.wrong.clone()).collect();
    let misses: Vec<String> = soak.misses().cloned().collect();
    let mut figures = soak.figures(seconds as f64);
    figures["ping"] =
        json!({ "sent": ping.sent.len(), "lost": ping.lost(), "median_ms": ping.round_trips().percentile(50.0) });
    figures["began_on"] = on;
    (figures["seed"], figures["seconds"], figures["wrong"]) = (json!(seed), json!(soak.seconds()), json!(wrong));
    figures::write("soak", &command, &figures);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(misses.is_empty(), "seed {seed}: {} misses: {misses:#?}", misses.len());
}

impl Soak {
    fn begin(seed: u64) -> Self {
        let field = Field::new("soak", "");
        field.portals[0].wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
        let dice = ChaCha8Rng::seed_from_u64(seed);
        let (tallies, counted, start) = (Default::default(), Counted::default(), Moment::now());
        let flows = Flows::start(&field.lab, STREAM_MBPS);
        let mut soak = Self { field, flows, tallies, counted, dice, start, episodes: Vec::new(), census: Vec::new() };
        soak.count();
        soak
    }

    fn seconds(&self) -> f64 {
        self.start_to(Moment::now())
    }

    fn start_to(&self, moment: Moment) -> f64 {
        (moment - self.start).as_secs_f64()
    }

    fn misses(&self) -> impl Iterator<Item = &String> {
        self.episodes.iter().flat_map(|episode| &episode.misses)
    }

    fn all_live(&self) -> bool {
        self.flows.heard().iter().all(|heard| heard.wrong.is_none())
    }

    /// One fault, and the peace after it.
    fn one(&mut self, restarts: bool) {
        let fault = Fault::draw(&mut self.dice, restarts);
        let begin = Moment::now();
        let mended = self.field.suffer(&fault, &mut self.dice);
        let back = self.flows.back_after(mended, PATIENCE);
        std::thread::sleep(ms(1_000 + u64::from(self.dice.next_u32()) % 1_500));
        let (end, before) = (Moment::now(), self.counted.clone());
        // A status is a quarter of a second old at most.
        std::thread::sleep(ms(300));
        self.count();
        let gaps = self.flows.heard().map(|heard| heard.longest(begin, end));
        let took = mended - begin;
        let dead = Flows::NAMES.iter().zip(back).filter(|(_, back)| back.is_none());
        let mut misses: Vec<String> = dead.map(|(flow, _)| format!("{flow} is dead")).collect();
        for (number, gap) in gaps.iter().enumerate() {
            let bound = fault.bound(took, number >= 2);
            if *gap > bound {
                let name = Flows::NAMES[number];
                misses.push(format!(
                    "{:.1} s: {fault:?}, {name} silent for {gap:?}, bound {bound:?}",
                    self.start_to(begin)
                ));
            }
        }
        misses.iter().for_each(|miss| eprintln!("{miss}"));
        let drops = [0, 1].map(|portal| grown(&before.drops[portal], &self.counted.drops[portal]));
        let links =
            self.counted.links.iter().map(|(name, count)| (*name, count - before.links.get(name).unwrap_or(&0)));
        self.episodes.push(Episode {
            fault,
            at_s: self.start_to(begin),
            took_ms: took.as_millis() as u64,
            gaps_ms: gaps.map(|gap| gap.as_millis() as u64),
            udp: Default::default(),
            drops,
            links: links.filter(|(_, count)| *count > 0).collect(),
            misses,
            span: (begin, end),
        });
    }

    /// Asks portals, processes and links.
    fn count(&mut self) {
        for (number, tally) in self.tallies.iter_mut().enumerate() {
            let portal = &self.field.portals[number];
            self.counted.drops[number] = tally.take(portal, self.field.namespace(number));
        }
        self.counted.links = links(&self.field);
        let processes = [0, 1].map(|number| Process::of(self.field.portals[number].pid()));
        if let [Some(local), Some(remote)] = processes {
            self.census.push((self.seconds(), [local, remote]));
        }
    }

    /// Which datagrams of each episode never came, now that none can come any more.
    fn settle_accounts(&mut self) {
        for episode in &mut self.episodes {
            let (from, to) = episode.span;
            episode.udp = [0, 1].map(|way| self.flows.udp[way].lost(from, to));
        }
    }

    /// Step 4.
    fn figures(&self, seconds: f64) -> Value {
        let by_kind: Vec<Value> = Kind::ALL.iter().map(|kind| self.of_kind(*kind)).collect();
        let warm: Vec<_> = self.census.iter().filter(|(at, _)| *at > seconds * RESTARTS + WARM_S).collect();
        let memory = [0, 1].map(|portal| {
            let of = |field: fn(&Process) -> f64| -> Vec<(f64, f64)> {
                warm.iter().map(|(at, processes)| (*at, field(&processes[portal]))).collect()
            };
            json!({
                "anonymous_kib_per_hour": slope(&of(|process| process.anonymous_kib as f64)),
                "rss_kib_per_hour": slope(&of(|process| process.rss_kib as f64)),
                "descriptors_per_hour": slope(&of(|process| process.descriptors as f64)),
                "threads_per_hour": slope(&of(|process| process.threads as f64)),
                "first": warm.first().map(|(_, processes)| processes[portal]),
                "last": warm.last().map(|(_, processes)| processes[portal]),
            })
        });
        json!({
            "faults": self.episodes.len(),
            "by_kind": by_kind,
            "misses": self.misses().collect::<Vec<_>>(),
            "memory": { "local": memory[0], "remote": memory[1] },
            "goodput_bytes": self.flows.heard().map(|heard| heard.bytes),
            "drops": self.counted.drops,
            "links": self.counted.links,
            "census": self.census,
            "episodes": self.episodes,
        })
    }

    fn of_kind(&self, kind: Kind) -> Value {
        let all: Vec<&Episode> = self.episodes.iter().filter(|episode| episode.fault.kind == kind).collect();
        let longest = |flows: std::ops::Range<usize>| {
            all.iter().flat_map(|episode| &episode.gaps_ms[flows.clone()]).max().copied().unwrap_or_default()
        };
        let sum = |of: fn(&Lost) -> usize| -> usize { all.iter().flat_map(|episode| &episode.udp).map(of).sum() };
        let mut drops = BTreeMap::<&str, u64>::new();
        for (name, count) in all.iter().flat_map(|episode| &episode.drops).flatten() {
            *drops.entry(name).or_default() += count;
        }
        let unexplained = all.iter().map(|episode| episode.unexplained()).sum::<u64>();
        json!({
            "kind": kind,
            "count": all.len(),
            "longest_fault_ms": all.iter().map(|episode| episode.took_ms).max(),
            "longest_gap_ms": { "udp": longest(0..2), "tcp": longest(2..4) },
            "udp": { "sent": sum(|u| u.sent), "refused": sum(|u| u.refused), "lost": sum(|u| u.lost), "twice": sum(|u| u.twice) },
            "lost_and_not_counted": unexplained,
            "drops": drops,
        })
    }
}

/// Reasons for which a portal drops inner packets that were to arrive, and the kernel before it.
const LOSSES: [&str; 10] = [
    "gave_up",
    "too_old",
    "queue_full",
    "codel",
    "store_full",
    "store_share",
    "no_session",
    "key_expired",
    "session_ended",
    "tun_queue_full",
];

impl Episode {
    /// Datagrams that were lost beyond what both portals counted as dropped meanwhile, of whatever flow. A portal that
    /// ended took its counts along.
    fn unexplained(&self) -> u64 {
        let lost: usize = self.udp.iter().map(|figures| figures.lost).sum();
        let counted = LOSSES.iter().flat_map(|name| self.drops.iter().filter_map(|drops| drops.get(*name)));
        (lost as u64).saturating_sub(counted.sum())
    }
}

/// What became of packets on the links, by what their counters call it.
fn links(field: &Field) -> BTreeMap<&'static str, u64> {
    let counters = || field.links.iter().flat_map(|link| Way::BOTH.map(|way| link.counters(way)));
    let sum = |of: fn(&Counters) -> u64| counters().map(|counters| of(&counters)).sum();
    [
        ("packets", sum(|c| c.packets_in)),
        ("dropped_by_queue", sum(|c| c.dropped_by_queue)),
        ("lost", sum(|c| c.lost)),
        ("too_long", sum(|c| c.too_long)),
        ("vanished", sum(|c| c.vanished)),
        ("cut", sum(|c| c.cut)),
    ]
    .into()
}
