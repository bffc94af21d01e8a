//! How much a table of flows holds, what it says of a segment, and what it counts.

use super::{FlowId, State};
use crate::mptcp::Token;

/// How much a table holds. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Flows, ended ones that are still kept too.
    pub flows: u32,
    /// Flows among them that peers have asked for, and are not yet established (UDP: answered); a further one takes the
    /// place of the oldest.
    pub half_open: u32,
}

/// What became of a segment. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed {
    /// Its flow.
    pub flow: FlowId,
    /// The state before, none for a new flow.
    pub before: Option<State>,
    /// The state now.
    pub state: State,
}

/// Where the main flows are, of subflows that a peer asks for. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mains {
    /// All pass here.
    Here,
    /// Some pass elsewhere.
    Anywhere,
}

/// Why a segment has no flow. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The table is full.
    #[error("follow a flow: there are as many as may be")]
    Full,
    /// A subflow joins by a token that nobody has.
    #[error("follow a flow: it joins by token {0}, which no connection has")]
    UnknownToken(Token),
    /// Neither the beginning of a flow nor data of one.
    #[error("follow a flow: it is unknown, and this does not begin it")]
    Stray,
}

/// What a table counts. Starts at zero. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Flows that began.
    pub opened: u64,
    /// Flows that were freed.
    pub freed: u64,
    /// Flows refused because of limits.
    pub full: u64,
    /// Half-open flows that made room for later ones.
    pub pushed_out: u64,
    /// Flows of UDP that made room for others where there were as many as may be.
    pub evicted: u64,
    /// Flows refused because of their token.
    pub unknown_tokens: u64,
    /// Segments of no flow.
    pub strays: u64,
}

impl Counters {
    pub(super) fn count(&mut self, refused: Refused) {
        *match refused {
            Refused::Full => &mut self.full,
            Refused::UnknownToken(_) => &mut self.unknown_tokens,
            Refused::Stray => &mut self.strays,
        } += 1;
    }
}
