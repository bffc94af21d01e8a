//! A network's namespaces and links, without any program in them.
//!
//! ```text
//!   host 1 ── eth0 ─── host1 ┐                                ┌ host1 ─── eth0 ── host 1
//!     │ peer2                ├ AS namespace ── c1 ────── c1 ── AS namespace
//!     │ peer1                │  (router,        veth, or         of another AS
//!   host 2 ── eth0 ─── host2 ┘   control)     emulated link
//! ```
//!
//! 1. Each AS: a namespace; each of its hosts another one, with a veth to the AS's.
//! 2. Each two hosts of an AS have a veth between them, as a switch without any cost.
//! 3. Links between the ASes' namespaces.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use hawser_wire::{Counters, EmulatedLink, End, LinkSpec, Namespace, Way, veth};
use ipnet::IpNet;

use super::config::name_of;
use super::layout::{AsLayout, Layout, LinkLayout};
use super::topology::{LinkPlan, Topology};
use crate::error::LabError;

/// A host's interface towards its AS.
const UPLINK: &str = "eth0";
/// Where the bytes sent stand among an interface's numbers, the packets after them. Source: proc_pid_net(5), dev.
const SENT_BYTES: usize = 8;

/// Namespaces and links. Removed on drop; links may be changed from any thread.
#[derive(Debug)]
pub(super) struct Network {
    // Links go before the namespaces they lie in.
    pub links: Vec<NetLink>,
    /// In the order of the topology.
    pub ases: Vec<AsNetwork>,
}

/// An AS's namespaces. Plain data; clones name the same namespaces.
#[derive(Clone, Debug)]
pub(super) struct AsNetwork {
    /// Of router and control service.
    pub router: Namespace,
    pub hosts: Vec<Namespace>,
}

/// A link between two ASes. It starts whole, and is removed on drop; may be used from any thread.
#[derive(Debug)]
pub struct NetLink {
    name: String,
    ends: [End; 2],
    emulated: Option<EmulatedLink>,
    /// Whether it was cut last, or restored.
    cut: AtomicBool,
}

impl Network {
    /// Steps 1 to 3; the namespaces' names begin with the network's.
    pub fn build(name: &str, topology: &Topology, layout: &Layout) -> Result<Self, LabError> {
        let ases: Vec<AsNetwork> =
            layout.ases.iter().map(|addresses| AsNetwork::build(name, addresses)).collect::<Result<_, _>>()?;
        let router = |id| {
            let index = topology.ases.iter().position(|plan| plan.id == id);
            index.map(|index| ases[index].router.clone())
        };
        let links = topology.links.iter().zip(&layout.links).filter_map(|(plan, addresses)| {
            let [a, b] = plan.ends.map(router);
            Some(NetLink::build(plan, addresses, [a?, b?]))
        });
        Ok(Self { links: links.collect::<Result<_, _>>()?, ases })
    }
}

impl AsNetwork {
    fn build(network: &str, addresses: &AsLayout) -> Result<Self, LabError> {
        let tag = format!("{network}.{}", name_of(addresses.id));
        let router = Namespace::new(&tag)?;
        let mut hosts: Vec<Namespace> = Vec::new();
        for (&address, number) in addresses.hosts.iter().zip(1..) {
            let host = Namespace::new(&format!("{tag}.host{number}"))?;
            let inside = format!("host{number}");
            let (near, far) = (end(&host, UPLINK, address), end(&router, &inside, addresses.router));
            veth(&near, &far, addresses.mtu)?;
            host.add_route(addresses.network, None, Some(UPLINK))?;
            router.add_route(address.into(), None, Some(&inside))?;
            for ((other, its), its_address) in hosts.iter().zip(1..).zip(&addresses.hosts) {
                let (mine, yours) = (format!("peer{its}"), format!("peer{number}"));
                veth(&end(&host, &mine, address), &end(other, &yours, *its_address), addresses.mtu)?;
                host.add_route((*its_address).into(), None, Some(&mine))?;
                other.add_route(address.into(), None, Some(&yours))?;
            }
            hosts.push(host);
        }
        if hosts.is_empty() {
            // Nobody else lives there: router and control service still need their address.
            router.add_address("lo", addresses.router.into())?;
        }
        Ok(Self { router, hosts })
    }
}

