//! Links that are away for a while, drawn by seed; `cargo run --release -p hawser-sim --example outages` prints 200.

use hawser_sim::judge::each;
use hawser_sim::outage::{BACK_WITHIN, INACTIVE_BITS, Outage, Verdict};

/// The number of seeds, from zero.
const OUTAGES: u64 = 20;

fn drawn() -> Vec<(Outage, Verdict)> {
    let outages: Vec<Outage> = (0..OUTAGES).map(Outage::draw).collect();
    let verdicts = each(&outages, Outage::run);
    outages.into_iter().zip(verdicts).collect()
}

#[test]
fn a_link_that_returns_is_used_within_a_second_and_hardly_anything_is_sent_on_it_before() {
    for (outage, verdict) in drawn() {
        let back = verdict.back.unwrap_or(f64::INFINITY);
        assert!(back <= BACK_WITHIN, "{outage}: back after {back:.2} s");
        let most = verdict.bits.into_iter().fold(0.0, f64::max);
        assert!(most <= INACTIVE_BITS, "{outage}: {most} bits in a second while it was not active");
    }
}
