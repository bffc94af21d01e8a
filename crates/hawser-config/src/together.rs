//! What must fit together across sections: a fault for everything that can never carry a packet.

use std::net::IpAddr;

use toml::Spanned;

use super::error::{Fault, Span};
use super::reading::Document;
use super::values::InterfaceName;
use super::words::{Fail, Transport};
use super::{Config, DEFAULT_PORT};

impl Document<'_, '_, '_> {
    /// Notes a fault of the value of `key` in the section `[name]`.
    fn fault_at(&mut self, name: &str, key: &str, fault: Fault) {
        let value = self.tree.get(name).and_then(|section| section.get_ref().get(key));
        self.faults.add(value.map_or(0..0, Spanned::span), fault);
    }

    /// Where a section `[[name]]` stands, by its place among them; further ones are of other files.
    fn section(&self, name: &str, place: usize) -> Span {
        let section = self.tree.get(name).and_then(|sections| sections.get_ref().get(place));
        section.map_or(0..0, Spanned::span)
    }

    /// Notes a fault of it.
    fn fault_of(&mut self, name: &str, place: usize, fault: Fault) {
        self.faults.add(self.section(name, place), fault);
    }
}

impl Config {
    /// Looks at all; it was read from `file`, without a fault.
    pub(super) fn check(&self, file: &mut Document<'_, '_, '_>) {
        self.every_peer_is_reached_or_calls(file);
        self.every_link_has_somewhere_to_go(file);
        self.no_link_goes_by_the_tunnel(file);
        self.no_key_is_pointless(file);
        self.packets_are_forwarded_elsewhere(file);
        self.every_forward_leads_somewhere(file);
        self.every_rule_fits_some_packet(file);
    }

    fn every_peer_is_reached_or_calls(&self, file: &mut Document<'_, '_, '_>) {
        for (place, peer) in self.peers.iter().enumerate() {
            let (name, calls) = (&peer.name, peer.has_endpoints());
            if !calls && !self.portal.listens() {
                let fault = Fault::new(format!("peer \"{name}\" has no `endpoints`, and the portal does not `listen`"));
                let hint = format!("add endpoints here, or to [portal]: listen = [\"0.0.0.0:{DEFAULT_PORT}\"]");
                file.fault_of("peer", place, fault.hint(hint));
            }
            if calls && self.links.is_empty() {
                let fault = format!("peer \"{name}\" has `endpoints`, and there is no [[link]] to reach them by");
                let hint = "add a [[link]], or leave the endpoints out";
                file.fault_of("peer", place, Fault::new(fault).hint(hint));
            }
        }
    }

    fn every_link_has_somewhere_to_go(&self, file: &mut Document<'_, '_, '_>) {
        let endpoints: Vec<IpAddr> = self.peers.iter().flat_map(|peer| &peer.endpoints).map(|e| e.ip()).collect();
        for (place, link) in self.links.iter().enumerate() {
            let name = &link.name;
            let nowhere = |what: &str| Fault::new(format!("link \"{name}\" has nowhere to go: no peer has {what}"));
            let fault = if link.transport == Transport::Scion {
                let hint = "add to a [[peer]]: endpoints = [\"scion://1-ff00:0:110,10.0.0.1:31000\"]";
                let lacks = self.peers.iter().all(|peer| peer.scion_endpoints.is_empty());
                lacks.then(|| nowhere("SCION `endpoints`").hint(hint))
            } else if self.peers.iter().any(|peer| !peer.names.is_empty()) {
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
                file.fault_of("link", place, fault);
            }
        }
    }

    fn no_link_goes_by_the_tunnel(&self, file: &mut Document<'_, '_, '_>) {
        let tun = &self.tun;
        for (place, link) in self.links.iter().enumerate() {
            let by_address = tun.addresses.iter().any(|a| Some(a.addr()) == link.address);
            if link.interface.as_ref() == Some(&tun.name) || by_address {
                let fault = Fault::new(format!("link \"{}\" goes by the tunnel itself", link.name));
                let hint = format!("name an interface or address other than {}'s", tun.name);
                file.fault_of("link", place, fault.hint(hint));
            }
        }
    }

