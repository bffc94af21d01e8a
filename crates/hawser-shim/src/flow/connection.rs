//! Connections of MPTCP: which flows are one, by the tokens of their keys.

use std::collections::{BTreeMap, BTreeSet};

use hawser_core::units::Time;

use super::{Direction, FlowId};
use crate::mptcp::Token;

/// Names a connection of a table; a name is never used again. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(u64);

/// Flows that are one connection. Starts with its main flow, and is gone with its last flow. Plain data; the table owns
/// it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Main flow and subflows, in the order they came.
    pub flows: Vec<FlowId>,
    /// When its main flow was answered.
    pub opened: Time,
    local: Option<Token>,
    remote: Option<Token>,
}

impl Connection {
    /// By which flows join at this host (of flows that come in), or at the peer.
    pub const fn token(&self, joins: Direction) -> Option<Token> {
        match joins {
            Direction::In => self.local,
            Direction::Out => self.remote,
        }
    }
}

/// All connections. Starts without; the table owns it.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: BTreeMap<ConnectionId, Connection>,
    /// By which way joins pass, and their token. Tokens of two peers may be the same.
    tokens: BTreeSet<(Direction, Token, ConnectionId)>,
    next: u64,
}

impl Connections {
    pub(super) fn open(&mut self, main: FlowId, now: Time) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        self.all.insert(id, Connection { flows: vec![main], opened: now, local: None, remote: None });
        id
    }

    /// Flows that pass this way join by this token from now on. The first token stays: a later one is forged.
    pub(super) fn set_token(&mut self, id: ConnectionId, joins: Direction, token: Token) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        let place = match joins {
            Direction::In => &mut connection.local,
            Direction::Out => &mut connection.remote,
        };
        if place.is_none() {
            *place = Some(token);
            self.tokens.insert((joins, token, id));
        }
    }

    /// Connections that a flow which passes this way joins by this token: one, as good as always.
    pub(super) fn with_token(&self, joins: Direction, token: Token) -> impl Iterator<Item = ConnectionId> + '_ {
        let range = (joins, token, ConnectionId(0))..=(joins, token, ConnectionId(u64::MAX));
        self.tokens.range(range).map(|(_, _, id)| *id)
    }

    pub(super) fn join(&mut self, id: ConnectionId, flow: FlowId) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.flows.push(flow);
        }
    }

    /// A flow is gone, and with the last one its connection.
    pub(super) fn leave(&mut self, id: ConnectionId, flow: FlowId) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        connection.flows.retain(|one| *one != flow);
        if connection.flows.is_empty() {
            let tokens = [Direction::In, Direction::Out].map(|joins| (joins, connection.token(joins)));
            for (joins, token) in tokens {
                if let Some(token) = token {
                    self.tokens.remove(&(joins, token, id));
                }
            }
            self.all.remove(&id);
        }
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.all.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.all.iter().map(|(id, connection)| (*id, connection))
    }

    /// Entries of all kinds.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.all.len() + self.tokens.len()
    }
}
