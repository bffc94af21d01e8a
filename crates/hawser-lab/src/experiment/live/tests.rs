//! A run on a real network, with doubles for contender and workload. Needs root.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;

use hawser_wire::traffic::TcpTransfer;

use super::super::plan::{self, Choice, Series};
use super::super::tests::scenario;
use super::super::{Line, Mark, Outcome, measure};
use super::*;
use crate::contender::{Program, Transport};
use crate::scenario::{Column, Table};
use crate::workload::Ready;

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
fn plain(stage: &Stage) -> Result<(Offer, Down), LabError> {
    note("up");
    let programs = vec![Program { role: "local", pid: rustix::process::getpid() }];
    let down: Down = Box::new(|_: &Stage| {
        note("down");
        Ok(())
    });
    Ok((Offer { ends: stage.ends_of(0), socket: Transport::Tcp, programs, portals: None }, down))
}

/// A transfer from the server, or what is said instead.
fn prepare<'g>(says: Option<&'static str>, ground: Ground<'g>) -> Result<Ready<'g>, LabError> {
    note("prepare");
    // A connection whose segments the watch sees.
    let address = SocketAddr::new(ground.ends.server, 4000);
    let listener = ground.server.run(|| TcpListener::bind(address))?.expect("a port");
    drop(ground.client.run(|| TcpStream::connect(address))?.expect("it is there"));
    drop(listener);
    Ok(Box::new(move |when: When| transfer(says, ground, when)))
}

fn transfer(says: Option<&str>, ground: Ground<'_>, when: When) -> Result<Findings, LabError> {
    note("run");
    match says {
        Some("missing") => return Err(missing("install it")),
        Some(reason) => return Err(LabError::refused("measure goodput", reason.to_owned())),
        None => {}
    }
    when.start.sleep_until();
    let (from, to) = ((ground.server, ground.ends.server), SocketAddr::new(ground.ends.client, 4001));
    let got = TcpTransfer::cubic(from, (ground.client, to), when.duration).run()?;
    let lines = [("goodput_mbps", 500), (measure::FINE, 10)].map(|(name, ms)| {
        let step = Duration::from_millis(ms);
        Line { name: name.to_owned(), link: None, step_s: step.as_secs_f64(), values: got.mbps_by(step) }
    });
    let mbps = got.mbps_between(got.start(), got.start() + when.duration);
    // The round trip is as a ping beside it would find.
    let figures = Findings::named([(LOADED, 50.0), ("goodput_mbps", mbps)]);
    Ok(Findings { lines: lines.into(), ..figures })
}

fn missing(hint: &str) -> LabError {
    LabError::missing("tool", hint)
}

fn transfers(says: Option<&'static str>) -> Make<WorkloadPlan, Workload> {
    Box::new(move |_| Ok(Box::new(move |ground| prepare(says, ground))))
}

fn live(scenario: &Scenario, says: Option<&'static str>) -> Outcome {
    let live = Live::new(scenario, Box::new(|_| Ok(Box::new(plain))), transfers(says), None).expect("all is known");
    let all = Series::all(scenario, Choice { quick: true, repetitions: None });
    let planned = plan::next(&all, &[], &scenario.repeat).expect("there is a run");
    live.run(&planned).into()
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
    let outcome = live(&scenario, None);
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
    let skipped = live(&scenario, Some("missing"));
    assert!(matches!(&skipped, Outcome::Skipped(why) if why == "tool is missing (install it)"), "{skipped:?}");
    assert_eq!(done(), ["up", "prepare", "run", "down"]);
    let failed = live(&scenario, Some("it broke"));
    assert!(matches!(&failed, Outcome::Failed(said) if said.contains("it broke")), "{failed:?}");
    assert_eq!(done(), ["up", "prepare", "run", "down"]);
}

#[test]
fn what_means_nothing_is_told_before_anything_runs() {
    let scenario = scenario();
    let made = |error: fn() -> LabError| {
        Live::new(&scenario, Box::new(move |_| Err(error())), transfers(None), None).map(drop)
    };
    assert!(made(|| LabError::refused("set up tcp", "no".to_owned())).is_err());
    assert!(made(|| missing("")).is_ok());
}
