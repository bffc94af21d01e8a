//! What strains a shim.
//!
//! 1. [`churn`]: connections opened and closed, 500 a second for 30 s. No state may be left, and memory must stay flat:
//!    a few seconds go before anything counts, for what is made once; at the end both shims are asked until they have
//!    no connection any more.
//! 2. In it the client begins a connection whenever one is due, however many are under way: it asks, and reads to the
//!    end. The server reads the request, answers and closes. What does not work is counted.
//! 3. [`hostile`]: a stream beside a stranger's datagrams, thrown at the server's shim from another host of its AS.
//!
//! ```text
//!  0 ── warm ── 3 s ──── calm ──── 13 s ── 1 s ──── attacked ──── 24 s
//!                                    └ the attack begins
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_scion::select::Criterion;
use hawser_wire::Namespace;
use hawser_wire::traffic::{Congestion, Reliable, Stack, Towards};
use socket2::Socket;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Asked, Findings, Ground, LabError};
use crate::attack::Attack;
use crate::attack::shim::{PORT as ATTACK_PORT, ShimArsenal};
use crate::background::{Background, runtime};
use crate::probe::{MEBIBYTE, WARM, shaped};
use crate::shim::{Place, Shim};
use crate::wait::until;
use crate::workload::{accept, dial};

/// Paths between the hosts: each connection has a subflow, too.
const PATHS: u8 = 2;
/// Connections a second, and for how long.
const CONNECTIONS: u32 = 500;
const DURATION: Duration = Duration::from_secs(30);
const FIRST: Duration = Duration::from_secs(6);
/// The server's port.
const PORT: u16 = 5001;
/// What a connection is, its request, and its answer: a few kilobytes, as of a small page.
const STREAM: Reliable = Reliable { stack: Stack::Mptcp, congestion: Congestion::Cubic };
const REQUEST: usize = 200;
const ANSWER: usize = 4_000;
/// How long it may take: two lost SYNs (RFC 6298: 1 + 2 seconds), and some.
const ANSWERED: Duration = Duration::from_secs(5);
/// How long ended flows may be remembered: 2 s (crates/hawser-shim/README.md, "Flows"), and the kernel's own end of
/// MPTCP connections.
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(200);

/// Datagrams of strangers a second, on each of the paths.
const DATAGRAMS: u32 = 50_000;
/// How long the stream is looked at, without the attack and with it; and what of the attack's start is not counted.
const HALF: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(1);
/// What a shim counts of strangers, as `drop_malformed` and so on. Source: docs/shim.md, "Counters".
const COUNTED: [&str; 6] = ["malformed", "unknown_context", "unknown_token", "foreign", "strange_probe", "stray"];

/// Step 1.
pub(crate) fn churn(asked: &Asked) -> Result<Findings, LabError> {
    let ground = Ground::start(asked, &Place::parallel(PATHS, None)?, PATHS, Criterion::Sharability, "")?;
    let shims = [&ground.pair.client, &ground.pair.server];
    let ends = shims.map(|shim| &shim.host.namespace);
    let address = SocketAddr::new(shims[1].address().into(), PORT);
    exchange(ends, address, CONNECTIONS, FIRST)?;
    let resident = || Ok::<_, LabError>([shims[0].process.usage()?.resident, shims[1].process.usage()?.resident]);
    let before = resident()?;
    let (exchanged, took) = exchange(ends, address, CONNECTIONS, DURATION)?;
    let after = resident()?;
    let failures: Vec<&io::Error> = exchanged.iter().filter_map(|one| one.as_ref().err()).collect();
    if let Some(reason) = failures.first() {
        tracing::warn!(failed = failures.len(), %reason, "connections failed");
    }
    let ended = Instant::now();
    let of = |shim: &Shim| shim.status().map_or(usize::MAX, |status| status.connections.len());
    let left = || shims.map(of).into_iter().fold(0, usize::saturating_add);
    until(PATIENCE, GLANCE, || Ok((left() == 0).then_some(())))?;
    let gone_s = ended.elapsed().as_secs_f64();
    let grown = |index: usize| after[index].saturating_sub(before[index]) as f64 / MEBIBYTE;
    Ok(Findings::named([
        ("opened_per_s", (exchanged.len() - failures.len()) as f64 / took.as_secs_f64()),
        ("failed", failures.len() as f64),
        ("left", left() as f64),
        ("gone_s", gone_s),
        ("grown_mib", grown(0).max(grown(1))),
        ("client_mib", after[0] as f64 / MEBIBYTE),
        ("server_mib", after[1] as f64 / MEBIBYTE),
    ]))
}

