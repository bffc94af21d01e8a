//! Many flows and small packets.
//!
//! 1. One stream, to compare with. 2. 300 streams, and a ping beside them. 3. 1,000 calls a second.
//! 4. Small datagrams, ever more of them, until one in a hundred is lost.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_wire::traffic::{Calls, Sample, TcpStreams, TcpTransfer, UdpFlow};
use hawser_wire::{Moment, Rate};

use super::contender::Contest;
use crate::error::LabError;
use crate::measure::bench::Figures;
use crate::measure::cost::{self, Spent};
use crate::topology::{Flow, Over};

/// How many streams. Source: issue 3, Build 3.
const STREAMS: usize = 300;
/// What of their start is not counted, and what is.
const WARM_UP: Duration = Duration::from_millis(1500);
const COUNTED: Duration = Duration::from_secs(4);
/// How long they go on afterwards.
const REST: Duration = Duration::from_millis(200);
/// From one ping to the next beside them.
const PING_INTERVAL: Duration = Duration::from_millis(10);
/// From one call to the next. Source: issue 3, Build 3.
const CALL_INTERVAL: Duration = Duration::from_millis(1);
const CALLING: Duration = Duration::from_secs(4);
/// Where calls are answered.
const CALL_PORT: u16 = 5002;
/// UDP payload of the small datagrams, and an IP packet of theirs with its headers (RFC 791, RFC 768).
const SMALL: usize = 100;
const SMALL_PACKET: f64 = 128.0;
/// The first rate, in thousands a second; from there it doubles as long as all arrives, then the last step is halved thrice.
const FIRST_KPPS: f64 = 25.0;
const HALVINGS: usize = 3;
/// How long a rate is tried, and how long the last datagrams may take.
const TRIAL: Duration = Duration::from_secs(1);
const TRIAL_LINGER: Duration = Duration::from_millis(150);
/// What may be lost.
const MOST_LOST: f64 = 0.01;
/// A sender that falls behind this share of the rate is at its own end.
const LEAST_SENT: f64 = 0.9;
/// Bits in a byte.
const BYTE_BITS: f64 = 8.0;

pub(super) fn measure(contest: &Contest) -> Result<Figures, LabError> {
    let one = cost::stream(&contest.bond, &contest.tunnel.processes(), Flow::Up, WARM_UP, COUNTED)?.mbps;
    let Streams { mbps: streams, cpu_s_per_gb, ping } = streams(contest)?;
    let calls = calls(contest)?.run()?;
    let at = |figure, sample: &Sample, percent| {
        let nothing = || LabError::NoFigure { figure, reason: "nothing was answered".to_owned() };
        sample.percentile(percent).ok_or_else(nothing)
    };
    #[expect(clippy::cast_precision_loss, reason = "some thousand calls")]
    let calls_lost = calls.lost() as f64;
    Ok(Figures::from([
        ("one_mbps", one),
        ("streams_mbps", streams),
        ("streams_of_one", streams / one),
        ("cpu_s_per_gb_of_streams", cpu_s_per_gb),
        ("ping_p99_ms", at("ping_p99_ms", &ping, 99.0)?),
        ("call_p50_ms", at("call_p50_ms", &calls.times(), 50.0)?),
        ("call_p99_ms", at("call_p99_ms", &calls.times(), 99.0)?),
        ("calls_lost", calls_lost),
        ("small_kpps", small_kpps(contest)?),
    ]))
}

/// What all streams together got, what that cost the tunnel's processes, and the ping beside them. Plain data.
struct Streams {
    mbps: f64,
    cpu_s_per_gb: f64,
    ping: Sample,
}

/// Step 2.
#[expect(clippy::cast_precision_loss, reason = "bytes of some seconds")]
fn streams(contest: &Contest) -> Result<Streams, LabError> {
    let processes = contest.tunnel.processes();
    let mut each = contest.bond.transfer(Flow::Up, Over::Tunnel, WARM_UP + COUNTED + REST);
    each.destination.set_port(0);
    let running = TcpStreams { each, count: STREAMS }.start()?;
    let from = Moment::now() + WARM_UP;
    from.sleep_until();
    let (to, before) = (from + COUNTED, Spent::so_far(&processes)?);
    let ping = contest.bond.ping(PING_INTERVAL, COUNTED).start()?;
    to.sleep_until();
    let spent = Spent::so_far(&processes)?.since(before);
    let got = running.finish()?.timeline;
    // What was asked after the load's end does not count.
    let ping = ping.finish()?.round_trips_between(from, to - PING_INTERVAL);
    let cpu_s_per_gb = spent.own.as_secs_f64() / (got.bytes_between(from, to) as f64 / cost::GB);
    Ok(Streams { mbps: got.mbps_between(from, to), cpu_s_per_gb, ping })
}

/// Step 3.
fn calls(contest: &Contest) -> Result<Calls, LabError> {
    let TcpTransfer { from, to, destination, .. } = contest.bond.transfer(Flow::Up, Over::Tunnel, CALLING);
    let destination = SocketAddr::new(destination.ip(), CALL_PORT);
    Ok(Calls { from, to, destination, interval: CALL_INTERVAL, duration: CALLING })
}

/// Step 4: the most that arrived at a rate where nearly all did, in thousands a second.
fn small_kpps(contest: &Contest) -> Result<f64, LabError> {
    let (mut best, mut good, mut bad) = (0.0, 0.0, FIRST_KPPS);
    while let Some(received) = trial(contest, bad)? {
        (best, good, bad) = (received, bad, bad * 2.0);
    }
    for _ in 0..HALVINGS {
        let middle = (good + bad) / 2.0;
        match trial(contest, middle)? {
            Some(received) => (best, good) = (received, middle),
            None => bad = middle,
        }
    }
    Ok(best)
}

/// What arrived, in thousands a second; none where more than a little was lost, or the sender could not send as much.
#[expect(clippy::cast_precision_loss, reason = "packets of a second")]
fn trial(contest: &Contest, kpps: f64) -> Result<Option<f64>, LabError> {
    let rate = Rate::mbit(kpps * SMALL_PACKET * BYTE_BITS / 1e3);
    let flow = contest.bond.datagrams(Flow::Up, rate, TRIAL);
    let got = UdpFlow { payload: SMALL, linger: TRIAL_LINGER, ..flow }.run()?;
    let received = got.received_rate().unwrap_or(0.0) / (SMALL_PACKET * BYTE_BITS) / 1e3;
    let lost = got.lost() as f64 / got.sent.max(1) as f64;
    Ok((lost <= MOST_LOST && received >= kpps * LEAST_SENT).then_some(received))
}