/// An end with one address and no network around it.
fn end(namespace: &Namespace, interface: &str, address: IpAddr) -> End {
    End { namespace: namespace.clone(), interface: interface.to_owned(), addresses: vec![IpNet::from(address)] }
}

impl NetLink {
    /// Step 3.
    fn build(plan: &LinkPlan, addresses: &LinkLayout, routers: [Namespace; 2]) -> Result<Self, LabError> {
        let [a, b] = routers;
        let end = |namespace: Namespace, side: usize| End {
            namespace,
            interface: plan.name.clone(),
            addresses: vec![addresses.ends[side].address],
        };
        let ends = [end(a, 0), end(b, 1)];
        let emulated = match &plan.ways {
            None => {
                veth(&ends[0], &ends[1], addresses.mtu)?;
                None
            }
            Some([up, down]) => {
                let [a, b] = ends.clone();
                let spec =
                    LinkSpec { mtu: addresses.mtu, b_to_a: down.clone(), ..LinkSpec::symmetric(&plan.name, a, b, up) };
                Some(EmulatedLink::new(spec)?)
            }
        };
        Ok(Self { name: plan.name.clone(), ends, emulated, cut: AtomicBool::new(false) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The emulator, where the topology asks for one.
    #[must_use]
    pub fn emulated(&self) -> Option<&EmulatedLink> {
        self.emulated.as_ref()
    }

    /// Whether it was cut, and not restored.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Takes it down at both ends.
    ///
    /// # Errors
    /// Where an interface is gone.
    pub fn cut(&self) -> Result<(), LabError> {
        match &self.emulated {
            Some(link) => link.cut()?,
            None => self.ends.iter().try_for_each(|end| end.namespace.set_down(&end.interface))?,
        }
        self.cut.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Brings it back.
    ///
    /// # Errors
    /// Where an interface is gone.
    pub fn restore(&self) -> Result<(), LabError> {
        match &self.emulated {
            Some(link) => link.restore()?,
            None => self.ends.iter().try_for_each(|end| end.namespace.set_up(&end.interface))?,
        }
        self.cut.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Lets every packet vanish without a word, both ways.
    ///
    /// # Errors
    /// Where the link is not emulated.
    pub fn black_hole(&self, on: bool) -> Result<(), LabError> {
        let link = self.emulated.as_ref().ok_or_else(|| LabError::Refused {
            action: format!("change link {}", self.name),
            said: "it is a plain veth: give it a rate or a delay in the topology".to_owned(),
        })?;
        Ok(link.black_hole(on)?)
    }

    /// What it has carried, from its first end first; of a plain veth only packets and bytes are counted.
    ///
    /// # Errors
    /// Where an interface is gone.
    pub fn counters(&self) -> Result<[Counters; 2], LabError> {
        if let Some(link) = &self.emulated {
            return Ok(Way::BOTH.map(|way| link.counters(way)));
        }
        let [a, b] = &self.ends;
        Ok([sent(a)?, sent(b)?])
    }
}

/// What an end of a veth has sent, which its other end has received.
fn sent(end: &End) -> Result<Counters, LabError> {
    let text = end.namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
    let text = text.map_err(|error| LabError::system(format!("count packets of {}", end.interface), error))?;
    let fields = |line: &str| -> Option<Vec<u64>> {
        let (name, rest) = line.split_once(':')?;
        (name.trim() == end.interface).then(|| rest.split_whitespace().map_while(|field| field.parse().ok()).collect())
    };
    let fields = text.lines().find_map(fields).unwrap_or_default();
    let at = |index: usize| fields.get(index).copied().unwrap_or_default();
    let (bytes, packets) = (at(SENT_BYTES), at(SENT_BYTES + 1));
    Ok(Counters { packets_in: packets, packets_out: packets, bytes_in: bytes, bytes_out: bytes, ..Counters::default() })
}
