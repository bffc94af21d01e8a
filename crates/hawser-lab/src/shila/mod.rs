//! Shila's questions again (Flückiger 2020, chapter 6), for today's shim: how much more paths carry, what the choice of
//! paths costs, how QUIC compares, and what the ordinary internet beside adds.
//!
//! 1. The scenarios of the group `shila` say what is run; [`experiment::run`](crate::experiment::run()) says when.
//! 2. An [`executor`] does each run: a [`Candidate`] comes up in the network of six ASes, which stays from run to
//!    run, and a file goes from client to server.
//! 3. It counts what left the client meanwhile, and asks the shim for the paths in use. `choice` holds them against
//!    the best ones.

mod choice;

use std::cell::OnceCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hawser_scion::Path as ScionPath;
use hawser_scion::select::Criterion;
use hawser_wire::{Direction, EmulatedLink, Way};

use choice::Choice;

use crate::contender::Programs;
use crate::error::LabError;
use crate::experiment::{Execute, Findings, Planned};
use crate::localnet::{Host, Localnet};
use crate::options::{Options, case_count};
use crate::portals::{Portals, REMOTE_TUN, Site, link_section, parsed};
use crate::scenario::{Case, ContenderPlan, Scenario, WorkloadPlan};
use crate::scion_bench::figures::{Count, mbps};
use crate::scion_bench::once;
use crate::scion_bench::plan::options_of;
use crate::scion_bond::{FAR as INTERNET_SERVER, beside};
use crate::shim::{self, Place, ShimPair, files};
use crate::wait::until;

/// What scenarios call their contenders' kind.
pub const CONTENDER: &str = "shila";
/// What they call their workloads' kind.
pub const WORKLOAD: &str = "shila-file";
/// A file, where the scenario does not say: as its QUIC sent.
const FILE: u64 = 50_000_000;
/// The ordinary internet between the hosts: as fast as two of the network's lines, with their latency; Mbit/s, one way.
const INTERNET: (f64, Duration, Duration) = (20.0, Duration::from_millis(10), Duration::from_millis(100));
/// Paths between client and server, and how long the network may take to find all.
const ALL_PATHS: usize = 24;
const PATIENCE: Duration = Duration::from_secs(60);
/// How often paths are looked for, and the shim is asked for those in use.
const GLANCE: Duration = Duration::from_millis(200);
/// The portals' SCION port, which a shim does not have.
const PORT: u16 = 31_200;
/// Paths of a case, at most: as many as a shim has egress interfaces.
const MOST_PATHS: u8 = 8;
/// What the option calls a [`Candidate`]'s code.
const CODES: [&str; 4] = ["shim", "quinn", "hawser", "internet"];
/// What of a connection goes by the internet, as the option says it, and what then goes over SCION.
const BESIDE: [(&str, Option<&str>); 3] = [("nothing", None), ("main", Some("subflows")), ("subflow", Some("main"))];

/// Who is compared, by what the file goes. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    /// MPTCP through the shims, by paths that are chosen so, and what of a connection goes over SCION where the rest
    /// goes by the ordinary internet: the shim's `side_by_side`.
    Shim(Criterion, Option<&'static str>),
    /// quinn, by the best path alone.
    Quinn,
    /// TCP through Hawser's portals, bonded over paths that are chosen so.
    Hawser(Criterion),
    /// TCP by the ordinary internet.
    Internet,
}

/// The network, for all runs. Starts whole; removed on drop.
struct Ground {
    // The link goes before the namespaces it lies in.
    internet: EmulatedLink,
    net: Localnet,
    ends: [&'static str; 2],
    client: Host,
    server: Host,
    paths: Vec<ScionPath>,
}

/// What executes a scenario's runs, each of whose contenders, workloads and cases must mean something. The network
/// comes up with the first run.
pub(crate) fn executor(scenario: &Scenario, programs: &Programs) -> Result<Execute<'static>, LabError> {
    scenario.contenders.iter().try_for_each(|contender| Candidate::of(contender).map(drop))?;
    scenario.workloads.iter().try_for_each(|workload| bytes(workload).map(drop))?;
    scenario.cases.iter().try_for_each(|case| paths(case).map(drop))?;
    let (hawser, ground) = (programs.hawser.clone(), OnceCell::new());
    Ok(Box::new(move |planned| once(&ground, Ground::up)?.run(&hawser, planned)))
}

