//! What must fit together across sections: a fault for everything that can never carry a packet.

use std::net::IpAddr;

use toml::Spanned;

use super::error::{Fault, Span};
use super::reading::Document;
use super::words::{Fail, Transport};
use super::{Config, DEFAULT_PORT};

impl Document<'_, '_, '_> {
    /// Notes a fault of the value of `key` in the section `[name]`.
    fn fault_at(&mut self, name: &str, key: &str, fault: &str, hint: &str) {
        let span = self.value(name, key).map_or(0..0, Spanned::span);
        self.faults.add(span, Fault::new(fault).hint(hint));
    }

    /// Where a section `[[name]]` stands, by its place among them; further ones are of other files.
    fn section(&self, name: &str, place: usize) -> Span {
        let section = self.tree.get(name).and_then(|sections| sections.get_ref().get(place));
        section.map_or(0..0, Spanned::span)
    }

    /// Notes a fault of it.
    fn fault_of(&mut self, name: &str, place: usize, fault: impl Into<String>, hint: impl Into<String>) {
        self.faults.add(self.section(name, place), Fault::new(fault).hint(hint));
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
        self.no_member_of_a_hub_relays(file);
    }

    fn every_peer_is_reached_or_calls(&self, file: &mut Document<'_, '_, '_>) {
        for (place, peer) in self.peers.iter().enumerate() {
            let (name, calls) = (&peer.name, peer.has_endpoints());
            if !calls && !self.portal.listens() {
                let fault = format!("peer \"{name}\" has no `endpoints`, and the portal does not `listen`");
                let hint = format!("add endpoints here, or to [portal]: listen = [\"0.0.0.0:{DEFAULT_PORT}\"]");
                file.fault_of("peer", place, fault, hint);
            }
            if calls && self.links.is_empty() {
                let fault = format!("peer \"{name}\" has `endpoints`, and there is no [[link]] to reach them by");
                file.fault_of("peer", place, fault, "add a [[link]], or leave the endpoints out");
            }
        }
    }

    fn every_link_has_somewhere_to_go(&self, file: &mut Document<'_, '_, '_>) {
        let endpoints: Vec<IpAddr> = self.peers.iter().flat_map(|peer| &peer.endpoints).map(|e| e.ip()).collect();
        let named = self.peers.iter().any(|peer| !peer.names.is_empty());
        let over_scion = self.peers.iter().any(|peer| !peer.scion_endpoints.is_empty());
        for (place, link) in self.links.iter().enumerate() {
            let name = &link.name;
            // Of which IP version names are is known once they are resolved.
            let other = link.address.filter(|a| !named && !endpoints.iter().any(|e| e.is_ipv4() == a.is_ipv4()));
            let nowhere = |what: &str| format!("link \"{name}\" has nowhere to go: no peer has {what}");
            if link.transport == Transport::Scion {
                let hint = "add to a [[peer]]: endpoints = [\"scion://1-ff00:0:110,10.0.0.1:31000\"]";
                if !over_scion {
                    file.fault_of("link", place, nowhere("SCION `endpoints`"), hint);
                }
            } else if endpoints.is_empty() && !named {
                let hint = "add endpoints to a [[peer]], or leave the link out";
                file.fault_of("link", place, nowhere("`endpoints` for it"), hint);
            } else if let Some(address) = other {
                let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
                let fault = format!("link \"{name}\" has an {family} address, and no peer an {family} endpoint");
                file.fault_of("link", place, fault, format!("add an {family} endpoint to a [[peer]]"));
            }
        }
    }

    fn no_link_goes_by_the_tunnel(&self, file: &mut Document<'_, '_, '_>) {
        let tun = &self.tun;
        for (place, link) in self.links.iter().enumerate() {
            let by_address = tun.addresses.iter().any(|a| Some(a.addr()) == link.address);
            if link.interface.as_ref() == Some(&tun.name) || by_address {
                let fault = format!("link \"{}\" goes by the tunnel itself", link.name);
                let hint = format!("name an interface or address other than {}'s", tun.name);
                file.fault_of("link", place, fault, hint);
            }
        }
    }

    /// Default route, and networks behind this host.
    fn no_key_is_pointless(&self, file: &mut Document<'_, '_, '_>) {
        let tun = &self.tun;
        let mut everything = self.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|net| net.prefix_len() == 0);
        let without = "leave it out, or add: default_route = true";
        if tun.default_route && !everything.any(|net| tun.has_family_of(net)) {
            let fault = "a default route by the tunnel, and no peer takes its packets";
            let hint =
                "add \"0.0.0.0/0\" or \"::/0\" to a peer's `allowed_ips`, and an address of that IP version to [tun]";
            file.fault_at("tun", "default_route", fault, hint);
        }
        if self.gateway.masquerade && self.gateway.serve.is_empty() {
            let fault = "`masquerade`, and no network behind this portal to put behind it";
            file.fault_at("gateway", "masquerade", fault, "add: serve = [\"lan0\"]");
        }
        if tun.answer_by_link && !tun.default_route {
            let fault = "`answer_by_link` without a `default_route`: nothing goes by the tunnel that would not anyway";
            file.fault_at("tun", "answer_by_link", fault, without);
        }
        if tun.fail == Fail::Closed && !tun.default_route {
            let fault =
                "`fail = \"closed\"` without a `default_route`: the tunnel is no way for anything that could fail";
            file.fault_at("tun", "fail", fault, without);
        }
    }

    fn packets_are_forwarded_elsewhere(&self, file: &mut Document<'_, '_, '_>) {
        let served = self.gateway.serve.iter().map(|name| ("gateway", "serve", name));
        let masqueraded = self.nat.iter().map(|name| ("nat", "masquerade", name));
        for (section, key, name) in served.chain(masqueraded) {
            if *name == self.tun.name {
                let fault = format!("{name} is the tunnel itself");
                file.fault_at(section, key, &fault, "name the interface at the other side of this host");
            } else if let Err(error) = hawser_net::netcfg::quoted(name.as_str()) {
                file.fault_at(section, key, &error.to_string(), error.hint().unwrap_or("rename the interface"));
            }
        }
    }

    /// Nor does one take what is this host's own.
    fn every_forward_leads_somewhere(&self, file: &mut Document<'_, '_, '_>) {
        for (place, forward) in self.forwards.iter().enumerate() {
            if self.nat.is_none() {
                let hint = "add: [nat] masquerade = \"eth0\", the interface that callers come in by";
                file.fault_of("forward", place, "a [[forward]], and no interface towards the world", hint);
            }
            if !self.peers.iter().flat_map(|peer| &peer.allowed_ips).any(|net| net.contains(&forward.host)) {
                let fault = format!("no peer has {} among its `allowed_ips`", forward.host);
                file.fault_of("forward", place, fault, "name a host behind a peer, or add its network to the peer");
            }
            if let Some(port) = forward.hides(&self.portal) {
                let fault = format!("the portal itself listens on port {port}");
                file.fault_of("forward", place, fault, "peers would not reach it any more: forward another port");
            }
            if let Some(first) = self.forwards[..place].iter().position(|earlier| earlier.overlaps(forward)) {
                let line = file.faults.line_of(file.section("forward", first).start);
                let hint = format!("first in the [[forward]] in line {line}");
                file.fault_of("forward", place, "a port of it leads elsewhere already", hint);
            }
        }
    }

    fn every_rule_fits_some_packet(&self, file: &mut Document<'_, '_, '_>) {
        let served = &self.gateway.serve;
        for (place, rule) in self.rules.iter().enumerate() {
            if rule.direct && !self.tun.default_route {
                let fault = "`via = \"direct\"` without a `default_route`: other packets go past the tunnel anyway";
                let hint = "leave the rule out, or add to [tun]: default_route = true";
                file.fault_of("rule", place, fault, hint);
            }
            if rule.mac.is_some() && served.is_empty() {
                let fault = "`mac`, and no network behind this portal whose devices could be known by it";
                file.fault_of("rule", place, fault, "add to [gateway]: serve = [\"lan0\"]");
            }
            if let Some(interface) = rule.interface.as_ref().filter(|interface| !served.contains(interface)) {
                let fault = format!("`interface`: no network behind this portal is at {interface}");
                file.fault_of("rule", place, fault, format!("add to [gateway]: serve = [\"{interface}\"]"));
            }
        }
    }

    /// A member has a route into its own TUN device to each peer that it stands by for: a packet by that looks as if
    /// routers had lost the owner's announcement.
    fn no_member_of_a_hub_relays(&self, file: &mut Document<'_, '_, '_>) {
        if self.hub.is_some() && self.portal.relay {
            let fault = "`relay` at a member of a hub: what a peer sends to one that another member owns would move that \
                         one here";
            let hint = "leave it out; peers that are to reach each other need a remote portal that is in no hub";
            file.fault_at("portal", "relay", fault, hint);
        }
    }
}
