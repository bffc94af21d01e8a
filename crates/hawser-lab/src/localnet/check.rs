//! What must hold of a topology as a whole.
//!
//! 1. Links fit the ASes at their ends.
//! 2. Every ISD has a core, and all cores reach each other by core links.
//! 3. Every other AS reaches a core of its ISD upwards.

use std::collections::BTreeSet;

use hawser_config::reading::{Fault, Faults, Span};
use hawser_scion::{Isd, IsdAs};

use super::parse::Draft;
use super::topology::{LinkKind, LinkPlan, Topology};

/// The longest name of an interface. Source: IFNAMSIZ less its end.
pub(super) const NAME_MAX: usize = 15;
/// What the names of a router's interfaces towards hosts begin with.
pub(super) const HOST_PREFIX: &str = "host";

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
    let of = |what: &str| Fault::new(format!("a {} link {what}", link.kind.name()));
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
