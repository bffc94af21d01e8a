//! Prints the bond on recorded links against each of them alone: one TCP stream, and a ping beside it.
//!
//! `cargo run --release -p hawser-sim --example drives -- --traces DIR [--seed 1] [--cases 12] [--seconds 40]
//!  [--scale 0.2] [--congestion cubic|bbr] [--direction down|up] [--case NAME] [--run SEED]
//!  [--without LAW]`
//!
//! DIR holds `drives.csv` (drive, second, Mbit/s of each link, in columns) and mahimahi traces (`*.down`, `*.up`).
//! 1. Stretches of drives are drawn by the seed, then pairs of traces, and each trace beside a steady link.
//! 2. Each is judged on its own, on all processors.
//! 3. Lines are printed in their order, then the medians. `--case` takes every case whose name contains it;
//!    `--run` another seed of what is random within each: how far figures differ by chance. `--without` switches a
//!    law off.

#[path = "shared/arguments.rs"]
mod arguments;
#[path = "shared/files.rs"]
mod files;

use arguments::Arguments;
use hawser_sim::judge::bulk::{self, Verdict};
use hawser_sim::judge::{self, quantile};

/// Step 3.
fn line(name: &str, figures: &[f64; 9]) -> String {
    let [capacity, bond, share, best, sum, of_best, median, late, gap] = figures;
    format!(
        "{name:46} {capacity:8.2} {bond:7.2} {share:6.3} {best:7.2} {sum:7.2} {of_best:7.3} {median:7.0} {late:7.0} {gap:7.0}"
    )
}

fn figures(verdict: &Verdict) -> [f64; 9] {
    let (bond, [median, late]) = (verdict.bond.mbit, verdict.bond.ping);
    let of_best = bond / verdict.best().max(1e-9);
    [verdict.capacity, bond, verdict.share(), verdict.best(), verdict.sum(), of_best, median, late, verdict.bond.gap]
}

fn main() {
    let given = Arguments::read();
    let mut networks = files::networks(&given.traces, given.draw());
    given.choose(&mut networks);
    assert!(!networks.is_empty(), "no case: is --traces {:?} a folder of recordings?", given.traces);
    println!(
        "seed {}, {:?}, Mbit/s and ms; {:.3} of the capacity can be had",
        given.seed,
        given.question,
        bulk::LAYER3
    );
    println!("{:46} capacity    bond  share    best     sum of best  median     p99     gap", "");
    let all = judge::each(&networks, |network| figures(&bulk::judge(network, given.question)));
    networks.iter().zip(&all).for_each(|(network, figures)| println!("{}", line(&network.name, figures)));
    let median =
        std::array::from_fn(|which| quantile(&all.iter().map(|figures| figures[which]).collect::<Vec<_>>(), 0.5));
    println!("{}", line("median", &median));
}
