//! One stream by an unshaped link: Hawser and wireguard-go, one after the other.
//!
//! The order changes from run to run, so that what the machine does beside falls on both.

use std::path::Path;
use std::time::Duration;

use hawser_wire::Moment;

use super::bench::{Bench, Figures};
use super::machine;
use crate::error::LabError;
use crate::portals::Portals;
use crate::process::Process;
use crate::topology::{Bond, Flow, LinkPlan, Over};
use crate::wireguard::WireGuard;

/// What of a stream's start is not counted.
const WARM_UP: Duration = Duration::from_secs(2);
/// What is counted.
const COUNTED: Duration = Duration::from_secs(8);
/// Bytes in a GB.
const GB: f64 = 1e9;

/// What one tunnel did. Plain data.
struct Cost {
    mbps: f64,
    /// Of both tunnel processes.
    cpu_s_per_gb: f64,
    /// Of the whole machine, hosts and links included.
    machine_s_per_gb: f64,
}

/// A run of each.
pub(super) fn pair(bench: &Bench, wireguard: &Path, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let hawser = || {
        let bond = Bond::new(&[LinkPlan::Plain])?;
        let portals = Portals::start(&bench.program, &bond, &bench.traffic)?;
        cost(&bond, portals.processes(), flow)
    };
    let other = || {
        let bond = Bond::new(&[LinkPlan::Plain])?;
        let tunnel = WireGuard::start(wireguard, &bond)?;
        cost(&bond, tunnel.processes(), flow)
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

/// A stream, and what it costs after the warm-up.
#[expect(clippy::cast_precision_loss, reason = "bytes of some seconds")]
fn cost(bond: &Bond, processes: [&Process; 2], flow: Flow) -> Result<Cost, LabError> {
    let work = || -> Result<[Duration; 2], LabError> {
        let mut own = Duration::ZERO;
        for process in processes {
            own += process.usage()?.cpu;
        }
        Ok([own, machine::busy()?])
    };
    let transfer = bond.transfer(flow, Over::Tunnel, WARM_UP + COUNTED + WARM_UP).start()?;
    let from = Moment::now() + WARM_UP;
    from.sleep_until();
    let (from, before) = (Moment::now(), work()?);
    (from + COUNTED).sleep_until();
    let (to, after) = (Moment::now(), work()?);
    transfer.stop();
    let got = transfer.finish()?;
    let gigabytes = got.bytes_between(from, to) as f64 / GB;
    let per_gb = |which: usize| (after[which] - before[which]).as_secs_f64() / gigabytes;
    Ok(Cost { mbps: got.mbps_between(from, to), cpu_s_per_gb: per_gb(0), machine_s_per_gb: per_gb(1) })
}
