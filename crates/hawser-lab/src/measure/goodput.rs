//! One stream over the bond: how fast, beside a ping, and with how much memory.

use std::thread;
use std::time::Duration;

use hawser_wire::traffic::Sample;
use hawser_wire::{Moment, Rate};

use super::bench::{Bench, Figures, Running};
use super::cases::{Case, Line};
use super::usable::usable_mbps;
use crate::error::LabError;
use crate::process::Process;
use crate::topology::{Flow, Over};

/// What of a stream's start is not counted: slow start, paths that are learned.
const WARM_UP: Duration = Duration::from_secs(3);
/// What is counted.
const COUNTED: Duration = Duration::from_secs(10);
/// How long the portals are loaded until their memory is looked at.
const LOADED: Duration = Duration::from_secs(15);
/// What of it is not counted: finding the rate takes ten round trips.
const LONG_WARM_UP: Duration = Duration::from_secs(5);
/// Before the end of the load.
const LOOK: Duration = Duration::from_millis(500);
/// The load, in Mbit/s of inner packets: more than the link of 100 carries, so that the queue is full too. (A CUBIC stream
/// would need minutes to fill it at 300 ms.)
const LOAD_MBPS: f64 = 105.0;
/// The ping beside nothing.
const IDLE_TIME: Duration = Duration::from_secs(3);
/// From one request to the next.
const PING_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes in a MiB.
const MIB: f64 = 1024.0 * 1024.0;

/// The goodput over the case's links, and over those beside.
pub(super) fn stream(bench: &Bench, case: &Case, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let (mbps, usable) = (mbps(&bench.start(case.lines, run)?, flow)?, usable_of(case.lines));
    let mut figures = Figures::from([("mbps", mbps), ("usable_mbps", usable), ("ratio", mbps / usable)]);
    if !case.beside.is_empty() {
        let beside = self::mbps(&bench.start(case.beside, run)?, flow)?;
        let added = (mbps - beside) / (usable - usable_of(case.beside));
        figures.extend([("beside_mbps", beside), ("beside_ratio", mbps / beside), ("added_ratio", added)]);
    }
    Ok(figures)
}

fn usable_of(lines: &[Line]) -> f64 {
    usable_mbps(lines.iter().map(|line| line.mbps).sum())
}

/// What the receiver got after the warm-up, in Mbit/s.
fn mbps(running: &Running, flow: Flow) -> Result<f64, LabError> {
    let got = running.bond.transfer(flow, Over::Tunnel, WARM_UP + COUNTED).run()?;
    let from = got.start() + WARM_UP;
    Ok(got.mbps_between(from, from + COUNTED))
}

/// A ping alone, and beside a stream.
pub(super) fn latency(running: &Running, flow: Flow) -> Result<Figures, LabError> {
    let bond = &running.bond;
    let idle = median("idle_ms", &bond.ping(PING_INTERVAL, IDLE_TIME).run()?.round_trips())?;
    let transfer = bond.transfer(flow, Over::Tunnel, WARM_UP + COUNTED).start()?;
    thread::sleep(WARM_UP);
    let ping = bond.ping(PING_INTERVAL, COUNTED).run()?;
    let got = transfer.finish()?;
    let loaded = median("loaded_ms", &ping.round_trips())?;
    let high = ping.round_trips().percentile(95.0).unwrap_or(loaded);
    let from = got.start() + WARM_UP;
    Ok(Figures::from([
        ("idle_ms", idle),
        ("loaded_ms", loaded),
        ("loaded_p95_ms", high),
        ("over_idle_ms", loaded - idle),
        ("mbps", got.mbps_between(from, from + COUNTED)),
    ]))
}

fn median(figure: &'static str, round_trips: &Sample) -> Result<f64, LabError> {
    let no_answer = || LabError::NoFigure { figure, reason: "no ping was answered".to_owned() };
    round_trips.median().ok_or_else(no_answer)
}

/// What the portals hold while they are busy, under more than the link carries.
#[expect(clippy::cast_precision_loss, reason = "bytes of memory")]
pub(super) fn memory(running: &Running, flow: Flow) -> Result<Figures, LabError> {
    let load = running.bond.datagrams(flow, Rate::mbit(LOAD_MBPS), LOADED).start()?;
    let start = Moment::now();
    let (from, to) = (start + LONG_WARM_UP, start + (LOADED - LOOK));
    to.sleep_until();
    let [local, remote] = running.portals.processes().map(Process::usage);
    let (local, remote) = (local?, remote?);
    let mut got = load.finish()?;
    got.arrivals.retain(|arrival| arrival.received >= from && arrival.received < to);
    let received = got.received_rate().unwrap_or(0.0);
    Ok(Figures::from([
        ("local_mib", local.resident as f64 / MIB),
        ("local_most_mib", local.resident_most as f64 / MIB),
        ("remote_mib", remote.resident as f64 / MIB),
        ("remote_most_mib", remote.resident_most as f64 / MIB),
        ("mbps", received / 1e6),
    ]))
}
