//! From a snapshot of the engine to the document.

use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_scion::{EndpointAddr, Fingerprint};

use super::document::{
    ConnectionStatus, Counts, FlowProtocol, FlowRole, FlowStatus, InterfaceStatus, PathStatus, ShareSample, ShimRole,
    Status,
};
use crate::config::Config;
use crate::engine::{ConnectionSnapshot, Counters, FlowSnapshot, PathState, Reason, Snapshot};
use crate::flow::{Direction, End, INTERVALS, Protocol, Role, State};
use crate::route::{Addresses, InterfaceIndex};

/// What of a shim does not change. There is no default. Plain data.
#[derive(Clone, Debug)]
pub struct About {
    /// Its SCION endpoint.
    pub local: EndpointAddr,
    /// What makes paths the best.
    pub select: Criterion,
    /// Its interfaces, the ingress first.
    pub interfaces: Vec<InterfaceStatus>,
}

impl About {
    /// Of a shim with this configuration, at `local`.
    pub fn of(config: &Config, local: EndpointAddr) -> About {
        let interface = |index: InterfaceIndex| InterfaceStatus {
            name: config.interface(index),
            index: index.get(),
            addresses: Addresses::of(local, config.ipv4, index).into_iter().flat_map(Addresses::iter).collect(),
        };
        let all = std::iter::once(InterfaceIndex::INGRESS).chain(config.egress.interfaces());
        About { local, select: config.select, interfaces: all.map(interface).collect() }
    }
}

/// The document of a moment.
pub(super) fn document(about: &About, uptime: Duration, routes: usize, snapshot: &Snapshot) -> Status {
    let connection = |connection| of_connection(connection, snapshot);
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: uptime.as_secs_f64(),
        local: about.local.to_string(),
        select: about.select.to_string(),
        interfaces: about.interfaces.clone(),
        routes,
        connections: snapshot.connections.iter().map(connection).collect(),
        counters: counts(&snapshot.counters),
    }
}

fn of_connection(connection: &ConnectionSnapshot, snapshot: &Snapshot) -> ConnectionStatus {
    let total: u64 = connection.flows.iter().map(carried).sum();
    let recent: u64 = connection.flows.iter().map(|flow| flow.sent.recent + flow.received.recent).sum();
    let flow = |flow: &FlowSnapshot| FlowStatus {
        protocol: match flow.key.protocol {
            Protocol::Tcp => FlowProtocol::Tcp,
            Protocol::Udp => FlowProtocol::Udp,
        },
        role: match flow.role {
            Role::Plain | Role::Main => FlowRole::Main,
            Role::Subflow => FlowRole::Subflow,
        },
        state: state(flow.state).to_owned(),
        local: flow.key.local,
        remote: flow.key.remote,
        interface: flow.interface.get(),
        endpoint: flow.remote.map(|end| end.to_string()),
        path: flow.path.as_ref().map(|path| of_path(path, flow, connection, snapshot)),
        moves: flow.moves,
        rx_bytes: flow.received.bytes,
        tx_bytes: flow.sent.bytes,
        rx_retransmissions: flow.received.retransmissions,
        tx_retransmissions: flow.sent.retransmissions,
        share_pct: per_cent(carried(flow), total),
        share_now_pct: per_cent(flow.sent.recent + flow.received.recent, recent),
        shares: shares(flow, connection),
    };
    ConnectionStatus {
        token: connection.token.map(|token| token.to_string()),
        role: match connection.asked {
            Direction::Out => ShimRole::Client,
            Direction::In => ShimRole::Server,
        },
        peer: connection.peer.to_string(),
        age_s: connection.age.as_secs_f64(),
        sharability: beyond_once(connection.flows.iter().filter_map(|flow| flow.path.as_ref())),
        flows: connection.flows.iter().map(flow).collect(),
    }
}

fn of_path(
    path: &Fingerprint,
    flow: &FlowSnapshot,
    connection: &ConnectionSnapshot,
    snapshot: &Snapshot,
) -> PathStatus {
    let known = snapshot.paths.iter().find(|known| known.isd_as == connection.peer.isd_as && known.path == *path);
    let conn = known.and_then(|known| known.conns.iter().find(|conn| Some(conn.remote) == flow.remote));
    let others = connection.flows.iter().filter(|other| other.key != flow.key).filter_map(|other| other.path.as_ref());
    PathStatus {
        hops: path.to_string(),
        length: path.interfaces().len() / 2 + 1,
        mtu: flow.mtu.or(known.map(|known| known.mtu)),
        sharability: shared(path, others),
        latency_ms: known.and_then(|known| known.latency).map(milliseconds),
        rtt_ms: conn.and_then(|conn| conn.round_trip).map(milliseconds),
        alive: known.is_some_and(|known| known.state != PathState::Dead),
    }
}

/// Interfaces of a path that others cross too.
pub(super) fn shared<'p>(path: &Fingerprint, others: impl Iterator<Item = &'p Fingerprint>) -> usize {
    let others: Vec<&Fingerprint> = others.collect();
    let is_shared = |interface| others.iter().any(|other| other.interfaces().contains(interface));
    path.interfaces().iter().filter(|interface| is_shared(interface)).count()
}

/// How often interfaces are used beyond once: as [`hawser_scion::select::SetMetrics::sharability`] counts.
fn beyond_once<'p>(paths: impl Iterator<Item = &'p Fingerprint>) -> usize {
    let mut all: Vec<_> = paths.flat_map(Fingerprint::interfaces).collect();
    let uses = all.len();
    all.sort_unstable();
    all.dedup();
    uses - all.len()
}

/// A flow's part of its connection, by the second.
fn shares(flow: &FlowSnapshot, connection: &ConnectionSnapshot) -> Vec<ShareSample> {
    let in_second = |flow: &FlowSnapshot, second: usize| flow.sent.intervals[second] + flow.received.intervals[second];
    let sample = |second| {
        let own = in_second(flow, second);
        let all = connection.flows.iter().map(|one| in_second(one, second)).sum();
        ShareSample { share_pct: per_cent(own, all), rate_mbps: own as f64 * 8.0 / 1e6 }
    };
    (0..INTERVALS).map(sample).collect()
}

/// Data of both directions.
fn carried(flow: &FlowSnapshot) -> u64 {
    flow.sent.bytes + flow.received.bytes
}

/// A part of a whole; 0 of nothing.
fn per_cent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn state(state: State) -> &'static str {
    match state {
        State::Opening => "opening",
        State::Answered => "answered",
        State::Established => "established",
        State::HalfClosed(_) => "half closed",
        State::Closing => "closing",
        State::Ended(End::Closed) => "closed",
        State::Ended(End::Reset(_)) => "reset",
    }
}

/// Those that are not zero. Drops have their reason's name, other events one of their own.
fn counts(counters: &Counters) -> Counts {
    let drops = counters.drops().map(|(why, count)| (format!("drop_{}", why.name()), count));
    let deaths = Reason::ALL.map(|because| (format!("dead_{}", because.name()), counters.died(because)));
    let moves = Reason::ALL.map(|because| (format!("moved_{}", because.name()), counters.moved(because)));
    let others = [
        ("flows_opened", counters.opened),
        ("flows_freed", counters.freed),
        ("strangers_pushed_out", counters.pushed_out),
        ("udp_evicted", counters.evicted),
        ("paths_back", counters.back),
        ("probes", counters.probes),
        ("echoes", counters.echoes),
        ("subflows_given_up", counters.lost),
    ];
    let others = others.map(|(name, count)| (name.to_owned(), count));
    drops.chain(deaths).chain(moves).filter(|(_, count)| *count > 0).chain(others).collect()
}
