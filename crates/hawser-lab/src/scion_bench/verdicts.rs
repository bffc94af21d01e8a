//! What must be shown, held against what was found. Source: issue 6, "Must show".
//!
//! 1. A claim is about a candidate's figure alone, or set in relation to another's in the same repetition: what the machine does
//!    beside falls on both.
//! 2. Of several repetitions the median counts.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::experiment::{Findings, Outcome, Run};
use crate::report::statistics::Summary;

/// Of one connection: which scenarios may say it, and which case.
const ONE: [&str; 2] = ["scion-one", "scion-within"];
const FILES: [&str; 1] = ["scion-quic"];
const CASE: &str = "1";

/// What must hold. Constant.
#[derive(Clone, Copy, Debug)]
struct Claim {
    says: &'static str,
    scenarios: &'static [&'static str],
    workload: &'static str,
    metric: &'static str,
    candidate: &'static str,
    /// Whose figure it is set in relation to; none: its own counts.
    base: Option<&'static str>,
    bound: Bound,
}

/// What is enough. Constant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtLeast(f64),
    Below(f64),
}

const fn times(candidate: &'static str, base: &'static str, factor: f64, says: &'static str) -> Claim {
    let bound = Bound::AtLeast(factor);
    Claim { says, scenarios: &ONE, workload: "packets", metric: "kpps", candidate, base: Some(base), bound }
}

const CLAIMS: [Claim; 10] = [
    times("hawser", "snet", 15.0, "our connection with GSO, times snet"),
    times("hawser", "dispatcher", 40.0, "our connection with GSO, times the classic dispatcher"),
    times("hawser-sendmmsg", "snet", 2.5, "our connection with sendmmsg alone, times snet"),
    times("bypass-snet", "shim", 2.5, "snet through the bypass, times snet through the shim"),
    times(
        "bypass-flooded",
        "shim-flooded",
        2.5,
        "what snet receives of a flood through the bypass, times through the shim",
    ),
    Claim {
        says: "the fastest that snet receives without loss through the bypass, times through the shim",
        scenarios: &["scion-lossless"],
        workload: "lossless",
        metric: "kpps",
        candidate: "bypass-snet",
        base: Some("shim"),
        bound: Bound::AtLeast(2.5),
    },
    times("bypass-hawser", "bypass-snet", 10.0, "our connection through the bypass, times snet through the bypass"),
    Claim {
        says: "loss of our connection with GSO, paced to 90 % (%)",
        scenarios: &ONE,
        workload: "paced",
        metric: "loss_percent",
        candidate: "hawser",
        base: None,
        bound: Bound::Below(0.1),
    },
    Claim {
        says: "loss of our connection with sendmmsg alone, paced to 90 % (%)",
        scenarios: &ONE,
        workload: "paced",
        metric: "loss_percent",
        candidate: "hawser-sendmmsg",
        base: None,
        bound: Bound::Below(0.1),
    },
    Claim {
        says: "a file by quinn over our connection, times quic-go over snet through the dispatcher",
        scenarios: &FILES,
        workload: "file",
        metric: "goodput_mbps",
        candidate: "hawser",
        base: Some("dispatcher"),
        bound: Bound::AtLeast(3.0),
    },
];

/// What came of each claim that was measured. Plain data.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Vec<Verdict>);

/// A claim and what was found. Plain data.
#[derive(Clone, Debug)]
struct Verdict {
    says: &'static str,
    bound: Bound,
    found: Summary,
}

/// A candidate's figures for one connection within an AS: a part of the last line of `--json`. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Brief {
    /// Goodput that arrived.
    pub mbps: f64,
    /// Thousand packets a second that arrived.
    pub kpps: f64,
    /// What did not, in percent.
    pub loss_pct: f64,
    /// Processor time of both ends for a packet that arrived.
    pub cpu_us_per_packet: f64,
}

impl Verdicts {
    /// Of all runs of the bench.
    #[must_use]
    pub fn of(runs: &[Run]) -> Self {
        let verdict = |claim: &Claim| {
            let found = claim.scenarios.iter().find_map(|scenario| Summary::of(&claim.figures(runs, scenario)))?;
            Some(Verdict { says: claim.says, bound: claim.bound, found })
        };
        Self(CLAIMS.iter().filter_map(verdict).collect())
    }

    /// As Markdown; nothing where nothing was measured.
    #[must_use]
    pub fn markdown(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let row = |verdict: &Verdict| {
            let Verdict { says, bound, found: Summary { n, median, least, most, .. } } = verdict;
            let is_met = if verdict.is_met() { "yes" } else { "**no**" };
            format!("| {says} | {bound} | {median:.2} | {least:.2} to {most:.2} | {n} | {is_met} |\n")
        };
        let rows: String = self.0.iter().map(row).collect();
        format!("| what | must be | median | range | runs | met |\n| --- | ---: | ---: | ---: | ---: | --- |\n{rows}")
    }
}

impl Verdict {
    fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.found.median >= bound,
            Bound::Below(bound) => self.found.median < bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::Below(bound) => write!(f, "< {bound}"),
        }
    }
}

/// For a terminal.
impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for verdict in &self.0 {
            let Verdict { says, bound, found: Summary { n, median, .. } } = verdict;
            let is_met = if verdict.is_met() { "" } else { "   NOT MET" };
            writeln!(f, "{median:>8.2}  {bound:<7} n = {n}  {says}{is_met}")?;
        }
        Ok(())
    }
}

