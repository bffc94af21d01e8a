//! The bond's topology, in namespaces of its own.
//!
//! ```text
//!              ┌──────── link1 ──────── router1 ────────┐
//!  client ── local ───── link2 ──────── router2 ───── remote ── server
//!              └──────── …                              ┘
//!
//!  sharing:      ┌── link1 (veth) ──┐
//!         local ─┼── link2 (veth) ──┼─ near ── bottleneck (emulated) ── far ── up0 (veth) ── remote
//!                └── …              ┘
//! ```
//!
//! 1. Namespaces, with the settings that a stage's hosts have; the two LANs (veth); forwarding.
//! 2. For each link an emulated one to a router of its own, and a veth from there to the remote portal.
//! 3. Routes: each link has its own to the one endpoint, with its own gateway and metric.
//!    Links that share a bottleneck lead to one router by veths; the emulated link goes from there to a second one.
//! 4. Beside the addresses that the tunnel serves, client and server have *plain* ones: what goes between them is
//!    forwarded over link 1 alone, without a tunnel.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hawser_wire::traffic::{Ping, TcpTransfer, Towards};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Namespace, veth};
use ipnet::{IpNet, Ipv4Net};

use crate::cleanup;
use crate::error::LabError;
use crate::stage::{LAN, MTU, UPLINK, host, router};

/// Prefix length of every network here.
const NETWORK: u8 = 24;
/// The bottleneck's interface at either router.
const BOTTLENECK: &str = "narrow0";
/// The number of its network, and of the one behind it, among the uplinks: links have others.
const BOTTLENECK_NUMBER: u8 = 250;
const UPLINK_NUMBER: u8 = 251;
/// The port of the transfers.
pub(crate) const TRANSFER_PORT: u16 = 5001;

/// The remote portal's address: it has no other that links could reach.
pub const ENDPOINT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// The client's network and the server's, which the tunnel joins.
pub const CLIENT_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 1, 0, 0), NETWORK);
/// See [`CLIENT_NETWORK`].
pub const SERVER_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 2, 0, 0), NETWORK);
/// The same without a tunnel.
const PLAIN_CLIENT_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 1, 1, 0), NETWORK);
const PLAIN_SERVER_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 2, 1, 0), NETWORK);
/// The host part of a portal or router, and of a host behind it.
const GATEWAY: u8 = 1;
const HOST: u8 = 2;

/// Between which addresses traffic goes. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// By the tunnel.
    Tunnel,
    /// Forwarded over link 1, without a tunnel.
    LinkOne,
}

/// The topology, running. It starts whole and without a tunnel; everything is removed on drop.
/// Its links may be changed from any thread.
#[derive(Debug)]
pub struct Bond {
    // Links go before the namespaces they lie in.
    /// Emulated, in their order.
    pub links: Vec<EmulatedLink>,
    routers: Vec<Namespace>,
    /// How many links lead to the endpoint.
    pub(crate) count: u8,
    /// Where transfers start.
    pub client: Namespace,
    /// Where the local portal runs.
    pub local: Namespace,
    /// Where the remote portal runs.
    pub remote: Namespace,
    /// Where transfers end.
    pub server: Namespace,
}

