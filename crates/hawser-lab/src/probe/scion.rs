//! Bonds over SCION paths, in networks of the reference implementation's routers.
//!
//! 1. [`several`]: core ASes of two ISDs with as many shaped links as the portals use paths; one stream, then a link is
//!    cut and brought back.
//! 2. [`mixed`]: two SCION paths and a plain UDP link.
//! 3. [`sharability`]: of three paths two go over one link and are the shorter ones; two are chosen, by latency and by
//!    what they share.
//!
//! ```text
//!  0 ── warm ── 3 s ── counted ── 13 s cut ── 17 s back ── 22 s
//! ```

use std::time::Duration;

use hawser_wire::traffic::Towards;
use hawser_wire::{Direction, Moment};

use super::usable::{INNER_HEADERS, MTU, OUTER, SEALED, portals_payload};
use super::{Asked, Findings, LabError, MBPS, WARM, shaped};
use crate::scion_bond::{ScionBond, ScionPlan};
use crate::shim::Place;

/// Where the stream is looked at, from its start.
const CUT: Duration = Duration::from_secs(13);
const BACK: Duration = Duration::from_secs(17);
const END: Duration = Duration::from_secs(22);
/// The rate before the cut is taken over this long; so is that of a stream that recovered.
const BEFORE: Duration = Duration::from_secs(2);
const RECOVERED_OVER: Duration = Duration::from_secs(1);
/// The stream has recovered at this share of before.
const RECOVERED_SHARE: f64 = 0.95;

/// Step 1.
pub(super) fn several(asked: &Asked, paths: u8, towards: Towards) -> Result<Findings, LabError> {
    let bond = start(asked, &Place::parallel(paths, Some(&shaped()))?, paths, "", None)?;
    let transfer = bond.transfer(towards, END).start()?;
    let start = Moment::now();
    (start + CUT).sleep_until();
    let link = bond.net.link("c1")?;
    let cut = Moment::now();
    link.cut()?;
    (start + BACK).sleep_until();
    let back = Moment::now();
    link.restore()?;
    let got = transfer.finish()?;
    let mbps = got.mbps_between(start + WARM, cut);
    let before = got.mbps_between(start + (CUT - BEFORE), cut);
    let recovered = got.recovered_after(back, before * RECOVERED_SHARE, RECOVERED_OVER);
    let usable = f64::from(paths) * portals_payload(2) / MTU * MBPS;
    Ok(Findings::named([
        ("goodput_mbps", mbps),
        ("usable_mbps", usable),
        ("ratio", mbps / usable),
        ("gap_ms", got.longest_gap(cut, start + END).as_secs_f64() * 1e3),
        ("back_s", recovered.unwrap_or(END - BACK).as_secs_f64()),
    ]))
}

/// Step 2.
pub(super) fn mixed(asked: &Asked, towards: Towards) -> Result<Findings, LabError> {
    let bond = start(asked, &Place::parallel(2, Some(&shaped()))?, 2, "", Some(shaped()))?;
    let mbps = stream(&bond, towards)?;
    // Packets are as large as the SCION paths carry, by the plain link too.
    let payload = portals_payload(2);
    let plain = payload / (payload + INNER_HEADERS + SEALED + OUTER);
    let usable = (2.0 * payload / MTU + plain) * MBPS;
    Ok(Findings::named([("goodput_mbps", mbps), ("usable_mbps", usable), ("ratio", mbps / usable)]))
}

/// Step 3.
pub(super) fn sharability(asked: &Asked, towards: Towards) -> Result<Findings, LabError> {
    let place = Place::sharing()?;
    let chosen = |by: &str| stream(&start(asked, &place, 2, &format!("select = \"{by}\""), None)?, towards);
    let (shared, disjoint) = (chosen("latency")?, chosen("sharability")?);
    let usable = portals_payload(3) / MTU * MBPS;
    Ok(Findings::named([
        ("shared_mbps", shared),
        ("shared_ratio", shared / usable),
        ("disjoint_mbps", disjoint),
        ("disjoint_ratio", disjoint / (2.0 * usable)),
        ("gain", disjoint / shared),
    ]))
}

fn start(
    asked: &Asked,
    Place { topology, ends }: &Place,
    paths: u8,
    link: &str,
    beside: Option<Direction>,
) -> Result<ScionBond, LabError> {
    let plan = ScionPlan { topology, ends: *ends, paths: paths.into(), link, beside, traffic: &asked.traffic };
    ScionBond::start(&asked.program, &plan)
}

/// What the receiver got after the warm-up, in Mbit/s.
fn stream(bond: &ScionBond, towards: Towards) -> Result<f64, LabError> {
    let got = bond.transfer(towards, CUT).run()?;
    Ok(got.mbps_between(got.start() + WARM, got.start() + CUT))
}
