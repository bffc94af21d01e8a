//! Many peers on one port: 1,000 configured, 200 sessions of one generator through one link.
//!
//! 1. A topology with one link of 400 Mbit/s, and a remote portal that knows 1,000 peers ([`hub`]).
//! 2. The [`generator`] runs 200 cores, each on a socket of its own, behind the link; each sends all that it can.
//! 3. Once all sessions are there and have settled, what each brings home is counted, as the hub tells it.

mod generator;
mod hub;

use std::thread;
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_wire::Direction;

use self::generator::Generator;
use self::hub::Hub;
use super::{Asked, Figures};
use crate::error::LabError;
use crate::portals::new_key;
use crate::topology::{Bond, LinkPlan};
use crate::wait::until;
use crate::workload::jain;

/// Peers that the remote portal knows, and those that send.
const CONFIGURED: usize = 1_000;
const ACTIVE: usize = 200;
const MBPS: f64 = 400.0;
/// One way, and what waits before the link at most: an Internet path's.
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(40);
/// All initiate at once from one address, of which 20 a second are answered under load (docs/wire.md): ten seconds, and
/// as much again for initiations that were lost.
const HANDSHAKES: Duration = Duration::from_secs(30);
/// Until the sessions that came last have found their share.
const SETTLE: Duration = Duration::from_secs(5);
/// How often the hub is asked meanwhile.
const GLANCE: Duration = Duration::from_millis(200);
/// Bytes of a mebibyte.
const MEBIBYTE: f64 = 1_048_576.0;

/// Steps 1 to 3.
#[expect(clippy::cast_precision_loss, reason = "bytes of one run")]
pub(super) fn share(asked: &Asked) -> Result<Figures, LabError> {
    let seed = asked.seed();
    let plan = LinkPlan::symmetric(&Direction { seed, ..Direction::shaped(MBPS, DELAY, QUEUE) });
    let bond = Bond::new(&[plan])?;
    let keys: Vec<PrivateKey> = (0..CONFIGURED).map(|_| new_key()).collect::<Result<_, _>>()?;
    let (mut hub, startup) = Hub::start(&asked.program, &bond, &keys, &asked.traffic)?;
    let idle = hub.usage()?.resident;
    let generator = Generator::start(&bond.local, &keys[..ACTIVE], hub.key())?;
    await_sessions(&mut hub)?;
    thread::sleep(SETTLE);
    let (before, from) = (hub.received()?, Instant::now());
    thread::sleep(asked.duration);
    let (after, time) = (hub.received()?, from.elapsed());
    let usage = hub.usage()?;
    generator.stop()?;
    let mbps: Vec<f64> = before
        .iter()
        .zip(&after)
        .take(ACTIVE)
        .map(|(before, after)| after.saturating_sub(*before) as f64 * 8.0 / time.as_secs_f64() / 1e6)
        .collect();
    Ok(Figures::from([
        ("jain", jain(&mbps).unwrap_or_default()),
        ("peer_mib", (usage.resident_most - idle) as f64 / MEBIBYTE / ACTIVE as f64),
        ("memory_idle_mib", idle as f64 / MEBIBYTE),
        ("startup_s", startup.as_secs_f64()),
        ("goodput_mbps", mbps.iter().sum()),
        ("least_mbps", mbps.iter().copied().fold(f64::INFINITY, f64::min)),
        ("most_mbps", mbps.iter().copied().fold(0.0, f64::max)),
    ]))
}

fn await_sessions(hub: &mut Hub) -> Result<(), LabError> {
    let mut there = 0;
    let all = until(HANDSHAKES, GLANCE, || {
        there = hub.sessions()?;
        Ok((there >= ACTIVE).then_some(()))
    })?;
    all.ok_or_else(|| hub.fault(format!("{there} of {ACTIVE} sessions began")))
}
