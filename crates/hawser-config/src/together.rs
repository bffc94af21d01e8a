//! What must fit together across sections.

use std::net::IpAddr;

use super::error::{Fault, Faults};
use super::reader::Sited;
use super::{DEFAULT_PORT, Link, Peer, Portal, Transport, Tun};

/// Notes a fault for everything that can never carry a packet.
pub(super) fn check(portal: &Portal, tun: &Tun, links: &[Sited<Link>], peers: &[Sited<Peer>], faults: &mut Faults<'_>) {
    every_peer_is_reached_or_calls(portal, links, peers, faults);
    every_link_has_somewhere_to_go(links, peers, faults);
    no_link_goes_by_the_tunnel(tun, links, faults);
}

fn no_link_goes_by_the_tunnel(tun: &Tun, links: &[Sited<Link>], faults: &mut Faults<'_>) {
    for link in links {
        let by_name = link.value.interface.as_ref() == Some(&tun.name);
        let by_address = tun.addresses.iter().any(|a| Some(a.addr()) == link.value.address);
        if by_name || by_address {
            let fault = Fault::new(format!("link \"{}\" goes by the tunnel itself", link.value.name));
            faults
                .add(link.span.clone(), fault.hint(format!("name an interface or address other than {}'s", tun.name)));
        }
    }
}

fn every_peer_is_reached_or_calls(
    portal: &Portal,
    links: &[Sited<Link>],
    peers: &[Sited<Peer>],
    faults: &mut Faults<'_>,
) {
    for peer in peers {
        let name = &peer.value.name;
        let calls = peer.value.has_endpoints();
        if !calls && !portal.listens() {
            let fault = Fault::new(format!("peer \"{name}\" has no `endpoints`, and the portal does not `listen`"));
            let hint = format!("add endpoints here, or to [portal]: listen = [\"0.0.0.0:{DEFAULT_PORT}\"]");
            faults.add(peer.span.clone(), fault.hint(hint));
        }
        if calls && links.is_empty() {
            let fault =
                Fault::new(format!("peer \"{name}\" has `endpoints`, and there is no [[link]] to reach them by"));
            faults.add(peer.span.clone(), fault.hint("add a [[link]], or leave the endpoints out"));
        }
    }
}

fn every_link_has_somewhere_to_go(links: &[Sited<Link>], peers: &[Sited<Peer>], faults: &mut Faults<'_>) {
    let endpoints: Vec<IpAddr> = peers.iter().flat_map(|p| &p.value.endpoints).map(|e| e.ip()).collect();
    for link in links {
        let name = &link.value.name;
        let nowhere = |what: &str| Fault::new(format!("link \"{name}\" has nowhere to go: no peer has {what}"));
        if link.value.transport == Transport::Scion {
            if peers.iter().all(|peer| peer.value.scion_endpoints.is_empty()) {
                let hint = "add to a [[peer]]: endpoints = [\"scion://1-ff00:0:110,10.0.0.1:31000\"]";
                faults.add(link.span.clone(), nowhere("SCION `endpoints`").hint(hint));
            }
        } else if peers.iter().any(|peer| !peer.value.names.is_empty()) {
            // Of which IP version they are is known once they are resolved.
        } else if endpoints.is_empty() {
            let hint = "add endpoints to a [[peer]], or leave the link out";
            faults.add(link.span.clone(), nowhere("`endpoints` for it").hint(hint));
        } else if let Some(address) = link.value.address
            && !endpoints.iter().any(|e| e.is_ipv4() == address.is_ipv4())
        {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            let fault =
                Fault::new(format!("link \"{name}\" has an {family} address, and no peer an {family} endpoint"));
            faults.add(link.span.clone(), fault.hint(format!("add an {family} endpoint to a [[peer]]")));
        }
    }
}