impl Claim {
    /// Step 1: one figure for each repetition.
    fn figures(&self, runs: &[Run], scenario: &str) -> Vec<f64> {
        let of = |candidate: &str| -> BTreeMap<u32, f64> {
            let own = found(runs, scenario, self.workload).filter(|(run, _)| run.series.contender == candidate);
            own.filter_map(|(run, findings)| Some((run.repetition, *findings.metrics.get(self.metric)?))).collect()
        };
        let own = of(self.candidate);
        match self.base {
            None => own.into_values().collect(),
            Some(base) => {
                let base = of(base);
                own.iter().filter_map(|(repetition, own)| Some(own / base.get(repetition)?)).collect()
            }
        }
    }
}

/// Runs of one connection that were measured.
fn found<'r>(runs: &'r [Run], scenario: &str, workload: &str) -> impl Iterator<Item = (&'r Run, &'r Findings)> {
    let is_asked =
        move |run: &&Run| run.series.scenario == scenario && run.series.workload == workload && run.series.case == CASE;
    runs.iter().filter(is_asked).filter_map(|run| match &run.outcome {
        Outcome::Found(findings) => Some((run, findings)),
        Outcome::Skipped(_) | Outcome::Failed(_) => None,
    })
}

/// Step 2: medians of every candidate that was measured with one connection within an AS.
#[must_use]
pub fn brief(runs: &[Run]) -> BTreeMap<String, Brief> {
    let mut all: BTreeMap<String, Vec<&Findings>> = BTreeMap::new();
    for scenario in ONE {
        if all.is_empty() {
            for (run, findings) in found(runs, scenario, "packets") {
                all.entry(run.series.contender.clone()).or_default().push(findings);
            }
        }
    }
    let median = |of: &[&Findings], metric: &str| {
        let values: Vec<f64> = of.iter().filter_map(|findings| findings.metrics.get(metric).copied()).collect();
        Summary::of(&values).map(|summary| summary.median)
    };
    let brief = |of: &[&Findings]| {
        Some(Brief {
            mbps: median(of, "goodput_mbps")?,
            kpps: median(of, "kpps")?,
            loss_pct: median(of, "loss_percent")?,
            cpu_us_per_packet: median(of, "cpu_packet_us")?,
        })
    };
    all.into_iter().filter_map(|(candidate, of)| Some((candidate, brief(&of)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::SeriesKey;
    use crate::scenario;
    use crate::scion_bench::GROUP;

    fn run(scenario: &str, contender: &str, workload: &str, repetition: u32, figures: &[(&str, f64)]) -> Run {
        let word = |text: &str| text.to_owned();
        let series = SeriesKey {
            scenario: word(scenario),
            case: word(CASE),
            contender: word(contender),
            workload: word(workload),
        };
        let metrics = figures.iter().map(|(name, value)| (word(name), *value)).collect();
        let outcome = Outcome::Found(Findings { metrics, ..Findings::default() });
        Run { series, repetition, seed: 1, started: 0.0, outcome }
    }

    #[test]
    fn claims_are_about_what_the_scenarios_measure() {
        let scenarios = scenario::find(GROUP).expect("the bench's scenarios");
        for claim in CLAIMS {
            let measured = scenarios.iter().find(|scenario| scenario.name == claim.scenarios[0]).expect(claim.says);
            let case = measured.cases.iter().find(|case| case.name == CASE).expect("a case of one connection");
            assert!(case.workloads.iter().any(|name| name == claim.workload), "{}", claim.says);
            for label in [Some(claim.candidate), claim.base].into_iter().flatten() {
                assert!(case.contenders.iter().any(|name| name == label), "{}: {label}", claim.says);
            }
        }
    }

    #[test]
    fn figures_of_one_repetition_are_set_in_relation() {
        let kpps = |contender, repetition, kpps| run("scion-one", contender, "packets", repetition, &[("kpps", kpps)]);
        // The machine was half as fast in the second repetition; snet alone was measured in the fourth.
        let runs = [
            kpps("hawser", 0, 1600.0),
            kpps("snet", 0, 100.0),
            kpps("snet", 1, 50.0),
            kpps("hawser", 1, 800.0),
            kpps("hawser", 2, 1400.0),
            kpps("snet", 2, 100.0),
            kpps("snet", 3, 1.0),
        ];
        let Verdicts(verdicts) = Verdicts::of(&runs);
        let [one] = verdicts.as_slice() else { panic!("{verdicts:?}") };
        assert_eq!((one.found.n, one.found.median, one.is_met()), (3, 16.0, true));
        assert_eq!(Verdicts::of(&runs[4..]).0[0].found.median, 14.0);
        assert!(Verdicts::of(&runs[4..]).to_string().contains("NOT MET"));
    }

    #[test]
    fn a_loss_must_stay_below_its_bound() {
        for (loss, is_met) in [(0.05, true), (0.1, false)] {
            let runs = [run("scion-one", "hawser", "paced", 0, &[("loss_percent", loss)])];
            assert_eq!(Verdicts::of(&runs).0[0].is_met(), is_met, "{loss}");
        }
    }

    #[test]
    fn the_line_has_each_candidates_medians() {
        let figures = |mbps| {
            [("goodput_mbps", mbps), ("kpps", 90.0), ("loss_percent", 0.5), ("cpu_packet_us", 20.0), ("other", 1.0)]
        };
        let runs = [
            run("scion-one", "snet", "packets", 0, &figures(800.0)),
            run("scion-one", "snet", "packets", 1, &figures(900.0)),
            run("scion-one", "snet", "packets", 2, &figures(1000.0)),
            run("scion-one", "snet", "paced", 0, &figures(1.0)),
            run("scion-within", "snet", "packets", 0, &figures(2.0)),
        ];
        let line = serde_json::to_string(&brief(&runs)).expect("plain data");
        assert_eq!(line, r#"{"snet":{"mbps":900.0,"kpps":90.0,"loss_pct":0.5,"cpu_us_per_packet":20.0}}"#);
    }
}
