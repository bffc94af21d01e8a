//! Outages of one link of two, drawn by seed: when its path is active again, and what is sent on it meanwhile.
//!
//! `cargo run --release -p hawser-sim --example outages [FROM TO]`: seeds, 0 to 200 where nothing is said. Those that
//! do not hold come last.

use hawser_sim::judge::{each, quantile};
use hawser_sim::outage::{BACK_WITHIN, INACTIVE_BITS, Outage};

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a seed")).collect();
    let seeds = arguments.first().copied().unwrap_or(0)..arguments.get(1).copied().unwrap_or(200);
    let outages: Vec<Outage> = seeds.map(Outage::draw).collect();
    let verdicts = each(&outages, Outage::run);
    let mut all: Vec<_> = outages.iter().zip(&verdicts).collect();
    all.sort_by_key(|(_, verdict)| !verdict.holds());
    for (outage, verdict) in &all {
        let back = verdict.back.map_or("never".to_owned(), |back| format!("{back:.2} s"));
        let again = if verdict.down_again { ", down again" } else { "" };
        let [local, remote] = verdict.bits.map(|bits| bits / 1e3);
        println!("{} back {back:>6}{again}; {local:.1} and {remote:.1} kbit/s | {outage}", verdict.holds());
    }
    let back: Vec<f64> = verdicts.iter().map(|verdict| verdict.back.unwrap_or(f64::INFINITY)).collect();
    let late = back.iter().filter(|back| **back > BACK_WITHIN).count();
    let loud = verdicts.iter().filter(|verdict| verdict.bits.iter().any(|bits| *bits > INACTIVE_BITS)).count();
    let again = verdicts.iter().filter(|verdict| verdict.down_again).count();
    println!(
        "{} outages: {late} late (median {:.2} s, worst {:.2} s), {loud} too loud, {again} down again",
        verdicts.len(),
        quantile(&back, 0.5),
        quantile(&back, 1.0)
    );
}
