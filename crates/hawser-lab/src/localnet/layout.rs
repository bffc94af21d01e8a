//! Who has which address in a network: always the same for the same topology, since every network has namespaces of its
//! own.
//!
//! 1. An AS is numbered after the last digits of its name where they serve: 1-ff00:0:110 has 10.110.0.0/24 or
//!    fd00:110::/64, router and control service at `.1`, hosts from `.10` on.
//! 2. The n-th link has 172.16.n.0/24: `.1` at its first end, `.2` at its second.
//! 3. Interfaces of an AS are numbered from 1, in the order of the links.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_scion::IsdAs;
use ipnet::IpNet;

use super::topology::{AsPlan, Family, LinkPlan, Topology};

/// Hosts' networks. Source: RFC 1918, RFC 4193.
const V4: u8 = 10;
const V6: u16 = 0xfd00;
/// Links' networks, 172.16.0.0/16. Source: RFC 1918.
const LINKS: [u8; 2] = [172, 16];
/// The host part of router and control service, and of the first host.
const ROUTER: u8 = 1;
const FIRST_HOST: u8 = 10;
/// Prefix lengths of an AS's network.
const V4_NETWORK: u8 = 24;
const V6_NETWORK: u8 = 64;
const LINK_NETWORK: u8 = 24;
/// Where services listen; the links' routers all on one port, each on an address of its own. Source: the reference
/// implementation's documentation.
pub(crate) const ROUTER_PORT: u16 = 30042;
pub(super) const CONTROL_PORT: u16 = 30252;
const LINK_PORT: u16 = 50000;
/// IP and UDP headers before a SCION packet. Source: RFC 791, 8200, 768.
const OVERHEAD_V4: u32 = 28;
const OVERHEAD_V6: u32 = 48;

/// The addresses of a topology. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Layout<'t> {
    pub topology: &'t Topology,
    /// In the order of the topology's ASes.
    pub ases: Vec<AsLayout<'t>>,
    /// In the order of its links.
    pub links: Vec<LinkLayout<'t>>,
}

/// The addresses of an AS. Plain data.
#[derive(Clone, Debug)]
pub(super) struct AsLayout<'t> {
    pub plan: &'t AsPlan,
    pub network: IpNet,
    pub router: IpAddr,
    pub hosts: Vec<IpAddr>,
    /// Of its interfaces inside, in bytes.
    pub mtu: u32,
}

/// The ends of a link. Plain data.
#[derive(Clone, Debug)]
pub(super) struct LinkLayout<'t> {
    pub plan: &'t LinkPlan,
    pub ends: [LinkEnd; 2],
    /// Of its interfaces, in bytes.
    pub mtu: u32,
}

/// An end of a link. Plain data.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkEnd {
    /// The interface's number in its AS.
    pub interface: u16,
    pub address: IpNet,
}

impl LinkEnd {
    pub fn underlay(&self) -> SocketAddr {
        SocketAddr::new(self.address.addr(), LINK_PORT)
    }
}

impl<'t> Layout<'t> {
    pub fn of(topology: &'t Topology) -> Self {
        let mut taken = Vec::new();
        for plan in &topology.ases {
            let wish = number_of(plan.id).filter(|number| !taken.contains(number));
            let free = || (1..=u8::MAX).find(|number| !taken.contains(number));
            taken.push(wish.or_else(free).unwrap_or(u8::MAX));
        }
        let ases = topology.ases.iter().zip(taken).map(|(plan, number)| as_layout(plan, number)).collect();
        let mut interfaces: BTreeMap<IsdAs, u16> = BTreeMap::new();
        let links = topology.links.iter().zip(1_u8..).map(|(plan, number)| {
            let mut host = 0;
            let ends = plan.ends.map(|id| {
                let interface = interfaces.entry(id).or_default();
                *interface += 1;
                host += 1;
                let address = Ipv4Addr::new(LINKS[0], LINKS[1], number, host);
                LinkEnd { interface: *interface, address: IpNet::new_assert(address.into(), LINK_NETWORK) }
            });
            LinkLayout { plan, ends, mtu: u32::from(plan.mtu) + OVERHEAD_V4 }
        });
        Self { topology, ases, links: links.collect() }
    }

