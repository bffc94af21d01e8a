//! A stream by several paths.
//!
//! 1. Four disjoint paths: it must have most of their sum.
//! 2. Of three paths two share a link and are the faster ones. Two are chosen by latency: together they carry what one
//!    does, and the status says that they share. Two are chosen by what they share: they carry twice as much.
//! 3. Paths of four are cut under it, and brought back together. One is cut twice: taken down, which the routers tell,
//!    and so that packets vanish on it, which nobody tells at once.
//!
//! ```text
//!  one   0 ── warm ── 3 s ── counted ── 8 s cut ── 14 s back ── 20 s
//!  all   0 ── warm ── 3 s ── counted ── 8 s cut ── 18 s back ── 40 s
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_shim::status::ConnectionStatus;
use hawser_wire::Moment;
use hawser_wire::traffic::Towards;

use super::{Asked, Findings, Ground, LabError};
use crate::probe::usable::shim_share;
use crate::probe::{MBPS, WARM, shaped};
use crate::shim::{Carried, Place};

const PATHS: u8 = 4;
/// How long a stream lasts that nothing is cut under.
const END: Duration = Duration::from_secs(15);
const CUT: Duration = Duration::from_secs(8);
/// The stream is back at this share of before, over this long.
const BACK_SHARE: f64 = 0.5;
const BACK_OVER: Duration = Duration::from_secs(1);

/// Step 1.
pub(crate) fn disjoint(asked: &Asked, towards: Towards) -> Result<Findings, LabError> {
    let place = Place::parallel(PATHS, Some(&shaped()))?;
    let (mbps, connection) = stream(asked, &place, PATHS, Criterion::Sharability, towards)?;
    let paths: BTreeSet<_> = connection.flows.iter().filter_map(|flow| Some(&flow.path.as_ref()?.hops)).collect();
    let usable = f64::from(PATHS) * MBPS * shim_share(1, 2, Carried::Udp);
    Ok(Findings::named([
        ("goodput_mbps", mbps),
        ("usable_mbps", usable),
        ("ratio", mbps / usable),
        ("different_paths", paths.len() as f64),
    ]))
}

/// Step 2.
pub(crate) fn sharing(asked: &Asked, towards: Towards) -> Result<Findings, LabError> {
    let place = Place::sharing()?;
    let (shared, by_latency) = stream(asked, &place, 2, Criterion::Latency, towards)?;
    let (disjoint, by_sharability) = stream(asked, &place, 2, Criterion::Sharability, towards)?;
    let usable = MBPS * shim_share(1, 3, Carried::Udp);
    Ok(Findings::named([
        ("shared_mbps", shared),
        ("shared_ratio", shared / usable),
        ("shared_told", by_latency.sharability as f64),
        ("disjoint_mbps", disjoint),
        ("disjoint_ratio", disjoint / (2.0 * usable)),
        ("disjoint_told", by_sharability.sharability as f64),
        ("gain", disjoint / shared),
    ]))
}

/// One stream with a flow for each egress: what it got in Mbit/s, and its connection.
fn stream(
    asked: &Asked,
    place: &Place,
    egress: u8,
    select: Criterion,
    towards: Towards,
) -> Result<(f64, ConnectionStatus), LabError> {
    let ground = Ground::start(asked, place, egress, select, "")?;
    let (connection, start, running) = ground.stream(towards, egress, END)?;
    Ok((running.finish()?.all.mbps_between(start + WARM, start + END), connection))
}

/// Which links are cut, and how. Plain data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct What {
    links: u8,
    /// They lose every packet, and are not taken down.
    is_silent: bool,
    /// When they are brought back, and when the stream ends.
    back: Duration,
    end: Duration,
}

impl What {
    pub(crate) const ONE: Self =
        Self { links: 1, is_silent: false, back: Duration::from_secs(14), end: Duration::from_secs(20) };
    const SILENTLY: Self = Self { is_silent: true, ..Self::ONE };
    const ALL: Self = Self { links: PATHS, back: Duration::from_secs(18), end: Duration::from_secs(40), ..Self::ONE };
}

/// And what the option calls it.
pub(crate) const CUTS: [(&str, What); 3] = [("one", What::ONE), ("silently", What::SILENTLY), ("all", What::ALL)];

/// Step 3.
pub(crate) fn cut(asked: &Asked, what: What, towards: Towards) -> Result<Findings, LabError> {
    let What { links, is_silent, back, end } = what;
    let place = Place::parallel(PATHS, Some(&shaped()))?;
    let ground = Ground::start(asked, &place, PATHS, Criterion::Sharability, "")?;
    let (_, start, running) = ground.stream(towards, PATHS, end)?;
    (start + CUT).sleep_until();
    let chosen = &ground.net.links[..usize::from(links)];
    let cut = Moment::now();
    chosen.iter().try_for_each(|link| if is_silent { link.black_hole(true) } else { link.cut() })?;
    (start + back).sleep_until();
    let restored = Moment::now();
    chosen.iter().try_for_each(|link| if is_silent { link.black_hole(false) } else { link.restore() })?;
    let report = running.finish()?;
    let got = &report.all;
    let before = got.mbps_between(start + WARM, cut);
    let recovered = got.recovered_after(restored, before * BACK_SHARE, BACK_OVER);
    let is_broken = report.flows.iter().any(|flow| flow.broken.is_some());
    let survived = !is_broken && recovered.is_some();
    Ok(Findings::named([
        ("before_mbps", before),
        ("during_mbps", got.mbps_between(cut, restored)),
        ("gap_ms", got.longest_gap(cut, restored).as_secs_f64() * 1e3),
        ("gap_back_ms", got.longest_gap(restored, start + end).as_secs_f64() * 1e3),
        ("back_s", recovered.unwrap_or(end - back).as_secs_f64()),
        ("survived", f64::from(survived)),
    ]))
}
