//! A thin real-time flow over one link that loses, nothing sent again: with repairs, and what that costs beside the
//! same flow without.

use super::bench::{Bench, Figures};
use super::cases::{Bound, Case, Probe, target};
use super::thin::{self, BOTH, LOSSY};
use crate::error::LabError;
use crate::topology::Flow;

const PLAIN: &str = "[[rule]]\nprotocol = \"udp\"\nresend = false\n";
const REPAIRED: &str = "[[rule]]\nprotocol = \"udp\"\nresend = false\nfec = \"auto\"\n";
/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;

pub(super) const FEC: Case = Case {
    name: "fec",
    about: "20 Mbit/s, losing 5 %; 200 packets a second with repairs, none sent again, and the same without",
    lines: &[LOSSY],
    beside: &[],
    flows: BOTH,
    probe: Probe::Fec,
    // Lost, or repaired after more than 60 ms. Source: issue 4, "Must show".
    targets: &[
        target("useless_percent", Bound::AtMost(0.5)),
        target("extra_percent", Bound::AtMost(30.0)),
        target("duplicates", Bound::AtMost(0.0)),
    ],
};

/// The flow under both rules, one after the other on links with the same chance.
pub(super) fn fec(bench: &Bench, case: &Case, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let plain = thin::thin(bench, case, PLAIN, flow, run)?;
    let mut figures = thin::thin(bench, case, REPAIRED, flow, run)?;
    let bytes = figures["wire_bytes_per_inner"] / plain["wire_bytes_per_inner"];
    let useless = figures["lost_percent"] + figures["late_percent"];
    figures.extend([
        ("useless_percent", useless),
        ("extra_percent", (bytes - 1.0) * PER_CENT),
        ("plain_lost_percent", plain["lost_percent"]),
        ("plain_late_percent", plain["late_percent"]),
    ]);
    Ok(figures)
}
