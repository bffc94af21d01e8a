//! A stream beside a stranger's datagrams, thrown at the server's shim from another host of its AS.
//!
//! ```text
//!  0 ── warm ── 3 s ──── calm ──── 13 s ── 1 s ──── attacked ──── 24 s
//!                                    └ the attack begins
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_wire::Moment;
use hawser_wire::traffic::Towards;

use super::{Asked, Figures, Ground, LabError};
use crate::attack::Attack;
use crate::attack::shim::{PORT, ShimArsenal};
use crate::probe::{MEBIBYTE, WARM, shaped};
use crate::shim::{Place, Shim};

/// Datagrams of strangers, on each of the paths.
const PER_SECOND: u32 = 50_000;
const PATHS: u8 = 2;
/// How long the stream is looked at, without the attack and with it; and what of the attack's start is not counted.
const HALF: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(1);
/// What a shim counts of strangers. Source: docs/shim.md, "Counters".
const COUNTED: [&str; 6] = [
    "drop_malformed",
    "drop_unknown_context",
    "drop_unknown_token",
    "drop_foreign",
    "drop_strange_probe",
    "drop_stray",
];

pub(in super::super) fn run(asked: &Asked) -> Result<Figures, LabError> {
    let place = Place::parallel(PATHS, Some(&shaped()))?;
    let ground = Ground::start(asked, &place, PATHS, Criterion::Sharability, "")?;
    let (client, server) = (&ground.pair.client, &ground.pair.server);
    let stranger = ground.net.hosts.iter().find(|host| host.isd_as == server.host.isd_as && host.number > 1);
    let none = || "the server's AS has no second host".to_owned();
    let stranger = stranger.ok_or_else(|| LabError::NoFigure { figure: "hostile", reason: none() })?;
    let arsenal = ShimArsenal::new(stranger, server.end, client.end)?;

    let flows = ground.pair.flows(Towards::Server, 1).connect()?;
    ground.pair.wait_flows(usize::from(PATHS))?;
    let start = Moment::now();
    let running = flows.start(start, WARM + HALF + SETTLE + HALF)?;
    let calm = (start + WARM, start + WARM + HALF);
    calm.1.sleep_until();
    let (resident, counted) = (server.process.usage()?.resident, counted(server)?);
    let own = SocketAddr::from(([0, 0, 0, 0], PORT));
    // Where the server's shim receives, within its AS.
    let target = server.end.endpoint().host;
    let attack = Attack::start(&stranger.namespace, arsenal, [own, target], PER_SECOND)?;
    let attacked = (calm.1 + SETTLE, calm.1 + SETTLE + HALF);
    attacked.1.sleep_until();
    let thrown = attack.stop()?;
    let grown = server.process.usage()?.resident_most.saturating_sub(resident);
    let counted = self::counted(server)? - counted;
    let got = running.finish()?.all;
    let (calm, attacked) = (got.mbps_between(calm.0, calm.1), got.mbps_between(attacked.0, attacked.1));
    Ok(Figures::from([
        ("calm_mbps", calm),
        ("attacked_mbps", attacked),
        ("ratio", attacked / calm),
        ("hostile_per_s", thrown.per_second),
        ("counted_share", counted as f64 / thrown.count as f64),
        ("answers", thrown.answers as f64),
        ("grown_mib", grown as f64 / MEBIBYTE),
    ]))
}

/// What a shim has counted of strangers so far.
fn counted(shim: &Shim) -> Result<u64, LabError> {
    let status = shim.status().ok_or_else(|| shim.process.fault("it does not tell its status"))?;
    let named = |name: &&str| status.counters.get(*name).copied().unwrap_or_default();
    Ok(COUNTED.iter().map(named).sum())
}
