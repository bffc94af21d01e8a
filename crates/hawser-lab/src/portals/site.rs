//! Where two portals run, and what their configurations say of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_config::PublicKey;
use hawser_scion::EndpointAddr;
use ipnet::IpNet;

use super::{LOCAL_TUN, PORT, REMOTE_TUN, parsed};
use crate::scenario::TunnelEnd;
use crate::text::quoted;

/// What two portals have between them, and what they join. Plain data.
pub(crate) struct Site<'a> {
    /// The remote portal's address.
    pub endpoint: IpAddr,
    /// Where it is reached over SCION, too.
    pub scion: Option<EndpointAddr>,
    /// The local portal's links: [`link_section`]s.
    pub links: String,
    /// How many of their paths are to become active.
    pub paths: usize,
    /// What the remote portal listens by.
    pub transports: Vec<String>,
    /// The devices' addresses: local, remote.
    pub tun: [Vec<IpNet>; 2],
    /// What else is joined: networks behind the local portal, behind the remote one.
    pub behind: [Vec<IpNet>; 2],
    /// Lines of the section `[traffic]`.
    pub traffic: &'a str,
    /// More sections, of both portals.
    pub more: &'a str,
}

impl Site<'_> {
    /// By UDP alone, with nothing joined but the devices, and no more to say.
    pub(crate) fn plain(endpoint: IpAddr, links: String, paths: usize) -> Self {
        let tun = [LOCAL_TUN, REMOTE_TUN].map(|address| vec![parsed(address)]);
        let (transports, behind) = (vec!["udp".to_owned()], [vec![], vec![]]);
        Self { endpoint, scion: None, links, paths, transports, tun, behind, traffic: "", more: "" }
    }

    /// What an end's portal reads, from where `[portal]` has named its files; the other one has this key.
    pub(super) fn configuration(&self, end: TunnelEnd, key: &PublicKey) -> String {
        let scion = self.scion.map(|endpoint| format!(", \"scion://{endpoint}\"")).unwrap_or_default();
        let at = |address| format!("[\"{}\"{scion}]\n", SocketAddr::new(address, PORT));
        // A stream may come inside TLS where a link's section says so.
        let tls = if self.links.contains("tls = true") { "tls = true\n" } else { "" };
        let listen = || format!("listen = {}transports = {:?}\n{tls}", at(any_of(self.endpoint)), self.transports);
        let endpoints = || format!("endpoints = {}", at(self.endpoint));
        let (own, other, peer, listen, links, endpoints) = match end {
            TunnelEnd::Local => (0, 1, "remote", String::new(), &*self.links, endpoints()),
            TunnelEnd::Remote => (1, 0, "local", listen(), "", String::new()),
        };
        // From the other one is accepted what comes from its device, and from what lies behind it.
        let hosts = self.tun[other].iter().map(|net| IpNet::from(net.addr()));
        let allowed = quoted(hosts.chain(self.behind[other].iter().copied()));
        let (tun, traffic, more) = (quoted(&self.tun[own]), self.traffic, self.more);
        format!(
            "{listen}\n[tun]\naddresses = [{tun}]\n\n{links}\
             [[peer]]\nname = \"{peer}\"\npublic_key = \"{key}\"\n{endpoints}allowed_ips = [{allowed}]\n\n\
             [traffic]\n{traffic}\n\n{more}\n"
        )
    }
}

/// Every address of a family.
pub(crate) fn any_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A link by the interface of its name, with more lines.
pub(crate) fn link_section(interface: &str, transport: &str, more: &str) -> String {
    format!("[[link]]\nname = \"{interface}\"\ninterface = \"{interface}\"\ntransport = \"{transport}\"\n{more}\n")
}

#[cfg(test)]
mod tests {
    use hawser_config::{Config, PrivateKey};

    use super::*;

    #[test]
    fn portals_understand_their_configurations() {
        let key = PrivateKey::generate().expect("randomness").public();
        let links = "[[link]]\nname = \"link1\"\ninterface = \"link1\"\n\n".to_owned();
        let site = Site {
            behind: ["10.1.0.0/24", "10.2.0.0/24"].map(|network| vec![parsed(network)]),
            traffic: "congestion = \"cubic\"\n",
            more: "[[rule]]\ndscp = \"ef\"\nscheduler = \"redundant\"\n",
            ..Site::plain([198, 51, 100, 7].into(), links, 1)
        };
        for end in [TunnelEnd::Local, TunnelEnd::Remote] {
            let files = "[portal]\nprivate_key_file = \"/nowhere/key\"\nsocket = \"/nowhere/socket\"\n";
            let text = files.to_owned() + &site.configuration(end, &key);
            let config = Config::parse(&text, "lab.toml");
            assert!(config.is_ok(), "{text}\n{config:?}");
        }
    }
}
