//! Where hubs are tried, by `hawser demo hub` and by tests: namespaces, the links and routes between them; the
//! [`Configurations`] of portals, which others start; and for the demo a `follower` in the place of routing daemons.
//!
//! ```text
//!        one 192.0.1.1 -- .2 one1     a 198.51.10.254 -- .1 out   a   up 10.0.1.1 -- .2 a
//!   site two 192.0.2.1 -- .2 two1 net b 198.51.11.254 -- .1 out   b   up 10.0.2.1 -- .2 b router lan 203.0.114.1 -- .2 server
//!   hawser0 203.0.113.8                                          hawser0 10.77.0.1
//! ```
//! The site has a public address, which the members announce; a second one's links are one2 and two2, of 192.0.3.0 and
//! 192.0.4.0.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_config::PrivateKey;
use hawser_wire::{Direction, EmulatedLink, LinkSpec, Namespace, veth};
use ipnet::Ipv4Net;

use crate::cleanup;
use crate::error::LabError;
use crate::portals::{PORT, configure, link_section, new_key, parsed};
use crate::stage::MTU;
use crate::text::quoted;
use crate::topology::end_at;

mod follower;

pub(crate) use follower::follow;

/// The sites' addresses, which move between members, and the server's. Source: RFC 5737, and beside it.
pub const SITES: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 8), Ipv4Addr::new(203, 0, 113, 9)];
/// See [`SITES`].
pub const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 1);
/// A site's links: their round trip is 20 ms, their queues are of 100.
const LINKS: [&str; 2] = ["one", "two"];
const ONE_WAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);

/// The namespaces. Whole from the start; removed on drop, links first.
#[derive(Debug)]
pub struct Network {
    _links: Vec<EmulatedLink>,
    /// Each has two links of its own.
    pub sites: Vec<Namespace>,
    /// The remote portals' machines.
    pub members: Vec<Namespace>,
    /// Between members and the server.
    pub router: Namespace,
    /// Beyond.
    pub server: Namespace,
    /// Between the links and the members.
    pub net: Namespace,
}

/// A member's address towards the router, and the router's there.
pub fn upward(member: usize) -> [Ipv4Addr; 2] {
    let net = u8::try_from(member + 1).unwrap_or(u8::MAX);
    [1, 2].map(|host| Ipv4Addr::new(10, 0, net, host))
}

/// A member's address towards the site, and the next hop there.
pub fn outward(member: usize) -> [Ipv4Addr; 2] {
    let net = u8::try_from(member + 10).unwrap_or(u8::MAX);
    [1, 254].map(|host| Ipv4Addr::new(198, 51, net, host))
}

impl Network {
    /// All of it: sites by what each of their links carries, in Mbit/s, as many as [`SITES`] at most; members of these
    /// names.
    ///
    /// # Errors
    /// Where root is lacking.
    pub fn new(sites: &[f64], members: &[&str]) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let (net, router, server) = (Namespace::new("net")?, Namespace::new("router")?, Namespace::new("server")?);
        let rates = sites;
        let sites = rates.iter().map(|_| Namespace::new("site")).collect::<Result<Vec<_>, _>>()?;
        let each = sites.iter().zip(rates).flat_map(|site| LINKS.map(|name| (site, name))).zip(1..);
        let links = each.map(|(((site, mbps), name), number)| link(site, &net, (name, number), *mbps));
        let links = links.collect::<Result<Vec<_>, LabError>>()?;
        let machines = members.iter().map(|name| Namespace::new(name)).collect::<Result<Vec<_>, _>>()?;
        for (at, (name, member)) in members.iter().zip(&machines).enumerate() {
            attach(member, &net, &router, (name, at))?;
        }
        veth(&end_at(&router, "lan", GATEWAY), &end_at(&server, "eth", SERVER), MTU)?;
        server.add_default_route(GATEWAY.into())?;
        for namespace in [&net, &router].into_iter().chain(&machines) {
            namespace.set_forwarding(true)?;
        }
        Ok(Self { _links: links, sites, members: machines, router, server, net })
    }
}

fn link(site: &Namespace, net: &Namespace, (name, number): (&str, u8), mbps: f64) -> Result<EmulatedLink, LabError> {
    let address = |host| Ipv4Addr::new(192, 0, number, host);
    let beyond = format!("{name}{}", number.div_ceil(2));
    let (near, far) = (end_at(site, name, address(1)), end_at(net, &beyond, address(2)));
    let way = Direction::shaped(mbps, ONE_WAY, QUEUE);
    let link = EmulatedLink::new(LinkSpec::symmetric(name, near, far, &way))?;
    // Bound to an interface, a socket needs a route of that interface.
    site.add_metric_route(parsed("198.51.0.0/16"), Some(address(2).into()), Some(name), number.into())?;
    Ok(link)
}

/// A member between the net and the router.
fn attach(member: &Namespace, net: &Namespace, router: &Namespace, (name, at): (&str, usize)) -> Result<(), LabError> {
    let ([own, beyond], [up, next]) = (outward(at), upward(at));
    veth(&end_at(member, "out", own), &end_at(net, name, beyond), MTU)?;
    veth(&end_at(member, "up", up), &end_at(router, name, next), MTU)?;
    for (net, by) in [("192.0.0.0/16", beyond), ("198.51.0.0/16", beyond), ("203.0.114.0/24", next)] {
        member.add_route(parsed(net), Some(by.into()), None)?;
    }
    Ok(())
}

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
