//! Builds the stage.
//!
//! 1. Hosts: namespaces, their kernels' settings, the LANs; without a LAN the hosts' addresses lie on loopback.
//! 2. For each link a router; the emulated link; a veth from the router to the remote end, or to the core. Without
//!    routers the emulated link leads to the remote end itself.
//! 3. Bystanders; routes and rules (`routes`), translation (`programs`).
//! 4. Absent links go down.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

use hawser_wire::{Backend, Direction, EmulatedLink, End, LinkSpec, Medium, Namespace, RpFilter, Way, veth};

use super::numbering::{END, FAMILIES, NEAR, Net, endpoint, link_local};
use super::programs::{batch, translate};
use super::{Bystander, Ends, LinkState, Stage, StageLink, number};
use crate::cleanup;
use crate::error::LabError;
use crate::scenario::{Case, Family, LinkPlan, Network};

/// An Ethernet packet. Source: RFC 894.
pub(crate) const MTU: u32 = 1500;
/// The interface towards client or server, at either end.
pub(crate) const LAN: &str = "lan0";
/// The router's interface towards the remote end.
pub(crate) const UPLINK: &str = "up0";
/// Room for what is in flight, so that the hosts' buffers are never what limits a transfer, in bytes: 1 Gbit/s times
/// 200 ms, and a full queue. Least, default and most, as the sysctls have it.
const RECEIVE_BUFFER: &str = "4096 131072 50331648";
const SEND_BUFFER: &str = "4096 65536 50331648";
/// Seeds of one run's links lie side by side, those of the next run far away. Source: the golden ratio times 2^64, as
/// Knuth's multiplicative hashing has it (The Art of Computer Programming 3, 6.4).
const SEED_SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The media of a stage by name. Starts empty; one owner.
type Media = BTreeMap<String, Medium>;

impl Stage {
    /// Builds the network of a case; `seed` is what links draw their chances from.
    ///
    /// # Errors
    /// Where the kernel refuses: it needs root.
    pub fn build(network: &Network, case: &Case, seed: u64) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let mut stage = Self::hosts(network)?;
        // What the case says of kernels, it says of applications' hosts.
        for (key, value) in &case.sysctls {
            let (of, key) = key.split_once(':').unwrap_or(("", key));
            for (name, host) in [("client", &stage.client), ("server", &stage.server)] {
                if of.is_empty() || of == name {
                    host.set_sysctl(key, value)?;
                }
            }
        }
        let mut media = Media::new();
        for (index, plan) in case.links.iter().chain(&case.bystanders).enumerate() {
            let ways = stage.steady(index, ways(plan, index, seed, &mut media));
            match index < case.links.len() {
                true => stage.add_link(index, plan, ways)?,
                false => stage.add_bystander(index, plan, ways)?,
            }
        }
        if !network.lan && !stage.links.is_empty() {
            stage.hosts = stage.ends_of(0);
        }
        stage.route_all()?;
        case.absent.iter().filter_map(|name| stage.index(name)).try_for_each(|index| stage.cut(index))?;
        Ok(stage)
    }

    /// Step 1.
    fn hosts(network: &Network) -> Result<Self, LabError> {
        let (local, remote) = (host("local")?, host("remote")?);
        let (client, server) = match network.lan {
            true => (host("client")?, host("server")?),
            false => (local.clone(), remote.clone()),
        };
        let core = if network.server_links { Some(router("core")?) } else { None };
        for (host, portal, net) in [(&client, &local, Net::ClientHosts), (&server, &remote, Net::ServerHosts)] {
            if network.lan {
                veth(&wire_end(host, LAN, net, END), &wire_end(portal, LAN, net, NEAR), MTU)?;
                portal.set_forwarding(true)?;
            }
            for family in FAMILIES {
                match network.lan {
                    true => host.add_default_route(net.address(family, NEAR))?,
                    false => host.add_address("lo", net.address(family, END).into())?,
                }
            }
        }
        for family in FAMILIES {
            remote.add_address("lo", endpoint(family).into())?;
        }
        let of = |net: Net| net.address(network.inner, END);
        Ok(Self {
            links: Vec::new(),
            bystanders: Vec::new(),
            client,
            local,
            remote,
            server,
            recordings: Vec::new(),
            endpoint: endpoint(network.outer),
            inner: network.inner,
            hosts: Ends { client: of(Net::ClientHosts), server: of(Net::ServerHosts) },
            network: network.clone(),
            core,
            state: Mutex::default(),
            turn: Mutex::default(),
        })
    }

    /// A recorded link has its mean rate until the recording begins, so that whoever comes up first finds what all
    /// find.
    fn steady(&mut self, link: usize, mut ways: [Direction; 2]) -> [Direction; 2] {
        for (way, direction) in Way::BOTH.into_iter().zip(&mut ways) {
            // What cannot be replayed is refused as the link is made.
            if self.network.backend == Backend::Thread && direction.medium.is_none() {
                let mean = direction.mean_rate();
                if let Some(trace) = direction.trace.take() {
                    direction.rate = mean;
                    self.recordings.push((link, way, trace));
                }
            }
        }
        ways
    }

    /// Step 2.
    fn add_link(&mut self, index: usize, plan: &LinkPlan, [a_to_b, b_to_a]: [Direction; 2]) -> Result<(), LabError> {
        let Network { outer, backend, routers, .. } = self.network;
        let (name, number) = (&plan.name, number(index));
        let router = if routers { router("router")? } else { self.remote.clone() };
        let (a, b) = (end(&self.local, name, Net::Access(number), END), end(&router, name, Net::Access(number), NEAR));
        let link = EmulatedLink::new(LinkSpec { name: name.clone(), a, b, mtu: MTU, a_to_b, b_to_a, backend })?;
        // So that an address that was added stays when the first one goes.
        self.local.set_sysctl(&format!("ipv4/conf/{name}/promote_secondaries"), "1")?;
        let near = wire_end(&router, UPLINK, Net::Uplink(number), NEAR);
        if let Some(core) = &self.core {
            veth(&near, &wire_end(core, &core_up(index), Net::Uplink(number), END), MTU)?;
            let down = wire_end(core, &core_down(index), Net::Server(number), NEAR);
            veth(&down, &wire_end(&self.remote, name, Net::Server(number), END), MTU)?;
        } else if routers {
            veth(&near, &wire_end(&self.remote, name, Net::Uplink(number), END), MTU)?;
        }
        if self.network.nat {
            translate(&router, 0)?;
        }
        self.links.push(StageLink {
            name: name.clone(),
            metric: plan.metric,
            link,
            router,
            address: Net::Access(number).address(outer, END),
            far_address: self.far_address(index, outer),
        });
        self.state().links.push(LinkState { up: true, host: END, rebound: 0, stalled: None });
        Ok(())
    }

    /// Step 3: a host beside the client has one link to the remote end, or to the core before it, and no router of its
    /// own. `index` counts on after the links.
    fn add_bystander(&mut self, index: usize, plan: &LinkPlan, ways: [Direction; 2]) -> Result<(), LabError> {
        let (name, net) = (plan.name.clone(), Net::Access(number(index)));
        let host = host("beside")?;
        let far = self.core.as_ref().unwrap_or(&self.remote);
        let (a, b) = (end(&host, &name, net, END), end(far, &name, net, NEAR));
        let ([a_to_b, b_to_a], backend) = (ways, self.network.backend);
        let link = EmulatedLink::new(LinkSpec { name: name.clone(), a, b, mtu: MTU, a_to_b, b_to_a, backend })?;
        for family in FAMILIES {
            host.add_default_route(net.address(family, NEAR))?;
            if self.core.is_some() {
                let gateway = self.far_gateway(0, family);
                let by = format!("via {gateway} dev {} src {}", self.links[0].name, endpoint(family));
                batch(&self.remote, &[format!("route replace {} {by}", net.prefix(family))])?;
            }
        }
        let server = if self.network.lan { self.hosts.server } else { endpoint(self.inner) };
        let ends = Ends { client: net.address(self.inner, END), server };
        self.bystanders.push(Bystander { link, name, host, ends });
        Ok(())
    }

    /// The addresses of a link's ends, of the family that applications use: for what goes over it without a tunnel.
    pub fn ends_of(&self, link: usize) -> Ends {
        let host = self.state().links[link].host;
        let client = Net::Access(number(link)).address(self.inner, host);
        Ends { client, server: self.far_address(link, self.inner) }
    }

    /// The remote end's address for a link: of an interface of its own, where it has one for each.
    fn far_address(&self, link: usize, family: Family) -> IpAddr {
        let own = self.core.as_ref().map(|_| Net::Server(number(link)).address(family, END));
        own.unwrap_or(endpoint(family))
    }
}

