//! What a topology file says, parsed (docs/scion.md describes the file), and what must hold of it as a whole:
//!
//! 1. Links fit the ASes at their ends.
//! 2. Every ISD has a core, and all cores reach each other by core links.
//! 3. Every other AS reaches a core of its ISD upwards.

use std::collections::BTreeSet;
use std::time::Duration;

use hawser_config::keyword;
use hawser_config::reading::{Fault, Faults, Span};
use hawser_scion::conn::PortRange;
use hawser_scion::{Isd, IsdAs};
use hawser_wire::{Direction, Rate};

use super::parse::Draft;
pub use crate::scenario::Family;

/// The longest name of an interface. Source: IFNAMSIZ less its end.
pub(super) const NAME_MAX: usize = 15;
/// What the names of a router's interfaces towards hosts begin with.
pub(super) const HOST_PREFIX: &str = "host";

/// A SCION network: autonomous systems, and links between them. Plain data.
#[derive(Clone, Debug)]
pub struct Topology {
    /// What the running network is called, unless told otherwise.
    pub name: String,
    /// Whether daemons listen on all addresses of their hosts, not only on loopback.
    pub remote_daemons: bool,
    /// At least one.
    pub ases: Vec<AsPlan>,
    /// In the order of the file; interfaces are numbered in it.
    pub links: Vec<LinkPlan>,
}

/// An AS: a router and a control service in one namespace, and hosts. Plain data.
#[derive(Clone, Debug)]
pub struct AsPlan {
    /// Its number.
    pub id: IsdAs,
    /// Whether it is of its ISD's core; then it issues certificates, too.
    pub core: bool,
    /// How many hosts it has.
    pub hosts: u8,
    /// What its hosts' addresses are.
    pub family: Family,
    /// What a SCION packet may have inside it, from its SCION header on.
    pub mtu: u16,
    /// Ports that its router sends straight to, and applications receive on without a dispatcher.
    pub dispatched: PortRange,
    /// Whether its hosts run the dispatcher shim, which answers echo requests, too.
    pub shim: bool,
}

keyword! {
    /// What a link is between its ends. Plain data.
    LinkKind {
        /// Between two core ASes.
        Core = "core",
        /// From a parent, the first end, to its child.
        Child = "child",
        /// Between two ASes that are no parents of each other.
        Peer = "peer",
    }
}

/// A link between the routers of two ASes. Plain data.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Its name, and that of its interfaces.
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// Its ends; of a child link the parent first.
    pub ends: [IsdAs; 2],
    /// How packets go from the first end, and back; none: a veth that does not slow them.
    pub ways: Option<[Direction; 2]>,
    /// What a SCION packet may have on it.
    pub mtu: u16,
    /// What each end announces of it in beacons.
    pub announced: [Announced; 2],
    /// How often routers ask each other whether the link is there; after three unanswered ones it is down.
    pub bfd: Duration,
}

/// What an AS announces of a link. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// One way.
    pub latency: Option<Duration>,
    /// One way.
    pub bandwidth: Option<Rate>,
}

impl Topology {
    /// The plan of an AS.
    pub fn find(&self, id: IsdAs) -> Option<&AsPlan> {
        self.ases.iter().find(|plan| plan.id == id)
    }

    /// Shapes every link the same: for measurements that begin with an embedded topology.
    pub fn shape(&mut self, way: &Direction) {
        for (link, seed) in self.links.iter_mut().zip(0_u64..) {
            link.ways = Some(Direction { seed: way.seed + 2 * seed, ..way.clone() }.both_ways());
            link.announced = [Announced { latency: Some(way.delay), bandwidth: way.mean_rate() }; 2];
        }
    }
}

/// Steps 1 to 3.
pub(super) fn whole(draft: &Draft, faults: &mut Faults<'_>) {
    let Draft { topology, as_spans, link_spans } = draft;
    for (link, span) in topology.links.iter().zip(link_spans) {
        if let Some(fault) = misfit(topology, link) {
            faults.add(span.clone(), fault);
        }
    }
    let mut lacking = BTreeSet::new();
    for (plan, span) in topology.ases.iter().zip(as_spans) {
        let has_core = topology.ases.iter().any(|other| other.core && other.id.isd() == plan.id.isd());
        if !has_core && lacking.insert(plan.id.isd()) {
            let fault = Fault::new(format!("ISD {} has no core", plan.id.isd()));
            faults.add(span.clone(), fault.hint("write core = true in one of its [[as]]"));
        }
    }
    unreached(topology, as_spans, &lacking, faults);
}

/// Step 1: why a link cannot be.
fn misfit(topology: &Topology, link: &LinkPlan) -> Option<Fault> {
    let [a, b] = link.ends;
    let [a_core, b_core] = link.ends.map(|id| topology.find(id).is_some_and(|plan| plan.core));
    let of = |what: &str| Fault::new(format!("a {} link {what}", link.kind));
    if a == b {
        return Some(of(&format!("leads from {a} to itself")));
    }
    match link.kind {
        LinkKind::Core if !(a_core && b_core) => {
            Some(of("joins two core ASes").hint("to an AS outside the core lead links of kind = \"child\""))
        }
        LinkKind::Child if b_core => {
            Some(of("leads to an AS outside the core").hint("`a` is the parent, `b` its child"))
        }
        LinkKind::Child if a.isd() != b.isd() => Some(of("stays in its ISD").hint("ISDs are joined by core links")),
        LinkKind::Peer if a_core || b_core => Some(of("joins two ASes outside the core")),
        _ => None,
    }
}

/// Steps 2 and 3: ASes that beacons do not reach.
fn unreached(topology: &Topology, as_spans: &[Span], lacking: &BTreeSet<Isd>, faults: &mut Faults<'_>) {
    let Some(first) = topology.ases.iter().find(|plan| plan.core) else { return };
    let cores = reach(topology, vec![first.id], |link, from| match link.kind {
        LinkKind::Core => link.ends.into_iter().find(|&end| end != from),
        _ => None,
    });
    let all_cores = topology.ases.iter().filter(|plan| plan.core).map(|plan| plan.id).collect();
    let fed = reach(topology, all_cores, |link, from| {
        (link.kind == LinkKind::Child && link.ends[0] == from).then_some(link.ends[1])
    });
    for (plan, span) in topology.ases.iter().zip(as_spans) {
        if plan.core && !cores.contains(&plan.id) {
            let fault = Fault::new(format!("core AS {} is not joined to {}", plan.id, first.id));
            faults.add(span.clone(), fault.hint("add a [[link]] of kind = \"core\""));
        } else if !plan.core && !fed.contains(&plan.id) && !lacking.contains(&plan.id.isd()) {
            let fault = Fault::new(format!("AS {} has no way up to a core", plan.id));
            faults
                .add(span.clone(), fault.hint(format!("add a [[link]] of kind = \"child\" with b = \"{}\"", plan.id)));
        }
    }
}

/// What can be reached by steps over links.
fn reach(topology: &Topology, from: Vec<IsdAs>, step: impl Fn(&LinkPlan, IsdAs) -> Option<IsdAs>) -> BTreeSet<IsdAs> {
    let mut reached: BTreeSet<IsdAs> = from.iter().copied().collect();
    let mut next = from;
    while let Some(id) = next.pop() {
        let links = topology.links.iter().filter(|link| link.ends.contains(&id));
        let found: Vec<IsdAs> = links.filter_map(|link| step(link, id)).filter(|&id| reached.insert(id)).collect();
        next.extend(found);
    }
    reached
}
