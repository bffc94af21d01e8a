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

/// What came of a scenario's claims. Starts with none; plain data.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Vec<Verdict>);

/// A claim, and what was found in each case. Plain data.
#[derive(Clone, Debug)]
struct Verdict {
    claim: Claim,
    found: Vec<Found>,
}

/// What was found in a case. Plain data.
#[derive(Clone, Debug)]
struct Found {
    case: String,
    summary: Option<Summary>,
    /// Runs that failed or have no figure, where every run is claimed.
    failed: usize,
}

impl Verdicts {
    /// Of a scenario's runs, in the order of its file.
    #[must_use]
    pub fn of(scenario: &Scenario, runs: &[Run]) -> Self {
        Self(scenario.claims.iter().map(|claim| Verdict::of(claim, scenario, runs)).collect())
    }

    /// Several scenarios' as one.
    #[must_use]
    pub fn all<'a>(of: impl Iterator<Item = &'a Self>) -> Self {
        Self(of.flat_map(|verdicts| verdicts.0.iter().cloned()).collect())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Cells below [`HEADS`].
    pub(super) fn rows(&self) -> impl Iterator<Item = [String; HEADS.len()]> {
        self.0.iter().map(Verdict::row)
    }
}

/// For a terminal: a line each.
impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.rows() {
            let [says, must, median, _, of, holds, without] = row;
            let without = if without.is_empty() { without } else { format!("; not in {without}") };
            writeln!(f, "{median:>8}  {must:<8} {of:<9} {says}: {holds}{without}")?;
        }
        Ok(())
    }
}

impl Verdict {
    fn of(claim: &Claim, scenario: &Scenario, runs: &[Run]) -> Self {
        let is_meant = |case: &&Case| {
            case.contenders.contains(&claim.contender) && (claim.cases.is_empty() || claim.cases.contains(&case.name))
        };
        let cases = scenario.cases.iter().filter(is_meant);
        let mut found = Vec::new();
        for case in cases {
            let mut add = |name: String, workload: Option<&str>| {
                let summary = Summary::of(&figures(claim, workload, scenario, case, runs));
                let failed = if claim.every { failed(claim, workload, case, runs) } else { 0 };
                found.push(Found { case: name, summary, failed });
            };
            for workload in claim.each.iter().filter(|workload| case.workloads.contains(workload)) {
                add(format!("{} {workload}", case.name), Some(workload));
            }
            if claim.each.is_empty() {
                add(case.name.clone(), claim.workload.as_deref());
            }
        }
        Self { claim: claim.clone(), found }
    }

    /// None where too little was measured to tell.
    fn holds(&self) -> Option<bool> {
        if self.claim.median {
            return self.summary().map(|found| self.claim.bound.holds(found.median));
        }
        let count = |verdict| self.found.iter().filter(|found| self.holds_in(found) == verdict).count();
        let (held, open) = (count(Some(true)), count(None));
        let enough = self.claim.enough.map_or(self.found.len(), |enough| enough as usize);
        if held >= enough && held > 0 { Some(true) } else { (held + open < enough).then_some(false) }
    }

    /// In a case; none where nothing was measured.
    fn holds_in(&self, Found { summary, failed, .. }: &Found) -> Option<bool> {
        if *failed > 0 {
            return Some(false);
        }
        summary.as_ref().map(|found| self.claim.bound.holds(self.counted(found)))
    }

    /// Step 2.
    fn counted(&self, found: &Summary) -> f64 {
        match self.claim.bound {
            _ if !self.claim.every => found.median,
            Bound::AtLeast(_) | Bound::Above(_) => found.least,
            Bound::AtMost(_) | Bound::Within(_) => found.most,
        }
    }

    /// Of the repetitions of a single case, or of the medians of several.
    fn summary(&self) -> Option<Summary> {
        match self.found.as_slice() {
            [found] => found.summary,
            several => {
                let medians: Vec<f64> = several.iter().filter_map(|found| Some(found.summary?.median)).collect();
                Summary::of(&medians)
            }
        }
    }

