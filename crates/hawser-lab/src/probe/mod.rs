//! Experiments that bring a network or programs of their own, beside the stage: scenarios of the lab like others.
//!
//! 1. A scenario's workload says which one (`KINDS`), with options of its own; its contender is `hawser`, or the
//!    `shim`.
//! 2. [`experiment::run`](crate::experiment::run()) says when, an [`executor`] does each run.
//! 3. [`coupling`]: links that share a bottleneck. [`outages`]: a link that is away. [`peers`]: many
//!    sessions. [`scion`]: bonds over SCION paths. [`shim`]: the shim over them.

mod coupling;
mod outages;
mod peers;
mod scion;
mod shim;
mod usable;

use std::path::PathBuf;
use std::time::Duration;

use hawser_wire::Direction;
use hawser_wire::traffic::Towards;

use self::shim::streams::{CUTS, What};
use crate::contender::Programs;
use crate::error::LabError;
use crate::experiment::{Execute, Findings};
use crate::options::Options;
use crate::scenario::{ContenderPlan, Scenario, WorkloadPlan};
use crate::shim::Carried;

/// What a run does.
type Work = Box<dyn Fn(&Asked) -> Result<Findings, LabError>>;
/// What reads a workload's options.
type Read = fn(&mut Options) -> Result<Work, LabError>;

/// Step 1.
static KINDS: [(&str, Read); 13] = [
    ("beside-reno", |options| towards(options).map(|to| work(move |asked| coupling::beside(asked, to)))),
    ("outage", |_| Ok(work(outages::suffer))),
    ("peers", |_| Ok(work(peers::share))),
    ("standby", |_| Ok(work(peers::stand_by))),
    ("scion-paths", |options| {
        let (to, paths) = (towards(options)?, links(options)?);
        Ok(work(move |asked| scion::several(asked, paths, to)))
    }),
    ("scion-mixed", |options| towards(options).map(|to| work(move |asked| scion::mixed(asked, to)))),
    ("scion-sharing", |options| towards(options).map(|to| work(move |asked| scion::sharability(asked, to)))),
    ("shim-disjoint", |options| towards(options).map(|to| work(move |asked| shim::streams::disjoint(asked, to)))),
    ("shim-sharing", |options| towards(options).map(|to| work(move |asked| shim::streams::sharing(asked, to)))),
    ("shim-cut", |options| {
        let (to, what) = (towards(options)?, options.choice("what", &CUTS, What::ONE)?);
        Ok(work(move |asked| shim::streams::cut(asked, what, to)))
    }),
    ("shim-wire", |options| {
        let carried = options.choice("layer4", &[("udp", Carried::Udp), ("tcp", Carried::Tcp)], Carried::Udp)?;
        Ok(work(move |asked| shim::wire(asked, carried)))
    }),
    ("shim-quic", |options| {
        let (links, mbps) = (links(options)?, options.rate("rate")?.map(|rate| rate.bits_per_second() as f64 / 1e6));
        let bytes = options.bytes("bytes")?.unwrap_or(FILE);
        Ok(work(move |asked| shim::against_quinn(asked, links, mbps, bytes)))
    }),
    ("shim-strain", |options| {
        let is_hostile = options.choice("by", &[("churn", false), ("hostile", true)], false)?;
        Ok(work(if is_hostile { shim::strain::hostile } else { shim::strain::churn }))
    }),
];
/// What scenarios call the shim, as a contender.
pub(crate) const SHIM: &str = "shim";
/// A file, where the scenario does not say.
const FILE: u64 = 25_000_000;
/// Seeds of a repetition's links lie this far from the next one's.
const SEEDS: u64 = 1000;
/// Each link between SCION ASes, in Mbit/s, one way and what waits before it at most.
const MBPS: f64 = 20.0;
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);
/// What of a stream's start there is not counted.
const WARM: Duration = Duration::from_secs(3);
/// Bytes of a mebibyte.
const MEBIBYTE: f64 = 1_048_576.0;

