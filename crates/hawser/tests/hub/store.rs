//! Three servers of Debian's etcd, as machines beyond the router: each has an address of its own.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use hawser_lab::hub::{Network, upward};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Namespace, veth};
use ipnet::IpNet;

use crate::etcd::{Kind, Servers};
use crate::lab::ms;
use crate::world::{MEMBERS, nft};

/// The servers' addresses, their machines' and the router's towards them.
const SERVERS: [&str; 3] = ["10.1.0.1", "10.1.0.2", "10.1.0.3"];
const NET: &str = "10.1.0.0/24";
const OWN: &str = "10.2.0.1";
const ROUTER: &str = "10.2.0.2";
/// The least that a lease may be, in seconds: what ends with it is waited for.
pub const LEASE_S: u64 = 3;

/// All three; ended when it drops. One owner.
pub struct Store {
    pub servers: Servers,
    _link: Option<EmulatedLink>,
}

impl Store {
    /// They run, and are so. Each answer takes a round trip.
    pub fn start(network: &Network, folder: &Path, round_trip: Option<Duration>, kind: Kind) -> Self {
        let namespace = Namespace::new("etcd").expect("a namespace");
        let end = |at: &Namespace, name: &str, address: &str| End::new(at, name, &[&format!("{address}/24")]);
        let (near, far) = (end(&network.router, "etcd", ROUTER), end(&namespace, "etcd", OWN));
        let slow = |round_trip: Duration| {
            let direction = Direction::shaped(100.0, round_trip / 2, ms(500));
            EmulatedLink::new(LinkSpec::symmetric("etcd", near.clone(), far.clone(), &direction)).expect("a link")
        };
        let link = round_trip.map(slow);
        if link.is_none() {
            veth(&near, &far, 1_500).expect("a veth pair");
        }
        let address = |text: &str| text.parse::<Ipv4Addr>().expect("an address").into();
        let net: IpNet = NET.parse().expect("a network");
        namespace.add_default_route(address(ROUTER)).expect("a route");
        network.router.add_route(net, Some(address(OWN)), None).expect("a route");
        for (at, member) in network.members.iter().enumerate() {
            member.add_route(net, Some(upward(at)[1].into()), None).expect("a route");
        }
        Self { servers: Servers::start(&namespace, folder, &SERVERS, &MEMBERS, kind), _link: link }
    }

    /// More of a member's `[hub]`.
    pub fn section(&self, strict: bool) -> String {
        format!("etcd = {}\netcd_lease = {LEASE_S}\netcd_strict = {strict}\n", self.servers.urls())
    }
}

/// What these members and etcd say to each other is lost at the router from now on, both ways.
pub fn away_for(network: &Network, members: &[usize]) {
    let those: Vec<String> = members.iter().map(|at| upward(*at)[0].to_string()).collect();
    let those = those.join(", ");
    let rule = |one: &str, other: &str| format!("ip {one} {{ {those} }} ip {other} {NET} drop; ");
    let rules = rule("saddr", "daddr") + &rule("daddr", "saddr");
    let chain = "chain forward { type filter hook forward priority 0; ";
    nft(&network.router, &format!("table inet store {{ {chain} {rules} }}; }}"));
}
