//! What paths did, as the control socket tells it: columns of figures, oldest first.

use serde::{Deserialize, Serialize};

/// The figures of a path, in the order of [`PathHistory::columns`]. Their names have their units.
pub const METRICS: [&str; 9] = [
    "rx_bps",
    "tx_bps",
    "capacity_bps",
    "rtt_us",
    "queue_us",
    "loss_ppm",
    "retransmitted_bps",
    "reinjected_bps",
    "share_ppm",
];

/// Which figures. An hour at first; plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// An hour, by the second.
    #[default]
    Hour,
    /// A day, by the minute: the mean of its seconds.
    Day,
}

impl Span {
    /// Seconds that a row stands for.
    pub const fn step_s(self) -> u64 {
        match self {
            Self::Hour => 1,
            Self::Day => 60,
        }
    }

    /// Rows that are remembered.
    pub const fn rows(self) -> u64 {
        match self {
            Self::Hour => 3_600,
            Self::Day => 1_440,
        }
    }
}

/// Which part of it is asked for. The default is the last hour of all paths; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuestion {
    /// Of which span.
    #[serde(default)]
    pub span: Span,
    /// Of which peer; none: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Of which paths, by their link's name; none: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// At most this many of the newest rows; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// What one path did. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathHistory {
    /// Its peer.
    pub peer: String,
    /// Its link's name.
    pub path: String,
    /// Which of the link's paths to this peer, from zero.
    pub place: usize,
    /// A column for each of [`METRICS`], oldest row first; null where nothing is known.
    pub columns: Vec<Vec<Option<u64>>>,
}

/// What paths did. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// Seconds that a row stands for.
    pub step_s: u64,
    /// When the last row ended, in milliseconds since 1970 (UTC).
    pub end_unix_ms: u64,
    /// [`METRICS`].
    pub metrics: Vec<String>,
    /// The paths that were asked for.
    pub paths: Vec<PathHistory>,
    /// Paths for which there was no room.
    pub unrecorded: usize,
}
