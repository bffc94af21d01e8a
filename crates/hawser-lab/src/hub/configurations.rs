//! The configurations of sites' portals, and of the members of their hub.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use hawser_config::PrivateKey;
use ipnet::Ipv4Net;

use super::network::{LINKS, outward};
use crate::error::LabError;
use crate::portals::{PORT, configure, link_section, new_key};
use crate::text::quoted;

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
        let keys = |count| (0..count).map(|_| new_key()).collect::<Result<Vec<_>, _>>();
        let public = |keys: &[PrivateKey]| keys.iter().map(|key| key.public().to_string()).collect::<Vec<_>>();
        let keep = |name: &str, key: &PrivateKey, rest: String| {
            let state = folder.join(format!("{name}.state"));
            configure(folder, name, key, &format!("state_dir = \"{}\"\n{rest}", state.display()))
        };
        let (site_keys, member_keys) = (keys(self.sites.len())?, keys(self.members.len())?);
        let (sites, members) = (public(&site_keys), public(&member_keys));
        for (at, key) in member_keys.iter().enumerate() {
            keep(self.members[at], key, self.member(at, &sites))?;
        }
        for (at, key) in site_keys.iter().enumerate() {
            keep(self.sites[at].name, key, self.site(at, &members))?;
        }
        Ok(sites)
    }

    /// Of a member, from where `[portal]` has named its files.
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

    /// Of a site, in the same way.
    fn site(&self, at: usize, keys: &[String]) -> String {
        let mut text = format!("[tun]\naddresses = [\"{}/32\"]\n", self.sites[at].own);
        LINKS.iter().for_each(|name| text += &link_section(name, "udp", ""));
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.rotate_left(at % self.members.len());
        for &member in &order {
            let (name, key, endpoint) = (self.members[member], &keys[member], endpoint(member));
            text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [\"{endpoint}\"]\n");
            if member == order[0] {
                let standby = quoted(order[1..].iter().map(|&member| self.members[member]));
                text += &format!("allowed_ips = [\"203.0.114.0/24\"]\nstandby = [{standby}]\n");
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
    let (name, moving) = (site.name, quoted(site.moving.iter().map(|address| Ipv4Net::from(*address))));
    format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{public}\"\nallowed_ips = [{moving}]\n")
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
