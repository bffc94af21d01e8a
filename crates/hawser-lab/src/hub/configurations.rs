//! The configurations of sites' portals, and of the members of their hub.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use ipnet::Ipv4Net;

use super::network::{LINKS, outward};
use crate::error::LabError;
use crate::portals::{link_section, new_key, write_private};

/// Where members listen.
const PORT: u16 = 4920;

/// A site. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its own address.
    pub own: Ipv4Addr,
    /// The addresses that move with it.
    pub moving: &'a [Ipv4Addr],
}

/// What differs between hubs. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Configurations<'a> {
    /// Each site's list of members begins with another one.
    pub sites: &'a [Site<'a>],
    /// What the members are called.
    pub members: &'a [&'a str],
    /// More of each member's `[hub]`, where peers are in etcd and not in its file: its servers (a list of addresses),
    /// and more. The certificates are ca.pem, NAME.pem and NAME.key, beside the configurations.
    pub etcd: Option<&'a str>,
}

impl Configurations<'_> {
    /// Into a folder: `NAME.toml`, `NAME.portal` (a private key); the portals' sockets (`NAME.sock`) will be there too.
    /// Gives the sites' public keys.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<String>, LabError> {
        let keep = |name: String, text: &str| {
            write_private(&folder.join(name), text).map_err(|error| LabError::system("write configurations", error))
        };
        let key = |name: &str| {
            let key = new_key()?;
            keep(format!("{name}.portal"), &key.to_base64())?;
            Ok::<String, LabError>(key.public().to_string())
        };
        let sites = self.sites.iter().map(|site| key(site.name)).collect::<Result<Vec<_>, _>>()?;
        let members = self.members.iter().map(|name| key(name)).collect::<Result<Vec<_>, _>>()?;
        let portal = |name: &str| {
            let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
            let (key, socket, state) = (at(".portal"), at(".sock"), at(".state"));
            format!("[portal]\nprivate_key_file = \"{key}\"\nsocket = \"{socket}\"\nstate_dir = \"{state}\"\n")
        };
        for at in 0..self.members.len() {
            let name = self.members[at];
            keep(format!("{name}.toml"), &(portal(name) + &self.member(at, &sites)))?;
        }
        for (at, site) in self.sites.iter().enumerate() {
            keep(format!("{}.toml", site.name), &(portal(site.name) + &self.site(at, &members)))?;
        }
        Ok(sites)
    }

    /// Of a member, beside its `[portal]`: that is what comes before.
    fn member(&self, at: usize, sites: &[String]) -> String {
        let common = format!("listen = [\"0.0.0.0:{PORT}\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\n");
        let peers: String = match self.etcd {
            None => self.sites.iter().zip(sites).map(|(site, public)| peer(site, public)).collect(),
            Some(etcd) => {
                let (name, endpoint) = (self.members[at], endpoint(at));
                format!(
                    "name = \"{name}\"\nendpoints = [\"{endpoint}\"]\nrack = {at}\netcd_ca = \"ca.pem\"\n\
                     etcd_certificate = \"{name}.pem\"\netcd_key = \"{name}.key\"\n{etcd}"
                )
            }
        };
        common + &peers
    }

    /// Of a site, beside its `[portal]`.
    fn site(&self, at: usize, keys: &[String]) -> String {
        let mut text = format!("[tun]\naddresses = [\"{}/32\"]\n", self.sites[at].own);
        LINKS.iter().for_each(|name| text += &link_section(name, "udp", ""));
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.rotate_left(at % self.members.len());
        for &member in &order {
            let (name, key, endpoint) = (self.members[member], &keys[member], endpoint(member));
            text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [\"{endpoint}\"]\n");
            if member == order[0] {
                let standby: Vec<&str> = order[1..].iter().map(|&member| self.members[member]).collect();
                text += &format!("allowed_ips = [\"203.0.114.0/24\"]\nstandby = [{}]\n", list(&standby));
            }
        }
        text
    }
}

fn endpoint(member: usize) -> SocketAddr {
    SocketAddr::new(outward(member)[0].into(), PORT)
}

/// A member's section for a site.
fn peer(site: &Site<'_>, public: &str) -> String {
    let moving: Vec<Ipv4Net> = site.moving.iter().map(|address| Ipv4Net::from(*address)).collect();
    let (name, moving) = (site.name, list(&moving));
    format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{public}\"\nallowed_ips = [{moving}]\n")
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
        let moving = [8, 9].map(|host| [Ipv4Addr::new(10, 78, 0, host), Ipv4Addr::new(203, 0, 113, host)]);
        let site = |name, at: usize| Site { name, own: moving[at][0], moving: &moving[at] };
        let (sites, members) = ([site("home", 0), site("branch", 1)], ["zurich", "geneva", "basel"]);
        let folder = tempfile::tempdir().expect("a folder");
        let keys = Configurations { sites: &sites, members: &members, etcd: None }.write(folder.path());
        assert_eq!(keys.expect("it is written").len(), 2);
        for name in members.into_iter().chain(["home", "branch"]) {
            let text = fs::read_to_string(folder.path().join(format!("{name}.toml"))).expect("it is there");
            let config = hawser_config::Config::parse(&text, "hub.toml");
            assert!(config.is_ok(), "{text}\n{config:?}");
        }
    }
}
