//! What `join` writes, and takes back.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use hawser_portal::config::{InterfaceName, PrivateKey};
use hawser_portal::pairing::{Token, Uplink, make_folder, remove_file, write_private};
use ipnet::IpNet;

use super::Home;
use crate::failure::Failure;

/// How a configuration begins that `leave` may remove.
const HEADER: &str = "# Written by `hawser join`; may be edited (docs/configuration.md). `hawser leave` removes it.";
/// What the portal that is joined is called here.
const HUB: &str = "hub";

/// What was written so far. Nothing at first.
#[derive(Debug, Default)]
pub struct Written {
    files: Vec<PathBuf>,
    folder: Option<PathBuf>,
}

impl Written {
    /// Writes the key and the configuration.
    pub fn write(&mut self, home: &Home, key: &PrivateKey, text: &str) -> Result<(), Failure> {
        if make_folder(&home.folder).map_err(Failure::failed)? {
            self.folder = Some(home.folder.clone());
        }
        for (path, text) in [(&home.key, key.to_base64().as_str()), (&home.config, text)] {
            write_private(path, text).map_err(Failure::failed)?;
            self.files.push(path.clone());
        }
        Ok(())
    }

    /// Takes it back; a folder only where this made it.
    pub fn undo(self, home: &Home) -> Result<(), Failure> {
        for file in self.files.iter().rev() {
            remove_file(file).map_err(Failure::failed)?;
        }
        if let Some(folder) = self.folder {
            let _ = std::fs::remove_dir(&home.state);
            // Somebody may have put something there.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
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
) -> String {
    let mut text = format!("{HEADER}\n{}\n[tun]\naddresses = [{}]\n", home.portal_section(), list(&token.addresses));
    if default_route {
        text += "default_route = true\n# Who calls this host by an uplink's address is answered by that, as before.\nanswer_by_link = true\n";
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
