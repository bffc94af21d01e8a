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

use hawser_wire::{Direction, Moment};

use super::usable::{INNER_HEADERS, MTU};
use super::{Asked, Figures};
use crate::error::LabError;
use crate::localnet::Topology;
use crate::scenario::FileError;
use crate::scion_bond::{ScionBond, ScionPlan};
use crate::topology::Flow;

/// Each link, in Mbit/s, one way and what waits before it at most.
const MBPS: f64 = 20.0;
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);
/// Where the stream is looked at, from its start.
const WARM: Duration = Duration::from_secs(3);
const CUT: Duration = Duration::from_secs(13);
const BACK: Duration = Duration::from_secs(17);
const END: Duration = Duration::from_secs(22);
/// The rate before the cut is taken over this long; so is that of a stream that recovered.
const BEFORE: Duration = Duration::from_secs(2);
const RECOVERED_OVER: Duration = Duration::from_secs(1);
/// The stream has recovered at this share of before.
const RECOVERED_SHARE: f64 = 0.95;
/// Common and address header with IPv4 hosts, in bytes. Source: draft-dekater-scion-dataplane.
const ADDRESSES: f64 = 36.0;
/// A path's meta field, a segment's info field, and a hop field, in bytes. Source: as above.
const META: f64 = 4.0;
const INFO: f64 = 8.0;
const HOP: f64 = 12.0;
/// UDP's header within SCION, and IPv4 and UDP outside. Sources: RFC 768, RFC 791.
const INNER_UDP: f64 = 8.0;
const OUTER: f64 = 28.0;
/// What Hawser adds to an inner packet, in bytes. Source: docs/wire.md.
const SEALED: f64 = 31.0;

const ENDS: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
/// Three paths from 110 to 120: two by 130, where the second link is the same, and a slower one by 140.
const SHARING: &str = include_str!("../../topologies/sharing.toml");

/// Step 1.
pub(super) fn several(asked: &Asked, paths: u8, flow: Flow) -> Result<Figures, LabError> {
    let bond = start(asked, &two_cores(paths)?, usize::from(paths), "", None)?;
    let transfer = bond.transfer(flow, END).start()?;
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
    let usable = f64::from(paths) * payload(2) / MTU * MBPS;
    Ok(Figures::from([
        ("goodput_mbps", mbps),
        ("usable_mbps", usable),
        ("ratio", mbps / usable),
        ("gap_ms", got.longest_gap(cut, start + END).as_secs_f64() * 1e3),
        ("back_s", recovered.unwrap_or(END - BACK).as_secs_f64()),
    ]))
}

/// Step 2.
pub(super) fn mixed(asked: &Asked, flow: Flow) -> Result<Figures, LabError> {
    let bond = start(asked, &two_cores(2)?, 2, "", Some(shaped()))?;
    let mbps = stream(&bond, flow)?;
    // Packets are as large as the SCION paths carry, by the plain link too.
    let plain = payload(2) / (payload(2) + INNER_HEADERS + SEALED + OUTER);
    let usable = (2.0 * payload(2) / MTU + plain) * MBPS;
    Ok(Figures::from([("goodput_mbps", mbps), ("usable_mbps", usable), ("ratio", mbps / usable)]))
}

/// Step 3.
pub(super) fn sharability(asked: &Asked, flow: Flow) -> Result<Figures, LabError> {
    let topology = Topology::parse(SHARING, "sharing.toml", None, None).map_err(told)?;
    let chosen = |by: &str| stream(&start(asked, &topology, 2, &format!("select = \"{by}\""), None)?, flow);
    let (shared, disjoint) = (chosen("latency")?, chosen("sharability")?);
    let usable = payload(3) / MTU * MBPS;
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
fn stream(bond: &ScionBond, flow: Flow) -> Result<f64, LabError> {
    let got = bond.transfer(flow, CUT).run()?;
    Ok(got.mbps_between(got.start() + WARM, got.start() + CUT))
}

fn two_cores(links: u8) -> Result<Topology, LabError> {
    let mut topology = Topology::named("two-cores", Some(links)).map_err(told)?;
    topology.shape(&shaped());
    Ok(topology)
}

fn shaped() -> Direction {
    Direction::shaped(MBPS, DELAY, QUEUE)
}

/// TCP payload of a packet that fills a path of one segment over this many ASes.
fn payload(ases: u8) -> f64 {
    let headers = ADDRESSES + META + INFO + HOP * f64::from(ases) + INNER_UDP;
    MTU - OUTER - headers - SEALED - INNER_HEADERS
}

fn told(error: FileError) -> LabError {
    LabError::Refused { action: "read a topology that comes along".to_owned(), said: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_carries_follows_from_its_headers() {
        // A datagram has 1392 bytes over two ASes (docs/scion.md), of which 31 are Hawser's and 52 TCP/IP's.
        assert!((payload(2) - 1309.0).abs() < 1e-9);
        assert!((payload(3) - 1297.0).abs() < 1e-9);
    }

    #[test]
    fn the_topology_that_shares_a_link_is_right() {
        let topology = Topology::parse(SHARING, "sharing.toml", None, None).expect("no fault");
        assert_eq!((topology.ases.len(), topology.links.len()), (4, 5));
    }
}
