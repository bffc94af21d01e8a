//! The document of the largest flows. Its field names are a contract with scripts, as those of the status.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The version of the document: it grows by one where a field goes or changes its meaning, and not where one comes.
pub const FLOWS_SCHEMA: u32 = 1;

/// The largest flows of an interval, those first that carried most lately. Empty by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flows {
    /// [`FLOWS_SCHEMA`] of who wrote it.
    pub schema: u32,
    /// How long the interval was that rates are of, in seconds.
    pub interval_s: f64,
    /// The flows, at most 64.
    pub flows: Vec<FlowStatus>,
}

/// A flow, both directions of it. Bytes are those of inner packets, headers included, and each packet counts once.
/// Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// The peer that it is exchanged with.
    pub peer: String,
    /// `tcp`, `udp`, `icmp` or `icmpv6`, else the protocol's number.
    pub protocol: String,
    /// Who is on this portal's side.
    pub local_address: IpAddr,
    /// Its port, or the identifier of an ICMP echo; none where there is none, as in fragments.
    pub local_port: Option<u16>,
    /// Who is on the peer's side.
    pub remote_address: IpAddr,
    /// Its port.
    pub remote_port: Option<u16>,
    /// The `[[rule]]` that it matches, counted from 1 in the order of the configuration; none: it matches none, or
    /// nothing of it was sent.
    pub rule: Option<u16>,
    /// What chooses the paths of its packets; none: nothing of it was sent.
    pub scheduler: Option<String>,
    /// Bytes sent to the peer in a second of the interval.
    pub tx_bytes_per_s: f64,
    /// Bytes received from it in a second of the interval.
    pub rx_bytes_per_s: f64,
    /// Bytes sent since it is counted.
    pub tx_bytes: u64,
    /// Bytes received since it is counted.
    pub rx_bytes: u64,
    /// For how long it is counted, in seconds.
    pub counted_s: f64,
    /// The paths that carried it, at most 8.
    pub paths: Vec<FlowPathStatus>,
}

/// What a path carried of a flow. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPathStatus {
    /// Its link's name, as in the status.
    pub name: String,
    /// Where it leads, as in the status.
    pub endpoint: Option<String>,
    /// Bytes that left by it first: what is retransmitted counts for the path that it took before.
    pub tx_bytes: u64,
    /// Bytes that it brought.
    pub rx_bytes: u64,
}
