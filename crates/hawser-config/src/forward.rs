//! `[[forward]]`: a port of this host's address in the world that leads to a host behind a peer.

use std::net::{IpAddr, SocketAddr};

use toml::de::DeValue;

use super::error::{Fault, Faults};
use super::kinds::{keyword, quoted, string};
use super::links::Peer;
use super::reading::{Sited, Table, values};
use super::rule_values::{PortRange, ports};
use super::sections::{Nat, Portal};
use super::words::{Transport, Transported};

/// `[[forward]]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The ports at this host.
    pub ports: PortRange,
    /// The protocols, none of them twice; at least one.
    pub protocols: Vec<Transported>,
    /// The host behind a peer.
    pub host: IpAddr,
    /// Its port; none: the same as here.
    pub host_port: Option<u16>,
}

/// Reads one.
pub(super) fn forward(table: &mut Table<'_, '_, '_>) -> Option<Forward> {
    let ports = table.required("port", "port = 8080", ports);
    let protocols = table.list("protocols", keyword);
    let to = table.required("to", "to = \"192.168.8.5:80\"", target);
    if protocols.as_ref().is_some_and(Vec::is_empty) {
        table.here(Fault::new("`protocols` is empty").hint("write: protocols = [\"tcp\", \"udp\"]"));
    }
    let mut protocols = protocols.map_or_else(|| vec![Transported::Tcp], values);
    protocols.sort_unstable();
    protocols.dedup();
    let (ports, (host, host_port)) = (ports?.value, to?.value);
    if ports.first != ports.last && host_port.is_some() {
        let fault = Fault::new("several ports, and one to lead to");
        table.fault_at("to", fault.hint("each keeps its number").fix(quoted(&host.to_string())));
    }
    if ports.first == 0 {
        table.fault_at("port", Fault::new("there is no port 0").hint("a port such as 443, or a range"));
    }
    Some(Forward { ports, protocols, host, host_port })
}

/// An address, perhaps with a port.
fn target(value: &DeValue<'_>) -> Result<(IpAddr, Option<u16>), Fault> {
    let hint = "an address behind a peer, perhaps with a port: \"192.168.8.5:80\", \"[fd08::5]:80\"";
    string(value, |text| {
        let both = text.parse::<SocketAddr>().map(|both| (both.ip(), Some(both.port())));
        let parsed = both.or_else(|_| text.trim_matches(['[', ']']).parse().map(|host| (host, None)));
        match parsed {
            Ok((_, Some(0))) => Err(Fault::new("there is no port 0").hint(hint)),
            Ok(target) => Ok(target),
            Err(_) => Err(Fault::new(format!("{} is not an address", quoted(text))).hint(hint)),
        }
    })
}

/// Notes a fault for what can never carry a packet, or would take what is this host's own.
pub(super) fn check(
    forwards: &[Sited<Forward>],
    nat: Option<&Nat>,
    portal: &Portal,
    peers: &[Sited<Peer>],
    faults: &mut Faults<'_>,
) {
    for (at, Sited { value: forward, span }) in forwards.iter().enumerate() {
        let mut add = |fault: Fault| faults.add(span.clone(), fault);
        if nat.is_none_or(|nat| nat.masquerade.is_none()) {
            let fault = Fault::new("a [[forward]], and no interface towards the world");
            add(fault.hint("add: [nat] masquerade = \"eth0\", the interface that callers come in by"));
        }
        if !peers.iter().flat_map(|peer| &peer.value.allowed_ips).any(|net| net.contains(&forward.host)) {
            let fault = Fault::new(format!("no peer has {} among its `allowed_ips`", forward.host));
            add(fault.hint("name a host behind a peer, or add its network to the peer"));
        }
        if let Some(port) = forward.hides(portal) {
            let fault = Fault::new(format!("the portal itself listens on port {port}"));
            add(fault.hint("peers would not reach it any more: forward another port"));
        }
        if let Some(earlier) = forwards[..at].iter().find(|earlier| earlier.value.overlaps(forward)) {
            let line = faults.line_of(earlier.span.start);
            let fault = Fault::new("a port of it leads elsewhere already");
            faults.add(span.clone(), fault.hint(format!("first in the [[forward]] in line {line}")));
        }
    }
}

impl Forward {
    fn has(&self, protocol: Transported, port: u16) -> bool {
        self.protocols.contains(&protocol) && self.ports.contains(port)
    }

