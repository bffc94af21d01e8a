//! A thin real-time flow over links that lose, its losses not sent again: what its rule saves, and what that costs.

use std::time::Duration;

use hawser_wire::traffic::UdpFlow;
use hawser_wire::{Rate, Way};

use super::bench::{Bench, Figures};
use super::cases::{Bound, Case, Line, Probe, Target, line, target};
use crate::error::LabError;
use crate::topology::Flow;

/// Packets a second. Source: issue 4, "Must show".
const PACKETS: f64 = 200.0;
/// UDP payload of a packet in bytes: 5 ms of voice or a game's input, with its codec's headers.
const PAYLOAD: usize = 200;
/// IPv4 and UDP headers of the inner packet, in bytes. Sources: RFC 791, RFC 768.
const HEADERS: f64 = 28.0;
/// How long: 6,000 packets, of which half a per cent are 30.
const DURATION: Duration = Duration::from_secs(30);
/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;
/// Bits in a byte.
const BYTE_BITS: f64 = 8.0;

/// A packet that comes so much after the median one is of no use, in milliseconds. Source: issue 4, "Must show".
const LATE_MS: f64 = 60.0;

pub(super) const LOSSY: Line = Line { loss_percent: 5.0, ..line(20.0, 10) };
pub(super) const BOTH: &[Flow] = &[Flow::Up, Flow::Down];
/// Under half a per cent. Source: issue 4, "Must show".
const FEW_LOST: Target = target("lost_percent", Bound::AtMost(0.5));

/// Every packet twice.
pub(super) const REDUNDANT: Case = Case {
    name: "redundant",
    about: "20 + 20 Mbit/s, each losing 5 %; 200 packets a second on both, none sent again",
    lines: &[LOSSY; 2],
    beside: &[],
    flows: BOTH,
    probe: Probe::Thin("[[rule]]\nprotocol = \"udp\"\nscheduler = \"redundant\"\nresend = false\n"),
    targets: &[FEW_LOST, target("duplicates", Bound::AtMost(0.0))],
};

/// Sends the flow under a rule of both portals.
#[expect(clippy::cast_precision_loss, reason = "packets and bytes of one run")]
pub(super) fn thin(bench: &Bench, case: &Case, rule: &str, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let running = bench.start_with(case.lines, run, rule, &|_| String::new())?;
    let bond = &running.bond;
    let rate = Rate::mbit(PACKETS * (PAYLOAD as f64 + HEADERS) * BYTE_BITS / 1e6);
    let wire =
        || -> u64 { bond.links().iter().flat_map(|link| Way::BOTH.map(|way| link.counters(way).bytes_in)).sum() };
    let before = wire();
    let got = UdpFlow { payload: PAYLOAD, ..bond.datagrams(flow, rate, DURATION) }.run()?;
    let carried = wire() - before;
    let delays = got.delays();
    let inner = got.sent as f64 * got.packet_bytes as f64;
    let ms = |percentile| delays.percentile(percentile).unwrap_or(f64::INFINITY);
    let usual = delays.percentile(50.0).unwrap_or_default();
    let late =
        got.arrivals.iter().filter(|arrival| (arrival.received - arrival.sent).as_secs_f64() * 1e3 > usual + LATE_MS);
    let late = late.count();
    Ok(Figures::from([
        ("packets", got.sent as f64),
        ("lost_percent", got.lost() as f64 / got.sent.max(1) as f64 * PER_CENT),
        ("late_percent", late as f64 / got.sent.max(1) as f64 * PER_CENT),
        ("duplicates", got.duplicates() as f64),
        ("delay_ms", ms(50.0)),
        ("delay_p99_ms", ms(99.0)),
        ("delay_most_ms", delays.max().unwrap_or(f64::INFINITY)),
        // Both ways and all words of the portals, so comparable with another rule on the same links alone.
        ("wire_bytes_per_inner", carried as f64 / inner.max(1.0)),
    ]))
}
