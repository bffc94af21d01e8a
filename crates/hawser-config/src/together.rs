//! What must fit together across sections: a fault for everything that can never carry a packet.

use std::net::IpAddr;

use super::DEFAULT_PORT;
use super::error::Fault;
use super::links::{Link, Peer};
use super::reading::{Document, Sited};
use super::sections::{Gateway, Nat, Portal, Tun};
use super::values::InterfaceName;
use super::words::{Fail, Transport};

/// What is looked at. Plain data.
pub(super) struct Together<'c> {
    pub portal: &'c Portal,
    pub tun: &'c Tun,
    pub gateway: Option<&'c Gateway>,
    pub nat: Option<&'c Nat>,
    pub links: &'c [Sited<Link>],
    pub peers: &'c [Sited<Peer>],
}

impl Together<'_> {
    /// Looks at all.
    pub fn check(&self, file: &mut Document<'_, '_, '_>) {
        self.every_peer_is_reached_or_calls(file);
        self.every_link_has_somewhere_to_go(file);
        self.no_link_goes_by_the_tunnel(file);
        self.no_key_is_pointless(file);
        self.packets_are_forwarded_elsewhere(file);
    }

    fn no_link_goes_by_the_tunnel(&self, file: &mut Document<'_, '_, '_>) {
        let tun = self.tun;
        for Sited { value: link, span } in self.links {
            let by_address = tun.addresses.iter().any(|a| Some(a.addr()) == link.address);
            if link.interface.as_ref() == Some(&tun.name) || by_address {
                let fault = Fault::new(format!("link \"{}\" goes by the tunnel itself", link.name));
                let hint = format!("name an interface or address other than {}'s", tun.name);
                file.faults.add(span.clone(), fault.hint(hint));
            }
        }
    }

    fn every_peer_is_reached_or_calls(&self, file: &mut Document<'_, '_, '_>) {
        for Sited { value: peer, span } in self.peers {
            let (name, calls) = (&peer.name, peer.has_endpoints());
            if !calls && !self.portal.listens() {
                let fault = Fault::new(format!("peer \"{name}\" has no `endpoints`, and the portal does not `listen`"));
                let hint = format!("add endpoints here, or to [portal]: listen = [\"0.0.0.0:{DEFAULT_PORT}\"]");
                file.faults.add(span.clone(), fault.hint(hint));
            }
            if calls && self.links.is_empty() {
                let fault = format!("peer \"{name}\" has `endpoints`, and there is no [[link]] to reach them by");
                let hint = "add a [[link]], or leave the endpoints out";
                file.faults.add(span.clone(), Fault::new(fault).hint(hint));
            }
        }
    }

    fn every_link_has_somewhere_to_go(&self, file: &mut Document<'_, '_, '_>) {
        let peers = || self.peers.iter().map(|peer| &peer.value);
        let endpoints: Vec<IpAddr> = peers().flat_map(|peer| &peer.endpoints).map(|e| e.ip()).collect();
        for Sited { value: link, span } in self.links {
            let name = &link.name;
            let nowhere = |what: &str| Fault::new(format!("link \"{name}\" has nowhere to go: no peer has {what}"));
            let fault = if link.transport == Transport::Scion {
                let hint = "add to a [[peer]]: endpoints = [\"scion://1-ff00:0:110,10.0.0.1:31000\"]";
                let lacks = peers().all(|peer| peer.scion_endpoints.is_empty());
                lacks.then(|| nowhere("SCION `endpoints`").hint(hint))
            } else if peers().any(|peer| !peer.names.is_empty()) {
                // Of which IP version they are is known once they are resolved.
                None
            } else if endpoints.is_empty() {
                Some(nowhere("`endpoints` for it").hint("add endpoints to a [[peer]], or leave the link out"))
            } else {
                let other = link.address.filter(|a| !endpoints.iter().any(|e| e.is_ipv4() == a.is_ipv4()));
                other.map(|address| {
                    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
                    let fault = format!("link \"{name}\" has an {family} address, and no peer an {family} endpoint");
                    Fault::new(fault).hint(format!("add an {family} endpoint to a [[peer]]"))
                })
            };
            if let Some(fault) = fault {
                file.faults.add(span.clone(), fault);
            }
        }
    }

    /// Default route, and networks behind this host.
    fn no_key_is_pointless(&self, file: &mut Document<'_, '_, '_>) {
        let tun = self.tun;
        let everything = self.peers.iter().flat_map(|peer| &peer.value.allowed_ips).filter(|net| net.prefix_len() == 0);
        let leads = everything.into_iter().any(|net| tun.has_family_of(net));
        let masquerades = self.gateway.is_some_and(|gateway| gateway.masquerade && gateway.serve.is_empty());
        let without = "leave it out, or add: default_route = true";
        let mut pointless = |section: &str, key: &str, message: &str, hint: &str| {
            let span = file.span(section, key);
            file.faults.add(span, Fault::new(message).hint(hint));
        };
        if tun.default_route && !leads {
            let message = "a default route by the tunnel, and no peer takes its packets";
            let hint =
                "add \"0.0.0.0/0\" or \"::/0\" to a peer's `allowed_ips`, and an address of that IP version to [tun]";
            pointless("tun", "default_route", message, hint);
        }
        if masquerades {
            let message = "`masquerade`, and no network behind this portal to put behind it";
            pointless("gateway", "masquerade", message, "add: serve = [\"lan0\"]");
        }
        if tun.answer_by_link && !tun.default_route {
            let message =
                "`answer_by_link` without a `default_route`: nothing goes by the tunnel that would not anyway";
            pointless("tun", "answer_by_link", message, without);
        }
        if tun.fail == Fail::Closed && !tun.default_route {
            let message =
                "`fail = \"closed\"` without a `default_route`: the tunnel is no way for anything that could fail";
            pointless("tun", "fail", message, without);
        }
    }

    fn packets_are_forwarded_elsewhere(&self, file: &mut Document<'_, '_, '_>) {
        let served = self.gateway.iter().flat_map(|gateway| &gateway.serve).map(|name| ("gateway", "serve", name));
        let masqueraded = self.nat.iter().filter_map(|nat| Some(("nat", "masquerade", nat.masquerade.as_ref()?)));
        for (section, key, name) in served.chain(masqueraded) {
            if let Some(fault) = unfit(name, self.tun) {
                let span = file.span(section, key);
                file.faults.add(span, fault);
            }
        }
    }
}

/// Why packets cannot be forwarded between the tunnel and this interface.
fn unfit(name: &InterfaceName, tun: &Tun) -> Option<Fault> {
    if *name == tun.name {
        let fault = Fault::new(format!("{name} is the tunnel itself"));
        return Some(fault.hint("name the interface at the other side of this host"));
    }
    hawser_net::netcfg::quoted(name.as_str()).err().map(|error| {
        let hint = error.hint().unwrap_or("rename the interface");
        Fault::new(error.to_string()).hint(hint)
    })
}