    /// A port of it that the portal listens on.
    fn hides(&self, portal: &Portal) -> Option<u16> {
        let protocol = |transport: &Transport| match transport {
            Transport::Udp => Some(Transported::Udp),
            Transport::Tcp => Some(Transported::Tcp),
            Transport::Ip | Transport::Scion | Transport::Auto => None,
        };
        let here = |address: &SocketAddr| address.is_ipv4() == self.host.is_ipv4() || address.is_ipv6();
        let listens = portal.listen.iter().filter(|address| here(address)).map(SocketAddr::port);
        let taken =
            |port: &u16| portal.transports.iter().filter_map(protocol).any(|protocol| self.has(protocol, *port));
        let over_scion = portal.scion_sockets().map(|address| address.port());
        let mut ports = listens.filter(taken).chain(over_scion.filter(|port| self.has(Transported::Udp, *port)));
        ports.next()
    }

    fn overlaps(&self, other: &Self) -> bool {
        let same_version = self.host.is_ipv4() == other.host.is_ipv4();
        let same_protocol = self.protocols.iter().any(|protocol| other.protocols.contains(protocol));
        same_version && same_protocol && self.ports.first <= other.ports.last && other.ports.first <= self.ports.last
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn forwards(sections: &str) -> Result<Vec<Forward>, Vec<(String, Option<String>)>> {
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n{sections}\n\
             [[peer]]\nname = \"home\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
             allowed_ips = [\"192.168.8.0/24\", \"fd08::/64\"]\n"
        );
        let said = |faults: Vec<super::super::ConfigError>| faults.into_iter().map(|f| (f.message, f.hint)).collect();
        Config::parse(&text, "test.toml").map(|config| config.forwards).map_err(said)
    }

    const NAT: &str = "[nat]\nmasquerade = \"eth0\"\n";

    #[test]
    fn a_port_or_several_lead_to_a_host_of_either_version() {
        let text = format!(
            "{NAT}[[forward]]\nport = 8080\nto = \"192.168.8.5:80\"\n\
             [[forward]]\nport = \"6000-6010\"\nprotocols = [\"udp\", \"tcp\", \"udp\"]\nto = \"fd08::5\"\n"
        );
        let read = forwards(&text).expect("right forwards");
        let host = |text: &str| text.parse::<IpAddr>().expect("an address");
        let first = Forward {
            ports: PortRange { first: 8080, last: 8080 },
            protocols: vec![Transported::Tcp],
            host: host("192.168.8.5"),
            host_port: Some(80),
        };
        let second = Forward {
            ports: PortRange { first: 6000, last: 6010 },
            protocols: vec![Transported::Tcp, Transported::Udp],
            host: host("fd08::5"),
            host_port: None,
        };
        assert_eq!(read, [first, second]);
    }

    #[test]
    fn what_leads_nowhere_or_takes_the_portals_own_port_is_told() {
        let one = |port: &str, more: &str, to: &str| format!("[[forward]]\nport = {port}\n{more}\nto = \"{to}\"\n");
        let table = [
            (one("80", "", "192.168.8.5"), "", "a [[forward]], and no interface towards the world"),
            (one("80", "", "192.168.9.5"), NAT, "no peer has 192.168.9.5 among its `allowed_ips`"),
            (
                one("\"4900-4999\"", "protocols = [\"udp\"]", "192.168.8.5"),
                NAT,
                "the portal itself listens on port 4920",
            ),
            (one("\"80-90\"", "", "192.168.8.5:80"), NAT, "several ports, and one to lead to"),
            (one("0", "", "192.168.8.5"), NAT, "there is no port 0"),
            (one("80", "", "web.example"), NAT, "`to`: \"web.example\" is not an address"),
            (one("80", "protocols = []", "192.168.8.5"), NAT, "`protocols` is empty"),
        ];
        for (text, nat, message) in table {
            let faults = forwards(&format!("{nat}{text}")).expect_err(&text);
            assert_eq!(faults[0].0, message, "{text}");
            assert!(faults[0].1.is_some(), "{text}: no hint");
        }
        let twice = format!("{NAT}{}{}", one("80", "", "192.168.8.5"), one("\"70-90\"", "", "192.168.8.6"));
        let faults = forwards(&twice).expect_err("twice");
        assert_eq!(faults[0].0, "a port of it leads elsewhere already");
        let apart = format!("{NAT}{}{}", one("4920", "", "192.168.8.5"), one("4920", "", "fd08::5"));
        assert!(forwards(&apart).is_ok(), "tcp is not the portal's, and IPv6 has ports of its own");
    }
}
