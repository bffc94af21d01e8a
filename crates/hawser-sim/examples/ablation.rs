//! What each law of the policy is worth, on networks drawn by seed: `hawser lab ablate` without the rest of Hawser.
//!
//! `cargo run --release -p hawser-sim --example ablation -- [--laws a,b] [--networks 12] [--seed 1] [--runs 2]
//!  [--traces DIR]`
//!
//! 1. Each family draws networks; drives are recorded ones where a folder is given, else generated.
//! 2. Each law is switched off in turn. 3. The table is printed.

use hawser_core::policy::Law;
use hawser_sim::ablation::{self, Family, Ground, Variant};
use hawser_sim::family::folder;
use hawser_sim::family::recorded::Draw;
use std::path::Path;

/// Recordings: seconds of each, and the share of the recorded rates of drives.
const SECONDS: usize = 40;
const SCALE: f64 = 0.2;

fn main() {
    let (mut laws, mut networks, mut seed, mut runs) = (Law::all().to_vec(), 12, 1, 2);
    let mut traces = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match word.as_str() {
            "--laws" => laws = value.split(',').map(|name| Law::named(name).expect("a law's name")).collect(),
            "--networks" => networks = number(),
            "--seed" => seed = number(),
            "--runs" => runs = number() as u32,
            "--traces" => traces = Some(value),
            _ => panic!("no argument is called {word}"),
        }
    }
    let seeds = seed..seed + networks;
    let drawn = |family: &Family| *family != Family::Drives || traces.is_none();
    let families = Family::ALL.into_iter().filter(drawn);
    let mut grounds: Vec<Ground> = families.flat_map(|family| ablation::draw(family, seeds.clone())).collect();
    if let Some(traces) = traces {
        let draw = Draw { seed, cases: networks as usize, seconds: SECONDS, scale: SCALE };
        let drawn = folder::some(Path::new(&traces), draw).unwrap_or_else(|error| panic!("{error}: {}", error.hint()));
        grounds.extend(drawn.into_iter().map(|network| Ground { family: Family::Drives, network }));
    }
    println!("seeds {seed} to {}", seed + networks - 1);
    let variants: Vec<Variant> = laws.into_iter().map(Variant::from).collect();
    let measured = ablation::ablate(grounds, runs, variants, |name| eprintln!("without {name}"));
    print!("{}", ablation::table::table(&measured));
}