impl Bond {
    /// Builds it with these links, named `link1` and so on: their ways from the local portal, and towards it.
    ///
    /// # Errors
    /// Where the kernel refuses: it needs root.
    pub fn new(plans: &[[Direction; 2]]) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let mut bond = Self::hosts()?;
        for (plan, number) in plans.iter().zip(1..) {
            bond.add_emulated(number, plan)?;
            bond.route_link(number)?;
        }
        Ok(bond)
    }

    /// Builds it with links that all lead through one bottleneck, shaped so from and to the local portal; so does what
    /// goes without a tunnel.
    ///
    /// # Errors
    /// Where the kernel refuses: it needs root.
    pub fn sharing(links: u8, up: &Direction, down: &Direction) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let mut bond = Self::hosts()?;
        let (near, far) = (router("near")?, router("far")?);
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
        route_there(&near, address(narrow, GATEWAY), address(link_network(1), HOST))?;
        route_there(&far, address(uplink, HOST), address(narrow, HOST))?;
        for network in (1..=links).map(link_network) {
            far.add_route(network.into(), Some(address(narrow, HOST).into()), None)?;
            bond.remote.add_route(network.into(), Some(address(uplink, GATEWAY).into()), None)?;
        }
        bond.remote.add_route(PLAIN_CLIENT_NETWORK.into(), Some(address(uplink, GATEWAY).into()), None)?;
        bond.routers.extend([near, far]);
        Ok(bond)
    }

    /// Step 1.
    fn hosts() -> Result<Self, LabError> {
        let (client, local, remote, server) = (host("client")?, host("local")?, host("remote")?, host("server")?);
        for (host, portal, networks) in [
            (&client, &local, [CLIENT_NETWORK, PLAIN_CLIENT_NETWORK]),
            (&server, &remote, [SERVER_NETWORK, PLAIN_SERVER_NETWORK]),
        ] {
            veth(&end(host, LAN, networks, HOST), &end(portal, LAN, networks, GATEWAY), MTU)?;
            host.add_default_route(address(networks[0], GATEWAY).into())?;
            portal.set_forwarding(true)?;
        }
        remote.add_address("lo", Ipv4Net::from(ENDPOINT).into())?;
        Ok(Self { links: Vec::new(), routers: Vec::new(), count: 0, client, local, remote, server })
    }

    /// Step 2.
    fn add_emulated(&mut self, number: u8, [up, down]: &[Direction; 2]) -> Result<(), LabError> {
        let router = router("router")?;
        let (name, near, far) = (link_name(number), link_network(number), uplink_network(number));
        let (a, b) = (end(&self.local, &name, [near], HOST), end(&router, &name, [near], GATEWAY));
        let spec = LinkSpec { b_to_a: down.clone(), ..LinkSpec::symmetric(&name, a, b, up) };
        self.links.push(EmulatedLink::new(spec)?);
        veth(&end(&router, UPLINK, [far], GATEWAY), &end(&self.remote, &name, [far], HOST), MTU)?;
        route_there(&router, address(far, HOST), address(near, HOST))?;
        let back = Some(address(far, GATEWAY).into());
        self.remote.add_route(near.into(), back, None)?;
        if number == 1 {
            self.remote.add_route(PLAIN_CLIENT_NETWORK.into(), back, None)?;
        }
        self.routers.push(router);
        Ok(())
    }

    /// Step 3; and what goes without a tunnel, over link 1.
    fn route_link(&mut self, number: u8) -> Result<(), LabError> {
        self.count = number;
        let gateway = Some(address(link_network(number), GATEWAY).into());
        let (endpoint, interface) = (Ipv4Net::from(ENDPOINT).into(), link_name(number));
        self.local.add_metric_route(endpoint, gateway, Some(&interface), number.into())?;
        if number == 1 {
            self.local.add_route(PLAIN_SERVER_NETWORK.into(), gateway, None)?;
        }
        Ok(())
    }

    /// The local portal's interface of a link, counted from 0.
    pub fn interface(&self, index: usize) -> String {
        link_name(u8::try_from(index + 1).unwrap_or(u8::MAX))
    }

    /// A CUBIC transfer from client to server or back.
    pub fn transfer(&self, towards: Towards, over: Over, duration: Duration) -> TcpTransfer {
        let (client, server) = match over {
            Over::Tunnel => (CLIENT_NETWORK, SERVER_NETWORK),
            Over::LinkOne => (PLAIN_CLIENT_NETWORK, PLAIN_SERVER_NETWORK),
        };
        let ends = [(&self.client, client), (&self.server, server)];
        cubic(towards, ends.map(|(host, network)| (host, address(network, HOST).into())), duration)
    }

    /// A ping from the client to the server, by the tunnel.
    pub fn ping(&self, interval: Duration, duration: Duration) -> Ping {
        let destination = IpAddr::V4(address(SERVER_NETWORK, HOST));
        Ping { from: self.client.clone(), destination, interval, duration }
    }
}

/// Step 3: a router's next hop towards the endpoint and the server's plain network, and towards the client's.
fn route_there(router: &Namespace, there: Ipv4Addr, back: Ipv4Addr) -> Result<(), LabError> {
    for (network, next) in [(ENDPOINT.into(), there), (PLAIN_SERVER_NETWORK, there), (PLAIN_CLIENT_NETWORK, back)] {
        router.add_route(network.into(), Some(next.into()), None)?;
    }
    Ok(())
}

/// A CUBIC transfer between two ends, of which the first is the client's or the local one.
pub(crate) fn cubic(towards: Towards, [near, far]: [(&Namespace, IpAddr); 2], duration: Duration) -> TcpTransfer {
    let [from, to] = if towards == Towards::Server { [near, far] } else { [far, near] };
    TcpTransfer::cubic(from, (to.0, SocketAddr::new(to.1, TRANSFER_PORT)), duration)
}

/// An end with one address, in a network of 24 bits.
pub(crate) fn end_at(namespace: &Namespace, interface: &str, address: Ipv4Addr) -> End {
    End::new(namespace, interface, &[&format!("{address}/{NETWORK}")])
}

/// An end with the same host part in each of its networks.
fn end<const N: usize>(namespace: &Namespace, interface: &str, networks: [Ipv4Net; N], host: u8) -> End {
    let addresses = networks.map(|network| IpNet::new_assert(address(network, host).into(), NETWORK));
    End { namespace: namespace.clone(), interface: interface.to_owned(), addresses: addresses.into() }
}

fn address(network: Ipv4Net, host: u8) -> Ipv4Addr {
    let [a, b, c, _] = network.network().octets();
    Ipv4Addr::new(a, b, c, host)
}

fn link_name(number: u8) -> String {
    format!("link{number}")
}

/// Between local portal and router.
const fn link_network(number: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 10, number, 0), NETWORK)
}

/// Between router and remote portal.
const fn uplink_network(number: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 20, number, 0), NETWORK)
}