/// A host with room for what is in flight. Answers to it may come by another link than what they answer.
pub(crate) fn host(tag: &str) -> Result<Namespace, LabError> {
    let host = Namespace::new(tag)?;
    host.set_rp_filter("all", RpFilter::Off)?;
    host.set_rp_filter("default", RpFilter::Off)?;
    host.set_sysctl("ipv4/tcp_rmem", RECEIVE_BUFFER)?;
    host.set_sysctl("ipv4/tcp_wmem", SEND_BUFFER)?;
    Ok(host)
}

/// A host that forwards.
pub(crate) fn router(tag: &str) -> Result<Namespace, LabError> {
    let router = host(tag)?;
    router.set_forwarding(true)?;
    Ok(router)
}

/// The core's interfaces: towards a link's router, and towards the remote end's interface for it.
pub(super) fn core_up(index: usize) -> String {
    format!("up{}", number(index))
}

/// See [`core_up`].
pub(super) fn core_down(index: usize) -> String {
    format!("down{}", number(index))
}

/// An end with the same host part in both families.
fn end(namespace: &Namespace, interface: &str, net: Net, host: u8) -> End {
    let addresses = FAMILIES.map(|family| net.interface(family, host));
    End { namespace: namespace.clone(), interface: interface.to_owned(), addresses: addresses.into() }
}

/// The same of a veth. A router asks for its neighbours' addresses from a link-local one (RFC 4861, 7.2.2), and not
/// without.
fn wire_end(namespace: &Namespace, interface: &str, net: Net, host: u8) -> End {
    let mut end = end(namespace, interface, net, host);
    end.addresses.push(link_local(host));
    end
}

/// Step 2: both ways of a link, each with chances of its own, on their medium.
fn ways(plan: &LinkPlan, index: usize, seed: u64, media: &mut Media) -> [Direction; 2] {
    let seed = |place: u64| seed.wrapping_mul(SEED_SPREAD).wrapping_add(place);
    let place = 2 * u64::from(number(index));
    let medium = plan.medium.as_ref().map(|name| {
        // As many media as links at most: their seeds lie below those of ways, counted from the other end.
        let access = hawser_wire::Access { seed: seed(0).wrapping_sub(media.len() as u64), ..plan.access };
        media.entry(name.clone()).or_insert_with(|| Medium::new(access)).clone()
    });
    [(&plan.up, place), (&plan.down, place + 1)].map(|(way, place)| Direction {
        seed: seed(place),
        medium: medium.clone(),
        ..way.clone()
    })
}
