//! One run, for real.
//!
//! 1. The network is built, and the contender comes up on it; what it lacks, or the workload, means that the run is skipped.
//! 2. Where the scenario shows the latency that load adds, that without load is asked for. The workload prepares itself;
//!    from here on packets are looked at, where the scenario shows what they say.
//! 3. From the workload's start to its end things happen as planned; links and programs are measured meanwhile.
//! 4. The contender goes down, the network goes, whatever came before.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hawser_wire::traffic::Ping;
use hawser_wire::{Moment, Watch};

use super::measure::{self, Meter, SIGNALS, Sends, Signals};
use super::{Findings, Outcome, Planned};
use crate::contender::{Contender, Offer};
use crate::error::LabError;
use crate::scenario::{ContenderPlan, Scenario, WorkloadPlan};
use crate::stage::{Stage, Timeline};
use crate::workload::{Beside, Ground, Workload};

/// Between a contender's coming up and what is done with it: late answers and path probes have come by then.
const SETTLE: Duration = Duration::from_millis(500);
/// Between saying when a workload starts and its start, so that every thread is ready.
const LEAD: Duration = Duration::from_millis(50);

/// The ping without load: forty echoes, for a median that jitter moves little.
const IDLE_PING: (Duration, Duration) = (Duration::from_millis(25), Duration::from_secs(1));
/// What load adds to the median round trip, that round trip, and the one without load.
const ADDED: &str = "added_ms";
const LOADED: &str = "rtt_ms";
const IDLE: &str = "idle_ms";

/// Makes what is planned.
pub type Make<P, M> = Box<dyn Fn(&P) -> Result<Box<M>, LabError>>;

/// Executes runs of a scenario. Plain data, and who makes contenders and workloads.
pub struct Live<'s> {
    scenario: &'s Scenario,
    make_contender: Make<ContenderPlan, dyn Contender>,
    make_workload: Make<WorkloadPlan, dyn Workload>,
    wants_signals: bool,
    wants_idle: bool,
}

impl<'s> Live<'s> {
    /// Of a scenario, with these contenders and workloads.
    ///
    /// # Errors
    /// Where a contender or workload is planned that means nothing. One that is missing is no error: its runs are skipped.
    pub fn new(
        scenario: &'s Scenario,
        make_contender: Make<ContenderPlan, dyn Contender>,
        make_workload: Make<WorkloadPlan, dyn Workload>,
    ) -> Result<Self, LabError> {
        let unless_missing = |error| if matches!(error, LabError::Missing { .. }) { Ok(()) } else { Err(error) };
        for contender in &scenario.contenders {
            make_contender(contender).map(drop).or_else(unless_missing)?;
        }
        for workload in &scenario.workloads {
            make_workload(workload).map(drop).or_else(unless_missing)?;
        }
        let shown = shown(scenario);
        let wants_signals = shown.iter().any(|metric| SIGNALS.contains(metric));
        let wants_idle = shown.contains(ADDED);
        Ok(Self { scenario, make_contender, make_workload, wants_signals, wants_idle })
    }

    /// Executes a run.
    #[must_use]
    pub fn execute(&self, planned: &Planned<'_>) -> Outcome {
        self.run(planned).into()
    }

    /// Steps 1 and 4.
    fn run(&self, planned: &Planned<'_>) -> Result<Findings, LabError> {
        let series = planned.series;
        let mut contender = (self.make_contender)(series.contender)?;
        let workload = (self.make_workload)(&series.workload)?;
        let stage = Arc::new(Stage::build(&self.scenario.network, series.case, planned.seed)?);
        let offer = contender.up(&stage)?;
        thread::sleep(SETTLE);
        let found = self.measure(planned, &stage, &offer, workload);
        let ended = contender.down(&stage);
        let findings = found?;
        ended.map(|()| findings)
    }

    /// Steps 2 and 3.
    fn measure(
        &self,
        planned: &Planned<'_>,
        stage: &Arc<Stage>,
        offer: &Offer,
        mut workload: Box<dyn Workload>,
    ) -> Result<Findings, LabError> {
        let (duration, events) = (planned.series.workload.duration, &planned.series.events);
        let ground = ground(stage, offer, duration, planned.seed);
        let idle = if self.wants_idle { idle(&ground)? } else { None };
        let signals = || Watch::start(&stage.client, Signals::new(offer.ends, offer.socket));
        let watch = self.wants_signals.then(signals).transpose()?;
        workload.prepare(&ground)?;

        let meter = Meter::start(&offer.programs);
        let start = Moment::now() + LEAD;
        let timeline = Timeline::start(stage, &offer.programs, events, start)?;
        let (found, carried) = measure::watched(&stage.links, start, duration, || workload.run(&ground, start));
        let mut findings = found?;
        let bytes = measure::application_bytes(&findings, carried.time());
        let costs = meter.finish(carried.time(), bytes);
        findings.marks.extend(timeline.finish()?);

        let names: Vec<&str> = stage.links.iter().map(|link| link.name.as_str()).collect();
        if let Some(percent) = measure::overhead(&carried, &findings) {
            findings.metrics.insert("overhead_percent".to_owned(), percent);
        }
        if let (Some(idle), Some(loaded)) = (idle, findings.metrics.get(LOADED).copied()) {
            findings.metrics.extend([(IDLE.to_owned(), idle), (ADDED.to_owned(), loaded - idle)]);
        }
        let fine = findings.lines.extract_if(.., |line| line.name == measure::FINE).next();
        findings.add(measure::recovery(fine.as_ref(), events));
        let sends = Sends::of(&planned.series.workload.options);
        findings.add(measure::carried(&names, &carried, sends));
        findings.add(measure::links_recovery(&carried, events, sends));
        findings.add(costs);
        findings.add(measure::capacity(planned.series.case, events, &planned.series.workload, &findings));
        if let Some(watch) = watch {
            findings.add(watch.finish()?.findings());
        }
        Ok(findings)
    }
}

/// The median round trip without load, in milliseconds; none where nobody answers.
fn idle(ground: &Ground) -> Result<Option<f64>, LabError> {
    let (interval, duration) = IDLE_PING;
    let ping = Ping { from: ground.client.clone(), destination: ground.ends.server, interval, duration };
    Ok(ping.run()?.round_trips().median())
}

fn ground(stage: &Stage, offer: &Offer, duration: Duration, seed: u64) -> Ground {
    let beside = stage.bystanders.iter();
    Ground {
        client: stage.client.clone(),
        server: stage.server.clone(),
        ends: offer.ends,
        socket: offer.socket,
        bystanders: beside
            .map(|one| Beside { name: one.name.clone(), host: one.host.clone(), ends: one.ends })
            .collect(),
        duration,
        seed,
    }
}

/// Every figure that a scenario shows or goes by.
fn shown(scenario: &Scenario) -> BTreeSet<&str> {
    let columns = scenario.tables.iter().flat_map(|table| &table.columns).map(|column| column.metric.as_str());
    let plots = scenario.plots.iter().map(|plot| plot.metric.as_str());
    let published = scenario.published.iter().map(|one| one.metric.as_str());
    columns.chain(plots).chain(published).chain([scenario.repeat.metric.as_str()]).collect()
}

/// An error with its causes.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
