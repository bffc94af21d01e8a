//! The control socket: what a portal says about itself, and how it is asked. A shim has one of the same kind.
//!
//! One JSON object a line in both directions over a Unix socket: `{"get":"status"}` is answered with a [`Status`],
//! `{"do":"reload"}` with `{"done":"reload"}`, anything wrong with `{"error":"…"}`. A connection may ask again and again.

mod client;
mod server;
mod status;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use client::{Client, ClientError};
pub use server::{ControlSocket, Reloads, ServeError};
pub use status::{
    DataCapStatus, FecStatus, LinkStatus, NameStatus, PathLoad, PathState, PathStatus, PeerStatus, SCHEMA, ScionStatus,
    Status,
};

/// Longest question, in bytes: far more than any question there is, so that memory stays bounded.
const REQUEST_LIMIT: u64 = 4096;

/// Who answers on a control socket. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A portal.
    Portal,
    /// A shim.
    Shim,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portal => "portal",
            Self::Shim => "shim",
        })
    }
}

/// A question. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    /// Asks for one of the documents.
    Get(Document),
    /// Asks for something to be done.
    Do(Deed),
}

/// What can be asked for. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Document {
    /// [`Status`], or that of a shim.
    Status,
}

/// What can be done. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deed {
    /// The configuration is read again, as by SIGHUP.
    Reload,
}

/// It was done. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    done: Deed,
}

/// The answer to a question that is none. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// What is wrong with it.
    error: String,
}
