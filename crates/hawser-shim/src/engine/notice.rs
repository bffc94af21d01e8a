//! What the engine tells whoever manages subflows, and the log.

use hawser_scion::path::Fingerprint;

use crate::flow::{Direction, End, FlowKey, Role};
use crate::mptcp::Token;
use crate::route::ScionHost;

/// Something that happened. There is no default. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A connection that this host's application asked for may have this many more subflows now: told when it is
    /// established, and whenever the number changes.
    Room {
        /// The connection, as this host's kernel knows it.
        token: Token,
        /// How many more.
        free: usize,
    },
    /// A subflow's path is dead and there is no other, but the connection has another subflow that lives: it is to be
    /// destroyed, so that the kernel sends again at once what it has in flight.
    Lost {
        /// The connection, as this host's kernel knows it.
        token: Token,
        /// The subflow.
        key: FlowKey,
    },
    /// A flow is established.
    Opened(Opened),
    /// A flow goes another way from now on.
    Moved {
        /// Which.
        key: FlowKey,
        /// The path before; empty inside the AS.
        from: Fingerprint,
        /// The path now.
        to: Fingerprint,
        /// Why.
        because: Reason,
    },
    /// A flow is over.
    Closed {
        /// Which.
        key: FlowKey,
        /// How; none: it was silent for too long.
        end: Option<End>,
        /// Data that was sent, in bytes.
        sent: u64,
        /// Data that was received, in bytes.
        received: u64,
    },
    /// A path that was in use is dead.
    Died {
        /// To whom it leads.
        peer: ScionHost,
        /// Which.
        path: Fingerprint,
        /// Why.
        because: Reason,
    },
    /// A path that was dead works again.
    Back {
        /// To whom it leads.
        peer: ScionHost,
        /// Which.
        path: Fingerprint,
    },
}

/// A flow is established. There is no default. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Its ends.
    pub key: FlowKey,
    /// Who asked for it.
    pub asked: Direction,
    /// What it is to MPTCP.
    pub role: Role,
    /// Its connection, as this host's kernel knows it; none for plain TCP.
    pub token: Option<Token>,
    /// The peer.
    pub peer: ScionHost,
    /// The path; none where the peer chose it, empty inside the AS.
    pub path: Option<Fingerprint>,
}

/// Why a path is no longer used. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// A router said that a part of it is dead.
    Scmp,
    /// Probes were not answered.
    Silence,
    /// It is no longer known, or expired.
    Gone,
    /// No connection could be opened along it.
    Unusable,
    /// The path in use was dead, and this one is not.
    Alive,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 5] = [Reason::Scmp, Reason::Silence, Reason::Gone, Reason::Unusable, Reason::Alive];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scmp => "scmp",
            Self::Silence => "silence",
            Self::Gone => "gone",
            Self::Unusable => "unusable",
            Self::Alive => "alive",
        }
    }
}
