//! Prints the bond on recorded links against each of them alone: one TCP stream, and a ping beside it.
//!
//! `cargo run --release -p hawser-sim --example drives -- --traces DIR [--seed 1] [--cases 12] [--seconds 40]
//!  [--scale 0.2] [--congestion cubic|bbr] [--direction down|up] [--case NAME]`
//!
//! DIR holds `drives.csv` (drive, second, Mbit/s of each link, in columns) and mahimahi traces (`*.down`, `*.up`).
//! 1. Stretches of drives are drawn by the seed, then pairs of traces, and each trace beside a steady link.
//! 2. Each is judged on its own, on all processors.
//! 3. Lines are printed in their order, then the medians. `--case` takes every case whose name contains it.

use hawser_sim::judge::Network;
use hawser_sim::judge::bulk::{self, Question, Verdict};
use hawser_sim::net::spec::{mbit_rate, millis};
use hawser_sim::net::{LinkSpec, Recording, link};
use hawser_sim::random::Seeded;
use hawser_sim::recorded::{self, Drive};
use hawser_sim::tcp::Congestion;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Delays each way, ms: of satellites and of all others.
const DELAY_SATELLITE: f64 = 25.0;
const DELAY_OTHER: f64 = 30.0;
/// Queues at the mean rate, ms.
const QUEUE_MS: f64 = 300.0;
/// Uplinks of drives, of the mean of the downlink.
const UPLINK: f64 = 0.2;
/// The least of them, Mbit/s: a link without any way back is none.
const UPLINK_MIN: f64 = 0.1;
/// The steady link: Mbit/s down and up, and its round trip, ms.
const STEADY: (f64, f64, f64) = (12.0, 2.0, 30.0);

struct Arguments {
    traces: String,
    seed: u64,
    cases: usize,
    seconds: usize,
    scale: f64,
    question: Question,
    case: String,
}

fn arguments() -> Arguments {
    let mut given = Arguments {
        traces: String::new(),
        seed: 1,
        cases: 12,
        seconds: 40,
        scale: 0.2,
        question: Question { congestion: Congestion::Cubic, down: true },
        case: String::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse::<f64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match (word.as_str(), value.as_str()) {
            ("--traces", _) => given.traces = value,
            ("--seed", _) => given.seed = number() as u64,
            ("--cases", _) => given.cases = number() as usize,
            ("--seconds", _) => given.seconds = number() as usize,
            ("--scale", _) => given.scale = number(),
            ("--congestion", "cubic") => given.question.congestion = Congestion::Cubic,
            ("--congestion", "bbr") => given.question.congestion = Congestion::Bbr,
            ("--direction", "down") => given.question.down = true,
            ("--direction", "up") => given.question.down = false,
            ("--case", _) => given.case = value,
            _ => panic!("no argument is called {word} {value}"),
        }
    }
    given
}

/// Step 1: a link as recorded, with this delay each way.
fn recorded_link(down: Recording, up: Option<Recording>, delay: f64) -> LinkSpec {
    let mean = down.mean();
    let spec = link(1.0, delay * 2.0).down(|way| way.follow(down, QUEUE_MS));
    spec.up(|way| match up {
        Some(up) => way.follow(up, QUEUE_MS),
        None => {
            way.rate = mean.scale(UPLINK).max(mbit_rate(UPLINK_MIN));
            way.queue = way.rate.bytes_in(millis(QUEUE_MS)).max(way.queue);
        }
    })
}

fn stretches(given: &Arguments) -> Vec<Network> {
    let Ok(text) = std::fs::read_to_string(Path::new(&given.traces).join("drives.csv")) else { return Vec::new() };
    let (names, drives) = recorded::drives(&text);
    let long: Vec<&Drive> = drives.iter().filter(|drive| drive.seconds() >= given.seconds).collect();
    let mut rng = Seeded::new(given.seed);
    (0..given.cases).map(|_| stretch(given, &names, &long, &mut rng)).collect()
}

