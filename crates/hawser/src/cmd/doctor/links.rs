//! Step 2: what the system has of each link. The first thing that is missing explains all that follow.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_config::{ANY_INTERFACE, Config, InterfaceName, Link, LinkName, Peer, PublicKey, Transport};
use hawser_net::netcfg::{InterfaceAddress, LinkInfo, NetConfigError, NoRoute, RouteQuery, Rtnl};
use hawser_portal::api::Status;
use hawser_portal::run::link_mark;

use super::by_link::ByLink;
use super::finding::Finding;

/// Until the kernel has asked for a neighbour that does not answer a second time (`retrans_timer`, arp(7)).
const NEIGHBOUR_WITHIN: Duration = Duration::from_millis(1_500);
/// Where a datagram to a gateway goes, so that the kernel asks who has its address: discard (RFC 863).
const DISCARD: u16 = 9;

/// A link by one interface. Plain data.
#[derive(Clone, Debug)]
pub struct OneLink {
    /// The configured link.
    pub name: LinkName,
    /// By which interface.
    pub interface: InterfaceName,
    /// The address that it has to have, if one was configured.
    pub address: Option<IpAddr>,
    /// How it carries packets.
    pub transport: Transport,
    /// Where it leads.
    pub endpoints: Vec<SocketAddr>,
    /// Whose each of them is.
    pub keys: Vec<PublicKey>,
    /// How questions leave by it.
    pub by: ByLink,
}

/// The links that name their interface and lead to endpoints by IP; which interfaces a link of all of them is to have,
/// nobody said.
pub fn all(config: &Config, status: Option<&Status>) -> Vec<OneLink> {
    let all: Vec<(SocketAddr, PublicKey)> = config
        .peers
        .iter()
        .flat_map(|peer| endpoints(peer, status).into_iter().map(|endpoint| (endpoint, peer.public_key)))
        .collect();
    let named = |link: &Link| {
        let interface = link.interface.clone().filter(|name| name.as_str() != ANY_INTERFACE)?;
        let own = |endpoint: &SocketAddr| link.address.is_none_or(|address| address.is_ipv4() == endpoint.is_ipv4());
        let (endpoints, keys) = all.iter().filter(|(endpoint, _)| own(endpoint)).copied().unzip();
        let (name, address, transport) = (link.name.clone(), link.address, link.transport);
        let by = ByLink { interface: interface.to_string(), mark: link_mark(config.tun.name.as_str()) };
        Some(OneLink { name, interface, address, transport, endpoints, keys, by })
    };
    config.links.iter().filter(|link| link.transport != Transport::Scion).filter_map(named).collect()
}

/// Those of the file, and what a portal that runs knows of names.
fn endpoints(peer: &Peer, status: Option<&Status>) -> Vec<SocketAddr> {
    let known = status.into_iter().flat_map(|status| &status.peers).find(|known| known.name == peer.name.as_str());
    let resolved = peer.names.iter().flat_map(|named| {
        let written = named.to_string();
        let names = known.into_iter().flat_map(|known| &known.names).filter(move |name| name.endpoint == written);
        names.flat_map(|name| &name.addresses).map(|address| SocketAddr::new(*address, named.port))
    });
    peer.endpoints.iter().copied().chain(resolved).collect()
}

/// The links for which the system has all that they need, with the endpoints of the IP versions that they have
/// addresses of.
pub async fn look(rtnl: &Rtnl, links: &[OneLink], findings: &mut Vec<Finding>) -> Result<Vec<OneLink>, NetConfigError> {
    let mut sound = Vec::new();
    for link in links {
        match lacks(rtnl, link).await? {
            Some(found) => findings.push(found),
            None => sound.push(reaching(rtnl, link).await?),
        }
    }
    Ok(sound)
}

async fn reaching(rtnl: &Rtnl, link: &OneLink) -> Result<OneLink, NetConfigError> {
    let addresses = rtnl.interface_addresses(link.interface.as_str()).await?.unwrap_or_default();
    let ways = link.endpoints.iter().zip(&link.keys).filter(|(endpoint, _)| fits(&addresses, endpoint));
    let (endpoints, keys) = ways.map(|(endpoint, key)| (*endpoint, *key)).unzip();
    Ok(OneLink { endpoints, keys, ..link.clone() })
}

/// Whether one of an interface's addresses can talk to the endpoint.
fn fits(addresses: &[InterfaceAddress], endpoint: &SocketAddr) -> bool {
    addresses.iter().any(|one| one.global && one.usable && one.address.addr().is_ipv4() == endpoint.is_ipv4())
}

