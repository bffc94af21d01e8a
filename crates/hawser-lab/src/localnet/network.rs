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

use hawser_wire::{Counters, EmulatedLink, End, LinkSpec, Namespace, Way, veth};
use ipnet::IpNet;

use super::Host;
use super::config::{DAEMON_PORT, name_of};
use super::layout::{AsLayout, LinkLayout};
use super::topology::LinkPlan;
use crate::error::LabError;

/// A host's interface towards its AS.
const UPLINK: &str = "eth0";
/// Where the bytes sent stand among an interface's numbers, the packets after them. Source: proc_pid_net(5), dev.
const SENT_BYTES: usize = 8;
/// Bytes of Ethernet's header, which the kernel counts with each packet, and an emulated link does not. Source: IEEE
/// 802.3, 3.1.1.
const ETHERNET: u64 = 14;

/// A link between two ASes. It starts whole, and is removed on drop; may be used from any thread.
#[derive(Debug)]
pub struct NetLink {
    /// Its name.
    pub name: String,
    /// The emulator, where the topology asks for one.
    pub emulated: Option<EmulatedLink>,
    ends: [End; 2],
    /// Whether it was cut last, or restored.
    cut: AtomicBool,
}

/// Steps 1 and 2 for an AS: the namespace of its router and control service, and its hosts. The namespaces' names begin
/// with the network's.
pub(super) fn namespaces(network: &str, addresses: &AsLayout) -> Result<(Namespace, Vec<Host>), LabError> {
    let tag = format!("{network}.{}", name_of(addresses.id));
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
        hosts.push(Host { isd_as: addresses.id, number, namespace: host, address, daemon });
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
    pub(super) fn build(plan: &LinkPlan, addresses: &LinkLayout, routers: [&Namespace; 2]) -> Result<Self, LabError> {
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
        Ok(Self { name: plan.name.clone(), emulated, ends, cut: AtomicBool::new(false) })
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
        let link = self.emulated.as_ref().ok_or_else(|| LabError::Refused {
            action: format!("change link {}", self.name),
            said: "it is a plain veth: give it a rate or a delay in the topology".to_owned(),
        })?;
        Ok(link.black_hole(on)?)
    }

    /// What it has carried, from its first end first; of a plain veth only packets and their IP bytes are counted.
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
    Ok(of_interface(&text, &end.interface))
}

/// That, by what `/proc/net/dev` says; nothing where the interface is not there.
fn of_interface(text: &str, interface: &str) -> Counters {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let numbers = lines.find(|(name, _)| name.trim() == interface).map_or("", |(_, numbers)| numbers);
    let mut sent = numbers.split_whitespace().skip(SENT_BYTES).map_while(|field| field.parse::<u64>().ok());
    let (bytes, packets) = (sent.next().unwrap_or_default(), sent.next().unwrap_or_default());
    let bytes = bytes.saturating_sub(packets * ETHERNET);
    Counters { packets_in: packets, packets_out: packets, bytes_in: bytes, bytes_out: bytes, ..Counters::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_veth_counts_bytes_of_ip_as_an_emulated_link_does() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  \
                    c12: 9 1 0 0 0 0 0 0 1514 1 0 0 0 0 0 0\n    c1: 7 1 0 0 0 0 0 0 4514 4 0 0 0 0 0 0\n";
        let sent = of_interface(text, "c1");
        assert_eq!((sent.packets_in, sent.packets_out), (4, 4));
        assert_eq!((sent.bytes_in, sent.bytes_out), (4514 - 4 * 14, 4514 - 4 * 14));
        assert_eq!(of_interface(text, "c2"), Counters::default());
    }
}
