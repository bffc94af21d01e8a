//! Paths that are cut under a stream.
//!
//! ```text
//!  one   0 ── warm ── 3 s ── counted ── 8 s cut ── 14 s back ── 20 s
//!  all   0 ── warm ── 3 s ── counted ── 8 s cut ── 18 s back ── 40 s
//! ```
//!
//! One is cut twice: taken down, which the routers tell, and so that packets vanish on it, which nobody tells at once.

use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_wire::Moment;
use hawser_wire::traffic::Towards;

use super::{Asked, Figures, Ground, LabError};
use crate::probe::{WARM, shaped};
use crate::shim::Place;

const PATHS: u8 = 4;
const CUT: Duration = Duration::from_secs(8);
/// The stream is back at this share of before, over this long.
const BACK_SHARE: f64 = 0.5;
const BACK_OVER: Duration = Duration::from_secs(1);

/// Which links are cut, and how. Plain data.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct What {
    links: u8,
    /// They lose every packet, and are not taken down.
    is_silent: bool,
    /// When they are brought back, and when the stream ends.
    back: Duration,
    end: Duration,
}

impl What {
    pub(in super::super) const ONE: Self =
        Self { links: 1, is_silent: false, back: Duration::from_secs(14), end: Duration::from_secs(20) };
    const SILENTLY: Self = Self { is_silent: true, ..Self::ONE };
    const ALL: Self =
        Self { links: PATHS, is_silent: false, back: Duration::from_secs(18), end: Duration::from_secs(40) };
}

/// And what the option calls it.
pub(in super::super) const CUTS: [(&str, What); 3] =
    [("one", What::ONE), ("silently", What::SILENTLY), ("all", What::ALL)];

/// Cuts links at once, and brings them back together.
pub(in super::super) fn run(asked: &Asked, what: What, towards: Towards) -> Result<Figures, LabError> {
    let What { links, is_silent, back, end } = what;
    let place = Place::parallel(PATHS, Some(&shaped()))?;
    let ground = Ground::start(asked, &place, PATHS, Criterion::Sharability, "")?;
    let flows = ground.pair.flows(towards, 1).connect()?;
    ground.pair.wait_flows(usize::from(PATHS))?;
    let start = Moment::now();
    let running = flows.start(start, end)?;
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
    Ok(Figures::from([
        ("before_mbps", before),
        ("during_mbps", got.mbps_between(cut, restored)),
        ("gap_ms", got.longest_gap(cut, restored).as_secs_f64() * 1e3),
        ("gap_back_ms", got.longest_gap(restored, start + end).as_secs_f64() * 1e3),
        ("back_s", recovered.unwrap_or(end - back).as_secs_f64()),
        ("survived", f64::from(survived)),
    ]))
}