/// What one run is asked for. Plain data.
pub(crate) struct Asked {
    /// The `hawser` executable.
    program: PathBuf,
    /// Lines of `[traffic]` in both configurations, mostly none.
    traffic: String,
    /// How long it takes, where it lasts as long as told.
    duration: Duration,
    /// The case's place.
    x: f64,
    /// Which repetition.
    run: u32,
}

impl Asked {
    /// Where chance starts.
    fn seed(&self) -> u64 {
        u64::from(self.run) * SEEDS
    }
}

/// Step 2: what executes a scenario's runs, each of whose contenders and workloads must mean something.
pub(crate) fn executor(scenario: &Scenario, programs: &Programs) -> Result<Execute<'static>, LabError> {
    scenario.contenders.iter().try_for_each(|contender| traffic(contender).map(drop))?;
    scenario.workloads.iter().try_for_each(|workload| read(workload).map(drop))?;
    let program = programs.hawser.clone();
    Ok(Box::new(move |planned| {
        let series = planned.series;
        let asked = Asked {
            program: program.clone(),
            traffic: traffic(series.contender)?,
            duration: series.workload.duration,
            x: series.case.x.unwrap_or_default(),
            run: planned.repetition,
        };
        read(&series.workload)?(&asked)
    }))
}

/// Whether a scenario is one of these.
pub(crate) fn is_ours(scenario: &Scenario) -> bool {
    scenario.workloads.iter().any(|workload| kinds().any(|kind| kind == workload.kind))
}

/// What scenarios call their workloads' kinds.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(kind, _)| *kind)
}

fn work(work: impl Fn(&Asked) -> Result<Findings, LabError> + 'static) -> Work {
    Box::new(work)
}

fn read(plan: &WorkloadPlan) -> Result<Work, LabError> {
    let mut options = Options::of_workload(plan);
    let Some((_, read)) = KINDS.iter().find(|(kind, _)| *kind == plan.kind) else {
        let known = kinds().collect::<Vec<_>>().join(", ");
        return Err(options.fault(format!("no kind `{}` beside these: {known}", plan.kind)));
    };
    let work = read(&mut options)?;
    options.finish()?;
    Ok(work)
}

/// What a contender's option says of both portals' `[traffic]`.
fn traffic(plan: &ContenderPlan) -> Result<String, LabError> {
    let mut options = Options::of_contender(plan);
    if !["hawser", SHIM].contains(&plan.kind.as_str()) {
        let fault = format!("kind {:?} does not take part in this workload, but hawser or shim", plan.kind);
        return Err(options.fault(fault));
    }
    let congestion = options.string("congestion")?;
    options.finish()?;
    Ok(congestion.map(|name| format!("congestion = \"{name}\"\n")).unwrap_or_default())
}

/// Which end sends: the client is the local one.
fn towards(options: &mut Options) -> Result<Towards, LabError> {
    options.choice("direction", &[("up", Towards::Server), ("down", Towards::Client)], Towards::Server)
}

fn shaped() -> Direction {
    Direction::shaped(MBPS, DELAY, QUEUE)
}

fn links(options: &mut Options) -> Result<u8, LabError> {
    let links = options.count("links", 1, 1)?;
    u8::try_from(links).ok().filter(|&links| links <= 8).ok_or_else(|| options.fault("more than 8 links"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::plan;

    #[test]
    fn every_kind_is_read_and_what_means_nothing_is_refused() {
        for (kind, _) in KINDS {
            assert!(read(&plan(kind, "")).is_ok(), "{kind}");
            assert!(read(&plan(kind, "streams = 2")).is_err(), "{kind}");
        }
        for (kind, options, said) in
            [("bulk", "", "scion-paths"), ("shim-cut", "what = 'two'", "silently"), ("scion-paths", "links = 9", "8")]
        {
            let error = read(&plan(kind, options)).err().expect("it is refused").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
