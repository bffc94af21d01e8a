//! What several paths carry together.
//!
//! 1. Four disjoint paths: one stream must have most of their sum.
//! 2. Of three paths two share a link and are the faster ones. Two are chosen by latency: together they carry what one
//!    does, and the status says that they share. Two are chosen by what they share: they carry twice as much.

use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_wire::Moment;
use hawser_wire::traffic::Towards;

use super::{Asked, Figures, Ground, LabError};
use crate::probe::usable::shim_share;
use crate::probe::{MBPS, WARM, shaped};
use crate::shim::{Carried, Place};

/// How long a stream lasts.
const END: Duration = Duration::from_secs(15);

/// Step 1.
pub(in super::super) fn disjoint(asked: &Asked, towards: Towards) -> Result<Figures, LabError> {
    const PATHS: u8 = 4;
    let found = stream(asked, &Place::parallel(PATHS, Some(&shaped()))?, PATHS, Criterion::Sharability, towards)?;
    let usable = f64::from(PATHS) * MBPS * shim_share(1, 2, Carried::Udp);
    Ok(Figures::from([
        ("goodput_mbps", found.mbps),
        ("usable_mbps", usable),
        ("ratio", found.mbps / usable),
        ("different_paths", found.different),
    ]))
}

/// Step 2.
pub(in super::super) fn sharing(asked: &Asked, towards: Towards) -> Result<Figures, LabError> {
    let place = Place::sharing()?;
    let shared = stream(asked, &place, 2, Criterion::Latency, towards)?;
    let disjoint = stream(asked, &place, 2, Criterion::Sharability, towards)?;
    let usable = MBPS * shim_share(1, 3, Carried::Udp);
    Ok(Figures::from([
        ("shared_mbps", shared.mbps),
        ("shared_ratio", shared.mbps / usable),
        ("shared_told", shared.sharability),
        ("disjoint_mbps", disjoint.mbps),
        ("disjoint_ratio", disjoint.mbps / (2.0 * usable)),
        ("disjoint_told", disjoint.sharability),
        ("gain", disjoint.mbps / shared.mbps),
    ]))
}

/// What a stream came to. Plain data.
struct Found {
    mbps: f64,
    /// How many different paths its flows went by, and how often they share an interface, as the shim says.
    different: f64,
    sharability: f64,
}

/// One stream with a flow for each egress.
fn stream(asked: &Asked, place: &Place, egress: u8, select: Criterion, towards: Towards) -> Result<Found, LabError> {
    let ground = Ground::start(asked, place, egress, select, "")?;
    let flows = ground.pair.flows(towards, 1).connect()?;
    let connection = ground.pair.wait_flows(usize::from(egress))?;
    let mut paths: Vec<String> =
        connection.flows.iter().filter_map(|flow| Some(flow.path.as_ref()?.hops.clone())).collect();
    paths.sort();
    paths.dedup();
    let start = Moment::now();
    let report = flows.start(start, END)?.finish()?;
    Ok(Found {
        mbps: report.all.mbps_between(start + WARM, start + END),
        different: paths.len() as f64,
        sharability: connection.sharability as f64,
    })
}
