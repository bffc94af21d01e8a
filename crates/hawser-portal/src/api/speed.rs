//! A speed test, as it is ordered.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which way a run loads the links, seen from the portal that is asked. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpeedDirection {
    /// From the peer.
    Down,
    /// To the peer.
    Up,
}

impl fmt::Display for SpeedDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Down => "down",
            Self::Up => "up",
        })
    }
}

/// What is to be loaded, and how much. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedOrder {
    /// The peer's name.
    pub peer: String,
    /// The link whose paths carry it; none: all that bulk flows may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Which way.
    pub direction: SpeedDirection,
    /// For how long at most.
    pub milliseconds: u64,
    /// Bytes of IP packets at most.
    pub bytes: u64,
}
