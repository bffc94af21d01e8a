//! What a scenario claims, held against what was found.
//!
//! 1. In a case, the figure of each repetition counts alone, or in relation to the best of others in the same
//!    repetition: what the machine did beside fell on all of them. Others may be of another case or workload; and of
//!    all figures only what they have beyond one contender's may count.
//! 2. Of several repetitions the median counts, or where the claim is of every run the worst: one that failed is that,
//!    and so is one without the figure that others of its workload have.
//! 3. A claim holds once it holds in enough cases, or of their median.

use std::collections::BTreeMap;
use std::fmt;

use super::{Metric, Scenario, Summary};
use crate::experiment::{Outcome, Run};
use crate::scenario::{Bound, Case, Claim};

/// The columns of a table of claims.
pub(super) const HEADS: [&str; 7] = ["claim", "must be", "median", "range", "of", "holds", "not in"];

/// What a claim that does not hold has in that column.
pub(super) const NO: &str = "no";
/// What stands below them.
pub(super) const MEDIANS: &str = "A figure is set in relation to those of the same repetition; of repetitions the median counts, or the worst where \
     every run is claimed.";

/// What came of a scenario's claims: a row of cells below [`HEADS`] for each. Plain data.
#[derive(Clone, Debug)]
pub struct Verdicts(pub(super) Vec<[String; HEADS.len()]>);

impl Verdicts {
    /// Of a scenario's runs, in the order of its file.
    pub(super) fn of(scenario: &Scenario, runs: &[Run]) -> Self {
        Self(scenario.claims.iter().map(|claim| row(claim, &found(claim, scenario, runs))).collect())
    }
}

/// For a terminal: a line each.
impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for [says, must, median, _, of, holds, without] in &self.0 {
            let without = if without.is_empty() { String::new() } else { format!("; not in {without}") };
            writeln!(f, "{median:>8}  {must:<8} {of:<9} {says}: {holds}{without}")?;
        }
        Ok(())
    }
}

/// What was found in a case.
struct Found {
    case: String,
    summary: Option<Summary>,
    /// Step 2: the median, or the worst where every run is claimed.
    counted: Option<f64>,
    /// Runs that failed or have no figure, where every run is claimed.
    failed: usize,
    /// None where nothing was measured.
    holds: Option<bool>,
}

/// Steps 1 and 2, in each case that is meant.
fn found(claim: &Claim, scenario: &Scenario, runs: &[Run]) -> Vec<Found> {
    let is_meant = |case: &&Case| {
        case.contenders.contains(&claim.contender) && (claim.cases.is_empty() || claim.cases.contains(&case.name))
    };
    let mut found = Vec::new();
    for case in scenario.cases.iter().filter(is_meant) {
        let each = claim.each.iter().filter(|workload| case.workloads.contains(workload));
        let each = each.map(|workload| (format!("{} {workload}", case.name), Some(workload.as_str())));
        let whole = claim.each.is_empty().then(|| (case.name.clone(), claim.workload.as_deref()));
        found.extend(each.chain(whole).map(|(name, workload)| {
            let summary = Summary::of(&figures(claim, workload, scenario, case, runs));
            let counted = summary.map(|found| match claim.bound {
                _ if !claim.every => found.median,
                Bound::AtLeast(_) | Bound::Above(_) => found.least,
                Bound::AtMost(_) | Bound::Within(_) => found.most,
            });
            let failed = if claim.every { failed(claim, workload, case, runs) } else { 0 };
            let holds = if failed > 0 { Some(false) } else { counted.map(|figure| claim.bound.holds(figure)) };
            Found { case: name, summary, counted, failed, holds }
        }));
    }
    found
}

/// Step 3; none where too little was measured to tell.
fn holds(claim: &Claim, found: &[Found]) -> Option<bool> {
    if claim.median {
        return summary(found).map(|found| claim.bound.holds(found.median));
    }
    let count = |verdict| found.iter().filter(|found| found.holds == verdict).count();
    let (held, open) = (count(Some(true)), count(None));
    let enough = claim.enough.map_or(found.len(), |enough| enough as usize);
    if held >= enough && held > 0 { Some(true) } else { (held + open < enough).then_some(false) }
}

