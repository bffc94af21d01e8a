//! Connections opened and closed: no state may be left, and memory must stay flat.
//!
//! 1. A few seconds before anything counts: what is made once is made then.
//! 2. 500 a second for 30 s, and memory of both shims before and after.
//! 3. Both shims are asked until they have no connection any more.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use hawser_scion::select::Criterion;

use super::{Asked, Figures, Ground, LabError};
use crate::probe::MEBIBYTE;
use crate::shim::{Churn, Place, Shim};

/// Connections, and for how long.
const PER_SECOND: u32 = 500;
const DURATION: Duration = Duration::from_secs(30);
const FIRST: Duration = Duration::from_secs(6);
/// The server's port.
const PORT: u16 = 5001;
/// Paths between the hosts: each connection has a subflow, too.
const PATHS: u8 = 2;
/// How long ended flows may be remembered: 2 s (crates/hawser-shim/README.md, "Flows"), and the kernel's own end of
/// MPTCP connections.
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(200);

pub(in super::super) fn run(asked: &Asked) -> Result<Figures, LabError> {
    let ground = Ground::start(asked, &Place::parallel(PATHS, None)?, PATHS, Criterion::Sharability, "")?;
    let shims = [&ground.pair.client, &ground.pair.server];
    let churn = |duration| Churn {
        client: shims[0].namespace().clone(),
        server: shims[1].namespace().clone(),
        address: SocketAddr::new(shims[1].address().into(), PORT),
        per_second: PER_SECOND,
        duration,
    };
    churn(FIRST).run()?;
    let resident = || Ok::<_, LabError>([shims[0].process.usage()?.resident, shims[1].process.usage()?.resident]);
    let before = resident()?;
    let churned = churn(DURATION).run()?;
    let after = resident()?;
    if let Some(reason) = &churned.reason {
        tracing::warn!(failed = churned.failed, reason, "connections failed");
    }
    let ended = Instant::now();
    let of = |shim: &Shim| shim.status().map_or(usize::MAX, |status| status.connections.len());
    let left = || shims.map(of).into_iter().fold(0, usize::saturating_add);
    while left() > 0 && ended.elapsed() < PATIENCE {
        thread::sleep(GLANCE);
    }
    let gone_s = ended.elapsed().as_secs_f64();
    let grown = |index: usize| after[index].saturating_sub(before[index]) as f64 / MEBIBYTE;
    Ok(Figures::from([
        ("opened_per_s", churned.done as f64 / churned.seconds),
        ("failed", churned.failed as f64),
        ("left", left() as f64),
        ("gone_s", gone_s),
        ("grown_mib", grown(0).max(grown(1))),
        ("client_mib", after[0] as f64 / MEBIBYTE),
        ("server_mib", after[1] as f64 / MEBIBYTE),
    ]))
}
