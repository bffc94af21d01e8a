//! What there is, for status.

use std::time::{Duration, SystemTime};

use hawser_scion::path::Fingerprint;
use hawser_scion::select::Loss;
use hawser_scion::{EndpointAddr, IsdAs};

use super::counters::Counters;
use crate::flow::{Direction, FlowKey, INTERVALS, Role, State};
use crate::mptcp::Token;
use crate::route::{InterfaceIndex, ScionHost};

/// All that an engine has. Empty by default. Plain data.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// Connections, the oldest first. A flow of plain TCP is one of its own.
    pub connections: Vec<ConnectionSnapshot>,
    /// Hosts that flows go to or come from.
    pub peers: Vec<PeerSnapshot>,
    /// Paths to ASes of peers, by AS, the best first.
    pub paths: Vec<PathSnapshot>,
    /// What was counted.
    pub counters: Counters,
}

/// A connection: main flow and subflows. There is no default. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct ConnectionSnapshot {
    /// As this host's kernel knows it; none for plain TCP, and where its beginning was not seen.
    pub token: Option<Token>,
    /// Who asked for it.
    pub asked: Direction,
    /// The peer.
    pub peer: ScionHost,
    /// How long ago it began.
    pub age: Duration,
    /// Its flows, in the order they came.
    pub flows: Vec<FlowSnapshot>,
}

/// A flow. There is no default. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowSnapshot {
    /// Its ends.
    pub key: FlowKey,
    /// What it is to MPTCP.
    pub role: Role,
    /// How far it is.
    pub state: State,
    /// Who asked for it.
    pub asked: Direction,
    /// The interface that it passes.
    pub interface: InterfaceIndex,
    /// How long ago it began.
    pub age: Duration,
    /// The SCION endpoint that its datagrams go to; none where nothing came yet.
    pub remote: Option<EndpointAddr>,
    /// The path, where this host chooses it; empty inside the AS.
    pub path: Option<Fingerprint>,
    /// Bytes of a SCION packet on that path.
    pub mtu: Option<u16>,
    /// The largest TCP segment there.
    pub max_segment: Option<u16>,
    /// How often it was moved to another path.
    pub moves: u64,
    /// What was sent.
    pub sent: Passed,
    /// What was received.
    pub received: Passed,
}

/// What passed one way of a flow. Nothing by default. Plain data.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Passed {
    /// Packets, trains counted as one.
    pub packets: u64,
    /// Data, in bytes.
    pub bytes: u64,
    /// Packets that had passed before.
    pub retransmissions: u64,
    /// Data in the last 7 to 8 seconds, in bytes.
    pub recent: u64,
    /// The same by the second, the oldest first; the last one is not over.
    pub intervals: [u64; INTERVALS],
    /// Its part of its connection's data in that time, 0 to 1.
    pub share: f64,
}

/// A peer. There is no default. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct PeerSnapshot {
    /// Who.
    pub host: ScionHost,
    /// Flows.
    pub flows: usize,
    /// What compression counted.
    pub compression: crate::compress::Counters,
}

/// A path that this host may choose. There is no default. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct PathSnapshot {
    /// Where it leads.
    pub isd_as: IsdAs,
    /// Which; empty inside the AS.
    pub path: Fingerprint,
    /// ASes on the way, both ends counted.
    pub length: usize,
    /// Bytes of a SCION packet.
    pub mtu: u16,
    /// When it expires; none inside the AS.
    pub expiry: Option<SystemTime>,
    /// Its announced one-way latency.
    pub latency: Option<Duration>,
    /// Whether it works.
    pub state: PathState,
    /// Interfaces that it shares with other paths in use to the same AS.
    pub sharability: usize,
    /// Connections along it.
    pub conns: Vec<ConnSnapshot>,
}

/// A connection of SCION along one path to one peer. There is no default. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct ConnSnapshot {
    /// The peer's shim.
    pub remote: EndpointAddr,
    /// Flows on it.
    pub flows: usize,
    /// The smoothed round trip, as probes measured it.
    pub round_trip: Option<Duration>,
    /// Probes without answer.
    pub loss: Option<Loss>,
    /// Datagrams that were sent.
    pub sent_packets: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Datagrams that were received.
    pub received_packets: u64,
    /// Bytes of them.
    pub received_bytes: u64,
}

/// Whether a path works. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// No flow uses it.
    Idle,
    /// It is used.
    Live,
    /// It is dead.
    Dead,
}