/// Step 2: from a client to a server's address, this many a second for so long. What came of each, in the order in which
/// they ended, and how long that took; connections that fail are a finding.
fn exchange(
    [client, server]: [&Namespace; 2],
    address: SocketAddr,
    per_second: u32,
    duration: Duration,
) -> Result<(Vec<io::Result<()>>, Duration), LabError> {
    let listener = server.run(|| STREAM.listen(address))?.map_err(|error| LabError::system("listen", error))?;
    let _answering = Background::serve(server, "answers", move || answer(listener))?;
    let begun = Instant::now();
    let ask = || runtime().map(|runtime| runtime.block_on(ask_in_turn(address, per_second, duration)));
    let asked = client.run(ask)?.map_err(|error| LabError::system("open connections", error))?;
    Ok((asked, begun.elapsed()))
}

/// The server's side.
async fn answer(listener: Socket) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener.into())?;
    loop {
        let mut stream = accept(&listener).await?;
        // The client finds out what went wrong.
        tokio::spawn(timeout(ANSWERED, async move {
            stream.read_exact(&mut [0; REQUEST]).await?;
            stream.write_all(&[2; ANSWER]).await
        }));
    }
}

/// The client's side.
async fn ask_in_turn(address: SocketAddr, per_second: u32, duration: Duration) -> Vec<io::Result<()>> {
    let (mut asking, begun) = (JoinSet::new(), Instant::now());
    for number in 0..u64::from(per_second) * duration.as_secs() {
        let due = Duration::from_secs_f64(number as f64 / f64::from(per_second));
        sleep(due.saturating_sub(begun.elapsed())).await;
        asking.spawn(ask(address));
    }
    asking.join_all().await
}

/// One connection of it.
async fn ask(address: SocketAddr) -> io::Result<()> {
    let answer = async {
        let mut stream = dial(STREAM, address).await?;
        stream.write_all(&[1; REQUEST]).await?;
        stream.read_to_end(&mut Vec::with_capacity(ANSWER)).await
    };
    match timeout(ANSWERED, answer).await?? {
        ANSWER => Ok(()),
        other => Err(io::Error::other(format!("{other} bytes of the answer came"))),
    }
}

/// Step 3.
pub(crate) fn hostile(asked: &Asked) -> Result<Findings, LabError> {
    let place = Place::parallel(PATHS, Some(&shaped()))?;
    let ground = Ground::start(asked, &place, PATHS, Criterion::Sharability, "")?;
    let (client, server) = (&ground.pair.client, &ground.pair.server);
    let stranger = ground.net.hosts.iter().find(|host| host.isd_as == server.host.isd_as && host.number > 1);
    let none = || "the server's AS has no second host".to_owned();
    let stranger = stranger.ok_or_else(|| LabError::refused("measure hostile", none()))?;
    let arsenal = ShimArsenal::new(stranger.endpoint(ATTACK_PORT), server.end, client.end)?;

    let (_, start, running) = ground.stream(Towards::Server, PATHS, WARM + HALF + SETTLE + HALF)?;
    let calm = (start + WARM, start + WARM + HALF);
    calm.1.sleep_until();
    let (resident, before) = (server.process.usage()?.resident, counted(server)?);
    let own = SocketAddr::from(([0, 0, 0, 0], ATTACK_PORT));
    // Where the server's shim receives, within its AS.
    let target = server.end.endpoint().host;
    let attack = Attack::start(&stranger.namespace, arsenal, [own, target], DATAGRAMS)?;
    let attacked = (calm.1 + SETTLE, calm.1 + SETTLE + HALF);
    attacked.1.sleep_until();
    let thrown = attack.stop()?;
    let grown = server.process.usage()?.resident_most.saturating_sub(resident);
    let counted = counted(server)? - before;
    let got = running.finish()?.all;
    let (calm, attacked) = (got.mbps_between(calm.0, calm.1), got.mbps_between(attacked.0, attacked.1));
    Ok(Findings::named([
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
    let drops = |name| status.counters.get(&format!("drop_{name}")).copied().unwrap_or_default();
    Ok(COUNTED.into_iter().map(drops).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_at_their_time_and_failures_are_counted() {
        let host = Namespace::new("churn").expect("this test needs root: it makes a network namespace");
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let duration = Duration::from_secs(1);
        let (asked, took) = exchange([&host; 2], address, 100, duration).expect("it runs");
        assert!(asked.len() == 100 && asked.iter().all(Result::is_ok), "{asked:?}");
        assert!(took > Duration::from_millis(900), "{took:?}");
        // Nobody listens where the client is.
        let elsewhere = Namespace::new("churn-no").expect("a namespace");
        let (refused, _) = exchange([&elsewhere, &host], address, 100, duration).expect("it runs");
        let is_refused = |one: &io::Result<()>| one.as_ref().is_err_and(|why| why.to_string().contains("refused"));
        assert!(refused.len() == 100 && refused.iter().all(is_refused), "{refused:?}");
    }
}
