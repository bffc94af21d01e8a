//! What is measured beside a workload: links, the contender's programs, recovery, and what packets say.
//!
//! Each measure gives findings of its own, which are added to the workload's.

mod capacity;
mod links;
mod processors;
mod programs;
mod recovery;
mod signals;

use std::time::Duration;

use links::Carried;
pub(super) use links::watched;
pub(super) use programs::Meter;
#[cfg(test)]
pub(super) use recovery::FINE;
pub(super) use signals::{SIGNALS, Signals};

use super::{Findings, Series};
use crate::workload::ways;

/// Adds what links and programs say to what the workload found, whose first seconds until `after` shall not count.
pub(super) fn judge(findings: &mut Findings, series: &Series<'_>, carried: &Carried, after: Duration) {
    let (events, ways) = (&series.events, ways(&series.workload.options));
    let bytes = links::application_bytes(findings, carried.time, after);
    findings.put_some("overhead_percent", links::overhead(carried, findings));
    let mut fine = |name| findings.lines.extract_if(.., |line| line.name == name).next();
    let (goodput, lost) = (fine(recovery::FINE), fine(recovery::LOST));
    findings.add(recovery::recovery(goodput.as_ref(), events));
    findings.add(recovery::lost(lost.as_ref(), events));
    findings.add(links::carried(carried, ways, after));
    findings.add(links::handed(carried, events));
    findings.put_some("links_recovery_ms", links::links_recovery(carried, events, ways));
    findings.add(carried.costs.findings(bytes));
    findings.add(capacity::capacity(series.case, events, &series.workload, findings));
}
