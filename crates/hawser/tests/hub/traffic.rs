//! What people do while a member ends, and what they notice: pings, calls, streams up, a download and conversations.
//!
//! 1. `Traffic::start` begins all of it, at both homes. 2. `finish` says what came of it, around the moment of the harm.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_lab::hub::SERVER;
use hawser_wire::traffic::{
    Congestion, Duplex, DuplexReport, FlowReport, Flows, FlowsReport, Ping, PingReport, Reliable, RunningDuplex,
    RunningFlows, RunningPing, Stack, Towards, UdpReport,
};
use hawser_wire::{Moment, Namespace};
use serde::Serialize;

use crate::conversations::Conversations;
use crate::halts::Halts;
use crate::ipv6;
use crate::lab::ms;
use crate::world::World;

/// The pings' interval: finer than any gap that is judged.
pub const PING_EVERY: Duration = Duration::from_millis(10);
/// Calls as G.711 has them (RFC 3551): 160 bytes each 20 ms, both ways.
const CALL_EVERY: Duration = Duration::from_millis(20);
const CALL_BYTES: usize = 160;
/// What is late is waited for.
const LINGER: Duration = Duration::from_secs(1);
/// Connections are made within that, before anything fills the links.
const CONNECTED: Duration = Duration::from_millis(1_500);
/// Streams have found their rates by then.
const SETTLED: Duration = Duration::from_millis(500);

/// A home's TCP connections (streams that take what they get, and conversations) and calls. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    pub streams: usize,
    pub conversations: usize,
    pub calls: usize,
}

impl Many {
    pub fn connections(self) -> usize {
        self.streams + self.conversations
    }
}

/// All of it under way, at both homes. One owner.
pub struct Traffic {
    halts: Halts,
    homes: Vec<Home>,
    end: Moment,
}

/// One home's. One owner.
struct Home {
    conversations: Conversations,
    /// By IPv4, and by IPv6.
    pings: [RunningPing; 2],
    calls: Vec<RunningDuplex>,
    up: RunningFlows,
    down: RunningFlows,
    start: Moment,
    end: Moment,
}

/// What came of it at both. Plain data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    #[serde(flatten)]
    pub home: Noticed,
    pub branch: Noticed,
    /// The longest that a processor of this machine ran nothing of ours.
    pub machine_stood_ms: f64,
}

impl Seen {
    /// The first home's, then the other's.
    pub fn both(&self) -> [&Noticed; 2] {
        [&self.home, &self.branch]
    }
}

impl Noticed {
    /// By IPv4, and by IPv6.
    pub fn pings(&self) -> [&Pinged; 2] {
        [&self.ipv4, &self.ipv6]
    }
}

/// What a ping noticed: all times in milliseconds. Plain data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pinged {
    /// The longest time without an answer, its round trip included.
    pub gap_ms: f64,
    /// When that began, from the harm on: one that began before the harm is below zero.
    pub gap_at_ms: f64,
    /// The same before the harm, in as long a time or in what there was: what this traffic does to a ping by itself.
    pub gap_before_ms: f64,
    pub pings_lost: usize,
}

/// What came of it: all times in milliseconds. Plain data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Noticed {
    #[serde(flatten)]
    pub ipv4: Pinged,
    pub ipv6: Pinged,
    /// The longest silence in any call, and when it began.
    pub call_gap_up_ms: f64,
    pub call_gap_up_at_ms: f64,
    pub call_gap_down_ms: f64,
    pub call_gap_down_at_ms: f64,
    /// Datagrams of the calls.
    pub lost_up: u64,
    pub lost_down: u64,
    pub twice_up: u64,
    pub twice_down: u64,
    /// For how long no stream brought anything.
    pub streams_stood_ms: f64,
    pub download_stood_ms: f64,
    /// The longest that anybody waited for an answer in a conversation.
    pub answered_after_ms: f64,
    pub mbps_before: f64,
    pub mbps_after: f64,
    /// Flows that broke, or brought nothing from a second after the harm on; conversations without an answer.
    pub flows_that_died: usize,
}

impl Traffic {
    /// For so long, from now on, with this many of each home's.
    pub fn start(world: &World, many: [Many; 2], duration: Duration) -> Self {
        let start = Moment::now() + CONNECTED;
        let begin = |(site, many)| Home::start(site, &world.network.server, many, start, duration);
        let homes = std::thread::scope(|scope| {
            let each = world.network.sites.iter().zip(many);
            let begun: Vec<_> = each.map(|home| scope.spawn(move || begin(home))).collect();
            begun.into_iter().map(|home| home.join().expect("no panic")).collect()
        });
        Self { halts: Halts::start(), homes, end: start + duration }
    }

    /// When it ends.
    pub fn end(&self) -> Moment {
        self.end
    }

    /// Waits for the end. The harm was done at `harm`, and what it did was over by `over`.
    pub fn finish(self, harm: Moment, over: Moment) -> Seen {
        let mut homes = self.homes.into_iter().map(|home| home.finish(harm, over));
        let (home, branch) = (homes.next().expect("one"), homes.next().expect("another"));
        Seen { home, branch, machine_stood_ms: millis(self.halts.finish()) }
    }
}

