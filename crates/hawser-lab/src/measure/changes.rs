//! One stream, while a link's rate halves, doubles again, and the link is lost and regained.
//!
//! ```text
//!  0 ── warm ── 6 s halves ── 12 s doubles ── 18 s lost ── 24 s regained ── 30 s
//!                   └ 3 s ┘└1 s┘  …
//! ```
//!
//! After each change the goodput of the fourth second is set against what the links can carry then.

use std::time::Duration;

use hawser_wire::{Moment, Rate, Way};

use super::bench::{Figures, Running};
use super::cases::{Bound, Case, How, Line, Probe, Target, always, line};
use super::cut::change;
use super::usable::usable_mbps;
use crate::error::LabError;
use crate::topology::{Flow, Over};

/// From the start to the first change, and from each to the next.
const EACH: Duration = Duration::from_secs(6);
/// The stream has so much time. Source: issue 4, "Must show".
const BY: Duration = Duration::from_secs(3);
/// And is then looked at for this long.
const OVER: Duration = Duration::from_secs(1);

/// Rates of the link that changes, and of the other, in Mbit/s.
const WHOLE: f64 = 50.0;
const HALF: f64 = 25.0;
const OTHER: f64 = 50.0;

/// Within 10 %. Source: issue 4, "Must show".
const LEAST: Bound = Bound::AtLeast(0.9);
const MOST: Bound = Bound::AtMost(1.1);
const TARGETS: &[Target] = &[
    always("halved_ratio", LEAST),
    always("halved_ratio", MOST),
    always("doubled_ratio", LEAST),
    always("doubled_ratio", MOST),
    always("lost_ratio", LEAST),
    always("lost_ratio", MOST),
    always("regained_ratio", LEAST),
    always("regained_ratio", MOST),
];

const LINES: [Line; 2] = [line(WHOLE, 10), line(OTHER, 10)];
const BOTH: &[Flow] = &[Flow::Up, Flow::Down];

/// Silence, which has to be noticed.
pub(super) const SILENT: Case = Case {
    name: "changes",
    about: "50 + 50 Mbit/s; one halves, doubles, is black-holed and back",
    lines: &LINES,
    beside: &[],
    flows: BOTH,
    probe: Probe::Changes(How::Silent),
    targets: TARGETS,
};

/// Word from the kernel.
pub(super) const DOWN: Case = Case {
    name: "changes-down",
    about: "50 + 50 Mbit/s; one halves, doubles, is set down and up again",
    probe: Probe::Changes(How::Down),
    ..SILENT
};

/// Walks all changes of the first link.
pub(super) fn changes(running: &Running, how: How, flow: Flow) -> Result<Figures, LabError> {
    let bond = &running.bond;
    let set = |mbps: f64| -> Result<(), LabError> {
        let link = &bond.links()[0];
        for way in Way::BOTH {
            link.set(way, |direction| direction.rate = Some(Rate::mbit(mbps)))?;
        }
        Ok(())
    };
    let transfer = bond.transfer(flow, Over::Tunnel, EACH * 5).start()?;
    let start = Moment::now();
    let mut moments = Vec::new();
    let mut next = |number: u32| {
        (start + EACH * number).sleep_until();
        moments.push(Moment::now());
    };
    next(1);
    set(HALF)?;
    next(2);
    set(WHOLE)?;
    next(3);
    change(bond, how, 0, true)?;
    next(4);
    change(bond, how, 0, false)?;
    let got = transfer.finish()?;
    let ratio = |at: usize, mbps: f64| {
        let from = moments[at] + BY;
        got.mbps_between(from, from + OVER) / usable_mbps(mbps)
    };
    Ok(Figures::from([
        ("before_mbps", got.mbps_between(moments[0] - OVER, moments[0])),
        ("halved_ratio", ratio(0, HALF + OTHER)),
        ("doubled_ratio", ratio(1, WHOLE + OTHER)),
        ("lost_ratio", ratio(2, OTHER)),
        ("regained_ratio", ratio(3, WHOLE + OTHER)),
    ]))
}
