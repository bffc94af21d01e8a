//! Bonds over SCION paths, in networks of the reference implementation's routers.
//!
//! 1. [`several`]: two core ASes with as many shaped links as the portals use paths; one stream, then a link is cut and
//!    brought back.
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
use super::{Asked, Figures, LabError, MBPS, WARM, shaped};
use crate::localnet::Topology;
use crate::scion_bond::{ScionBond, ScionPlan};

/// Where the stream is looked at, from its start.
const CUT: Duration = Duration::from_secs(13);
const BACK: Duration = Duration::from_secs(17);
const END: Duration = Duration::from_secs(22);
/// The rate before the cut is taken over this long; so is that of a stream that recovered.
const BEFORE: Duration = Duration::from_secs(2);
const RECOVERED_OVER: Duration = Duration::from_secs(1);
/// The stream has recovered at this share of before.
const RECOVERED_SHARE: f64 = 0.95;

const ENDS: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
/// Three paths from 110 to 120: two by 130, where the second link is the same, and a slower one by 140.
const SHARING: &str = include_str!("../../topologies/sharing.toml");

/// Step 1.
pub(super) fn several(asked: &Asked, paths: u8, towards: Towards) -> Result<Figures, LabError> {
    let bond = start(asked, &two_cores(paths)?, usize::from(paths), "", None)?;
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
    Ok(Figures::from([
        ("goodput_mbps", mbps),
        ("usable_mbps", usable),
        ("ratio", mbps / usable),
        ("gap_ms", got.longest_gap(cut, start + END).as_secs_f64() * 1e3),
        ("back_s", recovered.unwrap_or(END - BACK).as_secs_f64()),
    ]))
}

/// Step 2.
pub(super) fn mixed(asked: &Asked, towards: Towards) -> Result<Figures, LabError> {
    let bond = start(asked, &two_cores(2)?, 2, "", Some(shaped()))?;
    let mbps = stream(&bond, towards)?;
    // Packets are as large as the SCION paths carry, by the plain link too.
    let payload = portals_payload(2);
    let plain = payload / (payload + INNER_HEADERS + SEALED + OUTER);
    let usable = (2.0 * payload / MTU + plain) * MBPS;
    Ok(Figures::from([("goodput_mbps", mbps), ("usable_mbps", usable), ("ratio", mbps / usable)]))
}

/// Step 3.
pub(super) fn sharability(asked: &Asked, towards: Towards) -> Result<Figures, LabError> {
    let topology = Topology::parse(SHARING, "sharing.toml", None, None)?;
    let chosen = |by: &str| stream(&start(asked, &topology, 2, &format!("select = \"{by}\""), None)?, towards);
    let (shared, disjoint) = (chosen("latency")?, chosen("sharability")?);
    let usable = portals_payload(3) / MTU * MBPS;
    Ok(Figures::from([
        ("shared_mbps", shared),
        ("shared_ratio", shared / usable),
        ("disjoint_mbps", disjoint),
        ("disjoint_ratio", disjoint / (2.0 * usable)),
        ("gain", disjoint / shared),
    ]))
}

fn start(
    asked: &Asked,
    topology: &Topology,
    paths: usize,
    link: &str,
    beside: Option<Direction>,
) -> Result<ScionBond, LabError> {
    let plan = ScionPlan { topology, ends: ENDS, paths, link, beside, traffic: &asked.traffic };
    ScionBond::start(&asked.program, &plan)
}

/// What the receiver got after the warm-up, in Mbit/s.
fn stream(bond: &ScionBond, towards: Towards) -> Result<f64, LabError> {
    let got = bond.transfer(towards, CUT).run()?;
    Ok(got.mbps_between(got.start() + WARM, got.start() + CUT))
}

fn two_cores(links: u8) -> Result<Topology, LabError> {
    let mut topology = Topology::named("two-cores", Some(links))?;
    topology.shape(&shaped());
    Ok(topology)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topology_that_shares_a_link_is_right() {
        let topology = Topology::parse(SHARING, "sharing.toml", None, None).expect("no fault");
        assert_eq!((topology.ases.len(), topology.links.len()), (4, 5));
    }
}
