//! What is seen of a path while the portal runs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a path does, from looking at it again and again. `Unknown` at first; plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// It has carried nothing yet.
    #[default]
    Unknown,
    /// It carries packets.
    Well,
    /// It carries packets, and loses or delays more than it used to.
    Degraded,
    /// It carries less than half of what it did, and packets wait for it.
    Fading,
    /// Nothing comes back by it, though its interface works.
    Cut,
    /// Its interface, address or route is missing.
    Down,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Well => "well",
            Self::Degraded => "degraded",
            Self::Fading => "fading",
            Self::Cut => "cut",
            Self::Down => "down",
        })
    }
}

/// The figures of a path over the last second, and its counts. The default is a path that has carried nothing; plain
/// data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// Its number in the session; none before there is a path.
    pub id: Option<u32>,
    /// Which of the link's paths to this peer it is, from zero: the same as in its history.
    pub place: usize,
    /// How it does.
    pub condition: Condition,
    /// For how long it has done so, in seconds.
    pub condition_s: f64,
    /// Rate of the datagrams that came by it, in Mbit/s.
    pub rx_mbps: f64,
    /// Rate of the datagrams that left by it, in Mbit/s.
    pub tx_mbps: f64,
    /// Its part of what all paths to this peer carry, both ways, in per cent.
    pub share_pct: f64,
    /// The least round trip of the last ten seconds, in milliseconds; none before the first sample.
    pub rtt_min_ms: Option<f64>,
    /// What of the round trip is spent waiting: the excess of the smoothed and of the latest one over the least, in
    /// milliseconds.
    pub queue_ms: Option<f64>,
    /// Bulk flows use it.
    pub active_set: bool,
    /// Datagrams that arrived, since the path began or began again.
    pub acked_packets: u64,
    /// Datagrams declared lost, since the path began or began again.
    pub lost_packets: u64,
    /// Bytes of inner packets that it retransmitted, lost on whatever path.
    pub retransmitted_bytes: u64,
    /// Bytes on the wire of copies of what was in doubt on another path.
    pub reinjected_bytes: u64,
}