async fn lacks(rtnl: &Rtnl, link: &OneLink) -> Result<Option<Finding>, NetConfigError> {
    Ok(match rtnl.link_named(link.interface.as_str()).await? {
        None => Some(missing(link)),
        Some(info) if !info.administratively_up => Some(down(link)),
        Some(info) if !info.up => Some(no_carrier(link)),
        Some(info) => match no_address(rtnl, link).await? {
            Some(found) => Some(found),
            None => no_way(rtnl, link, &info).await?,
        },
    })
}

fn missing(link: &OneLink) -> Finding {
    let OneLink { name, interface, .. } = link;
    let text = format!("link {name}: there is no interface {interface}");
    Finding::fault("no-interface", name, text, "ip link lists them; correct `interface` in the configuration")
}

fn down(link: &OneLink) -> Finding {
    let OneLink { name, interface, .. } = link;
    let text = format!("link {name}: interface {interface} is down");
    Finding::fault("interface-down", name, text, format!("sudo ip link set {interface} up"))
}

fn no_carrier(link: &OneLink) -> Finding {
    let OneLink { name, interface, .. } = link;
    let text = format!("link {name}: interface {interface} has no carrier");
    Finding::fault("no-carrier", name, text, "look at the cable, the Wi-Fi network or the modem")
}

async fn no_address(rtnl: &Rtnl, link: &OneLink) -> Result<Option<Finding>, NetConfigError> {
    let OneLink { name, interface, address, endpoints, .. } = link;
    let addresses = rtnl.interface_addresses(interface.as_str()).await?.unwrap_or_default();
    if let Some(wanted) = address.filter(|wanted| addresses.iter().all(|one| one.address.addr() != *wanted)) {
        let text =
            format!("link {name}: interface {interface} does not have the address {wanted} of the configuration");
        return Ok(Some(Finding::fault("other-address", name, text, format!("ip address show {interface}"))));
    }
    let reached = endpoints.iter().any(|endpoint| fits(&addresses, endpoint));
    if endpoints.is_empty() && addresses.iter().any(|one| one.global) || reached {
        return Ok(None);
    }
    let version = match (endpoints.iter().any(SocketAddr::is_ipv4), endpoints.iter().any(SocketAddr::is_ipv6)) {
        (true, false) => "IPv4 address, and the peers' endpoints are of IPv4",
        (false, true) => "IPv6 address, and the peers' endpoints are of IPv6",
        _ => "address",
    };
    let text = format!("link {name}: interface {interface} has no {version}");
    Ok(Some(Finding::fault("no-address", name, text, format!("does DHCP answer there? ip address show {interface}"))))
}

/// No route to any endpoint, or a gateway that nobody is.
async fn no_way(rtnl: &Rtnl, link: &OneLink, info: &LinkInfo) -> Result<Option<Finding>, NetConfigError> {
    let OneLink { name, interface, endpoints, .. } = link;
    let (mut gateways, mut refusal) = (Vec::new(), None);
    for endpoint in endpoints {
        let query = RouteQuery {
            destination: endpoint.ip(),
            source: None,
            interface: Some(info.index),
            mark: Some(link.by.mark),
        };
        match rtnl.route_get(query).await {
            Ok(answer) => gateways.push(answer.gateway),
            Err(error) => refusal = Some((endpoint.ip(), error.no_route().unwrap_or(NoRoute::Unreachable))),
        }
    }
    if let (true, Some((destination, reason))) = (gateways.is_empty(), refusal) {
        let text = format!("link {name}: no way to {destination} by {interface}: {reason}");
        let cure =
            format!("each link needs a route of its own, as DHCP gives it: ip route get {destination} oif {interface}");
        return Ok(Some(Finding::fault("no-route", name, text, cure)));
    }
    for gateway in gateways.into_iter().flatten() {
        if !answers(rtnl, link, info, gateway).await? {
            let text = format!("link {name}: the gateway {gateway} does not answer on {interface}");
            let cure = "is the router there on, and is it still this host's? renew the lease, or replug the cable";
            return Ok(Some(Finding::fault("gateway-silent", name, text, cure)));
        }
    }
    Ok(None)
}

/// Whether anybody on the link has this address: the kernel asks once there is a datagram for it.
async fn answers(rtnl: &Rtnl, link: &OneLink, info: &LinkInfo, gateway: IpAddr) -> Result<bool, NetConfigError> {
    let sent = link.by.udp(SocketAddr::new(gateway, DISCARD)).and_then(|socket| socket.send(&[]));
    // Who may not send there, or needs no neighbour, knows nothing.
    if sent.is_err() {
        return Ok(true);
    }
    let start = std::time::Instant::now();
    loop {
        match rtnl.neighbour_answers(info.index, gateway).await? {
            None | Some(true) => return Ok(true),
            Some(false) if start.elapsed() > NEIGHBOUR_WITHIN => return Ok(false),
            Some(false) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
