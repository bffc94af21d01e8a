//! Coupled controllers at a bottleneck that two links share, beside plain TCP streams.
//!
//! 1. Two links lead through one bottleneck; so do TCP streams without a tunnel, with the kernel's Reno. Its queue
//!    drops at random when it is full: at a drop-tail queue the kernel's streams, which are not paced, lose several
//!    times as much as ours, and more on a busy machine, so that it would be pacing that is compared.
//! 2. Streams of CUBIC through the tunnel keep its queue filled: what the bond takes, its controllers take.
//! 3. All run at the same time. After the warm-up the bond's goodput is held against that of one plain stream, each
//!    against what it could get at best.

use std::time::Duration;

use hawser_wire::traffic::{Congestion, TcpStreams, Towards};
use hawser_wire::{Direction, Moment};

use super::{Asked, Findings, LabError, usable};
use crate::portals::Portals;
use crate::topology::{Bond, Over};

/// Rate in Mbit/s, round trip; a queue of one bandwidth-delay product and a half.
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

/// A run, with the controller that the contender says.
pub(super) fn beside(asked: &Asked, towards: Towards) -> Result<Findings, LabError> {
    let way = |seed| Direction { seed, random_drop: true, ..Direction::shaped(MBPS, DELAY, QUEUE) };
    let seed = asked.seed();
    let bond = Bond::sharing(LINKS, &way(seed), &way(seed + 1))?;
    let _portals = Portals::start(&asked.program, &bond, &asked.traffic)?;
    let transfer = |over| bond.transfer(towards, over, asked.duration);
    let mut each = transfer(Over::LinkOne);
    each.congestion = Congestion::Reno;
    let plain = TcpStreams { each, count: PLAIN }.start()?;
    let inner = TcpStreams { each: transfer(Over::Tunnel), count: INNER }.start()?;
    let start = Moment::now();
    let (plain, inner) = (plain.finish()?, inner.finish()?);
    let (from, to) = (start + asked.duration.mul_f64(WARM_UP), start + asked.duration);
    let plain = plain.timeline.mbps_between(from, to) / PLAIN as f64;
    let inner = inner.timeline.mbps_between(from, to);
    let plain_usable = MBPS * (usable::MTU - usable::INNER_HEADERS) / usable::MTU;
    let (bond_share, stream_share) = (inner / usable::usable_mbps(MBPS), plain / plain_usable);
    Ok(Findings::named([
        ("goodput_mbps", inner),
        ("stream_mbps", plain),
        ("streams", bond_share / stream_share),
        ("filled", bond_share + stream_share * PLAIN as f64),
    ]))
}