fn stretch(given: &Arguments, names: &[String], drives: &[&Drive], rng: &mut Seeded) -> Network {
    let drive = drives[rng.below(drives.len() as u64) as usize];
    let from = rng.below((drive.seconds() - given.seconds + 1) as u64) as usize;
    let mut links: Vec<usize> = (0..names.len()).collect();
    let count = 2 + rng.below(names.len() as u64 - 1) as usize;
    while links.len() > count {
        links.remove(rng.below(links.len() as u64) as usize);
    }
    let of = |link: &usize| {
        let rates = drive.stretch(*link, from, given.seconds, given.scale).expect("a stretch within the drive");
        let delay = if names[*link].contains("starlink") { DELAY_SATELLITE } else { DELAY_OTHER };
        recorded_link(rates, None, delay)
    };
    let short: Vec<&str> = links.iter().map(|link| names[*link].split('_').next().unwrap_or_default()).collect();
    Network {
        name: format!("drive {} from {from} {}", drive.number, short.join("+")),
        seed: given.seed,
        links: links.iter().map(of).collect(),
        acts: Vec::new(),
        seconds: given.seconds as f64,
    }
}

/// Step 1: pairs of traces, and each beside a steady link.
fn pairs(given: &Arguments) -> Vec<Network> {
    let Ok(entries) = std::fs::read_dir(&given.traces) else { return Vec::new() };
    let mut downs: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    downs.retain(|path| path.extension().is_some_and(|extension| extension == "down"));
    downs.sort();
    let mut rng = Seeded::new(given.seed);
    let read = |path: &Path| recorded::mahimahi(&std::fs::read_to_string(path).ok()?);
    let mut traces = Vec::new();
    for path in &downs {
        let (down, up) = (read(path).expect("a mahimahi trace"), read(&path.with_extension("up")));
        let offset = rng.up_to(down.length().saturating_sub(Duration::from_secs(given.seconds as u64)));
        let spec = recorded_link(down.at(offset), up.map(|up| up.at(offset)), DELAY_OTHER);
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace("-driving", "");
        traces.push((format!("{name}@{}", offset.as_secs()), spec));
    }
    let steady = link(STEADY.0, STEADY.2).up(|way| way.set_rate(STEADY.1)).queue_ms(QUEUE_MS);
    let mut pairs = Vec::new();
    for (index, (name, one)) in traces.iter().enumerate() {
        for (other_name, other) in &traces[index + 1..] {
            pairs.push((format!("{name} + {other_name}"), vec![one.clone(), other.clone()]));
        }
        pairs.push((format!("{name} + steady"), vec![one.clone(), steady.clone()]));
    }
    let (seed, seconds) = (given.seed, given.seconds as f64);
    pairs.into_iter().map(|(name, links)| Network { name, seed, links, acts: Vec::new(), seconds }).collect()
}

/// Step 2.
fn judge_all(networks: &[Network], question: Question) -> Vec<Verdict> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(network) = networks.get(index) else { break };
            let verdict = bulk::judge(network, question);
            done.lock().expect("no worker panics with the lock").push((index, verdict));
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let mut done = done.into_inner().expect("no worker panics with the lock");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, verdict)| verdict).collect()
}

/// Step 3.
fn line(name: &str, figures: &[f64; 8]) -> String {
    let [capacity, bond, share, best, sum, of_best, median, late] = figures;
    format!(
        "{name:44} {capacity:8.2} {bond:7.2} {share:6.3} {best:7.2} {sum:7.2} {of_best:7.3} {median:7.0} {late:7.0}"
    )
}

fn figures(verdict: &Verdict) -> [f64; 8] {
    let (bond, [median, late]) = (verdict.bond.mbit, verdict.bond.ping);
    let of_best = bond / verdict.best().max(1e-9);
    [verdict.capacity, bond, verdict.share(), verdict.best(), verdict.sum(), of_best, median, late]
}

fn main() {
    let given = arguments();
    let mut networks = stretches(&given);
    networks.extend(pairs(&given));
    networks.retain(|network| network.name.contains(&given.case));
    assert!(!networks.is_empty(), "no case: is --traces {:?} a folder with drives.csv or *.down?", given.traces);
    println!("seed {}, {:?}, Mbit/s and ms", given.seed, given.question);
    println!("{:44} capacity    bond  share    best     sum of best  median     p99", "");
    let all: Vec<[f64; 8]> = judge_all(&networks, given.question).iter().map(figures).collect();
    networks.iter().zip(&all).for_each(|(network, figures)| println!("{}", line(&network.name, figures)));
    let median = std::array::from_fn(|which| {
        let mut column: Vec<f64> = all.iter().map(|figures| figures[which]).collect();
        column.sort_by(f64::total_cmp);
        column[column.len() / 2]
    });
    println!("{}", line("median", &median));
}