impl Candidate {
    /// The one that a scenario means.
    fn of(plan: &ContenderPlan) -> Result<Self, LabError> {
        let mut options = options_of(plan, CONTENDER)?;
        let code = options.word("code", &CODES)?;
        let select = options.string("select")?.map(|text| text.parse::<Criterion>());
        let select = select.transpose().map_err(|error| options.fault(error.to_string()))?.unwrap_or_default();
        let side = options.choice("internet", &BESIDE, None)?;
        if code != "shim" && side.is_some() {
            return Err(options.fault("`internet` is for code = \"shim\""));
        }
        options.finish()?;
        Ok(match code {
            "quinn" => Self::Quinn,
            "hawser" => Self::Hawser(select),
            "internet" => Self::Internet,
            _ => Self::Shim(select, side),
        })
    }
}

/// How long a workload's file is.
fn bytes(plan: &WorkloadPlan) -> Result<u64, LabError> {
    let mut options = Options::of_workload(plan);
    if plan.kind != WORKLOAD {
        return Err(options.fault(format!("no kind `{}` between SCION hosts; there is: {WORKLOAD}", plan.kind)));
    }
    let bytes = options.bytes("bytes")?.unwrap_or(FILE);
    options.finish()?;
    Ok(bytes)
}

/// How many paths a case has.
fn paths(case: &Case) -> Result<u8, LabError> {
    case_count(case.x, "paths", MOST_PATHS)
}

impl Ground {
    /// Comes up with every path known.
    fn up() -> Result<Self, LabError> {
        let Place { topology, ends } = Place::shila()?;
        let net = Localnet::up(&topology)?;
        let [client, server] = [net.host(ends[0])?.clone(), net.host(ends[1])?.clone()];
        let (mbps, delay, queue) = INTERNET;
        let internet = beside(&client, &server, &Direction::shaped(mbps, delay, queue))?;
        let mut count = 0;
        let known = until(PATIENCE, GLANCE, || {
            let known = client.paths(server.isd_as)?;
            count = known.len();
            Ok((count >= ALL_PATHS).then_some(known))
        })?;
        let few = || LabError::refused("measure paths", format!("{count} paths were found, not {ALL_PATHS}"));
        Ok(Self { internet, net, ends, paths: known.ok_or_else(few)?, client, server })
    }

    /// Steps 2 and 3.
    fn run(&self, hawser: &Path, planned: &Planned<'_>) -> Result<Findings, LabError> {
        let series = planned.series;
        let (bytes, count) = (bytes(&series.workload)?, paths(series.case)?);
        let hosts = [&self.client, &self.server];
        let before = self.sent();
        let (sent, choice) = match Candidate::of(series.contender)? {
            Candidate::Shim(select, side) => self.by_shims(hawser, count, select, side, bytes)?,
            Candidate::Quinn => (files::by_quinn(hawser, hosts, &self.paths, bytes)?, None),
            Candidate::Hawser(select) => (self.by_portals(hawser, count, select, bytes)?, None),
            Candidate::Internet => {
                let ends = hosts.map(|host| &host.namespace);
                (files::by_tcp(hawser, ends, INTERNET_SERVER.into(), false, bytes)?, None)
            }
        };
        let wire = self.sent() - before;
        let mut findings = Findings::named([
            ("goodput_mbps", sent.mbps()),
            ("throughput_mbps", mbps(wire, sent.seconds)),
            ("overhead_percent", (wire as f64 / bytes as f64 - 1.0) * 100.0),
        ]);
        if let Some(choice) = choice {
            findings.add(choice.findings(Choice::best(&self.paths, usize::from(count))));
        }
        Ok(findings)
    }

