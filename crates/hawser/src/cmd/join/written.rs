//! What `join` writes.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;

use hawser_config::{InterfaceName, PrivateKey};
use hawser_portal::pairing::{Token, Uplink};
use ipnet::IpNet;

use super::Home;
use crate::cmd::pairing::written::Written;
use crate::failure::Failure;

/// How a configuration begins that `leave` may remove.
const HEADER: &str = "# Written by `hawser join`; may be edited (docs/configuration.md). `hawser leave` removes it.";
/// What the portal that is joined is called here.
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
    let everything = |net: &IpNet| if net.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" }.to_owned();
    let networks: Vec<String> = if default_route {
        token.addresses.iter().map(everything).collect()
    } else {
        token.addresses.iter().map(|net| net.trunc().to_string()).collect()
    };
    text += &format!(
        "\n[[peer]]\nname = \"{HUB}\"\npublic_key = \"{}\"\nendpoints = [{}]\nallowed_ips = [{}]\n",
        token.public_key,
        list(&token.endpoints.iter().filter(|endpoint| endpoint.udp).collect::<Vec<_>>()),
        list(&networks)
    );
    text
}

fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}
