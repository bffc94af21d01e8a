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

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use hawser_scion::{Fingerprint, InterfaceId, IsdAs, PathInterface};
use hawser_wire::{Counters, EmulatedLink, End, LinkSpec, Namespace, Way, veth};
use ipnet::IpNet;

use super::Host;
use super::config::{DAEMON_PORT, name_of};
use super::layout::{AsLayout, LinkLayout};
use super::topology::LinkPlan;
use crate::cleanup;
use crate::error::LabError;

/// A host's interface towards its AS.
pub(crate) const UPLINK: &str = "eth0";

/// A link between two ASes. It starts whole, and is removed on drop; may be used from any thread.
#[derive(Debug)]
pub struct NetLink {
    /// What it is.
    pub plan: LinkPlan,
    /// Its interfaces in the ASes at its ends.
    pub(super) interfaces: [PathInterface; 2],
    /// The emulator, where the topology asks for one.
    pub emulated: Option<EmulatedLink>,
    ends: [End; 2],
    /// Whether it was cut last, or restored.
    cut: AtomicBool,
}

/// Steps 1 and 2 for an AS: the namespace of its router and control service, and its hosts. The namespaces' names begin
/// with the network's.
pub(super) fn namespaces(network: &str, addresses: &AsLayout<'_>) -> Result<(Namespace, Vec<Host>), LabError> {
    let _making = cleanup::making();
    let tag = format!("{network}.{}", name_of(addresses.plan.id));
    let router = Namespace::new(&tag)?;
    let mut hosts: Vec<Host> = Vec::new();
    for (&address, number) in addresses.hosts.iter().zip(1..) {
        let host = Namespace::new(&format!("{tag}.host{number}"))?;
        let inside = format!("host{number}");
        veth(&end(&host, UPLINK, address), &end(&router, &inside, addresses.router), addresses.mtu)?;
        host.add_route(addresses.network, None, Some(UPLINK))?;
        router.add_route(address.into(), None, Some(&inside))?;
        for other in &hosts {
            let (mine, yours) = (format!("peer{}", other.number), format!("peer{number}"));
            veth(&end(&host, &mine, address), &end(&other.namespace, &yours, other.address), addresses.mtu)?;
            host.add_route(other.address.into(), None, Some(&mine))?;
            other.namespace.add_route(address.into(), None, Some(&yours))?;
        }
        let daemon = (Ipv4Addr::LOCALHOST, DAEMON_PORT).into();
        hosts.push(Host { isd_as: addresses.plan.id, number, namespace: host, address, daemon });
    }
    if hosts.is_empty() {
        // Nobody else lives there: router and control service still need their address.
        router.add_address("lo", addresses.router.into())?;
    }
    Ok((router, hosts))
}

/// An end with one address and no network around it.
fn end(namespace: &Namespace, interface: &str, address: IpAddr) -> End {
    End::new(namespace, interface, &[&IpNet::from(address).to_string()])
}

impl NetLink {
    /// Step 3, between the ASes' namespaces.
    pub(super) fn build(addresses: &LinkLayout<'_>, routers: [&Namespace; 2]) -> Result<Self, LabError> {
        let plan = addresses.plan;
        let _making = cleanup::making();
        let end = |side: usize| End::new(routers[side], &plan.name, &[&addresses.ends[side].address.to_string()]);
        let ends = [end(0), end(1)];
        let [a, b] = ends.clone();
        let emulated = if let Some([up, down]) = &plan.ways {
            let link = LinkSpec::symmetric(&plan.name, a, b, up);
            Some(EmulatedLink::new(LinkSpec { mtu: addresses.mtu, b_to_a: down.clone(), ..link })?)
        } else {
            veth(&a, &b, addresses.mtu)?;
            None
        };
        let interface = |end: usize| InterfaceId(addresses.ends[end].interface);
        let interfaces = [0, 1].map(|end| PathInterface { isd_as: plan.ends[end], id: interface(end) });
        Ok(Self { plan: plan.clone(), interfaces, emulated, ends, cut: AtomicBool::new(false) })
    }

    /// The path that is this link alone, where it leads from one AS to another.
    pub(super) fn path(&self, from: IsdAs, to: IsdAs) -> Option<Fingerprint> {
        let near = self.plan.ends.iter().position(|&end| end == from)?;
        let crossed = [self.interfaces[near], self.interfaces[1 - near]];
        (crossed[1].isd_as == to).then(|| Fingerprint::new(crossed))
    }

    /// Whether it was cut, and not restored.
    pub(super) fn is_cut(&self) -> bool {
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
        let why = "it is a plain veth: give it a rate or a delay in the topology";
        let plain = || LabError::refused(format!("change link {}", self.plan.name), why);
        Ok(self.emulated.as_ref().ok_or_else(plain)?.black_hole(on)?)
    }

    /// What it has carried, from its first end first; of a plain veth only packets and their IP bytes are counted.
    pub fn counters(&self) -> [Counters; 2] {
        match &self.emulated {
            Some(link) => Way::BOTH.map(|way| link.counters(way)),
            None => self.ends.each_ref().map(End::sent),
        }
    }
}
