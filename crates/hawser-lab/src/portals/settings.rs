//! What a portal's configuration says.

use std::path::Path;

use ipnet::IpNet;

/// What goes into a configuration. Plain data.
pub(super) struct Config<'a> {
    pub listen: &'a str,
    pub tun: &'a [IpNet],
    pub links: &'a str,
    /// Name and public key.
    pub peer: (&'a str, &'a str),
    pub endpoints: &'a str,
    pub allowed: &'a str,
    pub traffic: &'a str,
    pub more: &'a str,
}

impl Config<'_> {
    pub(super) fn text(&self, key_file: &Path, socket: &Path) -> String {
        let Self { listen, tun, links, peer: (peer, public_key), endpoints, allowed, traffic, more } = self;
        let tun = quoted(tun);
        let (key_file, socket) = (key_file.display(), socket.display());
        format!(
            "[portal]\nprivate_key_file = \"{key_file}\"\nsocket = \"{socket}\"\n{listen}\n\
             [tun]\naddresses = [{tun}]\n\n{links}\
             [[peer]]\nname = \"{peer}\"\npublic_key = \"{public_key}\"\n{endpoints}allowed_ips = [{allowed}]\n\n\
             [traffic]\n{traffic}\n\n{more}\n"
        )
    }
}

/// What one portal accepts from the other: its device's addresses, and what lies behind it.
pub(super) fn allowed(tun: &[IpNet], behind: &[IpNet]) -> String {
    let hosts = tun.iter().map(|net| IpNet::from(net.addr()));
    quoted(&hosts.chain(behind.iter().copied()).collect::<Vec<_>>())
}

fn quoted(networks: &[IpNet]) -> String {
    networks.iter().map(|network| format!("\"{network}\"")).collect::<Vec<_>>().join(", ")
}

/// A link by the interface of its name, with more lines.
pub(crate) fn link_section(interface: &str, transport: &str, more: &str) -> String {
    format!("[[link]]\nname = \"{interface}\"\ninterface = \"{interface}\"\ntransport = \"{transport}\"\n{more}\n")
}

#[cfg(test)]
mod tests {
    use hawser_config::{Config as Parsed, PrivateKey};

    use super::*;
    use crate::portals::{LOCAL_TUN, parsed};

    #[test]
    fn a_portal_understands_its_configuration() {
        let key = PrivateKey::generate().expect("randomness").public().to_string();
        let text = Config {
            listen: "listen = [\"0.0.0.0:4920\"]\n",
            tun: &[parsed(LOCAL_TUN)],
            links: "[[link]]\nname = \"link1\"\ninterface = \"link1\"\n\n",
            peer: ("remote", &key),
            endpoints: "endpoints = [\"198.51.100.7:4920\"]\n",
            allowed: "\"10.2.0.0/24\"",
            traffic: "congestion = \"cubic\"\n",
            more: "[[rule]]\ndscp = \"ef\"\nscheduler = \"redundant\"\n",
        }
        .text(Path::new("/nowhere/key"), Path::new("/nowhere/socket"));
        let config = Parsed::parse(&text, "lab.toml");
        assert!(config.is_ok(), "{text}\n{config:?}");
    }
}
