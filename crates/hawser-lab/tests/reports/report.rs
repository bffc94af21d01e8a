//! What a report says of synthetic results, and what comparing two of them finds.

use std::fs;
use std::path::Path;

use crate::synthetic::{FAILED, KERNEL, SKIPPED, keep, reported, runs, scenario};
use hawser_lab::report::{self, Comparison, Verdict, saved};
use hawser_lab::scion_bench;

/// How many experiments are made up.
const SEEDS: u64 = 100;
/// Of these, at most this many may be called wrongly: twice the level of the test, for chance.
const FALSE_ALARMS: u64 = 10;

/// Names of a report's pictures.
fn pictures(folder: &Path) -> Vec<String> {
    let pictures = fs::read_dir(folder.join("plots")).expect("pictures");
    pictures.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_bench_s_text_has_tables_and_no_pictures() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = scenario();
    keep(folder.path(), &scenario, &runs(&scenario, 2, 1, 1.0));
    scion_bench::finish(folder.path()).expect("a report");
    let [text, report] =
        ["scion.md", "report.md"].map(|name| fs::read_to_string(folder.path().join(name)).expect("it"));
    assert!(text.starts_with("# SCION end hosts\n") && text.contains("### Table 1: goodput"), "{text}");
    assert!(report.contains("![") && !text.contains("![") && !text.contains("\n\n\n"), "{text}");
}

#[test]
fn a_report_has_tables_plots_troubles_and_the_machine_in_every_form() {
    let (folder, written) = reported(&scenario(), 5, 1);
    let page = fs::read_to_string(&written.page).expect("the page");
    let text = fs::read_to_string(folder.path().join("report.md")).expect("the text");
    for (form, name) in [(&page, "report.html"), (&text, "report.md")] {
        let said = "Table 1: goodput|published|84.0 ± 1.5|mptcp did not come up|A.2 (1 of 6 runs)|6.18|n = 5|\
                    What is claimed|more than &lt;TCP|≥ 1.1 times|yes; enough: 2|A.3 (|not measured";
        for said in said.split('|').chain([SKIPPED]) {
            assert!(form.contains(said), "{said} is not in {name}");
        }
        assert!(!form.contains("<b>half"), "text became markup in {name}");
        assert!(form.contains("no run found page_ms"), "a plot without figures is not told in {name}");
    }
    assert!(page.contains("no subflow on &lt;wifi&gt;"), "{FAILED}");
    for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    let pictures = pictures(folder.path());
    let expected = "lines, bars, two cases over time, three contenders' shares, a distribution";
    assert_eq!(pictures.len(), 8, "{expected}: {pictures:?}");
    for name in pictures {
        assert!(text.contains(&format!("](plots/{name})")) && name.ends_with(".svg"), "{name} is not shown");
    }
}

#[test]
fn csv_has_a_row_for_each_series_and_metric() {
    let (folder, _) = reported(&scenario(), 5, 1);
    let text = fs::read_to_string(folder.path().join("results.csv")).expect("figures");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].join(","), "scenario,case,contender,workload,metric,unit,n,mean,sd,median,least,most");
    assert_eq!(rows.len() - 1, 4 * 3 * 4, "cases, contenders that ran, metrics");
    let row = rows.iter().find(|row| row[1..5] == ["A.1", "hawser", "down", "goodput_mbps"]).expect("a row");
    let number = |place: usize| row[place].parse::<f64>().expect("a number");
    assert_eq!((row[5], row[6]), ("Mbit/s", "5"));
    let [mean, deviation, median, least, most] = [7, 8, 9, 10, 11].map(number);
    assert!((90.0..96.0).contains(&mean) && deviation > 0.0 && least <= median && median <= most, "{row:?}");
}

#[test]
fn several_scenarios_have_an_index_and_pictures_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, mut second) = (scenario(), scenario());
    second.name = "another".to_owned();
    second.text = second.text.replace("name = \"synthetic\"", "name = \"another\"");
    let mut second_runs = runs(&second, 3, 2, 1.0);
    second_runs.retain(|run| run.series.case != "A.3");
    keep(&folder.path().join("synthetic"), &first, &runs(&first, 3, 1, 1.0));
    keep(&folder.path().join("another"), &second, &second_runs);
    let written = report::write(folder.path()).expect("a report");
    let page = fs::read_to_string(&written.page).expect("the page");
    assert!(page.contains("<a href=\"#synthetic\">") && page.contains("<a href=\"#another\">"));
    assert!(page.contains("the experiment was interrupted"), "a series that was not run is not told");
    assert_eq!(page.matches(KERNEL).count(), 1, "one machine is told once");
    assert_eq!(pictures(folder.path()).len(), 2 * 8);
}

#[test]
fn an_earlier_reports_pictures_are_not_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scenario = scenario();
    let runs = runs(&scenario, 3, 1, 1.0);
    keep(folder.path(), &scenario, &runs);
    report::write(folder.path()).expect("a report");
    let end = scenario.text.rfind("[[plot]]\ntitle = \"Goodput by case\"").expect("the second plot");
    scenario.text.truncate(end);
    keep(folder.path(), &scenario, &runs);
    report::write(folder.path()).expect("a report");
    assert_eq!(pictures(folder.path()).len(), 1);
}

