//! Series that have no figures, or had to be tried again: which, and why.

use super::series::{Book, Series};
use crate::experiment::SeriesKey;

/// Series of a contender that went wrong in one way. Plain data.
pub(super) struct Trouble {
    /// `skipped`, `failed`, `not run`, `not in the scenario`.
    pub what: &'static str,
    /// Label.
    pub contender: String,
    /// Cases and workloads, with how many runs where they were several.
    pub of: Vec<String>,
    /// All that was said.
    pub reason: String,
}

impl Trouble {
    /// The reason's first line.
    pub(super) fn short(&self) -> &str {
        self.reason.lines().next().unwrap_or_default()
    }
}

/// In the scenario's order; equal reasons of one contender stand together.
pub(super) fn all(book: &Book<'_>) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    let mut add = |what, contender: &str, of: String, reason: &str| {
        let known = troubles.iter_mut().find(|t| t.what == what && t.contender == contender && t.reason == reason);
        match known {
            Some(trouble) if trouble.of.contains(&of) => {}
            Some(trouble) => trouble.of.push(of),
            None => {
                let (contender, reason) = (contender.to_owned(), reason.to_owned());
                troubles.push(Trouble { what, contender, of: vec![of], reason });
            }
        }
    };
    for (case, contender, workload, series) in book.all() {
        let name = if case.workloads.len() > 1 { format!("{} {workload}", case.name) } else { case.name.clone() };
        let Series { found, skipped, failed } = series;
        skipped.iter().for_each(|reason| add("skipped", contender, name.clone(), reason));
        let runs = found.len() + failed.len();
        let share = format!("{name} ({} of {runs} runs)", failed.len());
        failed.iter().for_each(|reason| add("failed", contender, share.clone(), reason));
        if found.is_empty() && skipped.is_empty() && failed.is_empty() {
            add("not run", contender, name, "the experiment was interrupted, or is not over");
        }
    }
    for SeriesKey { case, contender, workload, .. } in &book.strange {
        add("not in the scenario", contender, format!("{case} {workload}"), "the scenario was changed");
    }
    troubles
}
