//! One stream and a ping over a link of metric 0, beside one of metric 1 that takes over while the first is gone.
//!
//! ```text
//!  0 ───── warm ───── 5 s cut ───── 9 s back ───── 16 s
//!        └ 3 s ┘          └ taken over       └ 3 s ┘
//!        spare idle                          spare idle
//! ```

use std::time::Duration;

use hawser_wire::{Moment, Way};

use super::bench::{Bench, Figures, Running};
use super::cases::{Bound, Case, How, Probe, always, line};
use super::cut::change;
use crate::error::LabError;
use crate::topology::{Flow, Over};

/// When the first link is cut, comes back, and all ends, from the start.
const CUT: Duration = Duration::from_secs(5);
const BACK: Duration = Duration::from_secs(9);
const END: Duration = Duration::from_secs(16);
/// The spare link is watched for this long, before the cut and before the end. The MTU search is over by then.
const WATCHED: Duration = Duration::from_secs(3);
/// 100 a second, as beside other cuts.
const PING_INTERVAL: Duration = Duration::from_millis(10);
/// A probe from either side each second, and its acknowledgement: this many packets a second each way. Watched for three
/// seconds they may be one more.
const PROBES: f64 = 2.0 + 2.0 / 3.0;
/// No inner packet is as small with its headers: a probe or an acknowledgement has less, in bytes.
const SMALL: f64 = 80.0;

const TARGETS: &[super::cases::Target] = &[
    always("spare_packets_per_s", Bound::AtMost(PROBES)),
    always("spare_packet_bytes", Bound::AtMost(SMALL)),
    always("takeover_ms", Bound::AtMost(300.0)),
    always("handback_lost", Bound::AtMost(0.0)),
    always("again_packets_per_s", Bound::AtMost(PROBES)),
    always("again_packet_bytes", Bound::AtMost(SMALL)),
];

const LINES: [super::cases::Line; 2] = [line(50.0, 10), line(20.0, 20)];
const BOTH: &[Flow] = &[Flow::Up, Flow::Down];

/// Silence, which has to be noticed.
pub(super) const SILENT: Case = Case {
    name: "tiers",
    about: "50 Mbit/s metric 0, 20 Mbit/s metric 1; the first black-holed and back",
    lines: &LINES,
    beside: &[],
    flows: BOTH,
    probe: Probe::Tiers(How::Silent),
    targets: TARGETS,
};

/// Word from the kernel.
pub(super) const DOWN: Case = Case {
    name: "tiers-down",
    about: "50 Mbit/s metric 0, 20 Mbit/s metric 1; the first set down and up again",
    probe: Probe::Tiers(How::Down),
    ..SILENT
};

/// Starts it, and cuts the first link.
pub(super) fn tiers(bench: &Bench, how: How, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let running = bench.start_with(&LINES, run, "", &|index| format!("metric = {index}\n"))?;
    let bond = &running.bond;
    let transfer = bond.transfer(flow, Over::Tunnel, END).start()?;
    let ping = bond.ping(PING_INTERVAL, END).start()?;
    let start = Moment::now();
    let before = watch(&running, start + CUT);
    let cut = Moment::now();
    change(bond, how, 0, true)?;
    (start + BACK).sleep_until();
    let back = Moment::now();
    change(bond, how, 0, false)?;
    let after = watch(&running, start + (END - WATCHED / 6));
    let (got, pings) = (transfer.finish()?, ping.finish()?);
    let lost = pings.lost_between(back, start + END);
    Ok(Figures::from([
        ("spare_packets_per_s", before.0),
        ("spare_packet_bytes", before.1),
        ("takeover_ms", got.longest_gap(cut, back).as_secs_f64() * 1e3),
        ("spare_mbps", got.mbps_between(back - Duration::from_secs(1), back)),
        ("handback_ms", got.longest_gap(back, start + END).as_secs_f64() * 1e3),
        ("handback_lost", f64::from(u32::try_from(lost).unwrap_or(u32::MAX))),
        ("again_packets_per_s", after.0),
        ("again_packet_bytes", after.1),
    ]))
}

/// Packets a second on the spare link in the time before `end`, the busier way, and the bytes of one in the mean.
#[expect(clippy::cast_precision_loss, reason = "packets and bytes of seconds")]
fn watch(running: &Running, end: Moment) -> (f64, f64) {
    let spare = &running.bond.links()[1];
    let counted = || Way::BOTH.map(|way| spare.counters(way));
    (end - WATCHED).sleep_until();
    let before = counted();
    end.sleep_until();
    let after = counted();
    let ways = before.iter().zip(&after).map(|(before, after)| {
        let packets = (after.packets_in - before.packets_in) as f64;
        let bytes = (after.bytes_in - before.bytes_in) as f64;
        (packets / WATCHED.as_secs_f64(), bytes / packets.max(1.0))
    });
    ways.fold((0.0, 0.0), |most: (f64, f64), way| (most.0.max(way.0), most.1.max(way.1)))
}
