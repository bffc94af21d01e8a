//! One run, for real.
//!
//! 1. The network is built, and the contender comes up on it; what it lacks, or the workload, means that the run is
//!    skipped.
//! 2. Where the scenario shows the latency that load adds, that without load is asked for. The workload prepares
//!    itself; from here on packets are looked at, where the scenario shows what they say. Of a series' first run those
//!    are kept that begin, change or end a connection.
//! 3. From the workload's start to its end things happen as planned; links and programs are measured meanwhile.
//! 4. The contender goes down, the network goes, whatever came before.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hawser_wire::traffic::Ping;
use hawser_wire::{Moment, Namespace, Watch};

use super::measure::{Meter, SIGNALS, Signals, judge, watched};
use super::{Findings, Planned, SeriesKey};
use crate::contender::{Contender, Down, Offer};
use crate::error::LabError;
use crate::scenario::{ContenderPlan, Scenario, WorkloadPlan};
use crate::stage::{Ends, Stage, Timeline};
use crate::workload::{self, Ground, When, Workload, millis};

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
/// How long a contender takes until hosts behind it reach each other, and the ping that tells: what it is exact to, and
/// how long it may take at most.
const START: &str = "start_ms";
const START_PING: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(30));

/// Makes what is planned.
type Make<P, M> = Box<dyn Fn(&P) -> Result<M, LabError>>;

/// Executes runs of a scenario. Plain data, and who makes contenders and workloads.
pub struct Live<'s> {
    scenario: &'s Scenario,
    make_contender: Make<ContenderPlan, Contender>,
    make_workload: Make<WorkloadPlan, Workload>,
    shown: BTreeSet<&'s str>,
    captures: Option<PathBuf>,
}

impl<'s> Live<'s> {
    /// Of a scenario, with these contenders and workloads. A capture file of each series is kept in the folder that is
    /// given, where packets are looked at. It is an error where a contender or workload is planned that means nothing;
    /// one that is missing is none: its runs are skipped.
    pub fn new(
        scenario: &'s Scenario,
        make_contender: Make<ContenderPlan, Contender>,
        make_workload: Make<WorkloadPlan, Workload>,
        captures: Option<PathBuf>,
    ) -> Result<Self, LabError> {
        let unless_missing = |error| if matches!(error, LabError::Missing { .. }) { Ok(()) } else { Err(error) };
        for contender in &scenario.contenders {
            make_contender(contender).map(drop).or_else(unless_missing)?;
        }
        for workload in &scenario.workloads {
            make_workload(workload).map(drop).or_else(unless_missing)?;
        }
        Ok(Self { scenario, make_contender, make_workload, shown: shown(scenario), captures })
    }

    /// Executes a run: steps 1 and 4.
    pub fn run(&self, planned: &Planned<'_>) -> Result<Findings, LabError> {
        let series = planned.series;
        let contender = (self.make_contender)(series.contender)?;
        let workload = (self.make_workload)(&series.workload)?;
        let stage = Arc::new(Stage::build(&self.scenario.network, series.case, planned.seed)?);
        let ((offer, down), took) = self.up(contender, &stage)?;
        thread::sleep(SETTLE);
        let found = self.measure(planned, &stage, &offer, workload);
        let ended = down(&stage);
        let mut findings = found?;
        findings.metrics.extend(took.map(|ms| (START.to_owned(), ms)));
        ended.map(|()| findings)
    }

    /// Step 1: the contender up, and after how many milliseconds a ping between the hosts was answered, where that is
    /// shown.
    fn up(&self, contender: Contender, stage: &Stage) -> Result<((Offer, Down), Option<f64>), LabError> {
        if !self.shown.contains(START) {
            return Ok((contender(stage)?, None));
        }
        let (ping, begun) = (ping(&stage.client, stage.hosts, START_PING).start()?, Moment::now());
        let up = contender(stage)?;
        ping.stop();
        let answers = ping.finish()?.echoes;
        let first = answers.iter().map(|echo| echo.sent + echo.round_trip).min();
        Ok((up, first.map(|first| millis(first - begun))))
    }

    /// Steps 2 and 3.
    fn measure(
        &self,
        planned: &Planned<'_>,
        stage: &Arc<Stage>,
        offer: &Offer,
        workload: Workload,
    ) -> Result<Findings, LabError> {
        let (plan, events) = (&planned.series.workload, &planned.series.events);
        // The median round trip, in milliseconds; none where nobody answers.
        let idle = || ping(&stage.client, offer.ends, IDLE_PING).run().map(|pings| pings.round_trips().median());
        let idle = self.shown.contains(ADDED).then(idle).transpose()?.flatten();
        let signals = || Watch::start(&stage.client, Signals::new(offer.ends, offer.socket));
        let wants_signals = SIGNALS.iter().any(|metric| self.shown.contains(*metric));
        let watch = wants_signals.then(signals).transpose()?;
        let meter = Meter::of(&offer.programs);
        let Stage { client, server, bystanders, .. } = stage.as_ref();
        let workload = workload(Ground { client, server, ends: offer.ends, socket: offer.socket, bystanders })?;

        let start = Moment::now() + LEAD;
        let timeline = Timeline::start(stage, offer, events, start)?;
        let when = When { start, duration: plan.duration, after: workload::after(plan)? };
        let (found, carried) = watched(&stage.links, meter, when, || workload(when));
        let mut findings = found?;
        findings.add(timeline.finish()?);
        if let (Some(idle), Some(loaded)) = (idle, findings.metrics.get(LOADED).copied()) {
            findings.metrics.extend([(IDLE.to_owned(), idle), (ADDED.to_owned(), loaded - idle)]);
        }
        judge(&mut findings, planned.series, &carried, when.after);
        if let Some(watch) = watch {
            let signals = watch.finish()?;
            findings.add(signals.findings());
            self.keep(planned, signals)?;
        }
        Ok(findings)
    }

    /// The capture of a series' first run, as a file of its own.
    fn keep(&self, planned: &Planned<'_>, signals: Signals) -> Result<(), LabError> {
        let Some(folder) = self.captures.as_ref().filter(|_| planned.repetition == 0) else { return Ok(()) };
        let SeriesKey { case, contender, workload, .. } = &planned.series.key;
        let file = folder.join(format!("{case}-{contender}-{workload}.pcap"));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, signals.into_capture()))
            .map_err(LabError::file("write", &file))
    }
}

fn ping(client: &Namespace, ends: Ends, (interval, duration): (Duration, Duration)) -> Ping {
    Ping { from: client.clone(), destination: ends.server, interval, duration }
}

/// Every figure that a scenario shows or goes by.
fn shown(scenario: &Scenario) -> BTreeSet<&str> {
    let columns = scenario.tables.iter().flat_map(|table| &table.columns).map(|column| column.metric.as_str());
    let plots = scenario.plots.iter().map(|plot| plot.metric.as_str());
    let published = scenario.published.iter().map(|one| one.metric.as_str());
    let claims = scenario.claims.iter().map(|claim| claim.metric.as_str());
    columns.chain(plots).chain(published).chain(claims).chain([scenario.repeat.metric.as_str()]).collect()
}

#[cfg(test)]
mod tests;
