//! What a daemon has around it, a portal or a shim: who gives it orders ([`Host`]), and a control socket.
//!
//! On the control socket one JSON object a line goes in both directions; anything wrong is answered with
//! `{"error":"…"}`. [`ControlSocket`] answers by what an [`Answer`] says, [`ask`] asks.

mod client;
mod control;
mod host;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use client::{ClientError, ask};
pub use control::{Answer, ControlSocket, ServeError, StatusAlone};
pub use host::{Host, Order, orders_of};

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

/// The answer to a question that is none. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// What is wrong with it.
    error: String,
}
