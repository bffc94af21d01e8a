//! The cases of [`crate::ordeals`]: what is done to portals, links and clocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_wire::{Moment, Way};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::faults::NAMES;
use crate::lab::ms;
use crate::ordeals::Ordeal;
use crate::{faketime, figures};

/// How long a portal is stopped or frozen.
const STOPPED: Duration = Duration::from_secs(20);
/// Flaps of a link, and how long it is down and up in each.
const FLAPS: usize = 100;
const FLAP_DOWN: Duration = Duration::from_millis(100);
const FLAP_UP: Duration = Duration::from_millis(150);
/// Restarts in a minute.
const MINUTE: Duration = Duration::from_secs(60);
/// The outage that a restart may cost where the portal is killed ten times in a minute: the local, the remote one.
const OUTAGES: [Duration; 2] = [Duration::from_millis(140), Duration::from_millis(500)];
/// Where cgroups are frozen (cgroups version 1), and what is written.
const FREEZER: &str = "/sys/fs/cgroup/freezer";
/// What a clock jumps, in hours.
const JUMPS: [&str; 3] = ["+1h", "-1h", "+8760h"];

/// Writes the figures, and fails where something was missed.
fn judge(case: &str, found: Vec<Value>, misses: &[String]) {
    figures::write(case, &format!("make endure CASE={case}"), &json!({ "on": figures::on(), "cases": found }));
    assert!(misses.is_empty(), "{misses:#?}");
}

#[test]
fn a_portal_that_is_stopped_for_twenty_seconds_goes_on() {
    let (mut misses, mut found) = (Vec::new(), Vec::new());
    for (side, name) in NAMES.iter().enumerate() {
        let mut ordeal = Ordeal::begin(&format!("{name} stopped"), [&[]; 2]);
        ordeal.suffer(|ordeal| {
            ordeal.field.portals[side].signal(Signal::STOP);
            std::thread::sleep(STOPPED);
            ordeal.field.portals[side].signal(Signal::CONT);
            Moment::now()
        });
        found.push(ordeal.end(&mut misses));
    }
    judge("stopped", found, &misses);
}

/// A cgroup of the test's own; removed when it drops.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Self {
        let folder = Path::new(FREEZER).join(format!("hawser-endure-{}", std::process::id()));
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("make {} (cgroup v1, root): {error}", folder.display()));
        Self(folder)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap_or_else(|error| panic!("write {text} to {file}: {error}"));
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("remove {}: {error}", self.0.display());
        }
    }
}

#[test]
fn a_portal_that_is_frozen_for_twenty_seconds_goes_on() {
    let (mut misses, mut found) = (Vec::new(), Vec::new());
    for (side, name) in NAMES.iter().enumerate() {
        let cgroup = Cgroup::new();
        let mut ordeal = Ordeal::begin(&format!("{name} frozen"), [&[]; 2]);
        cgroup.write("cgroup.procs", &ordeal.field.portals[side].pid().to_string());
        ordeal.suffer(|_| {
            cgroup.write("freezer.state", "FROZEN");
            std::thread::sleep(STOPPED);
            cgroup.write("freezer.state", "THAWED");
            Moment::now()
        });
        found.push(ordeal.end(&mut misses));
    }
    judge("frozen", found, &misses);
}

#[test]
fn a_link_that_flaps_a_hundred_times_costs_no_flow() {
    let (mut misses, mut found) = (Vec::new(), Vec::new());
    let mut ordeal = Ordeal::begin("a hundred flaps", [&[]; 2]);
    ordeal.suffer(|ordeal| {
        for _ in 0..FLAPS {
            ordeal.field.links[0].cut().expect("it can be cut");
            std::thread::sleep(FLAP_DOWN);
            ordeal.field.links[0].restore().expect("it can be mended");
            std::thread::sleep(FLAP_UP);
        }
        Moment::now()
    });
    found.push(ordeal.end(&mut misses));
    judge("flaps", found, &misses);
}

/// How a portal is restarted: which, by what, how often in a minute, how long it is not there, and the links' delay.
struct Restarts {
    side: usize,
    signal: Signal,
    times: u32,
    gone: Duration,
    delay: Duration,
}

