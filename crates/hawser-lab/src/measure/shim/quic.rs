//! The same file through the shim and by quinn over the same path, in turns.
//!
//! 1. One path of 20 Mbit/s, and one as fast as the routers carry. 2. Eight paths of 10 Mbit/s, against quinn on one of them.

use hawser_scion::select::{Criterion, listed};
use hawser_wire::Direction;

use super::{Bound, DELAY, Figures, Ground, QUEUE, Target, labelled, shaped};
use crate::error::LabError;
use crate::measure::Bench;
use crate::scion_bench::network::paths;
use crate::shim::{Place, files};

/// Each of eight links, in Mbit/s.
const OF_EIGHT_MBPS: f64 = 10.0;
/// Files, in bytes: some ten seconds each, but a few where nothing is shaped.
const SHAPED_FILE: u64 = 25_000_000;
const FAST_FILE: u64 = 150_000_000;

/// The original reached a third. Source: issue 7, "Must show".
pub(super) const TARGETS: &[Target] = &[
    labelled("one path", "ratio", Bound::AtLeast(0.9)),
    labelled("one path unshaped", "ratio", Bound::AtLeast(0.9)),
    labelled("8 paths", "ratio", Bound::Above(1.0)),
];

pub(super) fn run(bench: &Bench, run: u32) -> Result<Vec<(String, Figures)>, LabError> {
    let eighth = Direction::shaped(OF_EIGHT_MBPS, DELAY, QUEUE);
    let parts = [
        ("one path", 1, Some(shaped()), SHAPED_FILE),
        ("one path unshaped", 1, None, FAST_FILE),
        ("8 paths", 8, Some(eighth), SHAPED_FILE),
    ];
    let part = |(label, links, way, bytes): (&str, u8, Option<Direction>, u64)| {
        Ok((label.to_owned(), pair(bench, links, way.as_ref(), bytes, run)?))
    };
    parts.into_iter().map(part).collect()
}

/// Who is first changes with each run.
fn pair(bench: &Bench, links: u8, way: Option<&Direction>, bytes: u64, run: u32) -> Result<Figures, LabError> {
    let ground = Ground::start(bench, &Place::parallel(links, way)?, links, Criterion::Length)?;
    let [client, server] = [&ground.pair.client, &ground.pair.server].map(|shim| shim.host());
    let known = paths(client, server.isd_as)?;
    let best = listed(&known).first().map(|&index| &known[index]);
    let path = best.ok_or_else(|| LabError::NoFigure { figure: "quinn", reason: "there is no path".to_owned() })?;
    let quinn = || files::by_quinn(&bench.program, [client, server], path, bytes);
    let shim = || files::through_shims(&ground.pair, bytes);
    let (quinn, shim) = if run.is_multiple_of(2) {
        let first = quinn()?;
        (first, shim()?)
    } else {
        let first = shim()?;
        (quinn()?, first)
    };
    Ok(Figures::from([("shim_mbps", shim.mbps()), ("quinn_mbps", quinn.mbps()), ("ratio", shim.mbps() / quinn.mbps())]))
}
