//! A scenario with its results in a folder: run, or gone on with.

use std::path::Path;

use super::{Choice, Live, Machine, Store, Summary, Watcher, conduct};
use crate::contender::{self, Programs};
use crate::error::LabError;
use crate::scenario::Scenario;
use crate::scion_bench::{self, Bench};
use crate::{probe, shila, workload};

/// The folder of captures within that of results.
pub(crate) const CAPTURES: &str = "captures";

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
    if scion_bench::is_ours(scenario) {
        let bench = Bench::new(scenario, programs)?;
        let mut store = Store::open(dir, scenario, &machine)?;
        return conduct(scenario, choice, &mut store, &mut |planned| bench.execute(planned), watcher);
    }
    if probe::is_ours(scenario) {
        let bench = probe::Bench::new(scenario, programs)?;
        let mut store = Store::open(dir, scenario, &machine)?;
        return conduct(scenario, choice, &mut store, &mut |planned| bench.execute(planned), watcher);
    }
    if shila::is_ours(scenario) {
        let bench = shila::Bench::new(scenario, programs)?;
        let mut store = Store::open(dir, scenario, &machine)?;
        return conduct(scenario, choice, &mut store, &mut |planned| bench.execute(planned), watcher);
    }
    let made_of = programs.clone();
    let make_contender = move |plan: &_| contender::make(plan, &made_of);
    let live = Live::new(scenario, Box::new(make_contender), Box::new(workload::make))?.keeping(dir.join(CAPTURES));
    let mut store = Store::open(dir, scenario, &machine)?;
    conduct(scenario, choice, &mut store, &mut |planned| live.execute(planned), watcher)
}
