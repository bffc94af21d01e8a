//! The configurations of a site's portal, and of the members of its hub.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use ipnet::Ipv4Net;

use super::network::{LINKS, outward};
use crate::error::LabError;
use crate::portals::{link_section, new_key, write_private};

/// Where members listen.
const PORT: u16 = 4920;

/// What differs between hubs. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Configurations<'a> {
    /// What the site is called.
    pub site: &'a str,
    /// What the members are called, the site's list of them.
    pub members: &'a [&'a str],
    /// The site's own address.
    pub own: Ipv4Addr,
    /// The addresses that move with it.
    pub moving: &'a [Ipv4Addr],
}

impl Configurations<'_> {
    /// Into a folder: `NAME.toml`, `NAME.key`; the portals' sockets (`NAME.sock`) will be there too.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        let keep = |name: String, text: &str| {
            write_private(&folder.join(name), text).map_err(|error| LabError::system("write configurations", error))
        };
        let key = |name: &str| {
            let key = new_key()?;
            keep(format!("{name}.key"), &key.to_base64())?;
            Ok::<String, LabError>(key.public().to_string())
        };
        let portal = |name: &str| {
            let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
            let (key, socket, state) = (at(".key"), at(".sock"), at(".state"));
            format!("[portal]\nprivate_key_file = \"{key}\"\nsocket = \"{socket}\"\nstate_dir = \"{state}\"\n")
        };
        let (site, public) = (self.site, key(self.site)?);
        let mut text = format!("{}[tun]\naddresses = [\"{}/32\"]\n", portal(site), self.own);
        LINKS.iter().for_each(|name| text += &link_section(name, "udp", ""));
        for (at, name) in self.members.iter().enumerate() {
            let (key, endpoint) = (key(name)?, SocketAddr::new(outward(at)[0].into(), PORT));
            text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [\"{endpoint}\"]\n");
            if at == 0 {
                let standby = list(&self.members[1..]);
                text += &format!("allowed_ips = [\"203.0.114.0/24\"]\nstandby = [{standby}]\n");
            }
            let moving: Vec<Ipv4Net> = self.moving.iter().map(|address| Ipv4Net::from(*address)).collect();
            let member = format!(
                "{}listen = [\"0.0.0.0:{PORT}\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\n[[peer]]\n\
                 name = \"{site}\"\npublic_key = \"{public}\"\nallowed_ips = [{}]\n",
                portal(name),
                list(&moving)
            );
            keep(format!("{name}.toml"), &member)?;
        }
        keep(format!("{site}.toml"), &text)
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn portals_understand_their_configurations() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, public) = (Ipv4Addr::new(10, 78, 0, 2), Ipv4Addr::new(203, 0, 113, 8));
        let members = ["zurich", "geneva", "basel"];
        let site = Configurations { site: "home", members: &members, own: inner, moving: &[inner, public] };
        site.write(folder.path()).expect("it is written");
        for name in members.into_iter().chain(["home"]) {
            let text = fs::read_to_string(folder.path().join(format!("{name}.toml"))).expect("it is there");
            let config = hawser_config::Config::parse(&text, "hub.toml");
            assert!(config.is_ok(), "{text}\n{config:?}");
        }
    }
}
