//! One stream by an unshaped link: Hawser and wireguard-go, one after the other.
//!
//! The order changes from run to run, so that what the machine does beside falls on both.

use std::path::Path;
use std::time::Duration;

use super::bench::{Bench, Figures};
use super::cost;
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Flow, LinkPlan};
use crate::wireguard::WireGuard;

/// What of a stream's start is not counted.
const WARM_UP: Duration = Duration::from_secs(2);
/// What is counted.
const COUNTED: Duration = Duration::from_secs(8);

/// A run of each.
pub(super) fn pair(bench: &Bench, wireguard: &Path, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let hawser = || {
        let bond = Bond::new(&[LinkPlan::Plain])?;
        let portals = Portals::start(&bench.program, &bond, &bench.traffic)?;
        cost::stream(&bond, &portals.processes(), flow, WARM_UP, COUNTED)
    };
    let other = || {
        let bond = Bond::new(&[LinkPlan::Plain])?;
        let tunnel = WireGuard::start(wireguard, &bond)?;
        cost::stream(&bond, &tunnel.processes(), flow, WARM_UP, COUNTED)
    };
    let (hawser, other) = if run.is_multiple_of(2) {
        let hawser = hawser()?;
        (hawser, other()?)
    } else {
        let other = other()?;
        (hawser()?, other)
    };
    Ok(Figures::from([
        ("mbps", hawser.mbps),
        ("wireguard_mbps", other.mbps),
        ("ratio", hawser.mbps / other.mbps),
        ("cpu_s_per_gb", hawser.cpu_s_per_gb),
        ("wireguard_cpu_s_per_gb", other.cpu_s_per_gb),
        ("cpu_ratio", hawser.cpu_s_per_gb / other.cpu_s_per_gb),
        ("machine_s_per_gb", hawser.machine_s_per_gb),
        ("wireguard_machine_s_per_gb", other.machine_s_per_gb),
    ]))
}
