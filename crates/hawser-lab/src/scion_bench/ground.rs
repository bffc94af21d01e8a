//! Two hosts, and what lies between them.
//!
//! ```text
//!   within:   sender ── eth0 ───────── eth0 ── receiver        one AS, and nothing in between
//!   between:  sender ── router ── link ── router ── receiver   two core ASes of a localnet
//!   session:  either of them in a localnet, whose daemons the portals ask
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hawser_scion::{Asn, EndpointAddr, Isd, IsdAs};
use hawser_wire::{End, Namespace, veth};

use super::candidate::Way;
use crate::cleanup;
use crate::error::LabError;

/// The AS of both hosts. Source: the range for documentation of SCION's AS numbers.
const AS: Option<Asn> = Asn::new(0xff00_0000_0110);
const ISD: Isd = Isd(1);
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 110, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 110, 0, 2);
const PREFIX: u8 = 24;
/// The hosts' interface.
const INTERFACE: &str = "eth0";
/// An Ethernet packet. Source: RFC 894.
const MTU: u32 = 1500;
/// Ports that packets come to directly. Source: the default of the reference implementation's topology.
pub(super) const FIRST_PORT: u16 = 31_000;
pub(super) const LAST_PORT: u16 = 32_767;
/// The first port of the sender, who is answered directly.
const SENDER_PORT: u16 = 31_500;
/// The first port of a receiver who gets packets directly, and of one who does not.
const DIRECT_PORT: u16 = 31_000;
const DISPATCHED_PORT: u16 = 33_000;
/// Bytes before a payload inside an AS: IPv4 20, UDP 8; of SCION common header 12, addresses 24, UDP 8.
/// Source: RFC 791, RFC 768, scion-header.rst.
const OVERHEAD: usize = 20 + 8 + 12 + 24 + 8;

/// A host. Plain data; clones name the same namespace.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub namespace: Namespace,
    pub isd_as: IsdAs,
    pub address: IpAddr,
}

/// A path between two ASes, as programs are told it. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// As it stands in a packet.
    pub dataplane: Vec<u8>,
    /// The sender's border router, and the receiver's.
    pub routers: [SocketAddr; 2],
}

/// Two hosts that reach each other. Removed on drop.
#[derive(Debug)]
pub(super) struct Ground {
    pub sender: Host,
    pub receiver: Host,
    /// By which interfaces the sender's packets leave, and come to the receiver.
    pub interfaces: [&'static str; 2],
    /// None within an AS.
    pub route: Option<Route>,
}

impl Ground {
    /// Two hosts of one AS.
    pub fn within() -> Result<Self, LabError> {
        let _making = cleanup::making();
        let isd_as = IsdAs::new(ISD, AS.unwrap_or_default());
        let host = |tag, address: Ipv4Addr| {
            Ok::<_, LabError>(Host { namespace: Namespace::new(tag)?, isd_as, address: address.into() })
        };
        let (sender, receiver) = (host("sender", SENDER)?, host("receiver", RECEIVER)?);
        let end = |host: &Host| End::new(&host.namespace, INTERFACE, &[&format!("{}/{PREFIX}", host.address)]);
        veth(&end(&sender), &end(&receiver), MTU)?;
        Ok(Self { sender, receiver, interfaces: [INTERFACE; 2], route: None })
    }

    /// The sender's first port.
    pub fn sender_end(&self) -> EndpointAddr {
        EndpointAddr::new(self.sender.isd_as, SocketAddr::new(self.sender.address, SENDER_PORT))
    }

    /// The receiver's first port: one that packets come to by this way.
    pub fn receiver_end(&self, way: Way) -> EndpointAddr {
        let port = if way == Way::Straight { DIRECT_PORT } else { DISPATCHED_PORT };
        EndpointAddr::new(self.receiver.isd_as, SocketAddr::new(self.receiver.address, port))
    }

    /// Bytes of a packet beside its payload, from the IP header on.
    pub fn overhead(&self) -> usize {
        OVERHEAD + self.route.as_ref().map_or(0, |route| route.dataplane.len())
    }
}