/// Of the repetitions of a single case, or of the medians of several.
fn summary(found: &[Found]) -> Option<Summary> {
    if let [found] = found {
        return found.summary;
    }
    Summary::of(&found.iter().filter_map(|found| Some(found.summary?.median)).collect::<Vec<_>>())
}

fn row(claim: &Claim, found: &[Found]) -> [String; HEADS.len()] {
    let unit = match claim.bound {
        Bound::AtLeast(_) | Bound::AtMost(_) if !claim.of.is_empty() => "times",
        _ => Metric::named(&claim.metric).unit,
    };
    let of_what = match (claim.median, claim.every) {
        (true, _) => " in the median",
        (_, true) => " in every run",
        _ => "",
    };
    let must = format!("{} {unit}", claim.bound).trim_end().to_owned() + of_what;
    let holds = match (holds(claim, found), claim.enough) {
        (Some(true), None) => "yes".to_owned(),
        (Some(true), Some(enough)) => format!("yes; enough: {enough}"),
        (Some(false), _) => NO.to_owned(),
        (None, _) => "not measured".to_owned(),
    };
    let says = claim.says.clone();
    let Some(Summary { n, median, least, most, .. }) = summary(found) else {
        return [says, must, "–".to_owned(), "–".to_owned(), String::new(), holds, String::new()];
    };
    let what = if found.len() == 1 { "run" } else { "case" };
    let failed = match found.iter().map(|found| found.failed).sum::<usize>() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let of = format!("{n} {what}{}{failed}", if n == 1 { "" } else { "s" });
    [says, must, format!("{median:.2}"), format!("{least:.2} to {most:.2}"), of, holds, short(claim, found)]
}

/// Where several cases are meant, and not their median: those in which it does not hold.
fn short(claim: &Claim, found: &[Found]) -> String {
    if found.len() == 1 {
        return String::new();
    }
    let missed = found.iter().filter(|found| !claim.median && found.holds == Some(false));
    let missed = missed.map(|Found { case, counted, .. }| {
        let counted = counted.map_or("failed".to_owned(), |figure| format!("{figure:.2}"));
        format!("{case} ({counted})")
    });
    let open = found.iter().filter(|found| found.holds.is_none()).count();
    missed.chain((open > 0).then(|| format!("{open} not measured"))).collect::<Vec<_>>().join(", ")
}

/// Step 1: a figure for each repetition.
fn figures(claim: &Claim, workload: Option<&str>, scenario: &Scenario, case: &Case, runs: &[Run]) -> Vec<f64> {
    let beyond = |case: &Case, label: &str, workload: Option<&str>| {
        let named = |label: &str| by_repetition(case, label, workload, &claim.metric, runs);
        let Some(base) = claim.beyond.as_deref().map(named) else { return named(label) };
        let rest = |(repetition, figure): (u32, f64)| Some((repetition, figure - base.get(&repetition)?));
        named(label).into_iter().filter_map(rest).collect()
    };
    let own = beyond(case, &claim.contender, workload);
    if claim.of.is_empty() {
        return own.into_values().collect();
    }
    let elsewhere = claim.of_case.as_ref().and_then(|name| scenario.cases.iter().find(|case| case.name == *name));
    let (there, workload) = (elsewhere.unwrap_or(case), claim.of_workload.as_deref().or(workload));
    let others: Vec<_> = claim.of.iter().map(|label| beyond(there, label, workload)).collect();
    let related = |(repetition, figure): (u32, f64)| {
        claim.bound.relate(figure, others.iter().filter_map(|other| other.get(&repetition).copied()))
    };
    own.into_iter().filter_map(related).collect()
}

