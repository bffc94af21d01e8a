//! Many peers on one port: 1,000 configured, 200 sessions of one generator through one link.
//!
//! 1. A topology with one link of 400 Mbit/s, and a remote portal that knows 1,000 peers ([`remote`]); or two, a hub's
//!    members.
//! 2. The [`generator`] runs 200 cores, each on a socket of its own, behind the link; each sends all that it can. Of a
//!    hub they claim the first member, the second one stands by, and each sends what a call has.
//! 3. Once all sessions are there and have settled, what each carries is counted, as the remote portal tells it; of a
//!    hub, what it costs to stand by.

mod generator;
mod remote;

use std::thread;
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_wire::Direction;

use self::generator::{Generator, Told};
use self::remote::Remote;
use super::{Asked, Figures, LabError, MEBIBYTE};
use crate::portals::new_key;
use crate::topology::Bond;
use crate::workload::jain;

/// Peers that the remote portal knows, and those that send.
const CONFIGURED: usize = 1_000;
const ACTIVE: usize = 200;
const MBPS: f64 = 400.0;
/// One way, and what waits before the link at most: an Internet path's.
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(40);
/// Until the sessions that came last have found their share.
const SETTLE: Duration = Duration::from_secs(5);

/// Steps 1 and 2 done. Runs; ended on drop, the generator first. One owner.
struct Crowd {
    generator: Generator,
    remotes: Vec<Remote>,
    _bond: Bond,
}

/// Steps 1 to 3, of one remote portal.
pub(super) fn share(asked: &Asked) -> Result<Figures, LabError> {
    let crowd = Crowd::gather(asked, 1, &format!("[traffic]\n{}", asked.traffic))?;
    let remote = &crowd.remotes[0];
    let (before, from) = (remote.received()?, Instant::now());
    thread::sleep(asked.duration);
    let (after, time) = (remote.received()?, from.elapsed());
    let mbps = |(before, after): (&u64, &u64)| after.saturating_sub(*before) as f64 * 8.0 / time.as_secs_f64() / 1e6;
    let mbps: Vec<f64> = before.iter().zip(&after).take(ACTIVE).map(mbps).collect();
    let figures = Figures::from([
        ("jain", jain(&mbps).unwrap_or_default()),
        ("peer_mib", remote.peer_mib(ACTIVE)?),
        ("memory_idle_mib", remote.idle as f64 / MEBIBYTE),
        ("startup_s", remote.startup.as_secs_f64()),
        ("goodput_mbps", mbps.iter().sum()),
        ("least_mbps", mbps.iter().copied().fold(f64::INFINITY, f64::min)),
        ("most_mbps", mbps.iter().copied().fold(0.0, f64::max)),
    ]);
    crowd.generator.stop()?;
    Ok(figures)
}

/// Steps 1 to 3, of a hub's two members.
pub(super) fn stand_by(asked: &Asked) -> Result<Figures, LabError> {
    let crowd = Crowd::gather(asked, 2, &format!("[hub]\n[traffic]\n{}", asked.traffic))?;
    let (before, from) = (crowd.generator.told(), Instant::now());
    thread::sleep(asked.duration);
    let (after, time) = (crowd.generator.told(), from.elapsed());
    let more = |count: fn(&Told) -> u64| before.iter().zip(&after).map(move |(old, new)| count(new) - count(old));
    // The middle peer's: one that moved meanwhile, after a halt of this machine, shows neither.
    let [of_owner, of_standby] = [more(|told| told.datagrams[0]), more(|told| told.datagrams[1])].map(|counts| {
        let mut counts: Vec<u64> = counts.collect();
        counts.sort_unstable();
        counts[counts.len() / 2] as f64 / time.as_secs_f64()
    });
    let owner = crowd.generator.owner();
    let figures = Figures::from([
        ("peer_mib", crowd.remotes[owner].peer_mib(ACTIVE)?),
        ("standby_mib", crowd.remotes[1 - owner].peer_mib(ACTIVE)?),
        // Each session has one path here, and half of them come from the member.
        ("owner_datagrams", of_owner / 2.0),
        ("standby_datagrams", of_standby / 2.0),
        ("standby_share", of_standby / of_owner),
        ("moves", more(|told| told.moves).sum::<u64>() as f64),
    ]);
    crowd.generator.stop()?;
    Ok(figures)
}

impl Crowd {
    /// Steps 1 and 2, with one or two remote portals, until all sessions have settled.
    fn gather(asked: &Asked, remotes: u8, more: &str) -> Result<Self, LabError> {
        let way = Direction { seed: asked.seed(), ..Direction::shaped(MBPS, DELAY, QUEUE) };
        let bond = Bond::new(&[way.both_ways()])?;
        let keys: Vec<PrivateKey> = (0..CONFIGURED).map(|_| new_key()).collect::<Result<_, _>>()?;
        let start = |number| Remote::start(&asked.program, &bond, number, &keys, more);
        let mut remotes: Vec<_> = (0..remotes).map(start).collect::<Result<_, _>>()?;
        let generator = Generator::start(&bond.local, &keys[..ACTIVE], &remotes.iter().collect::<Vec<_>>())?;
        remotes.iter_mut().try_for_each(|remote| remote.await_sessions(ACTIVE))?;
        thread::sleep(SETTLE);
        Ok(Self { generator, remotes, _bond: bond })
    }
}
