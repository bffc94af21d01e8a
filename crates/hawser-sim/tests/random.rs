//! Against tuning to a table: 100 random topologies, the bond against its best link alone.
//!
//! `HAWSER_SIM_SEED=17 cargo test --release -p hawser-sim --test random -- --nocapture` runs one of
//! them; `cargo run --release -p hawser-sim --example random` prints them all, worst first.

use hawser_core::congestion::Kind;
use hawser_sim::topology::{Comparison, compare_all};

/// Topologies; seeds count from zero.
const TOPOLOGIES: u64 = 100;
/// In this share of them the bond is at least `GOOD` of the best link, and never under `WORST`.
const MOST: f64 = 0.95;
const GOOD: f64 = 0.95;
const WORST: f64 = 0.85;
/// At most one packet in this many comes out of order, or `LATE_ANYWAY` while the rates are being found.
const LATE: u64 = 50;
const LATE_ANYWAY: u64 = 10;
/// 19 of 20 packets are delivered in order within this multiple of what the slowest link's round trip,
/// its buffer and the ingress queue take together.
const DELAY: u32 = 3;

fn print(comparisons: &[Comparison]) {
    comparisons.iter().for_each(|comparison| println!("{comparison}"));
}

#[test]
fn the_bond_is_never_worse_than_its_best_link() {
    let seeds = match std::env::var("HAWSER_SIM_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("HAWSER_SIM_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..TOPOLOGIES,
    };
    let done = compare_all(seeds.clone(), Kind::Bbr);
    assert_eq!(done.len() as u64, seeds.end - seeds.start, "a simulation failed");
    let bad = done.iter().filter(|comparison| comparison.ratio() < GOOD).count();
    print(&done[..bad.max(1)]);
    let share = 1.0 - bad as f64 / done.len() as f64;
    println!("seeds {seeds:?}: at least {GOOD} in {share:.3}; worst {:.3}", done[0].ratio());
    assert!(done[0].ratio() >= WORST, "seed {} is under {WORST}", done[0].topology.seed);
    assert!(share >= MOST, "only {share:.3} are at least {GOOD}");
    // Reordering is the resequencer's to hide: what comes late was given up first.
    for comparison in &done {
        let (late, packets) = (comparison.bond.late, comparison.bond.packets);
        let most = (packets / LATE).max(LATE_ANYWAY);
        let (delay, longest) = (comparison.bond.delay[1], comparison.topology.longest_delay());
        assert!(delay <= longest * DELAY, "seed {}: in order after {delay:?}", comparison.topology.seed);
        assert!(late <= most, "seed {}: {late} of {packets} packets out of order", comparison.topology.seed);
    }
}
