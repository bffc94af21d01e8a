//! What people do while a member ends, and what they notice: a ping, calls, streams up and a download.
//!
//! 1. `Traffic::start` begins all of it. 2. `finish` says what came of it, around the moment of the harm.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_wire::Moment;
use hawser_wire::traffic::{
    Congestion, Duplex, DuplexReport, FlowReport, Flows, FlowsReport, Ping, PingReport, Reliable, RunningDuplex,
    RunningFlows, RunningPing, Stack, Towards, UdpReport,
};
use serde::Serialize;

use crate::lab::{ms, parse};
use crate::world::{SERVER, World};

/// The ping's interval: finer than any gap that is judged.
pub const PING_EVERY: Duration = Duration::from_millis(10);
/// Calls as G.711 has them (RFC 3551): 160 bytes each 20 ms, both ways.
const CALLS: usize = 20;
const CALL_EVERY: Duration = Duration::from_millis(20);
const CALL_BYTES: usize = 160;
/// Streams from the home.
const STREAMS: usize = 20;
/// What is late is waited for.
const LINGER: Duration = Duration::from_secs(1);

/// All of it under way. One owner.
pub struct Traffic {
    ping: RunningPing,
    calls: Vec<RunningDuplex>,
    up: RunningFlows,
    down: RunningFlows,
    end: Moment,
}

/// What came of it: all times in milliseconds. Plain data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Noticed {
    /// The longest time without an answer to a ping, its round trip included.
    pub gap_ms: f64,
    pub pings_lost: usize,
    /// The longest silence in any call.
    pub call_gap_up_ms: f64,
    pub call_gap_down_ms: f64,
    /// Datagrams of all calls.
    pub lost_up: u64,
    pub lost_down: u64,
    pub twice_up: u64,
    pub twice_down: u64,
    /// For how long no stream brought anything.
    pub streams_stood_ms: f64,
    pub download_stood_ms: f64,
    pub mbps_before: f64,
    pub mbps_after: f64,
    /// Flows that broke, or brought nothing from a second after the harm on.
    pub flows_that_died: usize,
}

impl Traffic {
    /// For so long, from now on.
    pub fn start(world: &World, duration: Duration) -> Self {
        let server = |port: u16| -> SocketAddr { parse(&format!("{SERVER}:{port}")) };
        let kind = Reliable { stack: Stack::Tcp, congestion: Congestion::Cubic };
        let flows = |towards, count| {
            let (client, far) = (world.home.clone(), world.server.clone());
            Flows { client, server: far, destination: server(0), kind, towards, count }.connect().expect("connections")
        };
        let (up, down) = (flows(Towards::Server, STREAMS), flows(Towards::Client, 1));
        let call = |_| {
            let (client, far) = (world.home.clone(), world.server.clone());
            let (payload, interval, linger) = (CALL_BYTES, CALL_EVERY, LINGER);
            let call =
                Duplex { client, server: far, destination: server(0), payload, interval, up: true, down: true, linger };
            call.prepare().expect("a call")
        };
        let calls: Vec<_> = (0..CALLS).map(call).collect();
        let start = Moment::now();
        let ping = Ping { from: world.home.clone(), destination: parse(SERVER), interval: PING_EVERY, duration };
        Self {
            ping: ping.start().expect("a ping"),
            calls: calls.into_iter().map(|call| call.start(start, duration).expect("a call")).collect(),
            up: up.start(start, duration).expect("streams"),
            down: down.start(start, duration).expect("a download"),
            end: start + duration,
        }
    }

    /// Waits for the end. The harm was done at `harm`.
    pub fn finish(self, harm: Moment) -> Noticed {
        let (end, before) = (self.end, harm - ms(500));
        let ping = self.ping.finish().expect("a report");
        let calls: Vec<DuplexReport> = self.calls.into_iter().map(|call| call.finish().expect("a report")).collect();
        let (up, down) = (self.up.finish().expect("a report"), self.down.finish().expect("a report"));
        let longest = |way: fn(&DuplexReport) -> &UdpReport| {
            calls.iter().map(|call| longest_gap(way(call).arrivals.iter().map(|one| one.received), before, end)).max()
        };
        let sum = |way: fn(&DuplexReport) -> &UdpReport, what: fn(&UdpReport) -> u64| {
            calls.iter().map(|call| what(way(call))).sum::<u64>()
        };
        let died = |report: &FlowsReport| report.flows.iter().filter(|flow| is_dead(flow, harm, end)).count();
        Noticed {
            gap_ms: millis(gap(&ping, before, end)),
            pings_lost: ping.lost(),
            call_gap_up_ms: longest(upward).map_or(0.0, millis),
            call_gap_down_ms: longest(downward).map_or(0.0, millis),
            lost_up: sum(upward, UdpReport::lost),
            lost_down: sum(downward, UdpReport::lost),
            twice_up: sum(upward, UdpReport::duplicates),
            twice_down: sum(downward, UdpReport::duplicates),
            streams_stood_ms: millis(up.all.longest_gap(before, end)),
            download_stood_ms: millis(down.all.longest_gap(before, end)),
            mbps_before: up.all.mbps_between(harm - ms(1_000), harm) + down.all.mbps_between(harm - ms(1_000), harm),
            mbps_after: up.all.mbps_between(end - ms(1_000), end) + down.all.mbps_between(end - ms(1_000), end),
            flows_that_died: died(&up) + died(&down),
        }
    }
}

fn upward(call: &DuplexReport) -> &UdpReport {
    &call.up
}

fn downward(call: &DuplexReport) -> &UdpReport {
    &call.down
}

/// Among this many, one may wait for a retransmission for long.
fn is_dead(flow: &FlowReport, harm: Moment, end: Moment) -> bool {
    flow.broken.is_some() || flow.timeline.bytes_between(harm + ms(1_000), end) == 0
}

/// The longest time without an answer.
fn gap(ping: &PingReport, from: Moment, to: Moment) -> Duration {
    longest_gap(ping.echoes.iter().map(|echo| echo.sent + echo.round_trip), from, to)
}

/// The longest time between two of these, or the ends.
fn longest_gap(moments: impl Iterator<Item = Moment>, from: Moment, to: Moment) -> Duration {
    let mut moments: Vec<Moment> = moments.filter(|at| *at >= from && *at <= to).chain([from, to]).collect();
    moments.sort();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}