    fn row(&self) -> [String; HEADS.len()] {
        let Claim { says, bound, of, metric, enough, .. } = &self.claim;
        let unit = match (bound, of.is_empty()) {
            (Bound::AtLeast(_) | Bound::AtMost(_), false) => "times",
            _ => Metric::named(metric).unit,
        };
        let of_what = match (self.claim.median, self.claim.every) {
            (true, _) => " in the median",
            (_, true) => " in every run",
            _ => "",
        };
        let must = format!("{bound} {unit}").trim_end().to_owned() + of_what;
        let holds = match (self.holds(), enough) {
            (Some(true), None) => "yes".to_owned(),
            (Some(true), Some(enough)) => format!("yes; enough: {enough}"),
            (Some(false), _) => NO.to_owned(),
            (None, _) => "not measured".to_owned(),
        };
        let Some(Summary { n, median, least, most, .. }) = self.summary() else {
            return [says.clone(), must, "–".to_owned(), "–".to_owned(), String::new(), holds, String::new()];
        };
        let what = if self.found.len() == 1 { "run" } else { "case" };
        let failed = match self.found.iter().map(|found| found.failed).sum::<usize>() {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let of = format!("{n} {what}{}{failed}", if n == 1 { "" } else { "s" });
        let range = format!("{least:.2} to {most:.2}");
        [says.clone(), must, format!("{median:.2}"), range, of, holds, self.short()]
    }

    /// Where several cases are meant, and not their median: those in which it does not hold.
    fn short(&self) -> String {
        if self.found.len() == 1 {
            return String::new();
        }
        let missed = |found: &Found| {
            let is_missed = !self.claim.median && self.holds_in(found) == Some(false);
            let counted = found.summary.map_or("failed".to_owned(), |summary| format!("{:.2}", self.counted(&summary)));
            is_missed.then(|| format!("{} ({counted})", found.case))
        };
        let mut short: Vec<String> = self.found.iter().filter_map(missed).collect();
        let open = self.found.iter().filter(|found| self.holds_in(found).is_none()).count();
        if open > 0 {
            short.push(format!("{open} not measured"));
        }
        short.join(", ")
    }
}

/// Step 1: a figure for each repetition.
fn figures(claim: &Claim, workload: Option<&str>, scenario: &Scenario, case: &Case, runs: &[Run]) -> Vec<f64> {
    let named =
        |case: &Case, label: &str, workload: Option<&str>| by_repetition(case, label, workload, &claim.metric, runs);
    let beyond = |case: &Case, label: &str, workload: Option<&str>| {
        let figures = named(case, label, workload);
        let Some(base) = claim.beyond.as_ref().map(|base| named(case, base, workload)) else { return figures };
        let rest = |(repetition, figure): (u32, f64)| Some((repetition, figure - base.get(&repetition)?));
        figures.into_iter().filter_map(rest).collect()
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

/// A contender's runs in a case.
fn its<'r>(case: &Case, label: &str, runs: &'r [Run]) -> impl Iterator<Item = &'r Run> {
    runs.iter().filter(move |run| run.series.case == case.name && run.series.contender == label)
}

/// A run's figure.
fn figure(run: &Run, metric: &str) -> Option<f64> {
    let Outcome::Found(findings) = &run.outcome else { return None };
    findings.metrics.get(metric).copied()
}

/// Whose figures count: the workload, or the first of the case's that has the metric; none where no run has it.
fn giver<'c>(case: &'c Case, workload: Option<&str>, metric: &str, runs: &[Run]) -> Option<&'c str> {
    let is_of = |name: &str, run: &Run| run.series.case == case.name && run.series.workload == name;
    let gives = |name: &str| runs.iter().any(|run| is_of(name, run) && figure(run, metric).is_some());
    let is_meant = |name: &&str| workload.is_none_or(|workload| workload == *name);
    case.workloads.iter().map(String::as_str).filter(is_meant).find(|name| gives(name))
}

