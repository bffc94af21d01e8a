//! One run: the candidate comes up, a file goes from client to server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hawser_scion::select::{Criterion, listed};
use hawser_scion::{EndpointAddr, Path as ScionPath};
use hawser_wire::Direction;

use super::candidate::{self, Candidate};
use super::choice::Choice;
use super::{Bench, LabError, bytes};
use crate::experiment::{Findings, Planned};
use crate::localnet::{Host, Localnet};
use crate::portals::{Portals, REMOTE_TUN, Site, link_section, parsed};
use crate::scion_bench::figures::{Count, mbps};
use crate::scion_bench::network::paths;
use crate::shim::files;
use crate::shim::{Beside as Internet, INTERNET_SERVER, Place, ShimPair, ShimPlan};
use crate::wait::until;

/// The ordinary internet between the hosts: as fast as two of the network's lines, with their latency; Mbit/s, one way.
const INTERNET: (f64, Duration, Duration) = (20.0, Duration::from_millis(10), Duration::from_millis(100));
/// Paths between client and server, and how long the network may take to find all.
const ALL_PATHS: usize = 24;
const PATIENCE: Duration = Duration::from_secs(60);
/// How often paths are looked for, and the shim is asked for those in use.
const GLANCE: Duration = Duration::from_millis(200);
/// The portals' SCION port, which a shim does not have.
const PORT: u16 = 31_200;

/// The network, for all runs. Starts whole; removed on drop.
pub(super) struct Ground {
    // The link goes before the namespaces it lies in.
    internet: Internet,
    net: Localnet,
    place: Place,
    client: Host,
    server: Host,
    paths: Vec<ScionPath>,
}

impl Ground {
    /// Comes up with every path known.
    pub fn up() -> Result<Self, LabError> {
        let place = Place::shila()?;
        let net = Localnet::up(&place.topology)?;
        let [client, server] = [net.host(place.ends[0])?.clone(), net.host(place.ends[1])?.clone()];
        let (mbps, delay, queue) = INTERNET;
        let internet = Internet::join(&client, &server, &Direction::shaped(mbps, delay, queue))?;
        let mut count = 0;
        let known = until(PATIENCE, GLANCE, || {
            let known = paths(&client, server.isd_as)?;
            count = listed(&known).len();
            Ok((count >= ALL_PATHS).then_some(known))
        })?;
        let few =
            || LabError::NoFigure { figure: "paths", reason: format!("{count} paths were found, not {ALL_PATHS}") };
        Ok(Self { internet, net, place, paths: known.ok_or_else(few)?, client, server })
    }

    /// Bytes of IP packets that left the client, by SCION and by the internet.
    fn sent(&self) -> Result<u64, LabError> {
        let mut sent = self.internet.sent().bytes_out;
        for (link, plan) in self.net.links.iter().zip(&self.net.topology.links) {
            if let Some(end) = plan.ends.iter().position(|end| end.to_string() == self.place.ends[0]) {
                sent += link.counters()?[end].bytes_out;
            }
        }
        Ok(sent)
    }
}

impl Bench {
    /// The run.
    pub(crate) fn run(&self, planned: &Planned<'_>) -> Result<Findings, LabError> {
        let series = planned.series;
        let (candidate, bytes) = (Candidate::of(series.contender)?, bytes(&series.workload)?);
        let count = candidate::paths(series.case.x)?;
        let ground = self.ground()?;
        let before = ground.sent()?;
        let (sent, choice) = match candidate {
            Candidate::Shim(select, side) => ground.by_shims(&self.hawser, count, select, side, bytes)?,
            Candidate::Quinn => {
                let ends = [&ground.client, &ground.server];
                (files::by_quinn(&self.hawser, ends, &ground.paths, bytes)?, None)
            }
            Candidate::Hawser(select) => (ground.by_portals(&self.hawser, count, select, bytes)?, None),
            Candidate::Internet => {
                let ends = [&ground.client.namespace, &ground.server.namespace];
                (files::by_tcp(&self.hawser, ends, INTERNET_SERVER.into(), false, bytes)?, None)
            }
        };
        let wire = ground.sent()? - before;
        let mut findings = Findings::named([
            ("goodput_mbps", sent.mbps()),
            ("throughput_mbps", mbps(wire, sent.seconds)),
            ("overhead_percent", (wire as f64 / bytes as f64 - 1.0) * 100.0),
        ]);
        if let Some(choice) = choice {
            findings.add(choice.findings(Choice::best(&ground.paths, usize::from(count))));
        }
        Ok(findings)
    }
}

impl Ground {
    /// Through shims; and what paths the connection had, when it had most flows.
    fn by_shims(
        &self,
        hawser: &Path,
        count: u8,
        select: Criterion,
        side: Option<&str>,
        bytes: u64,
    ) -> Result<(Count, Option<Choice>), LabError> {
        let mut plan = ShimPlan::between(self.place.ends, count, select);
        if let Some(side) = side {
            let end = EndpointAddr::new(self.server.isd_as, SocketAddr::new(self.server.address, crate::shim::PORT));
            plan.client =
                format!("[[route]]\nto = \"{INTERNET_SERVER}\"\nscion = \"{end}\"\nside_by_side = \"{side}\"\n");
        }
        let pair = ShimPair::start(hawser, &self.net, &plan)?;
        let address = if side.is_some() { INTERNET_SERVER.into() } else { pair.server.address().into() };
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let watching = scope.spawn(|| most_flows(&pair, &is_done));
            let ends = [pair.client.namespace(), pair.server.namespace()];
            let sent = files::by_tcp(hawser, ends, address, true, bytes);
            is_done.store(true, Ordering::Release);
            let choice = watching.join().unwrap_or_default();
            Ok((sent?, choice))
        })
    }

    /// Through a tunnel that is bonded over this many paths.
    fn by_portals(&self, hawser: &Path, count: u8, select: Criterion, bytes: u64) -> Result<Count, LabError> {
        let lines = format!("daemon = \"{}\"\npaths = {count}\nselect = \"{select}\"\n", self.client.daemon);
        let scion = Some(EndpointAddr::new(self.server.isd_as, SocketAddr::new(self.server.address, PORT)));
        let links = link_section("eth0", "scion", &lines);
        let ends = [&self.client.namespace, &self.server.namespace];
        let plain = Site::plain(self.server.address, links, usize::from(count));
        let _portals = Portals::join(hawser, ends, &Site { scion, ..plain })?;
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
