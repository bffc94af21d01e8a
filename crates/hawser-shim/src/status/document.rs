//! The status document. Its field names are a contract with scripts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A shim at one moment. The default is one that has just started; plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the running program.
    pub version: String,
    /// Since it started, in seconds.
    pub uptime_s: f64,
    /// Its SCION endpoint.
    pub local: String,
    /// What makes paths the best.
    pub select: String,
    /// Its interfaces: the ingress first, then the egresses in order.
    pub interfaces: Vec<InterfaceStatus>,
    /// Entries of the map.
    pub routes: usize,
    /// Connections, the oldest first.
    pub connections: Vec<ConnectionStatus>,
    /// What was counted since the start, by name.
    pub counters: Counts,
}

/// Events since the start, by name. Empty by default.
pub type Counts = BTreeMap<String, u64>;

/// An interface of the shim. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// 0: for servers; others: for clients.
    pub index: u8,
    /// Its addresses, IPv6 first.
    pub addresses: Vec<IpAddr>,
}

/// A connection: main flow and subflows. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionStatus {
    /// MPTCP's token at this host, as `ss -M` writes it; none for plain TCP and UDP.
    pub token: Option<String>,
    /// What this host is.
    pub role: ShimRole,
    /// The peer's host in SCION.
    pub peer: String,
    /// Since it began, in seconds.
    pub age_s: f64,
    /// How often interfaces are used beyond once, by the paths of all its flows.
    pub sharability: usize,
    /// Main flow first, then subflows in the order they came.
    pub flows: Vec<FlowStatus>,
}

/// Which end of a connection this host is. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShimRole {
    /// It asked for the connection.
    Client,
    /// It was asked.
    Server,
}

/// What a flow speaks: TCP, where nothing says so. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowProtocol {
    /// TCP, or MPTCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// What a flow is to its connection. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowRole {
    /// The first one, or the only one of plain TCP and of UDP.
    Main,
    /// One that joined.
    Subflow,
}

/// A flow. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// What it speaks.
    #[serde(default)]
    pub protocol: FlowProtocol,
    /// What it is to its connection.
    pub role: FlowRole,
    /// How far it is: `opening`, `answered`, `established`, `half closed`, `closing`, `closed`, `reset`.
    pub state: String,
    /// This host's end of it.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Which interface of this shim it uses.
    pub interface: u8,
    /// The SCION end that its datagrams go to; none before anything came from there.
    pub endpoint: Option<String>,
    /// Its SCION path; none where the peer chose it.
    pub path: Option<PathStatus>,
    /// How often it went over to another path.
    pub moves: u64,
    /// Bytes of data received.
    pub rx_bytes: u64,
    /// Bytes of data sent.
    pub tx_bytes: u64,
    /// Packets received again.
    pub rx_retransmissions: u64,
    /// Packets retransmitted.
    pub tx_retransmissions: u64,
    /// Its part of the connection's bytes so far, both directions, in per cent.
    pub share_pct: f64,
    /// Its part of them in the last 8 seconds, in per cent.
    pub share_now_pct: f64,
    /// Its part in each of these seconds, the oldest first; the last one is not over.
    pub shares: Vec<ShareSample>,
}

/// A flow's part of its connection's bytes in a second. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareSample {
    /// In per cent; 0 where none of its flows carried anything.
    pub share_pct: f64,
    /// What the flow carried, both directions, in Mbit/s.
    pub rate_mbps: f64,
}

/// A SCION path of a flow. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathStatus {
    /// ASes and interfaces on it, as `scion showpaths` writes them; empty within one AS.
    pub hops: String,
    /// ASes on it, both ends counted.
    pub length: usize,
    /// Bytes that a packet may have from its SCION header on.
    pub mtu: Option<u16>,
    /// Its interfaces that other flows of the connection use too.
    pub sharability: usize,
    /// Its one-way latency as it is announced, in milliseconds.
    pub latency_ms: Option<f64>,
    /// Round trip as the shim's probes measured it, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// Whether it works, as far as is known.
    pub alive: bool,
}

impl fmt::Display for ShimRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

impl fmt::Display for FlowRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Main => "main",
            Self::Subflow => "subflow",
        })
    }
}
