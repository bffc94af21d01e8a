//! Processor time that something costs: of the processes of a tunnel, and of the whole machine.
//!
//! Both, because the kernel's share of forwarding (softirqs, the hosts' TCP) shows in the second alone. What processes that take no
//! part do on the machine meanwhile is taken off, and told.

use std::time::Duration;

use hawser_wire::Moment;

use super::{machine, others};
use crate::error::LabError;
use crate::process::Process;
use crate::topology::{Bond, Flow, Over};

/// Bytes in a GB.
pub(super) const GB: f64 = 1e9;

/// Processor time. Zero is none; plain data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Of the tunnel's processes.
    pub own: Duration,
    /// Of the whole machine, hosts and links included.
    pub machine: Duration,
    /// Of processes that take no part; not in `machine` after [`Spent::since`].
    pub others: Duration,
}

impl Spent {
    /// Since the processes started and the machine booted.
    pub(super) fn so_far(processes: &[&Process]) -> Result<Self, LabError> {
        let mut own = Duration::ZERO;
        for process in processes {
            own += process.usage()?.cpu;
        }
        let ids: Vec<u32> = processes.iter().map(|process| process.id()).collect();
        Ok(Self { own, machine: machine::busy()?, others: others::so_far(&ids)? })
    }

    /// Since an earlier look.
    pub(super) fn since(self, earlier: Self) -> Self {
        let others = self.others.saturating_sub(earlier.others);
        let machine = self.machine.saturating_sub(earlier.machine).saturating_sub(others);
        Self { own: self.own.saturating_sub(earlier.own), machine, others }
    }
}

/// What a stream did. Plain data.
pub(super) struct Streamed {
    pub mbps: f64,
    pub cpu_s_per_gb: f64,
    pub machine_s_per_gb: f64,
    /// How many processors others kept busy meanwhile: where it is not near zero, nothing else is exact.
    pub others: f64,
}

/// A stream, and what it costs between the end of the warm-up and that of what is counted.
#[expect(clippy::cast_precision_loss, reason = "bytes of some seconds")]
pub(super) fn stream(
    bond: &Bond,
    processes: &[&Process],
    flow: Flow,
    warm_up: Duration,
    counted: Duration,
) -> Result<Streamed, LabError> {
    let transfer = bond.transfer(flow, Over::Tunnel, warm_up + counted + warm_up).start()?;
    (Moment::now() + warm_up).sleep_until();
    let (from, before) = (Moment::now(), Spent::so_far(processes)?);
    (from + counted).sleep_until();
    let (to, spent) = (Moment::now(), Spent::so_far(processes)?.since(before));
    transfer.stop();
    let got = transfer.finish()?;
    let gigabytes = got.bytes_between(from, to) as f64 / GB;
    Ok(Streamed {
        mbps: got.mbps_between(from, to),
        cpu_s_per_gb: spent.own.as_secs_f64() / gigabytes,
        machine_s_per_gb: spent.machine.as_secs_f64() / gigabytes,
        others: spent.others.as_secs_f64() / (to - from).as_secs_f64(),
    })
}