    /// Bytes of IP packets that left the client, by SCION and by the internet.
    fn sent(&self) -> u64 {
        let by_scion = self.net.links.iter().filter_map(|link| {
            let end = link.plan.ends.iter().position(|&end| end == self.client.isd_as)?;
            Some(link.counters()[end].bytes_out)
        });
        self.internet.counters(Way::AToB).bytes_out + by_scion.sum::<u64>()
    }

    /// Through shims; and what paths the connection had, when it had most flows.
    fn by_shims(
        &self,
        hawser: &Path,
        count: u8,
        select: Criterion,
        side: Option<&str>,
        bytes: u64,
    ) -> Result<(Count, Option<Choice>), LabError> {
        let end = self.server.endpoint(shim::PORT);
        let route = side.map(|side| {
            format!("[[route]]\nto = \"{INTERNET_SERVER}\"\nscion = \"{end}\"\nside_by_side = \"{side}\"\n")
        });
        let more = [route.as_deref().unwrap_or_default(), ""];
        let pair = ShimPair::start(hawser, &self.net, self.ends, count, select, more)?;
        let address = if side.is_some() { INTERNET_SERVER.into() } else { pair.server.address().into() };
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let watching = scope.spawn(|| most_flows(&pair, &is_done));
            let ends = [&self.client.namespace, &self.server.namespace];
            let sent = files::by_tcp(hawser, ends, address, true, bytes);
            is_done.store(true, Ordering::Release);
            let choice = watching.join().unwrap_or_default();
            Ok((sent?, choice))
        })
    }

    /// Through a tunnel that is bonded over this many paths.
    fn by_portals(&self, hawser: &Path, count: u8, select: Criterion, bytes: u64) -> Result<Count, LabError> {
        let lines = format!("daemon = \"{}\"\npaths = {count}\nselect = \"{select}\"\n", self.client.daemon);
        let links = link_section("eth0", "scion", &lines);
        let ends = [&self.client.namespace, &self.server.namespace];
        let plain = Site::plain(self.server.address, links, usize::from(count));
        let _portals = Portals::join(hawser, ends, &Site { scion: Some(self.server.endpoint(PORT)), ..plain })?;
        files::by_tcp(hawser, ends, parsed(REMOTE_TUN).addr(), false, bytes)
    }
}

/// The paths of the client's connection at the moment when most of its flows were established.
fn most_flows(pair: &ShimPair, is_done: &AtomicBool) -> Option<Choice> {
    let mut most: Option<Choice> = None;
    while !is_done.load(Ordering::Acquire) {
        for choice in pair.client.connections().iter().filter_map(Choice::of) {
            if most.is_none_or(|most| choice.paths >= most.paths) {
                most = Some(choice);
            }
        }
        thread::sleep(GLANCE);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_says_who_it_is_or_is_refused_with_what_would_do() {
        for (kind, options, expected) in [
            (CONTENDER, "", Ok(Candidate::Shim(Criterion::Length, None))),
            (CONTENDER, "select = 'mtu'", Ok(Candidate::Shim(Criterion::Mtu, None))),
            (CONTENDER, "internet = 'main'", Ok(Candidate::Shim(Criterion::Length, Some("subflows")))),
            (CONTENDER, "code = 'quinn'", Ok(Candidate::Quinn)),
            (CONTENDER, "code = 'hawser'\nselect = 'sharability'", Ok(Candidate::Hawser(Criterion::Sharability))),
            (CONTENDER, "code = 'internet'", Ok(Candidate::Internet)),
            ("tcp", "", Err("kind \"tcp\"")),
            (CONTENDER, "select = 'best'", Err("sharability")),
            (CONTENDER, "code = 'quinn'\ninternet = 'main'", Err("code = \"shim\"")),
            (CONTENDER, "paths = 4", Err("select")),
        ] {
            let options = options.parse().expect("TOML");
            let plan = ContenderPlan { kind: kind.to_owned(), label: "one".to_owned(), options };
            match (Candidate::of(&plan), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{plan:?}"),
                (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
                (found, _) => panic!("{plan:?}: {found:?}"),
            }
        }
    }
}
