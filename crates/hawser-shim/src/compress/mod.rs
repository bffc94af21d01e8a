//! No redundant header: a context's id stands in place of what both ends know of a flow (README.md draws the
//! datagrams).
//!
//! 1. A flow's first segments go whole, and define a context: the IP header and ports, under an id drawn at random.
//! 2. The far end keeps the context, and acknowledges its id in the next datagram that goes back.
//! 3. From then on a segment's datagram is the id, what of TCP's header changes, options and payload.
//! 4. A segment that is retransmitted defines its context anew: so the ends find each other after a restart of either.
//! 5. Datagrams of UDP have contexts, too. Nothing is retransmitted there: definitions come again with time (`udp`).
//!
//! Every compact datagram is complete but for its context, which never changes under one id, and an id is never drawn
//! twice: loss, reordering and restarts may cost a segment, which TCP sends again, but lead to no wrong one.

mod context;
mod expand;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod shrink;
#[cfg(test)]
mod tests;
mod udp;

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_core::units::Time;

use crate::flow::{FlowKey, Protocol};
use crate::mptcp::Sequence;

pub use context::ContextId;
pub(crate) use context::ID_BYTES;
pub(crate) use context::{Constants, Varying};
pub use expand::{Expanded, Rejected};
pub use format::{COMPACT_HEADER, Datagrams, is_datagram, is_whole};
pub use shrink::{Offload, TooLarge};
pub(crate) use shrink::{headers_of, pieces};
pub use udp::AckState;

/// A flow without segments is forgotten after this; a later one defines it anew (RFC 5382 section 5, REQ-5).
const IDLE: Duration = Duration::from_secs(2 * 3600 + 4 * 60);
/// What a compact datagram may have beside [`COMPACT_HEADER`] in a flow of the kernel's: a traffic class, and an
/// identification where the packet may be fragmented.
const VARIABLE: u16 = 3;

/// The state that this host shares with one peer. Starts without contexts; one owner.
#[derive(Debug)]
pub struct Compression {
    limit: usize,
    flows: BTreeMap<FlowKey, Flow>,
    /// Contexts of the peer's.
    inbound: BTreeMap<ContextId, Constants>,
    /// Ids that this host gave out.
    given: BTreeMap<ContextId, FlowKey>,
    /// Flows of UDP among them: half may be.
    datagrams: usize,
    /// The peer has acknowledged an id: it receives what is sent to it.
    is_proven: bool,
    counters: Counters,
}

/// A flow, both ways. Starts with its first segment.
#[derive(Clone, Debug, Default)]
struct Flow {
    outbound: Option<Outbound>,
    /// The peer's newest contexts of this flow: an old definition that comes late does not throw out the one in use.
    inbound: [Option<ContextId>; 2],
    /// An id that is to be acknowledged.
    owed: Option<ContextId>,
    used: Time,
    /// Of UDP alone.
    ack_state: AckState,
}

/// The context by which segments go out.
/// Unknown to the peer at first.
#[derive(Clone, Copy, Debug)]
struct Outbound {
    id: ContextId,
    constants: Constants,
    /// The peer has acknowledged it.
    is_known: bool,
    /// The sequence number of the segment that was furthest.
    highest: Sequence,
    /// Where what was sent ends, and when that was sent; of UDP, when it was defined last.
    end: Sequence,
    ended: Time,
}

/// What was counted. Starts at zero. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Datagrams with whole headers that went out, those with headers alone too.
    pub whole: u64,
    /// Compact datagrams that went out.
    pub compact: u64,
    /// Datagrams of ids that nobody gave.
    pub unknown: u64,
    /// Datagrams that make no sense.
    pub malformed: u64,
    /// Packets between addresses that are not the peer's or not this host's.
    pub foreign: u64,
    /// Definitions that were not taken: there are too many, or they contradict others.
    pub refused: u64,
}

impl Compression {
    /// For one peer, with this many flows at most; those beyond go whole.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            flows: BTreeMap::new(),
            inbound: BTreeMap::new(),
            given: BTreeMap::new(),
            datagrams: 0,
            is_proven: false,
            counters: Counters::default(),
        }
    }

    /// The largest segment (TCP's MSS, RFC 9293 section 3.7.1) of which the datagram has at most `room` bytes.
    pub const fn max_segment(room: u16) -> u16 {
        room.saturating_sub(COMPACT_HEADER).saturating_sub(VARIABLE)
    }

    /// A flow is over: the next one between its ends has other contexts.
    pub fn forget(&mut self, key: &FlowKey) {
        if let Some(flow) = self.flows.remove(key) {
            self.datagrams -= usize::from(key.protocol == Protocol::Udp);
            self.drop_contexts(&flow);
        }
    }

    /// Forgets flows that were silent for two hours.
    pub fn expire(&mut self, now: Time) {
        let is_old = |flow: &Flow| now.since(flow.used) >= IDLE;
        let old: Vec<FlowKey> = self.flows.iter().filter(|(_, flow)| is_old(flow)).map(|(key, _)| *key).collect();
        old.iter().for_each(|key| self.forget(key));
    }

    /// Forgets flows that nobody wants to keep.
    pub fn retain(&mut self, mut keep: impl FnMut(&FlowKey) -> bool) {
        let unwanted: Vec<FlowKey> = self.flows.keys().filter(|key| !keep(key)).copied().collect();
        unwanted.iter().for_each(|key| self.forget(key));
    }

    /// How many flows there are.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The flow, made where there is room for it.
    fn flow(&mut self, key: FlowKey, now: Time) -> Option<&mut Flow> {
        if !self.flows.contains_key(&key) {
            let is_datagrams = key.protocol == Protocol::Udp;
            if self.flows.len() >= self.limit || (is_datagrams && self.datagrams >= self.limit.div_ceil(2)) {
                return None;
            }
            self.datagrams += usize::from(is_datagrams);
        }
        let flow = self.flows.entry(key).or_default();
        flow.used = now;
        Some(flow)
    }

    fn drop_contexts(&mut self, flow: &Flow) {
        if let Some(outbound) = flow.outbound {
            self.given.remove(&outbound.id);
        }
        for id in flow.inbound.into_iter().flatten() {
            self.inbound.remove(&id);
        }
    }

    /// Entries of all kinds.
    #[cfg(test)]
    fn entries(&self) -> usize {
        self.flows.len() + self.inbound.len() + self.given.len()
    }
}