    /// Default route, and networks behind this host.
    fn no_key_is_pointless(&self, file: &mut Document<'_, '_, '_>) {
        let tun = &self.tun;
        let mut everything = self.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|net| net.prefix_len() == 0);
        let without = "leave it out, or add: default_route = true";
        if tun.default_route && !everything.any(|net| tun.has_family_of(net)) {
            let fault = Fault::new("a default route by the tunnel, and no peer takes its packets");
            let hint =
                "add \"0.0.0.0/0\" or \"::/0\" to a peer's `allowed_ips`, and an address of that IP version to [tun]";
            file.fault_at("tun", "default_route", fault.hint(hint));
        }
        if self.gateway.masquerade && self.gateway.serve.is_empty() {
            let fault = Fault::new("`masquerade`, and no network behind this portal to put behind it");
            file.fault_at("gateway", "masquerade", fault.hint("add: serve = [\"lan0\"]"));
        }
        if tun.answer_by_link && !tun.default_route {
            let what = "`answer_by_link` without a `default_route`: nothing goes by the tunnel that would not anyway";
            file.fault_at("tun", "answer_by_link", Fault::new(what).hint(without));
        }
        if tun.fail == Fail::Closed && !tun.default_route {
            let what =
                "`fail = \"closed\"` without a `default_route`: the tunnel is no way for anything that could fail";
            file.fault_at("tun", "fail", Fault::new(what).hint(without));
        }
    }

    fn packets_are_forwarded_elsewhere(&self, file: &mut Document<'_, '_, '_>) {
        let served = self.gateway.serve.iter().map(|name| ("gateway", "serve", name));
        let masqueraded = self.nat.masquerade.iter().map(|name| ("nat", "masquerade", name));
        for (section, key, name) in served.chain(masqueraded) {
            if let Some(fault) = self.unfit(name) {
                file.fault_at(section, key, fault);
            }
        }
    }

    /// Why packets cannot be forwarded between the tunnel and this interface.
    fn unfit(&self, name: &InterfaceName) -> Option<Fault> {
        if *name == self.tun.name {
            let fault = Fault::new(format!("{name} is the tunnel itself"));
            return Some(fault.hint("name the interface at the other side of this host"));
        }
        hawser_net::netcfg::quoted(name.as_str()).err().map(|error| {
            let hint = error.hint().unwrap_or("rename the interface");
            Fault::new(error.to_string()).hint(hint)
        })
    }

    /// Nor does one take what is this host's own.
    fn every_forward_leads_somewhere(&self, file: &mut Document<'_, '_, '_>) {
        for (place, forward) in self.forwards.iter().enumerate() {
            if self.nat.masquerade.is_none() {
                let fault = Fault::new("a [[forward]], and no interface towards the world");
                let hint = "add: [nat] masquerade = \"eth0\", the interface that callers come in by";
                file.fault_of("forward", place, fault.hint(hint));
            }
            if !self.peers.iter().flat_map(|peer| &peer.allowed_ips).any(|net| net.contains(&forward.host)) {
                let fault = Fault::new(format!("no peer has {} among its `allowed_ips`", forward.host));
                let hint = "name a host behind a peer, or add its network to the peer";
                file.fault_of("forward", place, fault.hint(hint));
            }
            if let Some(port) = forward.hides(&self.portal) {
                let fault = Fault::new(format!("the portal itself listens on port {port}"));
                let hint = "peers would not reach it any more: forward another port";
                file.fault_of("forward", place, fault.hint(hint));
            }
            if let Some(first) = self.forwards[..place].iter().position(|earlier| earlier.overlaps(forward)) {
                let line = file.faults.line_of(file.section("forward", first).start);
                let fault = Fault::new("a port of it leads elsewhere already");
                file.fault_of("forward", place, fault.hint(format!("first in the [[forward]] in line {line}")));
            }
        }
    }

    fn every_rule_fits_some_packet(&self, file: &mut Document<'_, '_, '_>) {
        let served = &self.gateway.serve;
        for (place, rule) in self.rules.iter().enumerate() {
            if rule.direct && !self.tun.default_route {
                let what = "`via = \"direct\"` without a `default_route`: other packets go past the tunnel anyway";
                let hint = "leave the rule out, or add to [tun]: default_route = true";
                file.fault_of("rule", place, Fault::new(what).hint(hint));
            }
            if rule.mac.is_some() && served.is_empty() {
                let fault = Fault::new("`mac`, and no network behind this portal whose devices could be known by it");
                file.fault_of("rule", place, fault.hint("add to [gateway]: serve = [\"lan0\"]"));
            }
            if let Some(interface) = rule.interface.as_ref().filter(|interface| !served.contains(interface)) {
                let fault = Fault::new(format!("`interface`: no network behind this portal is at {interface}"));
                file.fault_of("rule", place, fault.hint(format!("add to [gateway]: serve = [\"{interface}\"]")));
            }
        }
    }
}
