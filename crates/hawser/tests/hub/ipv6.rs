//! IPv6 beside IPv4: each home has a prefix, which its owner announces as it does the address, and the server is there
//! by both. Members translate no IPv6.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use hawser_lab::hub::{Network, SITES};
use hawser_wire::Namespace;
use ipnet::{IpNet, Ipv6Net};

use crate::lab::parse;
use crate::setup::edit;
use crate::world::{HOMES, MEMBERS};

/// The homes' prefixes, and what contrib/hub/frr.conf has announced of them. Source: RFC 3849.
pub const PREFIXES: [Ipv6Net; 2] = [prefix(1), prefix(2)];
pub const ALL: &str = "2001:db8:8::/48";
/// Of the server, its next hop, and the network of both.
pub const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x114, 0, 0, 0, 0, 2);
const GATEWAY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x114, 0, 0, 0, 0, 1);
const BEYOND: &str = "2001:db8:114::/64";

const fn prefix(home: u16) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 8, home, 0, 0, 0, 0), 64)
}

/// The way to the server, by each member and the router.
pub fn lay(network: &Network) {
    let Network { members, router, server, .. } = network;
    for (at, member) in members.iter().enumerate() {
        let host = |host: usize| format!("2001:db8:0:{}::{host}", at + 1);
        join([(member, "up", &host(1)), (router, MEMBERS[at], &host(2))]);
        member.add_route(parse(BEYOND), Some(parse(&host(2))), None).expect("a route");
    }
    join([(router, "lan", &GATEWAY.to_string()), (server, "eth", &SERVER.to_string())]);
    server.add_default_route(GATEWAY.into()).expect("a route");
}

/// Gives both ends of a link an address, and a link-local one, by which a router asks for neighbours (RFC 4861, section
/// 7.2.2).
fn join(ends: [(&Namespace, &str, &str); 2]) {
    for ((namespace, interface, address), number) in ends.into_iter().zip(1..) {
        for address in [format!("{address}/64"), format!("fe80::{number}/64")] {
            namespace.add_address(interface, parse(&address)).expect("an address");
        }
    }
}

/// The homes' configurations have an address of the prefix, and the way to the server; those of members that have their
/// peers in their files the prefixes.
pub fn configure(folder: &Path, members: &[&str]) {
    for (home, name) in HOMES.iter().enumerate() {
        let file = folder.join(format!("{name}.toml"));
        let address = IpNet::new_assert(IpAddr::from(first(home)), 64);
        edit(&file, "/32\"]\n", &format!("/32\", \"{address}\"]\n"));
        edit(&file, "\"203.0.114.0/24\"", &format!("\"203.0.114.0/24\", \"{BEYOND}\""));
        for member in members {
            let public = format!("\"{}/32\"", SITES[home]);
            edit(&folder.join(format!("{member}.toml")), &public, &format!("{public}, \"{}\"", PREFIXES[home]));
        }
    }
}

/// A home's address.
fn first(home: usize) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(PREFIXES[home].network()) + 1)
}
