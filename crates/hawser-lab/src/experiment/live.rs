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
        match self.run(planned) {
            Ok(findings) => Outcome::Found(findings),
            Err(LabError::Missing { what, hint }) => Outcome::Skipped(format!("{what} is missing ({hint})")),
            Err(error) => Outcome::Failed(told(&error)),
        }
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
        let timeline = Timeline::start(stage, events, start)?;
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
        findings.add(measure::carried(&names, &carried, Sends::of(&planned.series.workload.options)));
        findings.add(costs);
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
fn told(error: &LabError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::Mutex;

    use hawser_wire::traffic::{Congestion, TcpTransfer};

    use super::super::plan::{self, Choice, Series};
    use super::super::tests::scenario;
    use super::super::{Line, Mark};
    use super::*;
    use crate::contender::{Program, Transport};
    use crate::scenario::{Column, Table};

    /// What the doubles did, in order.
    static DONE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    /// Held by a test: what was done is one list.
    static TURN: Mutex<()> = Mutex::new(());

    fn note(what: &str) {
        DONE.lock().expect("nobody panics with it").push(what.to_owned());
    }

    fn done() -> Vec<String> {
        std::mem::take(&mut DONE.lock().expect("nobody panics with it"))
    }

    /// Packets are carried over the first link, by nobody's doing; this very process stands for its program.
    struct Plain;

    impl Contender for Plain {
        fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
            note("up");
            let programs = vec![Program { role: "local", pid: rustix::process::getpid() }];
            Ok(Offer { ends: stage.ends_of(0), socket: Transport::Tcp, programs })
        }

        fn down(&mut self, _: &Stage) -> Result<(), LabError> {
            note("down");
            Ok(())
        }
    }

    /// A transfer from the server, or what its option says instead.
    struct Transfer {
        says: Option<String>,
    }

    impl Workload for Transfer {
        fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
            note("prepare");
            // A connection whose segments the watch sees.
            let address = SocketAddr::new(ground.ends.server, 4000);
            let listener = ground.server.run(|| TcpListener::bind(address))?.expect("a port");
            drop(ground.client.run(|| TcpStream::connect(address))?.expect("it is there"));
            drop(listener);
            Ok(())
        }

        fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
            note("run");
            match self.says.as_deref() {
                Some("missing") => {
                    return Err(LabError::Missing { what: "tool".to_owned(), hint: "install it".to_owned() });
                }
                Some(reason) => return Err(LabError::NoFigure { figure: "goodput", reason: reason.to_owned() }),
                None => {}
            }
            start.sleep_until();
            let got = TcpTransfer {
                from: ground.server.clone(),
                to: ground.client.clone(),
                destination: SocketAddr::new(ground.ends.client, 4001),
                source: Some(ground.ends.server),
                congestion: Congestion::Cubic,
                duration: ground.duration,
            };
            let got = got.run()?;
            let line = |name: &str, step: Duration| Line {
                name: name.to_owned(),
                link: None,
                step_s: step.as_secs_f64(),
                values: got.mbps_by(step),
            };
            let mut findings = Findings::default();
            findings.lines.push(line("goodput_mbps", Duration::from_millis(500)));
            findings.lines.push(line(measure::FINE, Duration::from_millis(10)));
            // As a ping beside it would find.
            findings.metrics.insert(LOADED.to_owned(), 50.0);
            let mbps = got.mbps_between(got.start(), got.start() + ground.duration);
            findings.metrics.insert("goodput_mbps".to_owned(), mbps);
            Ok(findings)
        }
    }

    fn live(scenario: &Scenario, says: Option<&'static str>) -> Result<Outcome, LabError> {
        let workload = move |_: &WorkloadPlan| -> Result<Box<dyn Workload>, LabError> {
            Ok(Box::new(Transfer { says: says.map(str::to_owned) }))
        };
        let live = Live::new(scenario, Box::new(|_| Ok(Box::new(Plain))), Box::new(workload))?;
        let all = Series::all(scenario, Choice { quick: true, repetitions: None });
        let planned = plan::next(&all, &[], &scenario.repeat).expect("there is a run");
        Ok(live.execute(&planned))
    }

    #[test]
    fn a_run_is_measured_from_all_sides_and_leaves_nothing() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut scenario = scenario();
        scenario.cases.truncate(1);
        let column = |metric: &str| Column {
            title: String::new(),
            contender: None,
            workload: None,
            metric: metric.to_owned(),
            published: false,
        };
        let columns = vec![column("duplicate_acks"), column(ADDED)];
        scenario.tables.push(Table { title: String::new(), cases: Vec::new(), columns });
        let outcome = live(&scenario, None).expect("all is known");
        let Outcome::Found(findings) = outcome else { panic!("{outcome:?} (needs root)") };
        assert_eq!(done(), ["up", "prepare", "run", "down"]);
        let metric = |name: &str| findings.metrics.get(name).copied().unwrap_or_else(|| panic!("{name}: {findings:?}"));
        // The link is cut from second 1 to 2 of four.
        assert!((3.0..10.0).contains(&metric("goodput_mbps")), "{findings:?}");
        assert!((0.0..40.0).contains(&metric("overhead_percent")), "{findings:?}");
        assert!((0.0..2500.0).contains(&metric("recovery_ms")), "{findings:?}");
        assert_eq!(metric("share_wifi"), 1.0);
        // Ten milliseconds each way, and a loaded machine's own.
        assert!((20.0..45.0).contains(&metric(IDLE)), "{findings:?}");
        assert_eq!(metric(ADDED), 50.0 - metric(IDLE));
        for name in ["duplicate_acks", "cpu_local_s_per_gb", "cpu_user_s", "context_switches"] {
            metric(name);
        }
        assert!(!findings.metrics.contains_key("subflows"), "it is plain TCP");
        let marks: Vec<&str> = findings.marks.iter().map(|Mark { what, .. }| what.as_str()).collect();
        assert_eq!(marks, ["wifi cut", "wifi restored"]);
        let down = findings.lines.iter().find(|line| line.name == "link_down_mbps").expect("the link's line");
        assert_eq!(down.link.as_deref(), Some("wifi"));
        assert!(down.values[1] > 5.0 && down.values[3] == 0.0, "{down:?}");
        assert!(findings.lines.iter().all(|line| line.name != measure::FINE), "it is for computing alone");
    }

    #[test]
    fn what_is_missing_is_skipped_and_what_breaks_has_failed_and_both_go_down() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let scenario = scenario();
        let skipped = live(&scenario, Some("missing")).expect("all is known");
        assert!(matches!(&skipped, Outcome::Skipped(why) if why == "tool is missing (install it)"), "{skipped:?}");
        assert_eq!(done(), ["up", "prepare", "run", "down"]);
        let failed = live(&scenario, Some("it broke")).expect("all is known");
        assert!(matches!(&failed, Outcome::Failed(said) if said.contains("it broke")), "{failed:?}");
        assert_eq!(done(), ["up", "prepare", "run", "down"]);
    }

    #[test]
    fn what_means_nothing_is_told_before_anything_runs() {
        let scenario = scenario();
        let refuse = |plan: &ContenderPlan| -> Result<Box<dyn Contender>, LabError> {
            Err(LabError::Option { contender: plan.label.clone(), fault: "no".to_owned() })
        };
        let workload =
            |_: &WorkloadPlan| -> Result<Box<dyn Workload>, LabError> { Ok(Box::new(Transfer { says: None })) };
        assert!(Live::new(&scenario, Box::new(refuse), Box::new(workload)).is_err());
        let lack = |_: &ContenderPlan| -> Result<Box<dyn Contender>, LabError> {
            Err(LabError::Missing { what: "tool".to_owned(), hint: String::new() })
        };
        assert!(Live::new(&scenario, Box::new(lack), Box::new(workload)).is_ok());
    }
}
