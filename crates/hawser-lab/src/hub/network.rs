//! The namespaces of a hub, the links and routes between them. Portals are started by others.
//!
//! ```text
//!        one 192.0.1.1 -- .2 one1     a 198.51.10.254 -- .1 out   a   up 10.0.1.1 -- .2 a
//!   site two 192.0.2.1 -- .2 two1 net b 198.51.11.254 -- .1 out   b   up 10.0.2.1 -- .2 b router lan 203.0.114.1 -- .2 server
//!   hawser0 203.0.113.8                                          hawser0 10.77.0.1
//! ```
//! The site has a public address, which the members announce; a second one's links are one2 and two2, of 192.0.3.0 and
//! 192.0.4.0.

use std::net::Ipv4Addr;
use std::time::Duration;

use hawser_wire::{Direction, EmulatedLink, LinkSpec, Namespace, veth};

use crate::cleanup;
use crate::error::LabError;
use crate::portals::parsed;
use crate::topology::end_at;

/// The sites' addresses, which move between members, and the server's. Source: RFC 5737, and beside it.
pub const SITES: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 8), Ipv4Addr::new(203, 0, 113, 9)];
/// See [`SITES`].
pub const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 1);
/// A site's links: their round trip is 20 ms, their queues are of 100.
pub const LINKS: [&str; 2] = ["one", "two"];
const ONE_WAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);
const MTU: u32 = 1_500;

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
