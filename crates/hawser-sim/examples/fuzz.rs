//! The stateful fuzzer by hand, for as long as one likes: seeds from one on, each a run of this many steps.
//!
//! `cargo run --release -p hawser-sim --example fuzz -- [--seed 0] [--seeds 1000] [--steps 3000]`
//!
//! What does not hold ends it, with the command that replays it.

use hawser_sim::fuzz::{Report, run};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str, default: u64| {
        let at = words.iter().position(|word| word == name);
        at.and_then(|at| words.get(at + 1)).map_or(default, |text| text.parse().expect("a number"))
    };
    let (seed, seeds, steps) = (value("--seed", 0), value("--seeds", 1_000), value("--steps", 3_000));
    let began = Instant::now();
    let mut all = Report::default();
    for seed in seed..seed + seeds {
        let one = run(seed, steps);
        all.steps += one.steps;
        all.datagrams += one.datagrams;
        all.packets = (all.packets.0 + one.packets.0, all.packets.1 + one.packets.1);
        all.hostile += one.hostile;
        all.sessions += one.sessions;
        all.digest = all.digest.rotate_left(1) ^ one.digest;
    }
    let took = began.elapsed().as_secs_f64();
    println!("{all:?}");
    println!("{took:.1} s, {:.0} steps a second", all.steps as f64 / took);
}
