//! Prints the bond against its best link for random topologies, worst first.
//!
//! `cargo run --release -p hawser-sim --example random [FROM TO [newreno|cubic|bbr]]`

use hawser_core::congestion::Kind;
use hawser_sim::topology::compare_all;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise| arguments.get(at).map_or(otherwise, |text| text.parse().expect("a seed"));
    let kind = match arguments.get(2).map(String::as_str) {
        None | Some("bbr") => Kind::Bbr,
        Some("cubic") => Kind::Cubic,
        Some("newreno") => Kind::NewReno,
        Some(other) => panic!("no controller is called {other}"),
    };
    let done = compare_all(number(0, 0)..number(1, 200), kind);
    for comparison in &done {
        println!("{comparison}");
    }
    let ratios: Vec<f64> = done.iter().map(|comparison| comparison.ratio()).collect();
    let good = ratios.iter().filter(|ratio| **ratio >= 0.95).count();
    println!("at least 0.95 in {good} of {}; worst {:.3}", ratios.len(), ratios[0]);
}