fn its<'r>(case: &Case, label: &str, runs: &'r [Run]) -> impl DoubleEndedIterator<Item = &'r Run> {
    runs.iter().filter(move |run| run.series.case == case.name && run.series.contender == label)
}

/// Whose figures count: the workload, or the first of the case's that has the metric; none where no run has it.
fn giver<'c>(case: &'c Case, workload: Option<&str>, metric: &str, runs: &[Run]) -> Option<&'c str> {
    let is_of = |name: &str, run: &Run| run.series.case == case.name && run.series.workload == name;
    let gives = |name: &str| runs.iter().any(|run| is_of(name, run) && run.figure(metric).is_some());
    let is_meant = |name: &&str| workload.is_none_or(|workload| workload == *name);
    case.workloads.iter().map(String::as_str).filter(is_meant).find(|name| gives(name))
}

/// Runs of the claim's contender that failed, or have no figure: of the workload that gives it, else of all meant.
fn failed(claim: &Claim, workload: Option<&str>, case: &Case, runs: &[Run]) -> usize {
    let giver = giver(case, workload, &claim.metric, runs);
    let is_meant = |run: &&Run| giver.or(workload).is_none_or(|name| run.series.workload == name);
    let is_bad = |run: &&Run| match run.outcome {
        Outcome::Failed(_) => true,
        Outcome::Found(_) => giver.is_some() && run.figure(&claim.metric).is_none(),
        Outcome::Skipped(_) => false,
    };
    its(case, &claim.contender, runs).filter(is_meant).filter(is_bad).count()
}

