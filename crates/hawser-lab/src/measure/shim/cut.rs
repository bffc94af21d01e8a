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

use super::super::cases::How;
use super::{Bound, Figures, Ground, Target, WARM, never, shaped, towards};
use crate::error::LabError;
use crate::measure::Bench;
use crate::shim::Place;
use crate::topology::Flow;

const PATHS: u8 = 4;
const CUT: Duration = Duration::from_secs(8);
/// When the link is brought back, and when the stream ends, where one is cut; and where all are. Source: issue 7, "Must show".
const ONE: [Duration; 2] = [Duration::from_secs(14), Duration::from_secs(20)];
const ALL: [Duration; 2] = [Duration::from_secs(18), Duration::from_secs(40)];
/// The stream is back at this share of before, over this long.
const BACK_SHARE: f64 = 0.5;
const BACK_OVER: Duration = Duration::from_secs(1);

/// Without a byte, after the cut and after the link is back.
const GAP_MS: f64 = 1000.0;
/// Source: issue 7, "Must show".
pub(super) const TARGETS: &[Target] = &[
    never("one of 4 up", "gap_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 up", "gap_back_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 down", "gap_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 down", "gap_back_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 silently up", "gap_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 silently up", "gap_back_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 silently down", "gap_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 silently down", "gap_back_ms", Bound::AtMost(GAP_MS)),
    never("one of 4 up", "survived", Bound::AtLeast(1.0)),
    never("one of 4 down", "survived", Bound::AtLeast(1.0)),
    never("all of 4 up", "survived", Bound::AtLeast(1.0)),
    never("all of 4 down", "survived", Bound::AtLeast(1.0)),
];

pub(super) fn run(bench: &Bench, flow: Flow) -> Result<Vec<(String, Figures)>, LabError> {
    let named = |what: &str| format!("{what} {}", flow.name());
    Ok(vec![
        (named("one of 4"), cut(bench, flow, 1, How::Down, ONE)?),
        (named("one of 4 silently"), cut(bench, flow, 1, How::Silent, ONE)?),
        (named("all of 4"), cut(bench, flow, PATHS, How::Down, ALL)?),
    ])
}

/// Cuts this many links at once, and brings them back together.
fn cut(bench: &Bench, flow: Flow, links: u8, how: How, [back, end]: [Duration; 2]) -> Result<Figures, LabError> {
    let ground = Ground::start(bench, &Place::parallel(PATHS, Some(&shaped()))?, PATHS, Criterion::Sharability)?;
    let flows = ground.pair.flows(towards(flow), 1).connect()?;
    ground.pair.wait_flows(usize::from(PATHS))?;
    let start = Moment::now();
    let running = flows.start(start, end)?;
    (start + CUT).sleep_until();
    let chosen = &ground.net.links()[..usize::from(links)];
    let cut = Moment::now();
    chosen.iter().try_for_each(|link| if how == How::Down { link.cut() } else { link.black_hole(true) })?;
    (start + back).sleep_until();
    let restored = Moment::now();
    chosen.iter().try_for_each(|link| if how == How::Down { link.restore() } else { link.black_hole(false) })?;
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
        ("back_s", recovered.map_or(f64::INFINITY, |time| time.as_secs_f64())),
        ("survived", f64::from(u8::from(survived))),
    ]))
}