impl Restarts {
    /// The longest silence of datagrams, and of streams, by each.
    fn run(&self, misses: &mut Vec<String>) -> Value {
        let Self { side, signal, times, gone, delay } = *self;
        let name = if signal == Signal::KILL { "kill -9" } else { "SIGTERM" };
        let case = format!("{} restarted {times} times by {name}, gone for {gone:?}, links of {delay:?}", NAMES[side]);
        let mut ordeal = Ordeal::begin(&case, [&[]; 2]);
        ordeal.gone = gone;
        for (link, way) in ordeal.field.links.iter().flat_map(|link| Way::BOTH.map(|way| (link, way))) {
            link.set(way, |settings| settings.delay = delay).expect("it can be set");
        }
        let (mut datagrams, mut streams) = (Vec::new(), Vec::new());
        ordeal.suffer(|ordeal| {
            let (mut due, mut mended) = (Moment::now(), Moment::now());
            for _ in 0..times {
                let begin = Moment::now();
                ordeal.field.restart(side, signal, gone);
                mended = Moment::now();
                due = due + MINUTE / times;
                due.sleep_until();
                let gaps = ordeal.flows.heard().map(|heard| heard.longest(begin, Moment::now()).as_millis() as u64);
                datagrams.push(gaps[0].max(gaps[1]));
                streams.push(gaps[2].max(gaps[3]));
            }
            mended
        });
        datagrams.sort_unstable();
        streams.sort_unstable();
        let median = Duration::from_millis(datagrams[datagrams.len() / 2]);
        if times == 10 && signal == Signal::KILL && median > OUTAGES[side] {
            ordeal.miss(format!("an outage of {median:?} in the median"));
        }
        ordeal.note("outages_ms", &datagrams);
        ordeal.note("stream_outages_ms", &streams);
        ordeal.end(misses)
    }
}

#[test]
fn restarts_by_the_dozen_cost_no_flow_and_leave_nothing() {
    let (mut misses, mut found) = (Vec::new(), Vec::new());
    let plans = [
        (Signal::TERM, 20, 0, 10),
        (Signal::KILL, 20, 0, 10),
        (Signal::KILL, 10, 0, 10),
        (Signal::KILL, 10, 0, 0),
        (Signal::TERM, 6, 1_700, 10),
    ];
    for (side, (signal, times, gone, delay)) in [0, 1].into_iter().flat_map(|side| plans.map(|plan| (side, plan))) {
        found.push(Restarts { side, signal, times, gone: ms(gone), delay: ms(delay) }.run(&mut misses));
    }
    judge("restarts", found, &misses);
}

/// One side's clocks jump, once for each of [`JUMPS`], from each to the next: the wall clock alone, or all that libc
/// tells.
fn jumps(side: usize, all: bool, misses: &mut Vec<String>) -> Value {
    let clocks = if all { "all clocks of libc" } else { "wall clock" };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clock");
    let set = |jump: &str| fs::write(&file, format!("{jump}\n")).expect("a file");
    set("+0");
    let words = [
        "env".to_owned(),
        format!("LD_PRELOAD={}", faketime::library()),
        format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
        "FAKETIME_NO_CACHE=1".into(),
        format!("FAKETIME_DONT_FAKE_MONOTONIC={}", u8::from(!all)),
    ];
    let by: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut both: [&[&str]; 2] = [&[]; 2];
    both[side] = &by;
    let mut ordeal = Ordeal::begin(&format!("{clocks} of {} jumps", NAMES[side]), both);
    let mut told = Vec::new();
    ordeal.suffer(|ordeal| {
        for jump in JUMPS {
            set(jump);
            std::thread::sleep(ms(4_000));
            // What the portal writes now bears the time that it sees.
            ordeal.field.portals[side].signal(Signal::HUP);
            std::thread::sleep(ms(1_000));
            let log = ordeal.field.portals[side].log();
            told.push((jump, log.lines().last().and_then(|line| line.split(' ').next()).unwrap_or("").to_owned()));
        }
        set("+0");
        Moment::now()
    });
    let hours: Vec<&str> = told.iter().map(|(_, at)| at.get(..13).unwrap_or("")).collect();
    if hours[0] == hours[1] || hours[1] == hours[2] {
        ordeal.miss(format!("the clock did not jump: {told:?}"));
    }
    ordeal.note("told", &told);
    ordeal.end(misses)
}

#[test]
fn clocks_that_jump_cost_nothing() {
    let (mut misses, mut found) = (Vec::new(), Vec::new());
    for side in [0, 1] {
        for all in [false, true] {
            found.push(jumps(side, all, &mut misses));
        }
    }
    judge("clocks", found, &misses);
}
