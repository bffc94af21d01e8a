//! Coupled controllers at a bottleneck that two links share, beside plain TCP streams.
//!
//! 1. Two links lead through one bottleneck; so do TCP streams without a tunnel, with the kernel's Reno.
//! 2. Streams of CUBIC through the tunnel keep its queue filled: what the bond takes, its controllers take.
//! 3. All run at the same time. After the warm-up the bond's goodput is held against that of one plain stream, each
//!    against what it could get at best. One run for each controller, LIA, OLIA, BALIA, and NewReno uncoupled.

use std::time::Duration;

use hawser_wire::traffic::{Congestion, TcpStreams};
use hawser_wire::{Direction, Moment};

use super::bench::{Bench, Figures};
use super::usable;
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Flow, Over};

/// Source: issue 4, "Must show": rate in Mbit/s, round trip; a queue of one bandwidth-delay product and a half.
const MBPS: f64 = 20.0;
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(60);
/// Links that share it.
const LINKS: u8 = 2;
/// Streams beside the bond.
const PLAIN: usize = 2;
/// Streams in the tunnel.
const INNER: usize = 4;
/// The share of a run that is not counted: slow start, and the way from there to fair shares.
const WARM_UP: f64 = 1.0 / 6.0;
/// What is judged, as `[traffic]` calls it.
const CONTROLLERS: [&str; 4] = ["lia", "olia", "balia", "newreno"];

/// A run of each controller.
pub(super) fn judge(bench: &Bench, flow: Flow, run: u32) -> Result<Vec<(String, Figures)>, LabError> {
    let one = |name: &str| Ok((name.to_owned(), beside(bench, name, flow, run)?));
    CONTROLLERS.into_iter().map(one).collect()
}

fn beside(bench: &Bench, controller: &str, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let way = |seed| Direction { seed, ..Direction::shaped(MBPS, DELAY, QUEUE) };
    let seed = u64::from(run) * 1000;
    let bond = Bond::sharing(LINKS, &way(seed), &way(seed + 1))?;
    let traffic = format!("congestion = \"{controller}\"\n{}", bench.traffic);
    let _portals = Portals::start(&bench.program, &bond, &traffic)?;
    let transfer = |over| bond.transfer(flow, over, bench.duration);
    let mut each = transfer(Over::LinkOne);
    each.congestion = Congestion::Reno;
    let plain = TcpStreams { each, count: PLAIN }.start()?;
    let inner = TcpStreams { each: transfer(Over::Tunnel), count: INNER }.start()?;
    let start = Moment::now();
    let (plain, inner) = (plain.finish()?, inner.finish()?);
    let (from, to) = (start + bench.duration.mul_f64(WARM_UP), start + bench.duration);
    #[expect(clippy::cast_precision_loss, reason = "a few streams")]
    let plain = plain.timeline.mbps_between(from, to) / PLAIN as f64;
    let inner = inner.timeline.mbps_between(from, to);
    let plain_usable = MBPS * (usable::MTU - usable::INNER_HEADERS) / usable::MTU;
    let (bond_share, stream_share) = (inner / usable::usable_mbps(MBPS), plain / plain_usable);
    Ok(Figures::from([
        ("bond_mbps", inner),
        ("stream_mbps", plain),
        ("streams", bond_share / stream_share),
        ("filled", bond_share + stream_share * PLAIN as f64),
    ]))
}
