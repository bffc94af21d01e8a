//! Control messages heeded: what routers say of the packets this socket sent.
//!
//! 1. The packet that a message quotes must be one of ours: from this socket, to a destination it has, with this
//!    socket's flow id. Who guesses that wrong too often in a second makes the socket deaf for the rest of it
//!    ([`Guesses`]).
//! 2. Who says so must be in a position to: an AS speaks of its own interfaces, and lies on the path.
//! 3. A dead interface takes the path away from all flows that cross it; a smaller MTU is that flow's.
//!
//! Nothing of this is authenticated: a host that sees our packets can forge all of it. One that does not would have
//! to guess both ports, the path, and 20 random bits of flow id.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::dead::DeadPart;
use super::events::{Event, Remote, Unreachable};
use super::flow::Flow;
use super::port::Port;
use crate::addr::{EndpointAddr, IsdAs};
use crate::packet::{Packet, Quote, Quoted, ScmpView};
use crate::path::PathInterface;

/// Wrong flow ids that are listened to in a second: 2^20 of them take nine hours in the mean.
const GUESSES: u32 = 16;
const SECOND: Duration = Duration::from_secs(1);

/// Messages with the right flow id that are heeded in a second: the first that tells of a dead part does for all flows,
/// and each is as much work as there are flows.
const HEEDED: u32 = 256;

/// What was told in the present second. Nothing at first; for several threads.
#[derive(Debug, Default)]
pub(super) struct Guesses(Mutex<Told>);

/// How many messages had a wrong flow id, and how many a right one, since when. Plain data.
#[derive(Debug, Default)]
struct Told {
    since: Option<Instant>,
    wrong: u32,
    right: u32,
}

impl Guesses {
    /// Whether a quote with a right flow id, or with a wrong one, may be believed now.
    fn admit(&self, now: Instant, right: bool) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.since.is_none_or(|since| now.duration_since(since) >= SECOND) {
            *told = Told { since: Some(now), ..Told::default() };
        }
        let count = if right { &mut told.right } else { &mut told.wrong };
        *count = count.saturating_add(1);
        right && told.wrong <= GUESSES && told.right <= HEEDED
    }
}

/// Whether a message changed or told something.
pub(super) fn heed(port: &Port, packet: &Packet<'_>, message: &ScmpView<'_>) -> bool {
    let flows = message.quoted().map(|quoted| our_flows(port, quoted)).unwrap_or_default();
    // All of them are told, whatever the first one says.
    flows.iter().filter(|flow| heed_for(port, packet, message, flow)).count() > 0
}

/// Whether a message changed or told something, of one flow.
fn heed_for(port: &Port, packet: &Packet<'_>, message: &ScmpView<'_>, flow: &Flow) -> bool {
    let says = packet.source().0;
    match *message {
        ScmpView::ExternalInterfaceDown { isd_as, interface, .. } => {
            let part = DeadPart::External(PathInterface { isd_as, id: interface });
            says == isd_as && died(port, flow, part)
        }
        ScmpView::InternalConnectivityDown { isd_as, ingress, egress, .. } => {
            says == isd_as && died(port, flow, DeadPart::Internal { isd_as, ingress, egress })
        }
        ScmpView::PacketTooBig { mtu, .. } => is_on_path(port, flow, says) && flow.lower_mtu(mtu, &port.events),
        ScmpView::DestinationUnreachable { code, .. } => {
            let remote = Remote::Endpoint(flow.destination);
            port.events.tell(Event::Unreachable { remote, reason: Unreachable::Scmp(code) });
            true
        }
        _ => false,
    }
}

/// Step 1: the flows that a quoted packet may belong to; several, where several ways back to its destination are kept.
fn our_flows(port: &Port, quoted: &[u8]) -> Vec<Arc<Flow>> {
    let Some((destination, right)) = Quote::read(quoted).ok().and_then(|quote| of_ours(port, &quote)) else {
        return Vec::new();
    };
    // First: the flows to a destination are searched for among all.
    if port.guesses.admit(Instant::now(), right) { port.flows.to(destination) } else { Vec::new() }
}

/// Where a quoted packet of this socket's went, and whether it has the right flow id.
fn of_ours(port: &Port, quote: &Quote<'_>) -> Option<(EndpointAddr, bool)> {
    let Quoted::Udp { source_port, destination_port, .. } = quote.carried else { return None };
    let endpoint = |(isd_as, host): (IsdAs, crate::packet::Host), port| {
        Some(EndpointAddr::new(isd_as, SocketAddr::new(host.ip().ok()?, port)))
    };
    let ours = endpoint(quote.header.source(), source_port)? == port.local.endpoint;
    let destination = endpoint(quote.header.destination(), destination_port)?;
    ours.then_some((destination, quote.header.flow_id() == port.local.flow.get()))
}

/// Step 2: whether an AS lies on a flow's path. Of a way back no ASes are known.
fn is_on_path(port: &Port, flow: &Flow, isd_as: IsdAs) -> bool {
    let way = flow.current();
    let mut interfaces = way.path.interfaces().iter();
    flow.is_learned() || isd_as == port.local.endpoint.isd_as || interfaces.any(|interface| interface.isd_as == isd_as)
}

/// Step 3: a part of a flow's path died, and so did all paths that cross it.
fn died(port: &Port, flow: &Flow, part: DeadPart) -> bool {
    if flow.is_learned() {
        // No other way back is known; the next packet that comes, or a look-up, brings one.
        port.flows.remove(&flow.key);
        return true;
    }
    if !part.is_on(&flow.current().path) {
        return false;
    }
    let around = port.around();
    port.dead.lock().unwrap_or_else(PoisonError::into_inner).mark(part, around.now.mono);
    port.flows.each(|flow| {
        flow.died(around, part);
    });
    port.keeper.wake();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_flow_ids_makes_the_socket_deaf_until_the_second_is_over() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        for _ in 0..GUESSES {
            assert!(!guesses.admit(start, false));
            assert!(guesses.admit(start, true), "few are mistakes");
        }
        assert!(!guesses.admit(start, false));
        assert!(!guesses.admit(start + SECOND / 2, true), "the right one may be a guess, too");
        assert!(guesses.admit(start + SECOND, true));
        let heeded = (0..2 * HEEDED).filter(|_| guesses.admit(start + SECOND, true)).count();
        assert_eq!(heeded, HEEDED as usize - 1, "with the one before");
    }
}
