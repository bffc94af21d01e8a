//! The claim model to 10⁷ states and more, in 12 GB:
//! `cargo run --release -p hawser-hub --example deep -- [ticks epochs faults extras every states members]`; of a hub of
//! three as `3 4 1 3 64 10000000 3`.
#![allow(clippy::disallowed_macros, reason = "an example prints")]

#[path = "../tests/model/mod.rs"]
mod model;

use model::Hub;
use stateright::report::WriteReporter;
use stateright::{Checker, Model};

/// As the command's arguments: 10⁷ states that differ, breadth first.
const DEEP: [usize; 7] = [4, 4, 2, 2, 64, 24_000_000, 2];

fn main() {
    let mut given = DEEP;
    for (slot, argument) in given.iter_mut().zip(std::env::args().skip(1)) {
        *slot = argument.parse().expect("a number");
    }
    let [ticks, epochs, faults, extras, every, states, members] = given;
    let small = |number: usize| u8::try_from(number).expect("a small number");
    let (ticks, faults, extras) = (small(ticks), small(faults), small(extras));
    let hub = Hub { members, ticks, epochs: epochs as u64, faults, extras, every, broken: None };
    let checker =
        hub.checker().target_state_count(states).spawn_bfs().report(&mut WriteReporter::new(&mut std::io::stdout()));
    println!("{} states that differ, depth {}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}
