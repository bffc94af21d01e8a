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

use super::{Asked, Figures, Ground, WARM, shaped, towards};
use crate::error::LabError;
use crate::shim::Place;
use crate::topology::Flow;

const PATHS: u8 = 4;
const CUT: Duration = Duration::from_secs(8);
/// When the link is brought back, and when the stream ends, where one is cut; and where all are.
const ONE: [Duration; 2] = [Duration::from_secs(14), Duration::from_secs(20)];
const ALL: [Duration; 2] = [Duration::from_secs(18), Duration::from_secs(40)];
/// The stream is back at this share of before, over this long.
const BACK_SHARE: f64 = 0.5;
const BACK_OVER: Duration = Duration::from_secs(1);

/// Which links are cut, and how. Plain data.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum What {
    /// One is taken down.
    One,
    /// One loses every packet.
    Silently,
    /// All are taken down.
    All,
}

pub(in super::super) fn run(asked: &Asked, what: What, flow: Flow) -> Result<Figures, LabError> {
    match what {
        What::One => cut(asked, flow, 1, false, ONE),
        What::Silently => cut(asked, flow, 1, true, ONE),
        What::All => cut(asked, flow, PATHS, false, ALL),
    }
}

/// Cuts this many links at once, and brings them back together.
fn cut(asked: &Asked, flow: Flow, links: u8, is_silent: bool, [back, end]: [Duration; 2]) -> Result<Figures, LabError> {
    let ground = Ground::start(asked, &Place::parallel(PATHS, Some(&shaped()))?, PATHS, Criterion::Sharability)?;
    let flows = ground.pair.flows(towards(flow), 1).connect()?;
    ground.pair.wait_flows(usize::from(PATHS))?;
    let start = Moment::now();
    let running = flows.start(start, end)?;
    (start + CUT).sleep_until();
    let chosen = &ground.net.links()[..usize::from(links)];
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
        ("survived", f64::from(u8::from(survived))),
    ]))
}
