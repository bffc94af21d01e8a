//! How an experiment goes, on standard error: a bar with the time left, or plain lines where it is no terminal.

use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::plan::Left;
use super::{Outcome, Planned, Run, SeriesKey};
use crate::scenario::Scenario;

/// How often the bar is drawn, so that the time goes on during a run.
const TICK: Duration = Duration::from_secs(1);
/// The bar, what is run, and the time left.
const BAR: &str = "{prefix} {wide_bar:.cyan/dim} {pos}/{len} {msg}";

/// Tells how it goes: of each scenario once, then twice a run. Starts silent; one owner.
#[derive(Debug)]
pub struct Progress {
    /// Hidden where there is no terminal to draw it on.
    pub(super) bar: ProgressBar,
    metric: String,
    now: String,
    time: Option<Duration>,
}

impl Default for Progress {
    fn default() -> Self {
        let style = ProgressStyle::with_template(BAR).expect("it is written here");
        Self { bar: ProgressBar::no_length().with_style(style), metric: String::new(), now: String::new(), time: None }
    }
}

impl Progress {
    fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    fn show(&self) {
        let time = self.time.map(|time| format!(", {} left", HumanDuration(time))).unwrap_or_default();
        self.bar.set_message(format!("{}{time}", self.now));
    }

    /// A scenario begins, with so much left.
    pub(super) fn begins(&mut self, scenario: &Scenario, left: Left) {
        self.metric.clone_from(&scenario.repeat.metric);
        let Left { runs, time } = left;
        if runs == 0 {
            return self.say(&format!("{}: all runs are there", scenario.name));
        }
        self.say(&format!("{}: {} or more, {} and what is between", scenario.name, count(runs), HumanDuration(time)));
        self.bar.reset();
        self.bar.set_prefix(scenario.name.clone());
        self.bar.set_length(runs.into());
        self.bar.enable_steady_tick(TICK);
    }

    /// A run begins.
    pub(super) fn run_begins(&mut self, planned: &Planned<'_>) {
        let SeriesKey { case, contender, workload, .. } = &planned.series.key;
        self.now = format!("{case}, {contender}, {workload}, run {}", planned.repetition + 1);
        self.show();
    }

    /// A run has ended; so much is left, and will take so long.
    pub(super) fn run_ended(&mut self, run: &Run, left: Left, time: Duration) {
        self.time = Some(time);
        self.bar.inc(1);
        // A series that is not steady yet is run more often than it was thought at first.
        self.bar.set_length(self.bar.position() + u64::from(left.runs));
        self.show();
        let what = format!("{}: {}", self.now, words(&run.outcome, &self.metric));
        if self.bar.is_hidden() {
            self.say(&format!("{what}; {}, {} left", count(left.runs), HumanDuration(time)));
        } else if !matches!(run.outcome, Outcome::Found(_)) {
            self.say(&what);
        }
        if left.runs == 0 {
            self.bar.finish_and_clear();
        }
    }
}

fn count(runs: u32) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

/// What came of a run, in a few words.
fn words(outcome: &Outcome, metric: &str) -> String {
    match outcome {
        Outcome::Found(findings) => match findings.metrics.get(metric) {
            Some(value) => format!("{metric} {value:.2}"),
            None => "measured".to_owned(),
        },
        Outcome::Skipped(why) => format!("skipped: {why}"),
        Outcome::Failed(said) => format!("failed: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Findings;
    use super::super::tests::{failed, found, scenario};
    use super::*;

    #[test]
    fn the_bar_begins_anew_with_the_next_scenario() {
        let mut progress = Progress::default();
        progress.bar.finish_and_clear();
        progress.begins(&scenario(), Left { runs: 3, time: Duration::ZERO });
        assert!(!progress.bar.is_finished() && progress.bar.length() == Some(3));
    }

    #[test]
    fn an_outcome_is_told_in_a_few_words() {
        let table = [
            (found(93.456), "goodput_mbps 93.46"),
            (Outcome::Found(Findings::default()), "measured"),
            (Outcome::Skipped("openvpn is not installed".to_owned()), "skipped: openvpn is not installed"),
            (failed("no route"), "failed: no route"),
        ];
        for (outcome, expected) in table {
            assert_eq!(words(&outcome, "goodput_mbps"), expected);
        }
    }
}
