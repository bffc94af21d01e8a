//! One stream and a ping, while a link is cut and brought back.
//!
//! ```text
//!  0 ───── warm ───── 5 s cut ───── 9 s back ───── 14 s
//!             └ 2 s ┘    └ gap ─────────────────────┘
//!             before                └ recovered? ───┘
//! ```

use std::time::Duration;

use hawser_wire::Moment;

use super::bench::{Figures, Running};
use super::cases::How;
use crate::error::LabError;
use crate::topology::{Bond, Flow, Over};

/// When the link is cut, comes back, and all ends, from the start.
const CUT: Duration = Duration::from_secs(5);
const BACK: Duration = Duration::from_secs(9);
const END: Duration = Duration::from_secs(14);
/// The rate before is taken over this long.
const BEFORE: Duration = Duration::from_secs(2);
/// 100 a second. Source: issue 2, "Must show".
const PING_INTERVAL: Duration = Duration::from_millis(10);
/// A ping that was on its way when the link went was sent this long before: a round trip and a full queue.
const ON_ITS_WAY: Duration = Duration::from_millis(120);
/// The stream has recovered at this share of before. Source: issue 2, "Must show".
const RECOVERED_SHARE: f64 = 0.95;
/// Within this long.
const RECOVERED_BY: Duration = Duration::from_secs(3);
/// Over this long.
const RECOVERED_OVER: Duration = Duration::from_secs(1);

/// Cuts a link, counted from 0.
pub(super) fn cut(running: &Running, how: How, index: usize, flow: Flow) -> Result<Figures, LabError> {
    let bond = &running.bond;
    let transfer = bond.transfer(flow, Over::Tunnel, END).start()?;
    let ping = bond.ping(PING_INTERVAL, END).start()?;
    let start = Moment::now();
    (start + CUT).sleep_until();
    let cut = Moment::now();
    change(bond, how, index, true)?;
    (start + BACK).sleep_until();
    let back = Moment::now();
    change(bond, how, index, false)?;
    let got = transfer.finish()?;
    let pings = ping.finish()?;
    let before = got.mbps_between(start + (CUT - BEFORE), cut);
    let recovered = got.recovered_after(back, before * RECOVERED_SHARE, RECOVERED_OVER);
    let lost = pings.lost_between(start + (CUT - ON_ITS_WAY), back);
    let late = back + RECOVERED_BY;
    Ok(Figures::from([
        ("before_mbps", before),
        ("at_3s_share", got.mbps_between(late, late + RECOVERED_OVER) / before),
        ("gap_ms", got.longest_gap(cut, start + END).as_secs_f64() * 1e3),
        // Never, where it did not.
        ("recovered_s", recovered.map_or(f64::INFINITY, |time| time.as_secs_f64())),
        ("ping_lost", f64::from(u32::try_from(lost).unwrap_or(u32::MAX))),
    ]))
}

/// Takes a link away, or gives it back.
pub(super) fn change(bond: &Bond, how: How, index: usize, gone: bool) -> Result<(), LabError> {
    match (how, gone) {
        (How::Down, true) => bond.set_down(index),
        (How::Down, false) => bond.set_up(index),
        (How::Silent, gone) => Ok(bond.links()[index].black_hole(gone)?),
    }
}
