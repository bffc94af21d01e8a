//! A member of a hub dies, is stopped, cut off or drained beside traffic: what its peer's users have of it.
//!
//! `cargo run --release -p hawser-sim --example hub -- [--seed 0] [--cases 100] [--fault NAME] [--calls 1]
//! [--streams 1] [--links drawn|home] [--percent 100] [--json FILE]`
//!
//! Each fault has as many cases; the worst of them are printed. The file has every run, with commit, date and machine.
//! The fault `upgraded` runs where it is named. As the tests with real processes have it, for what a download stands
//! (`bulk_stood_ms`, beside what it does without a fault): `--links home --calls 20 --streams 20`.

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
        ("bulk_stood_ms", both(outcome.bulk)),
        ("bulk_stood_at_ms", both(outcome.bulk_at)),
        ("bulk_stood_before_ms", both(outcome.bulk_before)),
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
        ("bulk_up_stood_ms", of(&|outcome| outcome.bulk[0])),
        ("bulk_down_stood_ms", of(&|outcome| outcome.bulk[1])),
        ("bulk_up_stood_before_ms", of(&|outcome| outcome.bulk_before[0])),
        ("bulk_down_stood_before_ms", of(&|outcome| outcome.bulk_before[1])),
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

/// What is asked for.
struct Asked {
    seed: u64,
    cases: u64,
    calls: u8,
    streams: usize,
    percent: u64,
    home: bool,
    fault: Option<String>,
    file: Option<String>,
}

impl Asked {
    fn read() -> Self {
        let mut asked =
            Asked { seed: 0, cases: 100, calls: 1, streams: 1, percent: 100, home: false, fault: None, file: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            asked.take(&word, value);
        }
        asked
    }

    fn take(&mut self, word: &str, value: String) {
        let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match (word, value.as_str()) {
            ("--seed", _) => self.seed = number(),
            ("--cases", _) => self.cases = number(),
            ("--calls", _) => self.calls = number().try_into().expect("--calls takes 1 to 100"),
            ("--streams", _) => self.streams = number().try_into().expect("--streams takes a count"),
            ("--percent", _) => self.percent = number(),
            ("--links", "drawn") => self.home = false,
            ("--links", "home") => self.home = true,
            ("--json", _) => self.file = Some(value),
            ("--fault", _) => self.fault = Some(value),
            _ => panic!("no argument is called {word} {value}"),
        }
    }

    /// Those that are named, or all but those that run where they are named.
    fn faults(&self) -> Vec<Fault> {
        let Some(name) = &self.fault else { return FAULTS.to_vec() };
        let is_named = |fault: &Fault| format!("{fault:?}").eq_ignore_ascii_case(name);
        FAULTS.into_iter().chain([Fault::Upgraded]).filter(is_named).collect()
    }

    fn case(&self, seed: u64, fault: Fault) -> Case {
        let drawn = Case::draw(seed, fault).with_calls(self.calls).with_streams(self.streams);
        let case = if self.home { drawn.by_links_of_a_home() } else { drawn };
        case.with_rates(self.percent as f64 / 100.0)
    }

    fn write(&self, file: &str, summaries: Vec<String>, runs: Vec<String>) {
        let words: Vec<String> =
            std::env::args().skip(1).map(|word| if word == file { "FILE".into() } else { word }).collect();
        let command = format!("cargo run --release -p hawser-sim --example hub -- {}", words.join(" "));
        let fields = [
            ("command", text(&command)),
            ("seed", self.seed.to_string()),
            ("calls", self.calls.to_string()),
            ("streams", self.streams.to_string()),
            ("links", text(if self.home { "home" } else { "drawn" })),
            ("percent_of_rates", self.percent.to_string()),
            ("summary", array(summaries.into_iter())),
            ("runs", array(runs.into_iter())),
        ];
        json::write(file, "hub", &fields);
    }
}

fn main() {
    let asked = Asked::read();
    let (mut summaries, mut runs) = (Vec::new(), Vec::new());
    for fault in asked.faults() {
        let cases: Vec<Case> = (asked.seed..asked.seed + asked.cases).map(|seed| asked.case(seed, fault)).collect();
        let outcomes = each(&cases, Case::run);
        let (fields, line) = summary(fault, &outcomes.iter().collect::<Vec<_>>());
        println!("{line}");
        let mut worst: Vec<_> = cases.iter().zip(&outcomes).collect();
        worst.sort_by(|one, other| other.1.gap.total_cmp(&one.1.gap));
        worst.iter().take(SHOWN).for_each(|(case, outcome)| println!("  {case}\n    {outcome:?}"));
        summaries.push(fields);
        runs.extend(cases.iter().zip(&outcomes).map(|(case, outcome)| run(case, outcome)));
    }
    if let Some(file) = &asked.file {
        asked.write(file, summaries, runs);
    }
}