impl Home {
    fn start(site: &Namespace, far: &Namespace, many: Many, start: Moment, duration: Duration) -> Self {
        let destination = SocketAddr::new(SERVER.into(), 0);
        let kind = Reliable { stack: Stack::Tcp, congestion: Congestion::Cubic };
        let flows = |towards, count| {
            let (client, server) = (site.clone(), far.clone());
            Flows { client, server, destination, kind, towards, count }.connect().expect("connections")
        };
        let (up, down) = (flows(Towards::Server, many.streams), flows(Towards::Client, 1));
        let call = |_| {
            let (client, server) = (site.clone(), far.clone());
            let (payload, interval, linger) = (CALL_BYTES, CALL_EVERY, LINGER);
            let call = Duplex { client, server, destination, payload, interval, up: true, down: true, linger };
            call.prepare().expect("a call")
        };
        let calls: Vec<_> = (0..many.calls).map(call).collect();
        let end = start + duration;
        let conversations = Conversations::start(site, far, many.conversations, start, end);
        start.sleep_until();
        let ping = |destination| Ping { from: site.clone(), destination, interval: PING_EVERY, duration };
        let pings = [IpAddr::from(SERVER), IpAddr::from(ipv6::SERVER)].map(ping);
        Self {
            conversations,
            pings: pings.map(|ping| ping.start().expect("a ping")),
            calls: calls.into_iter().map(|call| call.start(start, duration).expect("a call")).collect(),
            up: up.start(start, duration).expect("streams"),
            down: down.start(start, duration).expect("a download"),
            start,
            end,
        }
    }

    fn finish(self, harm: Moment, over: Moment) -> Noticed {
        let (end, before) = (self.end, harm - ms(500));
        let as_long = (self.start + SETTLED).max(before - (over - before));
        let at = |moment: Moment| (millis(moment - before) - millis(harm - before)).round();
        let pings = self.pings.map(|ping| ping.finish().expect("a report"));
        let [ipv4, ipv6] = pings.map(|ping| pinged(&ping, [as_long, before, over], at));
        let calls: Vec<DuplexReport> = self.calls.into_iter().map(|call| call.finish().expect("a report")).collect();
        let (up, down) = (self.up.finish().expect("a report"), self.down.finish().expect("a report"));
        let conversations = self.conversations.finish();
        let longest = |way: fn(&DuplexReport) -> &UdpReport| {
            let arrivals = |call| way(call).arrivals.iter().map(|one| one.received);
            calls.iter().map(|call| longest_gap(arrivals(call), before, end)).max().unwrap_or((Duration::ZERO, before))
        };
        let sum = |way: fn(&DuplexReport) -> &UdpReport, what: fn(&UdpReport) -> u64| {
            calls.iter().map(|call| what(way(call))).sum::<u64>()
        };
        let ((call_gap_up, up_at), (call_gap_down, down_at)) = (longest(upward), longest(downward));
        let died = |report: &FlowsReport| report.flows.iter().filter(|flow| is_dead(flow, harm, end)).count();
        Noticed {
            ipv4,
            ipv6,
            call_gap_up_ms: millis(call_gap_up),
            call_gap_up_at_ms: at(up_at),
            call_gap_down_ms: millis(call_gap_down),
            call_gap_down_at_ms: at(down_at),
            lost_up: sum(upward, UdpReport::lost),
            lost_down: sum(downward, UdpReport::lost),
            twice_up: sum(upward, UdpReport::duplicates),
            twice_down: sum(downward, UdpReport::duplicates),
            streams_stood_ms: millis(up.all.longest_gap(before, end)),
            download_stood_ms: millis(down.all.longest_gap(before, end)),
            answered_after_ms: millis(conversations.longest),
            mbps_before: up.all.mbps_between(harm - ms(1_000), harm) + down.all.mbps_between(harm - ms(1_000), harm),
            mbps_after: up.all.mbps_between(end - ms(1_000), end) + down.all.mbps_between(end - ms(1_000), end),
            flows_that_died: died(&up) + died(&down) + conversations.died,
        }
    }
}

/// From `before` on until it was `over`, and from `as_long` before on.
fn pinged(ping: &PingReport, [as_long, before, over]: [Moment; 3], at: impl Fn(Moment) -> f64) -> Pinged {
    let answers = ping.echoes.iter().map(|echo| echo.sent + echo.round_trip);
    let (gap, began) = longest_gap(answers.clone(), before, over);
    Pinged {
        gap_ms: millis(gap),
        gap_at_ms: at(began),
        gap_before_ms: millis(longest_gap(answers, as_long, before).0),
        pings_lost: ping.lost(),
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

/// The longest time between two of these, or the ends, and when it began.
fn longest_gap(moments: impl Iterator<Item = Moment>, from: Moment, to: Moment) -> (Duration, Moment) {
    let mut moments: Vec<Moment> = moments.filter(|at| *at >= from && *at <= to).chain([from, to]).collect();
    moments.sort();
    moments.windows(2).map(|two| (two[1] - two[0], two[0])).max().unwrap_or((Duration::ZERO, from))
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}
