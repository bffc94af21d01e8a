//! Runs a case: again and again, each time in a fresh topology with fresh portals.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::cases::{Case, Probe};
use super::report::{Report, words};
use super::{coupling, outages, peers, scion, shim};
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Flow, LinkPlan};

/// Figures by name.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// Where cases are run. Plain data; one case at a time, or they measure each other.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The `hawser` executable.
    pub program: PathBuf,
    /// How often each case is run.
    pub runs: u32,
    /// How long a run of a case takes that lasts as long as told.
    pub duration: Duration,
    /// Where the seeds of outages begin.
    pub seed: u64,
    /// Lines of `[traffic]` in both configurations, mostly none.
    pub traffic: String,
}

/// A topology with portals in it. Removed on drop, the portals first.
pub(super) struct Running {
    pub portals: Portals,
    pub bond: Bond,
}

impl Bench {
    /// Runs a case. `told` hears of each run.
    ///
    /// # Errors
    /// Where a run fails: a figure that was not measured is no figure.
    pub fn run(&self, case: &'static Case, mut told: impl FnMut(&str)) -> Result<Report, LabError> {
        if case.probe == Probe::Outages {
            return outages::run(self, case, told);
        }
        let mut report = Report::new(case);
        for run in 0..self.runs {
            for &flow in case.flows {
                for (label, figures) in self.once(case, flow, run)? {
                    told(&format!("{} {label}, run {} of {}: {}", case.name, run + 1, self.runs, words(&figures)));
                    report.add(&label, figures);
                }
            }
        }
        Ok(report)
    }

    fn once(&self, case: &Case, flow: Flow, run: u32) -> Result<Vec<(String, Figures)>, LabError> {
        match case.probe {
            Probe::Peers => Ok(vec![("200 of 1000".to_owned(), peers::share(self, run)?)]),
            Probe::Coupling => coupling::judge(self, flow, run),
            Probe::Scion => scion::run(self, flow),
            Probe::Shim(what) => shim::run(self, what, flow, run),
            Probe::Outages => Ok(Vec::new()),
        }
    }

    /// A fresh topology with fresh portals.
    pub(super) fn on(&self, plans: &[LinkPlan]) -> Result<Running, LabError> {
        let bond = Bond::new(plans)?;
        let portals = Portals::start(&self.program, &bond, &self.traffic)?;
        Ok(Running { portals, bond })
    }
}
