//! Runs a case: again and again, each time in a fresh topology with fresh portals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cases::{Case, Line, Probe};
use super::report::{Report, words};
use super::{
    changes, controllers, coupling, cut, fec, fidelity, goodput, hostile, outages, paired, peers, random, restart,
    scion, shim, thin, tiers, transports, unshaped,
};
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
    /// The `yardstick` executable.
    pub yardstick: PathBuf,
    /// Where tools are built.
    pub tools: PathBuf,
    /// How often each case is run.
    pub runs: u32,
    /// How long a run of a case takes that lasts as long as told.
    pub duration: Duration,
    /// Where the seeds of random topologies begin.
    pub seed: u64,
    /// Lines of `[traffic]` in both configurations, mostly none.
    pub traffic: String,
    /// Of paired cases: who takes part, by label; all where empty.
    pub only: Vec<String>,
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
        if case.probe == Probe::Random {
            return random::run(self, case, told);
        }
        if case.probe == Probe::Outages {
            return outages::run(self, case, told);
        }
        let wireguard = match case.probe {
            Probe::Unshaped | Probe::Paired(_) => Some(crate::wireguard::build(&self.tools)?),
            _ => None,
        };
        let mut report = Report::new(case);
        for run in 0..self.runs {
            for &flow in case.flows {
                for (label, figures) in self.once(case, flow, run, wireguard.as_deref())? {
                    told(&format!("{} {label}, run {} of {}: {}", case.name, run + 1, self.runs, words(&figures)));
                    report.add(&label, figures);
                }
            }
        }
        Ok(report)
    }

    fn once(
        &self,
        case: &Case,
        flow: Flow,
        run: u32,
        wireguard: Option<&Path>,
    ) -> Result<Vec<(String, Figures)>, LabError> {
        let alone = |figures| vec![(flow.name().to_owned(), figures)];
        Ok(match (case.probe, wireguard) {
            (Probe::Goodput, _) => alone(goodput::stream(self, case, flow, run)?),
            (Probe::Latency, _) => alone(goodput::latency(&self.start(case.lines, run)?, flow)?),
            (Probe::Memory, _) => alone(goodput::memory(&self.start(case.lines, run)?, flow)?),
            (Probe::Controllers(judged), _) => controllers::judge(self, judged, flow, run)?,
            (Probe::Peers, _) => vec![("200 of 1000".to_owned(), peers::share(self, run)?)],
            (Probe::Hostile, _) => alone(hostile::withstand(&self.start(case.lines, run)?, flow, self.duration)?),
            (Probe::Coupling, _) => coupling::judge(self, flow, run)?,
            (Probe::Transports, _) => alone(transports::run(self, case, flow, run)?),
            (Probe::Scion, _) => scion::run(self, flow)?,
            (Probe::Shim(what), _) => shim::run(self, what, flow, run)?,
            (Probe::Restart, _) => alone(restart::restart(self.start(case.lines, run)?, flow)?),
            (Probe::Cut(how), _) => {
                let each = 0..case.lines.len();
                let cut = |index| {
                    let figures = cut::cut(&self.start(case.lines, run)?, how, index, flow)?;
                    Ok((format!("link{} {}", index + 1, flow.name()), figures))
                };
                each.map(cut).collect::<Result<_, LabError>>()?
            }
            (Probe::Tiers(how), _) => alone(tiers::tiers(self, how, flow, run)?),
            (Probe::Changes(how), _) => alone(changes::changes(&self.start(case.lines, run)?, how, flow)?),
            (Probe::Fec, _) => alone(fec::fec(self, case, flow, run)?),
            (Probe::Fidelity, _) => fidelity::judge(run)?,
            (Probe::Thin(rule), _) => alone(thin::thin(self, case, rule, flow, run)?),
            (Probe::Unshaped, Some(wireguard)) => alone(unshaped::pair(self, wireguard, flow, run)?),
            (Probe::Paired(paired), Some(wireguard)) => paired::run(self, wireguard, paired, run)?,
            (Probe::Unshaped | Probe::Paired(_), None) | (Probe::Random | Probe::Outages, _) => Vec::new(),
        })
    }

    /// A fresh topology with fresh portals. Each run has its own chance.
    pub(super) fn start(&self, lines: &[Line], run: u32) -> Result<Running, LabError> {
        self.on(&plans_of(lines, run))
    }

    /// The same with more lines behind `[traffic]` of both portals, and for each `[[link]]`, counted from 0.
    pub(super) fn start_with(
        &self,
        lines: &[Line],
        run: u32,
        more: &str,
        link: &dyn Fn(usize) -> String,
    ) -> Result<Running, LabError> {
        let bond = Bond::new(&plans_of(lines, run))?;
        let traffic = format!("{}\n{more}", self.traffic);
        let portals = Portals::start_with(&self.program, &bond, &traffic, link)?;
        Ok(Running { portals, bond })
    }

    /// The same on links of any kind.
    pub(super) fn on(&self, plans: &[LinkPlan]) -> Result<Running, LabError> {
        let bond = Bond::new(plans)?;
        let portals = Portals::start(&self.program, &bond, &self.traffic)?;
        Ok(Running { portals, bond })
    }
}

/// What links of a case are made by. Each run has its own chance.
pub(super) fn plans_of(lines: &[Line], run: u32) -> Vec<LinkPlan> {
    let seed = |index: usize| u64::from(run) * 1000 + 2 * index as u64;
    lines.iter().enumerate().map(|(index, line)| line.plan(seed(index))).collect()
}
