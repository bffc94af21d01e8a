//! Control messages heeded: what routers say of the packets this socket sent.
//!
//! 1. The packet that a message quotes must be one of ours: from this socket, to a destination it has.
//! 2. Who says so must be in a position to: an AS speaks of its own interfaces, and lies on the path.
//! 3. A dead interface takes the path away from all flows that cross it; a smaller MTU is that flow's.
//!
//! Nothing of this is authenticated: a host that sees our packets can forge all of it. One that does not would have
//! to guess both ports and the path.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use super::dead::DeadPart;
use super::events::{Event, Remote, Unreachable};
use super::flow::Flow;
use super::port::Port;
use crate::addr::{EndpointAddr, IsdAs};
use crate::packet::{Packet, Quote, Quoted, ScmpView};
use crate::path::PathInterface;

/// Whether a message changed or told something.
pub(super) fn heed(port: &Port, packet: &Packet<'_>, message: &ScmpView<'_>) -> bool {
    let Some(flow) = message.quoted().and_then(|quoted| our_flow(port, quoted)) else { return false };
    let says = packet.source().0;
    match *message {
        ScmpView::ExternalInterfaceDown { isd_as, interface, .. } => {
            let part = DeadPart::External(PathInterface { isd_as, id: interface });
            says == isd_as && died(port, &flow, part)
        }
        ScmpView::InternalConnectivityDown { isd_as, ingress, egress, .. } => {
            says == isd_as && died(port, &flow, DeadPart::Internal { isd_as, ingress, egress })
        }
        ScmpView::PacketTooBig { mtu, .. } => is_on_path(port, &flow, says) && flow.lower_mtu(mtu, &port.events),
        ScmpView::DestinationUnreachable { code, .. } => {
            let remote = Remote::Endpoint(flow.destination);
            port.events.tell(Event::Unreachable { remote, reason: Unreachable::Scmp(code) });
            true
        }
        _ => false,
    }
}

/// Step 1: the flow that a quoted packet belongs to.
fn our_flow(port: &Port, quoted: &[u8]) -> Option<Arc<Flow>> {
    let quote = Quote::read(quoted).ok()?;
    let Quoted::Udp { source_port, destination_port } = quote.carried else { return None };
    let endpoint = |(isd_as, host): (IsdAs, crate::packet::Host), port| {
        Some(EndpointAddr::new(isd_as, SocketAddr::new(host.ip().ok()?, port)))
    };
    let ours = endpoint(quote.header.source(), source_port)? == port.local.endpoint;
    ours.then(|| port.flows.get(&endpoint(quote.header.destination(), destination_port)?))?
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
        port.flows.remove(&flow.destination);
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
