//! Links that share a bottleneck.
//!
//! ```text
//!          ┌── link1 (veth) ──┐
//!   local ─┼── link2 (veth) ──┼─ near ── bottleneck (emulated) ── far ── up0 (veth) ── remote
//!          └── …              ┘
//! ```
//!
//! 1. Routers; a veth for each link; the bottleneck; a veth to the remote portal.
//! 2. Routes there and back, for the endpoint and for what goes plainly.

use hawser_wire::{Direction, EmulatedLink, LinkSpec, Namespace, veth};
use ipnet::Ipv4Net;

use super::{
    Bond, ENDPOINT, GATEWAY, HOST, MTU, PLAIN_CLIENT_NETWORK, PLAIN_SERVER_NETWORK, UPLINK, address, end, link_name,
    link_network, uplink_network,
};
use crate::error::LabError;

/// The bottleneck's interface at either router.
const BOTTLENECK: &str = "narrow0";
/// The number of its network, and of the one behind it, among the uplinks: links have others.
const BOTTLENECK_NUMBER: u8 = 250;
const UPLINK_NUMBER: u8 = 251;

/// Steps 1 and 2.
pub(super) fn add(bond: &mut Bond, links: u8, up: &Direction, down: &Direction) -> Result<(), LabError> {
    let (near, far) = (Namespace::new("near")?, Namespace::new("far")?);
    near.set_forwarding(true)?;
    far.set_forwarding(true)?;
    for number in 1..=links {
        let (name, network) = (link_name(number), [link_network(number)]);
        veth(&end(&bond.local, &name, network, HOST), &end(&near, &name, network, GATEWAY), MTU)?;
        bond.local.set_plain_packets(&name)?;
        near.set_plain_packets(&name)?;
        bond.route_link(number)?;
    }
    let (narrow, uplink) = (uplink_network(BOTTLENECK_NUMBER), uplink_network(UPLINK_NUMBER));
    let (a, b) = (end(&near, BOTTLENECK, [narrow], HOST), end(&far, BOTTLENECK, [narrow], GATEWAY));
    let spec = LinkSpec { b_to_a: down.clone(), ..LinkSpec::symmetric(BOTTLENECK, a, b, up) };
    bond.links.push(EmulatedLink::new(spec)?);
    veth(&end(&far, UPLINK, [uplink], GATEWAY), &end(&bond.remote, UPLINK, [uplink], HOST), MTU)?;
    for network in [Ipv4Net::from(ENDPOINT), PLAIN_SERVER_NETWORK] {
        near.add_route(network.into(), Some(address(narrow, GATEWAY).into()), None)?;
        far.add_route(network.into(), Some(address(uplink, HOST).into()), None)?;
    }
    near.add_route(PLAIN_CLIENT_NETWORK.into(), Some(address(link_network(1), HOST).into()), None)?;
    for network in (1..=links).map(link_network).chain([PLAIN_CLIENT_NETWORK]) {
        far.add_route(network.into(), Some(address(narrow, HOST).into()), None)?;
        bond.remote.add_route(network.into(), Some(address(uplink, GATEWAY).into()), None)?;
    }
    bond.routers.extend([near, far]);
    Ok(())
}
