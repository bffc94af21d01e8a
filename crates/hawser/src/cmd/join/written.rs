//! What `join` writes.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;

use hawser_config::{InterfaceName, PrivateKey, PublicKey};
use hawser_portal::pairing::{Endpoint, Member, Token, Uplink};
use ipnet::IpNet;

use super::Home;
use crate::cmd::pairing::written::Written;
use crate::failure::Failure;

/// How a configuration begins that `leave` may remove.
const HEADER: &str = "# Written by `hawser join`; may be edited (docs/configuration.md). `hawser leave` removes it.";
/// What the portal that is joined is called here, where it has no name in a hub.
const HUB: &str = "hub";

/// Writes the key and the configuration.
pub fn write(written: &mut Written, home: &Home, key: &PrivateKey, text: &str) -> Result<(), Failure> {
    written.folder(&home.folder)?;
    written.file(&home.key, &key.to_base64())?;
    written.file(&home.config, text)
}

/// Whether the file is one of ours.
pub fn is_ours(config: &Path) -> bool {
    std::fs::read_to_string(config).is_ok_and(|text| text.starts_with(HEADER))
}

/// The text of the configuration.
pub fn configuration(
    home: &Home,
    token: &Token,
    key: &PublicKey,
    links: &[Uplink],
    served: &[InterfaceName],
    default_route: bool,
    name_servers: &[IpAddr],
) -> String {
    let mut text = format!("{HEADER}\n{}\n[tun]\naddresses = [{}]\n", home.portal_section(), list(&token.addresses));
    if default_route {
        text += "default_route = true\n# Who calls this host by an uplink's address is answered by that, as before.\nanswer_by_link = true\n";
    }
    if !name_servers.is_empty() {
        text += &format!("# The server's name servers.\ndns = [{}]\n", list(name_servers));
    }
    if !served.is_empty() {
        let served: Vec<&str> = served.iter().map(InterfaceName::as_str).collect();
        text += &format!("\n[gateway]\nserve = [{}]\nmasquerade = true\n", list(&served));
    }
    for link in links {
        text += &format!("\n[[link]]\nname = \"{0}\"\ninterface = \"{0}\"\n", link.interface);
        if token.endpoints.iter().any(|endpoint| endpoint.udp && endpoint.tcp) {
            text += "transport = \"auto\"\n";
        }
    }
    text + &peers(token, key, default_route)
}

/// Who is called: the portal of the token; of a hub all members, in the order in which they are asked.
fn peers(token: &Token, key: &PublicKey, default_route: bool) -> String {
    let everything = |net: &IpNet| if net.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" }.to_owned();
    let networks: Vec<String> = if default_route {
        token.addresses.iter().map(everything).collect()
    } else {
        token.addresses.iter().map(|net| net.trunc().to_string()).collect()
    };
    let networks = format!("allowed_ips = [{}]\n", list(&networks));
    let members = token.members(key);
    let Some((active, others)) = members.split_first() else {
        return peer(HUB, &token.public_key, &token.endpoints) + &networks;
    };
    let standby = list(&others.iter().map(|member| &member.name).collect::<Vec<_>>());
    let of_member = |member: &Member| peer(member.name.as_str(), &member.public_key, &member.endpoints);
    let behind: String = others.iter().map(of_member).collect();
    format!("{}{networks}standby = [{standby}]\n{behind}", of_member(active))
}

fn peer(name: &str, key: &PublicKey, endpoints: &[Endpoint]) -> String {
    let endpoints: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| endpoint.udp).collect();
    format!("\n[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [{}]\n", list(&endpoints))
}

fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use hawser_config::{Config, PeerName};
    use hawser_core::handshake::enrolment::{SECRET_LEN, Secret};
    use hawser_portal::pairing::{Host, Hub, Share};

    use super::*;

    /// The members of the hub that follows from a token with these others, and which of them has which networks.
    fn written(others: &[&str], default_route: bool) -> (Vec<String>, Vec<(String, String)>) {
        let key = |number: u8| PublicKey::new([number; 32]).expect("a key");
        let name = |text: &str| PeerName::parse(text).expect("a name");
        let host = Host::parse("198.51.100.7").expect("an address");
        let endpoints = vec![Endpoint { host, port: 4920, udp: true, tcp: false }];
        let member = |(text, number)| Member {
            name: name(text),
            public_key: key(number),
            endpoints: endpoints.clone(),
            share: Share::default(),
        };
        let others: Vec<Member> = others.iter().copied().zip(2..).map(member).collect();
        let hub = |others| Hub::new((name("zurich"), &key(1), Share::default()), others, false).expect("a hub");
        let token = Token {
            public_key: key(1),
            secret: Secret::new([5; SECRET_LEN]),
            expires: u32::MAX,
            name: name("home"),
            addresses: vec!["10.77.0.2/24".parse().expect("a net")],
            gateways: vec!["10.77.0.1".parse().expect("an address")],
            endpoints: endpoints.clone(),
            name_servers: vec![],
            hub: (!others.is_empty()).then(|| hub(others)),
        };
        let links = [Uplink { interface: InterfaceName::parse("dsl").expect("a name") }];
        let home = Home::of(Path::new("/etc/other/hawser.toml"));
        let text = configuration(&home, &token, &key(9), &links, &[], default_route, &[]);
        let config = Config::parse(&text, "t.toml").unwrap_or_else(|faults| panic!("{faults:?} in\n{text}"));
        let hubs = config.hubs().flatten().map(|peer| peer.name.to_string()).collect();
        let nets = |peer: &hawser_config::Peer| peer.allowed_ips.iter().map(ToString::to_string).collect::<String>();
        (hubs, config.peers.iter().map(|peer| (peer.name.to_string(), nets(peer))).collect())
    }

    #[test]
    fn a_hubs_token_brings_a_peer_for_each_member_and_the_first_has_the_networks() {
        let peer = |name: &str, nets: &str| (name.to_owned(), nets.to_owned());
        let names = ["zurich", "geneva", "basel"].map(str::to_owned).to_vec();
        let peers = vec![peer("zurich", "0.0.0.0/0"), peer("geneva", ""), peer("basel", "")];
        assert_eq!(written(&["geneva", "basel"], true), (names, peers));
        assert_eq!(written(&[], true), (vec![], vec![peer("hub", "0.0.0.0/0")]), "as before");
        assert_eq!(written(&[], false).1, [peer("hub", "10.77.0.0/24")]);
    }
}
