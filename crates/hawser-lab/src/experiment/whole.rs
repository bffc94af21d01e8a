//! A scenario with its results in a folder: run, or gone on with.

use std::path::Path;

use super::{Choice, Findings, Live, Machine, Planned, Store, Summary, Watcher, conduct};
use crate::contender::{self, Programs};
use crate::error::LabError;
use crate::scenario::Scenario;
use crate::{probe, scion_bench, shila, workload};

/// The folder of captures within that of results.
pub(crate) const CAPTURES: &str = "captures";

/// Executes a scenario's runs: one at a time, or they measure each other.
pub type Execute<'s> = Box<dyn Fn(&Planned<'_>) -> Result<Findings, LabError> + 's>;

/// Who executes a scenario's runs, whose results are kept in this folder.
///
/// # Errors
/// Where a contender or workload is planned that means nothing.
pub fn executor<'s>(scenario: &'s Scenario, dir: &Path, programs: &Programs) -> Result<Execute<'s>, LabError> {
    if scion_bench::is_ours(scenario) {
        let bench = scion_bench::Bench::new(scenario, programs)?;
        return Ok(Box::new(move |planned| bench.run(planned)));
    }
    if probe::is_ours(scenario) {
        let bench = probe::Bench::new(scenario, programs)?;
        return Ok(Box::new(move |planned| bench.run(planned)));
    }
    if shila::is_ours(scenario) {
        let bench = shila::Bench::new(scenario, programs)?;
        return Ok(Box::new(move |planned| bench.run(planned)));
    }
    let made_of = programs.clone();
    let make_contender = move |plan: &_| contender::make(plan, &made_of);
    let live = Live::new(scenario, Box::new(make_contender), Box::new(workload::make))?.keeping(dir.join(CAPTURES));
    Ok(Box::new(move |planned| live.run(planned)))
}

/// Runs what a folder does not hold yet of a scenario.
///
/// # Errors
/// [`LabError::Others`] where the folder holds something else; and where a contender or workload is planned that means
/// nothing, or results cannot be kept. A run that fails is a result.
pub fn run(
    scenario: &Scenario,
    choice: Choice,
    dir: &Path,
    programs: &Programs,
    watcher: &mut dyn Watcher,
) -> Result<Summary, LabError> {
    let machine = Machine::here(&programs.hawser, scenario, choice.quick)?;
    let execute = executor(scenario, dir, programs)?;
    let mut store = Store::open(dir, scenario, &machine)?;
    conduct(scenario, choice, &mut store, &mut |planned| execute(planned).into(), watcher)
}
