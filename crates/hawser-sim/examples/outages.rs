//! Outages of one link of two, or of the only one, drawn by seed: when its path is active again, and what is sent on it
//! meanwhile.
//!
//! `cargo run --release -p hawser-sim --example outages -- [--links 2] [--seed 0] [--cases 200] [--json FILE]`
//!
//! Those that do not hold come last. The file has every run, with commit, date and machine.

#[path = "shared/json.rs"]
mod json;

use hawser_sim::judge::{each, quantile};
use hawser_sim::outage::{BACK_WITHIN, INACTIVE_BITS, Outage, Verdict};
use json::{array, number, object, text};

fn line(outage: &Outage, verdict: &Verdict) -> String {
    let back = verdict.back.map_or("never".to_owned(), |back| format!("{back:.2} s"));
    let again = if verdict.down_again { ", down again" } else { "" };
    let [local, remote] = verdict.bits.map(|bits| bits / 1e3);
    format!("{} back {back:>6}{again}; {local:.1} and {remote:.1} kbit/s | {outage}", verdict.holds())
}

/// One run, as the file has it.
fn run(outage: &Outage, verdict: &Verdict) -> String {
    object(&[
        ("outage", text(&outage.to_string())),
        ("back_s", number(verdict.back.unwrap_or(f64::NAN))),
        ("down_again", verdict.down_again.to_string()),
        ("inactive_bits_local", number(verdict.bits[0])),
        ("inactive_bits_remote", number(verdict.bits[1])),
        ("holds", verdict.holds().to_string()),
    ])
}

fn main() {
    let (mut seed, mut cases, mut file, mut draw) = (0, 200, None, Outage::draw as fn(u64) -> Outage);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let count = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match word.as_str() {
            "--seed" => seed = count(),
            "--cases" => cases = count(),
            "--links" if value == "1" => draw = Outage::draw_alone,
            "--links" if value == "2" => draw = Outage::draw,
            "--links" => panic!("--links needs 1 or 2, not {value}"),
            "--json" => file = Some(value),
            _ => panic!("no argument is called {word}"),
        }
    }
    let outages: Vec<Outage> = (seed..seed + cases).map(draw).collect();
    let verdicts = each(&outages, Outage::run);
    let mut all: Vec<_> = outages.iter().zip(&verdicts).collect();
    all.sort_by_key(|(_, verdict)| !verdict.holds());
    all.iter().for_each(|(outage, verdict)| println!("{}", line(outage, verdict)));
    let back: Vec<f64> = verdicts.iter().map(|verdict| verdict.back.unwrap_or(f64::INFINITY)).collect();
    let bits: Vec<f64> = verdicts.iter().flat_map(|verdict| verdict.bits).collect();
    let late = back.iter().filter(|back| **back > BACK_WITHIN).count();
    let loud = verdicts.iter().filter(|verdict| verdict.bits.iter().any(|bits| *bits > INACTIVE_BITS)).count();
    let again = verdicts.iter().filter(|verdict| verdict.down_again).count();
    let [median, p90, worst] = [0.5, 0.9, 1.0].map(|share| quantile(&back, share));
    println!(
        "{cases} outages: {late} late (median {median:.2} s, 9 of 10 {p90:.2} s, worst {worst:.2} s), {loud} too loud, \
         {again} down again"
    );
    let Some(file) = file else { return };
    let summary = object(&[
        ("outages", cases.to_string()),
        ("late", late.to_string()),
        ("loud", loud.to_string()),
        ("down_again", again.to_string()),
        ("back_median_s", number(median)),
        ("back_p90_s", number(p90)),
        ("back_worst_s", number(worst)),
        ("inactive_bits_worst", number(quantile(&bits, 1.0))),
    ]);
    let runs = array(outages.iter().zip(&verdicts).map(|(outage, verdict)| run(outage, verdict)));
    json::write(&file, "outages", &[("seed", seed.to_string()), ("summary", summary), ("runs", runs)]);
}
