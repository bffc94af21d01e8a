//! The ports of this host's that SCION sees where TCP is its layer 4.
//!
//! 1. A flow that this host begins takes one ([`Ports::take`]): of no other flow to the same port of its peer, and
//!    rested since the last one, for the peer may remember that ([`RESTS`]). Where there is none, another is opened.
//! 2. What comes back to it is found by the peer, the peer's port and this one ([`Ports::find`]).
//! 3. The flow gives it back when it is over ([`Ports::give_back`]); one that nobody took for long is closed
//!    ([`Ports::idle`]).

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_core::units::Time;

use super::lanes::Lane;
use super::{Engine, Outside, PeerId};
use crate::flow::FlowId;
use crate::translate::OuterPort;

/// How long a port rests: the time in which an end remembers a flow (RFC 9293 section 3.4.1, TIME-WAIT; Linux: 60 s).
const RESTS: Duration = Duration::from_secs(60);
/// Afterwards it is closed when it was of no use for so long again.
const CLOSES: Duration = Duration::from_secs(120);
/// Ports at a time: descriptors are dear, and an AS has 1768 dispatched ports mostly.
const MOST_PORTS: usize = 1024;

/// What finds a flow. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    peer: PeerId,
    /// The peer's port.
    remote: u16,
    port: OuterPort,
}

/// A port. Free when it was opened; [`Ports`] owns it.
#[derive(Clone, Copy, Debug)]
struct Port {
    flows: usize,
    /// When a flow gave it back last; none where none ever did.
    free: Option<Time>,
    opened: Time,
}

/// All of them. None at first. The engine owns it.
#[derive(Debug, Default)]
pub(super) struct Ports {
    all: BTreeMap<OuterPort, Port>,
    flows: BTreeMap<Place, FlowId>,
}

impl Ports {
    /// Step 1. None where there are too many, or none can be opened.
    fn take(
        &mut self,
        now: Time,
        (peer, remote): (PeerId, u16),
        id: FlowId,
        open: impl FnOnce() -> Option<OuterPort>,
    ) -> Option<OuterPort> {
        let is_free = |port: OuterPort| !self.flows.contains_key(&Place { peer, remote, port });
        let has_rested = |port: &Port| port.free.is_none_or(|free| now.since(free) >= RESTS);
        // The one that rested for longest.
        let free = self.all.iter().filter(|(port, _)| is_free(**port));
        let oldest = free.min_by_key(|(_, port)| port.free).map(|(port, known)| (*port, has_rested(known)));
        let port = match oldest {
            Some((port, true)) => port,
            Some((port, false)) if self.all.len() >= MOST_PORTS => port,
            None if self.all.len() >= MOST_PORTS => return None,
            _ => open()?,
        };
        let known = self.all.entry(port).or_insert(Port { flows: 0, free: None, opened: now });
        known.flows += 1;
        self.flows.insert(Place { peer, remote, port }, id);
        Some(port)
    }

    /// Step 2.
    pub fn find(&self, peer: PeerId, remote: u16, port: OuterPort) -> Option<FlowId> {
        self.flows.get(&Place { peer, remote, port }).copied()
    }

    /// Whether it is one of them: no server has it.
    pub fn has(&self, port: OuterPort) -> bool {
        self.all.contains_key(&port)
    }

    /// Step 3.
    pub fn give_back(&mut self, now: Time, lane: &Lane) {
        let Some(port) = lane.outer else { return };
        let place = Place { peer: lane.peer, remote: lane.key.remote.port(), port };
        // A peer's flow has a server's port, which is none of these.
        if self.flows.get(&place) != Some(&lane.id) {
            return;
        }
        self.flows.remove(&place);
        if let Some(known) = self.all.get_mut(&port) {
            (known.flows, known.free) = (known.flows - 1, Some(now));
        }
    }

    /// Step 3: takes out one that nobody took for long.
    pub fn idle(&mut self, now: Time) -> Option<OuterPort> {
        let is_idle = |known: &Port| known.flows == 0 && now.since(known.free.unwrap_or(known.opened)) >= CLOSES;
        let (port, _) = self.all.iter().find(|(_, known)| is_idle(known))?;
        let port = *port;
        self.all.remove(&port);
        Some(port)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Engine {
    /// Step 1, for a flow to a port of a peer's.
    pub(super) fn take_port(
        &mut self,
        now: Time,
        peer: PeerId,
        remote: u16,
        id: FlowId,
        outside: &mut impl Outside,
    ) -> Option<OuterPort> {
        self.ports.take(now, (peer, remote), id, || outside.open_port())
    }

    /// Step 3, as time passes.
    pub(super) fn close_ports(&mut self, now: Time, outside: &mut impl Outside) {
        while let Some(port) = self.ports.idle(now) {
            outside.close_port(port);
        }
    }
}