#[test]
fn every_scenario_that_comes_with_hawser_has_what_its_tables_and_plots_show() {
    for scenario in hawser_lab::scenario::all().expect("embedded scenarios") {
        let (_folder, written) = reported(&scenario, 3, 1);
        let page = fs::read_to_string(&written.page).expect("the page");
        assert!(!page.contains("Not drawn"), "{}: a plot shows nothing", scenario.name);
        assert!(page.matches("<table class=\"figures\">").count() >= scenario.tables.len().max(1), "{}", scenario.name);
        assert!(page.matches("<svg").count() >= scenario.plots.len().max(1), "{}", scenario.name);
    }
}

#[test]
fn two_folders_of_results_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = scenario();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    keep(&old, &scenario, &runs(&scenario, 5, 1, 1.0));
    keep(&new, &scenario, &runs(&scenario, 5, 2, 0.85));
    assert!(report::compare(&old, &new).expect("a comparison").is_regression());
    assert!(!report::compare(&old, &old).expect("a comparison").is_regression());
    let error = report::compare(&old, folder.path().join("none").as_path()).expect_err("there is none").to_string();
    assert!(error.contains("none"), "{error}");
}

/// What comparing two made-up experiments finds: hawser's goodput in the second is scaled.
fn compared(repetitions: u32, seed: u64, goodput: f64) -> Comparison {
    let scenario = scenario();
    let (old, new) = (runs(&scenario, repetitions, seed, 1.0), runs(&scenario, repetitions, seed + SEEDS, goodput));
    report::compare_runs(&old, &new, |_| Some("goodput_mbps"))
}

fn count(comparison: &Comparison, contender: &str, verdict: Verdict) -> usize {
    let is_meant =
        |f: &&report::Finding| f.series.contender == contender && f.metric == "goodput_mbps" && f.verdict == verdict;
    comparison.findings.iter().filter(is_meant).count()
}

#[test]
fn a_planted_regression_of_15_percent_is_found_in_every_series() {
    for seed in 0..SEEDS {
        let comparison = compared(5, seed, 0.85);
        assert!(comparison.is_regression(), "seed {seed}");
        assert_eq!(count(&comparison, "hawser", Verdict::Worse), 4, "seed {seed}:\n{comparison}");
        assert_eq!(count(&comparison, "tcp", Verdict::Worse), 0, "seed {seed}:\n{comparison}");
    }
}

#[test]
fn three_runs_suffice_to_find_it_somewhere() {
    let found = (0..SEEDS).filter(|seed| compared(3, *seed, 0.85).is_regression()).count() as u64;
    assert!(found >= SEEDS - FALSE_ALARMS, "found with {found} of {SEEDS} seeds");
}

#[test]
fn planted_noise_of_2_percent_is_not_called_a_regression() {
    for goodput in [0.98, 1.0, 1.02] {
        let called = |seed: &u64| {
            let comparison = compared(5, *seed, goodput);
            comparison.findings.iter().any(|finding| matches!(finding.verdict, Verdict::Worse | Verdict::Better))
        };
        let alarms = (0..SEEDS).filter(called).count() as u64;
        assert!(alarms <= FALSE_ALARMS, "{goodput}: {alarms} of {SEEDS}");
    }
}

#[test]
fn an_improvement_is_better_and_a_single_run_tells_nothing() {
    let comparison = compared(5, 1, 1.15);
    assert_eq!((count(&comparison, "hawser", Verdict::Better), comparison.is_regression()), (4, false), "{comparison}");
    let comparison = compared(1, 1, 0.85);
    let found = (count(&comparison, "hawser", Verdict::Unknown), comparison.is_regression());
    assert_eq!(found, (4, false), "{comparison}");
    assert!(comparison.to_string().contains("too few runs"), "{comparison}");
}

#[test]
fn a_comparison_tells_the_worst_first_and_what_was_lost() {
    let scenario = scenario();
    let old = runs(&scenario, 5, 1, 1.0);
    let mut new = runs(&scenario, 5, 2, 0.85);
    for run in new.iter_mut().filter(|run| run.series.contender == "mptcp" && run.series.case == "A.1") {
        run.outcome = hawser_lab::experiment::Outcome::Failed("it did not come up".to_owned());
    }
    let comparison = report::compare_runs(&old, &new, |_| Some("goodput_mbps"));
    let text = comparison.to_string();
    let first = text.lines().next().expect("a line");
    assert!(first.starts_with("worse") && first.contains("hawser down") && first.contains("−1"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("lost") && line.contains("synthetic A.1 mptcp down")), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.contains("4 worse") && line.contains("Holm")), "{text}");
}

#[test]
fn the_page_of_saved_results_has_what_their_runs_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/runs");
    let page = fs::read_to_string(folder.join(saved::PAGE)).expect("the page is there");
    let mut sections = page.split("\n\n").filter(|paragraph| !paragraph.starts_with(saved::AGE));
    let today = saved::text(&folder, &[]).expect("results can be read");
    for paragraph in today.split("\n\n") {
        assert_eq!(sections.next().map(str::trim), Some(paragraph.trim()), "write it anew: hawser lab tables");
    }
    assert_eq!(sections.next(), None, "write it anew: hawser lab tables");
}
