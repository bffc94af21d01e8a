//! A member of a hub dies, is stopped, cut off or drained beside traffic: what its peer's users have of it.
//!
//! `cargo run --release -p hawser-sim --example hub -- [--seed 0] [--cases 100] [--fault NAME] [--calls 1] [--streams 1]
//! [--percent 100] [--json FILE]`
//!
//! Each fault has as many cases; the worst of them are printed. The file has every run, with commit, date and machine.

#[path = "shared/json.rs"]
mod json;

use hawser_sim::hub::case::{Case, FAULTS, Fault, Outcome};
use hawser_sim::judge::{each, quantile};
use json::{array, number, object, text};

/// The worst cases of each fault that are printed.
const SHOWN: usize = 3;

/// One run, as the file has it.
fn run(case: &Case, outcome: &Outcome) -> String {
    let counts = |two: [u64; 2]| format!("[{}, {}]", two[0], two[1]);
    let list = |all: &[f64]| format!("[{}]", all.iter().map(|one| number(*one)).collect::<Vec<_>>().join(", "));
    let both = |two: [f64; 2]| list(&two);
    object(&[
        ("case", text(&case.to_string())),
        ("gap_ms", number(outcome.gap)),
        ("gap_before_ms", number(outcome.gap_before)),
        ("call_gap_ms", both(outcome.call_gap)),
        ("sent", counts(outcome.sent)),
        ("lost", counts(outcome.lost)),
        ("twice", counts(outcome.twice)),
        ("pings_lost", outcome.pings_lost.to_string()),
        ("streams_stood_ms", both(outcome.streams)),
        ("streams_kept", both(outcome.kept)),
        ("lives", outcome.lives.to_string()),
        ("moves", outcome.moves.to_string()),
        ("moved_after_ms", number(outcome.moved_after)),
        ("refused", outcome.refused.to_string()),
        ("ping_ms", number(outcome.ping)),
        ("ping_after_ms", list(&outcome.ping_after)),
        ("standby_a_second_and_link", number(outcome.standby)),
        ("claims_a_second", number(outcome.claims)),
        ("lapses", outcome.lapses.to_string()),
    ])
}

/// The medians and worst of a fault, as the file has them, and as a line.
fn summary(fault: Fault, outcomes: &[&Outcome]) -> (String, String) {
    let of = |what: &dyn Fn(&Outcome) -> f64| -> [f64; 2] {
        let values: Vec<f64> = outcomes.iter().map(|outcome| what(outcome)).collect();
        [0.5, 1.0].map(|share| quantile(&values, share))
    };
    let figures = [
        ("gap_ms", of(&|outcome| outcome.gap)),
        ("gap_before_ms", of(&|outcome| outcome.gap_before)),
        ("call_gap_up_ms", of(&|outcome| outcome.call_gap[0])),
        ("call_gap_down_ms", of(&|outcome| outcome.call_gap[1])),
        ("lost_up", of(&|outcome| outcome.lost[0] as f64)),
        ("lost_down", of(&|outcome| outcome.lost[1] as f64)),
        ("twice_up", of(&|outcome| outcome.twice[0] as f64)),
        ("twice_down", of(&|outcome| outcome.twice[1] as f64)),
        ("pings_lost", of(&|outcome| outcome.pings_lost as f64)),
        ("stream_up_stood_ms", of(&|outcome| outcome.streams[0])),
        ("stream_down_stood_ms", of(&|outcome| outcome.streams[1])),
        ("moved_after_ms", of(&|outcome| outcome.moved_after)),
        ("moves", of(&|outcome| outcome.moves as f64)),
        ("refused", of(&|outcome| outcome.refused as f64)),
        ("standby_a_second_and_link", of(&|outcome| outcome.standby)),
        ("claims_a_second", of(&|outcome| outcome.claims)),
        ("lapses", of(&|outcome| outcome.lapses as f64)),
    ];
    let kept = [0, 1].map(|way: usize| of(&|outcome| outcome.kept[way])[0]);
    let dead = outcomes.iter().filter(|outcome| !outcome.lives).count();
    let pair = |[median, worst]: [f64; 2]| format!("[{}, {}]", number(median), number(worst));
    let mut fields: Vec<_> = figures.iter().map(|(name, figures)| (*name, pair(*figures))).collect();
    fields.extend([("fault", text(&format!("{fault:?}"))), ("cases", outcomes.len().to_string())]);
    fields.extend([("streams_kept_median", pair(kept)), ("flows_that_died", dead.to_string())]);
    let line = figures.iter().map(|(name, [median, worst])| format!("{name} {median:.1}/{worst:.1}"));
    let line = line.collect::<Vec<_>>().join(", ");
    (
        object(&fields),
        format!("{fault:?}, {} cases (median/worst): {line}; kept {kept:.2?}; {dead} died", outcomes.len()),
    )
}

fn main() {
    let (mut seed, mut count, mut calls, mut streams, mut percent, mut file, mut only) =
        (0, 100, 1, 1, 100, None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match word.as_str() {
            "--seed" => seed = number(),
            "--cases" => count = number(),
            "--calls" => calls = number().try_into().expect("--calls takes 1 to 100"),
            "--streams" => streams = number().try_into().expect("--streams takes a count"),
            "--percent" => percent = number(),
            "--json" => file = Some(value),
            "--fault" => only = Some(value),
            _ => panic!("no argument is called {word}"),
        }
    }
    let (mut summaries, mut runs) = (Vec::new(), Vec::new());
    let chosen = |fault: &Fault| only.as_ref().is_none_or(|only| format!("{fault:?}").eq_ignore_ascii_case(only));
    for fault in FAULTS.into_iter().filter(chosen) {
        let part = percent as f64 / 100.0;
        let case = |seed| Case::draw(seed, fault).with_calls(calls).with_streams(streams).with_rates(part);
        let cases: Vec<Case> = (seed..seed + count).map(case).collect();
        let outcomes = each(&cases, Case::run);
        let (fields, line) = summary(fault, &outcomes.iter().collect::<Vec<_>>());
        println!("{line}");
        let mut worst: Vec<_> = cases.iter().zip(&outcomes).collect();
        worst.sort_by(|one, other| other.1.gap.total_cmp(&one.1.gap));
        worst.iter().take(SHOWN).for_each(|(case, outcome)| println!("  {case}\n    {outcome:?}"));
        summaries.push(fields);
        runs.extend(cases.iter().zip(&outcomes).map(|(case, outcome)| run(case, outcome)));
    }
    let Some(file) = file else { return };
    let command = text("cargo run --release -p hawser-sim --example hub -- --json FILE");
    let fields = [
        ("command", command),
        ("seed", seed.to_string()),
        ("calls", calls.to_string()),
        ("streams", streams.to_string()),
        ("percent_of_rates", percent.to_string()),
        ("summary", array(summaries.into_iter())),
        ("runs", array(runs.into_iter())),
    ];
    json::write(&file, "hub", &fields);
}
