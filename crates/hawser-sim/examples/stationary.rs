//! Stationary networks, drawn by seed, with the simulator's TCP: what a bulk flow has of what can be had, and how long
//! short flows take beside the best link alone.
//!
//! `cargo run --release -p hawser-sim --example stationary -- [--seed 0] [--cases 200] [--seconds 20]
//!  [--congestion cubic|bbr] [--direction down|up] [--without LAW] [--json FILE]`
//!
//! 1. One network a seed: one to four links.
//! 2. Each: one stream over the bond and over each link alone, then ten transfers of 30 kB and of 300 kB.
//! 3. A line for each network, the least share of what can be had last; then what all of them must reach.

#[path = "shared/json.rs"]
mod json;

use hawser_core::policy::{Law, Tuning};
use hawser_sim::family::{draw, stationary};
use hawser_sim::judge::{Network, Question, bulk, each, quantile, short};
use hawser_sim::tcp::Congestion;
use json::{array, number, object, text};

/// How long each stream lasts where nothing is said, s: the simulator's links do not change.
const SECONDS: u64 = 20;
/// Bulk has this share of what can be had in nine of ten networks, and this share of the best link's in all.
const USABLE: f64 = 0.90;
/// See `USABLE`.
const BEST: f64 = 0.95;
/// Short flows take this many times as long as over the best link: the median of all networks, and the 95th percentile.
const SHORT: [f64; 2] = [1.1, 1.3];
/// The names of the figures.
const NAMES: [&str; 5] = ["mbit", "of_usable", "of_best", "30kB", "300kB"];

/// Step 2.
fn figures(network: &Network, question: Question) -> [f64; 5] {
    let verdict = bulk::judge(network, question);
    let [small, middle, _] = short::SIZES;
    let ratio = |bytes| short::judge(network, question, bytes, false).ratios()[0];
    [
        verdict.bond.mbit,
        verdict.share() / bulk::LAYER3,
        verdict.bond.mbit / verdict.best().max(1e-9),
        ratio(small),
        ratio(middle),
    ]
}

/// What is asked for.
struct Given {
    seed: u64,
    cases: u64,
    seconds: u64,
    question: Question,
    tuning: Tuning,
    json: Option<String>,
}

impl Given {
    fn read() -> Given {
        let question = Question { congestion: Congestion::Cubic, down: true };
        let tuning = Tuning::default();
        let mut given = Given { seed: 0, cases: 200, seconds: SECONDS, question, tuning, json: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
            match (word.as_str(), value.as_str()) {
                ("--seed", _) => given.seed = number(),
                ("--cases", _) => given.cases = number(),
                ("--seconds", _) => given.seconds = number(),
                ("--congestion", "cubic") => given.question.congestion = Congestion::Cubic,
                ("--congestion", "bbr") => given.question.congestion = Congestion::Bbr,
                ("--direction", "down") => given.question.down = true,
                ("--direction", "up") => given.question.down = false,
                ("--without", name) => given.tuning = Tuning::neutral(Law::named(name).expect("a law's name")),
                ("--json", _) => given.json = Some(value),
                _ => panic!("no argument is called {word} {value}"),
            }
        }
        given
    }

    /// Step 1.
    fn networks(&self) -> Vec<Network> {
        let mut networks = draw(stationary, self.seed..self.seed + self.cases);
        for network in &mut networks {
            (network.seconds, network.tuning) = (self.seconds as f64, self.tuning);
        }
        networks
    }
}

fn main() {
    let given = Given::read();
    let networks = given.networks();
    let all = each(&networks, |network| figures(network, given.question));
    print(&networks, &all, given.question);
    if let Some(file) = &given.json {
        write(file, &networks, &all, &given);
    }
}

/// The value of a figure that this share of the networks are not above.
fn at(all: &[[f64; 5]], which: usize, share: f64) -> f64 {
    quantile(&all.iter().map(|figures| figures[which]).collect::<Vec<_>>(), share)
}

/// Step 3.
fn print(networks: &[Network], all: &[[f64; 5]], question: Question) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|one, other| all[*other][1].total_cmp(&all[*one][1]));
    println!("{:>8} {:>9} {:>8} {:>6} {:>6}  {:?}", NAMES[0], NAMES[1], NAMES[2], NAMES[3], NAMES[4], question);
    for index in order {
        let [mbit, usable, best, small, middle] = all[index];
        println!("{mbit:8.2} {usable:9.3} {best:8.3} {small:6.2} {middle:6.2}  {}", networks[index].name);
    }
    let at = |which, share| at(all, which, share);
    println!("of usable: {:.3} in nine of ten (at least {USABLE}), median {:.3}", at(1, 0.1), at(1, 0.5));
    println!("of the best link: least {:.3} (at least {BEST})", at(2, 0.0));
    for which in [3, 4] {
        let [median, most] = [0.5, 0.95].map(|share| at(which, share));
        println!("{}: {median:.3}, 95th percentile {most:.3} (at most {SHORT:?})", NAMES[which]);
    }
}

fn write(file: &str, networks: &[Network], all: &[[f64; 5]], given: &Given) {
    let quantiles = |which: usize| {
        let named = [("0", 0.0), ("5", 0.05), ("10", 0.1), ("50", 0.5), ("90", 0.9), ("95", 0.95), ("100", 1.0)];
        object(&named.map(|(name, share)| (name, number(at(all, which, share)))))
    };
    let summary = object(&std::array::from_fn::<_, 4, _>(|which| (NAMES[which + 1], quantiles(which + 1))));
    let run = |(network, figures): (&Network, &[f64; 5])| {
        let mut fields = vec![("network", text(&network.name))];
        fields.extend(NAMES.iter().zip(figures).map(|(name, figure)| (*name, number(*figure))));
        object(&fields)
    };
    let runs = array(networks.iter().zip(all).map(run));
    let question = text(&format!("{:?}, {} s", given.question, given.seconds));
    json::write(file, "stationary", &[("question", question), ("percentiles", summary), ("runs", runs)]);
}
