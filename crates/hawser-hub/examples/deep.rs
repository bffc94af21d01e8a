//! The claim model to 10⁷ states and more, in 12 GB:
//! `cargo run --release -p hawser-hub --example deep -- [--json FILE] [ticks epochs faults extras every states members]`;
//! of a hub of three as `3 4 1 3 64 10000000 3`.
//! The file (docs/results/hub-model.json) has the bounds, how many states there were, and which promises hold in all.
#![allow(clippy::disallowed_macros, reason = "an example prints")]

#[path = "../../hawser-sim/examples/shared/json.rs"]
mod json;
#[path = "../tests/model/mod.rs"]
mod model;

use json::{array, number, object, text};
use model::Hub;
use stateright::report::WriteReporter;
use stateright::{Checker, Expectation, Model};

/// As the command's arguments: 10⁷ states that differ, breadth first.
const DEEP: [usize; 7] = [4, 4, 2, 2, 64, 24_000_000, 2];
const NAMES: [&str; 7] = ["ticks", "epochs", "faults", "extras", "every", "states", "members"];

fn main() {
    let (mut given, mut file) = (DEEP, None);
    let (mut words, mut slots) = (std::env::args().skip(1), given.iter_mut());
    while let Some(word) = words.next() {
        if word == "--json" {
            file = Some(words.next().expect("--json needs a file"));
            continue;
        }
        *slots.next().expect("seven numbers at most") = word.parse().expect("a number");
    }
    let hub = bounded(given);
    let checker =
        hub.checker().target_state_count(given[5]).spawn_bfs().report(&mut WriteReporter::new(&mut std::io::stdout()));
    println!("{} states that differ, depth {}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
    if let Some(file) = file {
        // Where a promise did not hold, nothing is written: the line above has ended the program.
        write(&file, given, &checker, &hub);
    }
}

fn bounded([ticks, epochs, faults, extras, every, _, members]: [usize; 7]) -> Hub {
    let small = |number: usize| u8::try_from(number).expect("a small number");
    let (ticks, faults, extras) = (small(ticks), small(faults), small(extras));
    Hub { members, ticks, epochs: epochs as u64, faults, extras, every, broken: None }
}

fn write(file: &str, given: [usize; 7], checker: &impl Checker<Hub>, hub: &Hub) {
    let bounds: Vec<(&str, String)> = NAMES.into_iter().zip(given.map(|number| number.to_string())).collect();
    let named = |wanted: Expectation| {
        let properties = hub.properties().into_iter().filter(move |property| property.expectation == wanted);
        array(properties.map(|property| text(property.name)))
    };
    let share = checker.unique_state_count() as f64 / checker.state_count() as f64;
    let words = given.map(|number| number.to_string()).join(" ");
    let command = format!("cargo run --release -p hawser-hub --example deep -- --json FILE {words}");
    json::write(
        file,
        "hub, the claim model",
        &[
            ("command", text(&command)),
            ("bounds", object(&bounds)),
            ("states_that_differ", checker.unique_state_count().to_string()),
            ("states_generated", checker.state_count().to_string()),
            ("part_that_differs", number(share)),
            ("depth", checker.max_depth().to_string()),
            ("hold_in_all", named(Expectation::Always)),
            ("occur", named(Expectation::Sometimes)),
        ],
    );
}