    /// The ends of links at an AS: each link, which end of it that is, and the addresses here and there.
    pub fn at(&self, id: IsdAs) -> impl Iterator<Item = (&'t LinkPlan, usize, [LinkEnd; 2])> {
        let both = |&LinkLayout { plan, ends: [a, b], .. }: &LinkLayout<'t>| [(plan, 0, [a, b]), (plan, 1, [b, a])];
        self.links.iter().flat_map(both).filter(move |(plan, near, _)| plan.ends[*near] == id)
    }
}

/// Step 1.
fn as_layout(plan: &AsPlan, number: u8) -> AsLayout<'_> {
    let address = |host: u8| match plan.family {
        Family::V4 => IpAddr::from(Ipv4Addr::new(V4, number, 0, host)),
        // As the IPv4 address reads in decimal.
        Family::V6 => IpAddr::from(Ipv6Addr::new(V6, decimal(number), 0, 0, 0, 0, 0, decimal(host))),
    };
    let is_v4 = plan.family == Family::V4;
    let (prefix, overhead) = if is_v4 { (V4_NETWORK, OVERHEAD_V4) } else { (V6_NETWORK, OVERHEAD_V6) };
    AsLayout {
        plan,
        network: IpNet::new_assert(address(0), prefix).trunc(),
        router: address(ROUTER),
        hosts: (0..plan.hosts).map(|index| address(FIRST_HOST + index)).collect(),
        mtu: u32::from(plan.mtu) + overhead,
    }
}

/// The last group of an AS's name, read in decimal: 1-ff00:0:110 is 110.
fn number_of(id: IsdAs) -> Option<u8> {
    let name = id.asn().to_string();
    name.rsplit(':').next()?.parse().ok().filter(|&number| number > 0)
}

/// The number whose hexadecimal digits are these decimal ones.
fn decimal(number: u8) -> u16 {
    u16::from_str_radix(&number.to_string(), 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_as_is_numbered_after_its_name_where_that_serves() {
        let text = "name = \"x\"\n".to_owned()
            + &["1-ff00:0:110", "2-ff00:1:110", "1-ff00:0:fff", "1-64512", "1-7"].map(as_section).concat()
            + "[[as]]\nid = \"3-ff00:0:210\"\ncore = true\nhosts-ip = \"ipv6\"\nhosts = 2\n";
        let links = ["2-ff00:1:110", "1-ff00:0:fff", "1-64512", "1-7", "3-ff00:0:210"]
            .iter()
            .zip(1..)
            .map(|(to, n)| format!("[[link]]\nname = \"c{n}\"\nkind = \"core\"\na = \"1-ff00:0:110\"\nb = \"{to}\"\n"));
        let topology = Topology::parse(&(text + &links.collect::<String>()), "x.toml", None, None).expect("is right");
        let layout = Layout::of(&topology);
        let routers: Vec<String> = layout.ases.iter().map(|one| one.router.to_string()).collect();
        assert_eq!(routers, ["10.110.0.1", "10.1.0.1", "10.2.0.1", "10.3.0.1", "10.7.0.1", "fd00:210::1"]);
        assert_eq!(layout.ases[0].hosts, ["10.110.0.10".parse::<IpAddr>().expect("an address")]);
        assert_eq!(layout.ases[5].hosts[1].to_string(), "fd00:210::11");
        assert_eq!((layout.ases[0].mtu, layout.ases[5].mtu), (1500, 1500));
        let last = &layout.links[4];
        assert_eq!(last.ends.map(|end| end.interface), [5, 1], "numbered in each AS apart");
        assert_eq!(last.ends[1].underlay().to_string(), "172.16.5.2:50000");
    }

    fn as_section(id: &str) -> String {
        format!("[[as]]\nid = \"{id}\"\ncore = true\n")
    }
}