/// What a contender's runs found, once a repetition: what the first of them did.
fn by_repetition(case: &Case, label: &str, workload: Option<&str>, metric: &str, runs: &[Run]) -> BTreeMap<u32, f64> {
    let giver = giver(case, workload, metric, runs);
    let its = its(case, label, runs).filter(|run| giver == Some(run.series.workload.as_str()));
    its.rev().filter_map(|run| Some((run.repetition, run.figure(metric)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Findings, SeriesKey};

    /// Two cases; `ours` against `theirs` and `others`, with the rest of a claim.
    fn scenario(claim: &str) -> Scenario {
        let text = format!("{}{claim}", include_str!("golden/claims.toml"));
        Scenario::parse(&text, "made-up.toml", None).unwrap_or_else(|error| panic!("{error:#?}"))
    }

    fn run(case: &str, contender: &str, repetition: u32, mbps: f64) -> Run {
        let [scenario, case, contender, workload] = ["made-up", case, contender, "bulk"].map(str::to_owned);
        let series = SeriesKey { scenario, case, contender, workload };
        let outcome = Outcome::Found(Findings::named([("goodput_mbps", mbps)]));
        Run { series, repetition, seed: 1, started: 0.0, outcome }
    }

    fn row(claim: &str, runs: &[Run]) -> [String; HEADS.len()] {
        Verdicts::of(&scenario(claim), runs).0.remove(0)
    }

    /// Each claim after this beginning: what must be, what was found, of how many, whether it holds, and where not.
    fn assert_told(beginning: &str, runs: &[Run], rows: &[(&str, &str)]) {
        for (claim, expected) in rows {
            let [_, must, median, _, of, holds, short] = row(&format!("{beginning}\n{claim}\n"), runs);
            let told = [must, median, of, holds, short];
            let told: Vec<String> = told.into_iter().filter(|cell| !cell.is_empty()).collect();
            assert_eq!(told.join(" | "), *expected, "{beginning} {claim}, {} runs", runs.len());
        }
    }

    const NEAR: &str = "cases = [\"near\"]";

    #[test]
    fn figures_of_one_repetition_are_set_in_relation() {
        let of = |contender: &str, figures: &[f64]| -> Vec<Run> {
            figures.iter().zip(0..).map(|(mbps, repetition)| run("near", contender, repetition, *mbps)).collect()
        };
        // The machine was half as fast in the second repetition; theirs alone was measured in the fourth.
        let (ours, theirs) = (of("ours", &[1600.0, 800.0, 1400.0]), of("theirs", &[100.0, 50.0, 100.0, 1.0]));
        let claim = format!("{NEAR}\nof = [\"theirs\"]\nat-least = 15\n");
        let runs = [ours.as_slice(), &theirs].concat();
        let expected = ["it is fast", "≥ 15 times", "16.00", "14.00 to 16.00", "3 runs", "yes", ""];
        assert_eq!(row(&claim, &runs), expected);
        let third = [&ours[2..], &theirs[2..]].concat();
        assert_eq!(row(&claim, &third)[2..6], ["14.00", "14.00 to 14.00", "1 run", NO]);
        let told = Verdicts::of(&scenario(&claim), &runs).to_string();
        assert_eq!(told, "   16.00  ≥ 15 times 3 runs    it is fast: yes\n");
    }

    #[test]
    fn a_claim_is_held_against_the_best_of_others() {
        let runs =
            [("ours", 90.0), ("theirs", 60.0), ("others", 100.0)].map(|(label, mbps)| run("near", label, 0, mbps));
        let rows = [
            ("at-least = 0.9", "≥ 0.9 times | 0.90 | 1 run | yes"),
            ("at-least = 1", "≥ 1 times | 0.90 | 1 run | no"),
            ("at-most = 1.5", "≤ 1.5 times | 1.50 | 1 run | yes"),
            ("above = -10", "≥ -10 Mbit/s | -10.00 | 1 run | yes"),
            ("above = 1", "≥ +1 Mbit/s | -10.00 | 1 run | no"),
            ("within = 29", "≤ +29 Mbit/s | 30.00 | 1 run | no"),
            ("within = 30", "≤ +30 Mbit/s | 30.00 | 1 run | yes"),
        ];
        assert_told(&format!("{NEAR}\nof = [\"theirs\", \"others\"]"), &runs, &rows);
        assert_told(NEAR, &runs, &[("at-most = 90", "≤ 90 Mbit/s | 90.00 | 1 run | yes")]);
    }

    #[test]
    fn figures_of_another_case_or_beyond_another_contender_are_held_against_too() {
        let near =
            [("ours", 90.0), ("theirs", 30.0), ("others", 10.0)].map(|(label, mbps)| run("near", label, 0, mbps));
        let rows = [
            ("of-case = \"far\"\nat-least = 1.5", "≥ 1.5 times | 1.50 | 1 run | yes"),
            ("of-case = \"far\"\nabove = 31", "≥ +31 Mbit/s | 30.00 | 1 run | no"),
            ("of = [\"theirs\"]\nbeyond = \"others\"\nat-most = 4", "≤ 4 times | 4.00 | 1 run | yes"),
            ("beyond = \"others\"\nat-most = 79", "≤ 79 Mbit/s | 80.00 | 1 run | no"),
            ("each = [\"bulk\"]\nat-most = 90", "≤ 90 Mbit/s | 90.00 | 1 run | yes"),
        ];
        assert_told(NEAR, &[near.as_slice(), &[run("far", "ours", 0, 60.0)]].concat(), &rows);
    }

    /// Though it was tried again; and where its workload gives the figure.
    #[test]
    fn a_run_that_failed_or_has_no_figure_is_the_worst_of_every_run() {
        let (ours, theirs) = (run("near", "ours", 0, 90.0), run("near", "theirs", 0, 90.0));
        let failed = |run: &Run| Run { outcome: Outcome::Failed("the portal ended".to_owned()), ..run.clone() };
        let empty = |run: &Run| Run { outcome: Outcome::Found(Findings::default()), ..run.clone() };
        let second = Run { repetition: 1, ..ours.clone() };
        let ping = Run { series: SeriesKey { workload: "ping".to_owned(), ..second.series.clone() }, ..second.clone() };
        // what was run; what was found, of how many, whether it holds
        let rows = [
            (vec![ours.clone()], "90.00 | 1 run | yes"),
            (vec![failed(&ours), ours.clone()], "90.00 | 1 run, 1 failed | no"),
            (vec![failed(&ours)], "– | no"),
            (vec![failed(&theirs), ours.clone()], "90.00 | 1 run | yes"),
            (vec![ours.clone(), failed(&ping)], "90.00 | 1 run | yes"),
            (vec![ours.clone(), empty(&ping)], "90.00 | 1 run | yes"),
            (vec![ours.clone(), failed(&second)], "90.00 | 1 run, 1 failed | no"),
            (vec![ours.clone(), empty(&second)], "90.00 | 1 run, 1 failed | no"),
            (vec![theirs, empty(&second)], "– | no"),
            (vec![failed(&ping)], "– | no"),
            (vec![empty(&ping)], "– | not measured"),
        ];
        let claim = "at-least = 65\nevery = true\n[[workload]]\nkind = \"ping\"";
        for (runs, expected) in rows {
            assert_told(NEAR, &runs, &[(claim, format!("≥ 65 Mbit/s in every run | {expected}").as_str())]);
        }
        let median = [("at-least = 65\nevery = false", "≥ 65 Mbit/s | 90.00 | 1 run | yes")];
        assert_told(NEAR, &[failed(&ours), ours], &median);
    }

    #[test]
    fn it_holds_of_every_run() {
        let three = [90.0, 80.0, 100.0].map(|mbps| run("near", "ours", mbps as u32, mbps));
        let rows = [
            ("at-least = 80", "≥ 80 Mbit/s in every run | 90.00 | 3 runs | yes"),
            ("at-least = 81", "≥ 81 Mbit/s in every run | 90.00 | 3 runs | no"),
            ("at-most = 99", "≤ 99 Mbit/s in every run | 90.00 | 3 runs | no"),
        ];
        assert_told(&format!("{NEAR}\nevery = true"), &three, &rows);
        let cases = [run("near", "ours", 0, 90.0), run("far", "ours", 0, 90.0), run("far", "ours", 1, 60.0)];
        let expected = "≥ 70 Mbit/s in every run | 82.50 | 2 cases | no | far (60.00)";
        assert_told("every = true", &cases, &[("at-least = 70", expected)]);
    }

    #[test]
    fn it_holds_in_all_cases_or_in_enough_of_them_or_of_their_median() {
        let both = [run("near", "ours", 0, 90.0), run("far", "ours", 0, 40.0)];
        let (near, far) = both.split_at(1);
        let rows: [(&str, &[Run], &str); 10] = [
            ("at-least = 50", &both, "≥ 50 Mbit/s | 65.00 | 2 cases | no | far (40.00)"),
            ("at-least = 50\nenough = 1", &both, "≥ 50 Mbit/s | 65.00 | 2 cases | yes; enough: 1 | far (40.00)"),
            ("at-least = 50", near, "≥ 50 Mbit/s | 90.00 | 1 case | not measured | 1 not measured"),
            ("at-least = 50\nenough = 1", near, "≥ 50 Mbit/s | 90.00 | 1 case | yes; enough: 1 | 1 not measured"),
            (
                "at-least = 50\nenough = 1",
                far,
                "≥ 50 Mbit/s | 40.00 | 1 case | not measured | far (40.00), 1 not measured",
            ),
            ("at-least = 50", &[], "≥ 50 Mbit/s | – | not measured"),
            ("at-least = 65\nmedian = true", &both, "≥ 65 Mbit/s in the median | 65.00 | 2 cases | yes"),
            ("at-least = 66\nmedian = true", &both, "≥ 66 Mbit/s in the median | 65.00 | 2 cases | no"),
            ("at-least = 66\nmedian = true", near, "≥ 66 Mbit/s in the median | 90.00 | 1 case | yes | 1 not measured"),
            ("at-least = 66\nmedian = true", &[], "≥ 66 Mbit/s in the median | – | not measured"),
        ];
        rows.into_iter().for_each(|(claim, runs, expected)| assert_told("", runs, &[(claim, expected)]));
    }
}
