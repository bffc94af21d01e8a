//! Flows: each TCP connection, main flow or subflow of MPTCP, from its SYN to its end; and datagrams of UDP between two
//! ends.
//!
//! 1. [`FlowTable::observe`] is shown each segment that passes, and says which flow it belongs to.
//! 2. [`State`] follows the flow from SYN to FIN or RST; idle flows end by [`FlowTable::expire`].
//! 3. Keys in MP_CAPABLE give a [`Connection`] its tokens, by which subflows join it.
//! 4. Each flow counts, per [`Direction`], what passed: see [`Track`].
//! 5. UDP says neither beginning nor end: silence ends its flows, and who is in the way (`datagrams`).
//!
//! Nothing is allocated for segments of flows that are known.

mod account;
mod connection;
mod datagrams;
mod look;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod track;

use std::net::SocketAddr;
use std::time::Duration;

use hawser_core::packet::inner::{PROTOCOL_TCP, PROTOCOL_UDP};
use hawser_core::units::Time;

use crate::mptcp::Segment;

pub use account::{Counters, Limits, Mains, Observed, Refused};
pub use connection::{Connection, ConnectionId};
pub use state::{End, State};
pub use table::FlowTable;
pub use track::{INTERVALS, Track};

/// Which way a segment passes. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From this host to the peer.
    Out,
    /// From the peer to this host.
    In,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// What a flow speaks. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

impl Protocol {
    /// Both.
    pub const ALL: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

    /// Its number in IP (the IANA's registry of protocol numbers).
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => PROTOCOL_TCP,
            Self::Udp => PROTOCOL_UDP,
        }
    }
}

/// The two ends of a flow, as this host sees them. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// What it speaks.
    pub protocol: Protocol,
    /// This host's.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

impl FlowKey {
    /// Of a segment that passes this way.
    pub fn of(segment: &Segment<'_>, direction: Direction) -> Self {
        Self::between(Protocol::Tcp, segment.source, segment.destination, direction)
    }

    /// Of what passes this way from one end to another.
    pub const fn between(
        protocol: Protocol,
        source: SocketAddr,
        destination: SocketAddr,
        direction: Direction,
    ) -> Self {
        match direction {
            Direction::Out => Self { protocol, local: source, remote: destination },
            Direction::In => Self { protocol, local: destination, remote: source },
        }
    }
}

/// Names a flow of a table; a name is never used again. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId {
    slot: u32,
    generation: u32,
}

impl FlowId {
    /// Its place in the table; a later flow may have the same.
    pub(crate) const fn place(self) -> usize {
        self.slot as usize
    }
}

/// What a flow is to MPTCP. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// TCP without MPTCP, or a flow that was there before the table.
    Plain,
    /// The first of a connection, or what asks to be it.
    Main,
    /// One that joined.
    Subflow,
}

/// A flow. Starts with its first segment. Plain data; the table owns it.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its ends.
    pub key: FlowKey,
    /// Who asked for it.
    pub asked: Direction,
    /// How far it is.
    pub state: State,
    /// What it is to MPTCP.
    pub role: Role,
    /// Of which connection; none for plain ones, and for subflows whose connection is older than the table.
    pub connection: Option<ConnectionId>,
    /// When its first segment passed.
    pub opened: Time,
    /// When its last one did.
    pub seen: Time,
    out: Track,
    incoming: Track,
    /// Under which time it is looked at again.
    due: Time,
    /// The peer began it, and this host has not said yet that it is one.
    unproven: bool,
}

impl Flow {
    fn new(key: FlowKey, asked: Direction, state: State, role: Role, now: Time) -> Self {
        let due = now + state.patience_of(key.protocol);
        let (out, incoming) = (Track::default(), Track::default());
        let (connection, unproven) = (None, false);
        Self { key, asked, state, role, connection, opened: now, seen: now, out, incoming, due, unproven }
    }

    /// How long it may be silent as it is.
    pub const fn patience(&self) -> Duration {
        self.state.patience_of(self.key.protocol)
    }

    /// What passed one way.
    pub const fn track(&self, direction: Direction) -> &Track {
        match direction {
            Direction::Out => &self.out,
            Direction::In => &self.incoming,
        }
    }

    /// The track of one way, and that of the other.
    const fn tracks(&mut self, direction: Direction) -> (&mut Track, &mut Track) {
        match direction {
            Direction::Out => (&mut self.out, &mut self.incoming),
            Direction::In => (&mut self.incoming, &mut self.out),
        }
    }

    /// Counts a segment, and goes where it leads.
    fn observe(&mut self, now: Time, direction: Direction, segment: &Segment<'_>) {
        let asked = self.asked;
        let (here, there) = self.tracks(direction);
        let step = state::step_of(segment, direction, asked, here, there);
        here.count(now, segment, there, matches!(step, Some(state::Step::Fin(_))));
        let both_closed = here.is_fin_acknowledged(there) && there.is_fin_acknowledged(here);
        self.seen = now;
        if let Some(step) = step {
            self.state = self.state.after(step);
        }
        if both_closed {
            self.state = self.state.after(state::Step::Acknowledged);
        }
    }
}