/// Runs of the claim's contender that failed, or have no figure: of the workload that gives it, else of all meant.
fn failed(claim: &Claim, workload: Option<&str>, case: &Case, runs: &[Run]) -> usize {
    let giver = giver(case, workload, &claim.metric, runs);
    let is_meant = |run: &&Run| giver.or(workload).is_none_or(|name| run.series.workload == name);
    let is_bad = |run: &&Run| match run.outcome {
        Outcome::Failed(_) => true,
        Outcome::Found(_) => giver.is_some() && figure(run, &claim.metric).is_none(),
        Outcome::Skipped(_) => false,
    };
    its(case, &claim.contender, runs).filter(is_meant).filter(is_bad).count()
}

/// What a contender's runs found, once a repetition.
fn by_repetition(case: &Case, label: &str, workload: Option<&str>, metric: &str, runs: &[Run]) -> BTreeMap<u32, f64> {
    let mut figures = BTreeMap::new();
    let Some(giver) = giver(case, workload, metric, runs) else { return figures };
    for run in its(case, label, runs).filter(|run| run.series.workload == giver) {
        if let Some(figure) = figure(run, metric) {
            figures.entry(run.repetition).or_insert(figure);
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Findings, SeriesKey};

    /// Two cases; `ours` against `theirs` and `others`.
    fn scenario(claim: &str) -> Scenario {
        let head = "name = \"made-up\"\n[[network.link]]\nname = \"a\"\n";
        let contenders =
            ["ours", "theirs", "others"].map(|l| format!("[[contender]]\nkind = \"tcp\"\nlabel = \"{l}\"\n"));
        let rest = "[[workload]]\nkind = \"bulk\"\n[[case]]\nname = \"near\"\n[[case]]\nname = \"far\"\n[[claim]]\n";
        let claim = format!("says = \"it is fast\"\ncontender = \"ours\"\nmetric = \"goodput_mbps\"\n{claim}");
        let text = format!("{head}{}{rest}{claim}", contenders.concat());
        Scenario::parse(&text, "made-up.toml", None).unwrap_or_else(|error| panic!("{error:#?}"))
    }

    fn run(case: &str, contender: &str, repetition: u32, mbps: f64) -> Run {
        let [scenario, case, contender, workload] = ["made-up", case, contender, "bulk"].map(str::to_owned);
        let series = SeriesKey { scenario, case, contender, workload };
        let outcome = Outcome::Found(Findings::named([("goodput_mbps", mbps)]));
        Run { series, repetition, seed: 1, started: 0.0, outcome }
    }

    fn row(claim: &str, runs: &[Run]) -> [String; HEADS.len()] {
        Verdicts::of(&scenario(claim), runs).rows().next().expect("a claim")
    }

    #[test]
    fn figures_of_one_repetition_are_set_in_relation() {
        // The machine was half as fast in the second repetition; theirs alone was measured in the fourth.
        let runs = [
            run("near", "ours", 0, 1600.0),
            run("near", "theirs", 0, 100.0),
            run("near", "theirs", 1, 50.0),
            run("near", "ours", 1, 800.0),
            run("near", "ours", 2, 1400.0),
            run("near", "theirs", 2, 100.0),
            run("near", "theirs", 3, 1.0),
        ];
        let claim = "cases = [\"near\"]\nof = [\"theirs\"]\nat-least = 15\n";
        let expected = ["it is fast", "≥ 15 times", "16.00", "14.00 to 16.00", "3 runs", "yes", ""];
        assert_eq!(row(claim, &runs), expected);
        assert_eq!(row(claim, &runs[4..])[2..6], ["14.00", "14.00 to 14.00", "1 run", NO]);
        let told = Verdicts::of(&scenario(claim), &runs).to_string();
        assert_eq!(told, "   16.00  ≥ 15 times 3 runs    it is fast: yes\n");
    }

    /// Each claim; what must be, what was found, whether it holds.
    fn hold(rows: &[(&str, [&str; 3])], runs: &[Run]) {
        for (claim, expected) in rows {
            let [_, must, median, _, _, holds, _] = row(&format!("cases = [\"near\"]\n{claim}\n"), runs);
            assert_eq!([must, median, holds], *expected, "{claim}");
        }
    }

    #[test]
    fn a_claim_is_held_against_the_best_of_others() {
        let runs =
            [("ours", 90.0), ("theirs", 60.0), ("others", 100.0)].map(|(label, mbps)| run("near", label, 0, mbps));
        let rows = [
            ("at-least = 0.9", ["≥ 0.9 times", "0.90", "yes"]),
            ("at-least = 1", ["≥ 1 times", "0.90", NO]),
            ("at-most = 1.5", ["≤ 1.5 times", "1.50", "yes"]),
            ("above = -10", ["≥ -10 Mbit/s", "-10.00", "yes"]),
            ("above = 1", ["≥ +1 Mbit/s", "-10.00", NO]),
            ("within = 29", ["≤ +29 Mbit/s", "30.00", NO]),
            ("within = 30", ["≤ +30 Mbit/s", "30.00", "yes"]),
        ];
        for (bound, expected) in rows {
            let claim = format!("of = [\"theirs\", \"others\"]\n{bound}");
            hold(&[(claim.as_str(), expected)], &runs);
        }
        hold(&[("at-most = 90", ["≤ 90 Mbit/s", "90.00", "yes"])], &runs);
    }

    #[test]
    fn figures_of_another_case_or_beyond_another_contender_are_held_against_too() {
        let runs = [
            run("near", "ours", 0, 90.0),
            run("far", "ours", 0, 60.0),
            run("near", "theirs", 0, 30.0),
            run("near", "others", 0, 10.0),
        ];
        let rows = [
            ("of-case = \"far\"\nat-least = 1.5", ["≥ 1.5 times", "1.50", "yes"]),
            ("of-case = \"far\"\nabove = 31", ["≥ +31 Mbit/s", "30.00", NO]),
            ("of = [\"theirs\"]\nbeyond = \"others\"\nat-most = 4", ["≤ 4 times", "4.00", "yes"]),
            ("beyond = \"others\"\nat-most = 79", ["≤ 79 Mbit/s", "80.00", NO]),
            ("each = [\"bulk\"]\nat-most = 90", ["≤ 90 Mbit/s", "90.00", "yes"]),
        ];
        hold(&rows, &runs);
    }

    #[test]
    fn a_run_that_failed_is_the_worst_of_every_run_though_it_was_tried_again() {
        let good = run("near", "ours", 0, 90.0);
        let failed = |contender: &str| Run {
            outcome: Outcome::Failed("the portal ended".to_owned()),
            ..run("near", contender, 0, 0.0)
        };
        let claim = |every| format!("cases = [\"near\"]\nevery = {every}\nat-least = 65\n");
        // every run or the median, what was run; of how many, whether it holds
        let rows = [
            (true, vec![good.clone()], ["1 run", "yes"]),
            (true, vec![failed("ours"), good.clone()], ["1 run, 1 failed", NO]),
            (true, vec![failed("ours")], ["", NO]),
            (true, vec![failed("theirs"), good.clone()], ["1 run", "yes"]),
            (false, vec![failed("ours"), good], ["1 run", "yes"]),
        ];
        for (every, runs, expected) in rows {
            let [.., of, holds, _] = row(&claim(every), &runs);
            assert_eq!([of.as_str(), holds.as_str()], expected, "{every}, {} runs", runs.len());
        }
    }

    #[test]
    fn a_run_is_the_worst_of_every_run_where_its_workload_gives_the_figure() {
        let good = run("near", "ours", 0, 90.0);
        let second = |workload: &str, outcome: Outcome| {
            let run = run("near", "ours", 1, 0.0);
            Run { series: SeriesKey { workload: workload.to_owned(), ..run.series }, outcome, ..run }
        };
        let failed = || Outcome::Failed("nobody answered".to_owned());
        let empty = || Outcome::Found(Findings::default());
        // What was run; of how many, whether it holds.
        let rows = [
            (vec![good.clone(), second("ping", failed())], ["1 run", "yes"]),
            (vec![good.clone(), second("ping", empty())], ["1 run", "yes"]),
            (vec![good.clone(), second("bulk", failed())], ["1 run, 1 failed", NO]),
            (vec![good, second("bulk", empty())], ["1 run, 1 failed", NO]),
            (vec![run("near", "theirs", 0, 90.0), second("bulk", empty())], ["", NO]),
            (vec![second("ping", failed())], ["", NO]),
            (vec![second("ping", empty())], ["", "not measured"]),
        ];
        let claim = "cases = [\"near\"]\nevery = true\nat-least = 65\n[[workload]]\nkind = \"ping\"\n";
        for (runs, expected) in rows {
            let [.., of, holds, _] = row(claim, &runs);
            assert_eq!([of.as_str(), holds.as_str()], expected, "{runs:?}");
        }
    }

    #[test]
    fn it_holds_of_the_median_over_cases() {
        let both = [run("near", "ours", 0, 90.0), run("far", "ours", 0, 40.0)];
        // the bound, what was run; what must be, what was found, whether it holds, and where not
        let rows: [(f64, &[Run], [&str; 4]); 4] = [
            (65.0, &both, ["≥ 65 Mbit/s in the median", "65.00", "yes", ""]),
            (66.0, &both, ["≥ 66 Mbit/s in the median", "65.00", NO, ""]),
            (66.0, &both[..1], ["≥ 66 Mbit/s in the median", "90.00", "yes", "1 not measured"]),
            (66.0, &[], ["≥ 66 Mbit/s in the median", "–", "not measured", ""]),
        ];
        for (bound, runs, expected) in rows {
            let [_, must, median, _, _, holds, short] = row(&format!("at-least = {bound}\nmedian = true\n"), runs);
            assert_eq!([must.as_str(), &median, &holds, &short], expected, "{bound}, {} runs", runs.len());
        }
    }

    #[test]
    fn it_holds_of_every_run() {
        let three = [90.0, 80.0, 100.0].map(|mbps| run("near", "ours", mbps as u32, mbps));
        for (bound, holds) in [("at-least = 80", "yes"), ("at-least = 81", NO), ("at-most = 99", NO)] {
            let row = row(&format!("cases = [\"near\"]\n{bound}\nevery = true\n"), &three);
            assert_eq!((row[2].as_str(), row[5].as_str()), ("90.00", holds), "{bound}");
            assert!(row[1].ends_with("Mbit/s in every run"), "{}", row[1]);
        }
        let cases = [run("near", "ours", 0, 90.0), run("far", "ours", 0, 90.0), run("far", "ours", 1, 60.0)];
        assert_eq!(row("at-least = 70\nevery = true\n", &cases)[5..], [NO, "far (60.00)"]);
    }

    #[test]
    fn it_holds_in_all_cases_or_in_enough_of_them() {
        let both = [run("near", "ours", 0, 90.0), run("far", "ours", 0, 40.0)];
        // how many are enough, what was run; whether it holds, and where not
        let rows: [(&str, &[Run], [&str; 2]); 6] = [
            ("", &both, [NO, "far (40.00)"]),
            ("enough = 1\n", &both, ["yes; enough: 1", "far (40.00)"]),
            ("", &both[..1], ["not measured", "1 not measured"]),
            ("enough = 1\n", &both[..1], ["yes; enough: 1", "1 not measured"]),
            ("enough = 1\n", &both[1..], ["not measured", "far (40.00), 1 not measured"]),
            ("", &[], ["not measured", ""]),
        ];
        for (enough, runs, expected) in rows {
            let [.., holds, short] = row(&format!("at-least = 50\n{enough}"), runs);
            assert_eq!([holds.as_str(), short.as_str()], expected, "{enough}{} runs", runs.len());
        }
    }
}
