//! A SCION host, the interfaces of its shim, and the addresses they have.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_scion::{EndpointAddr, IsdAs};
use ipnet::Ipv4Net;

use super::derived::Derived;
use super::surrogate::{ShimEnd, Surrogate};

/// Egress interfaces of a shim, at most: what a kernel's MPTCP takes (`MPTCP_PM_ADDR_MAX` of linux/mptcp.h).
pub const MAX_EGRESS: u8 = 8;

/// A host in SCION, whatever its port: who a peer is. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScionHost {
    /// The AS.
    pub isd_as: IsdAs,
    /// The host in it.
    pub ip: IpAddr,
}

/// Which of a shim's interfaces: the ingress, for what comes to servers, or an egress, for clients. Ingress by default.
/// Plain value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterfaceIndex(u8);

/// The addresses of one interface of a shim. At least one is there. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Addresses {
    /// Surrogate; none for IPv6 hosts of SCION.
    pub ipv6: Option<Ipv6Addr>,
    /// Derived; none where IPv4 is switched off.
    pub ipv4: Option<Ipv4Addr>,
}

/// An interface without any address. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("give {0} addresses: an ipv6 host of SCION has none but derived ipv4 ones, and ipv4 is switched off")]
pub struct NoAddress(pub EndpointAddr);

impl InterfaceIndex {
    /// For servers.
    pub const INGRESS: InterfaceIndex = InterfaceIndex(0);

    /// 0 is the ingress, 1 to [`MAX_EGRESS`] are egresses; none else.
    pub const fn new(index: u8) -> Option<InterfaceIndex> {
        if index <= MAX_EGRESS { Some(InterfaceIndex(index)) } else { None }
    }

    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Whether it is for servers.
    pub const fn is_ingress(self) -> bool {
        self.0 == 0
    }

    /// The first this many egresses, in order.
    pub fn egresses(count: u8) -> impl Iterator<Item = InterfaceIndex> + Clone {
        (1..=count.min(MAX_EGRESS)).map(InterfaceIndex)
    }
}

impl Addresses {
    /// Those of one interface of the shim at `end`.
    ///
    /// # Errors
    /// [`NoAddress`] for an IPv6 host without a range for IPv4.
    pub fn of(end: EndpointAddr, range: Option<Ipv4Net>, interface: InterfaceIndex) -> Result<Addresses, NoAddress> {
        let ipv6 = ShimEnd::new(end).ok().map(|end| Surrogate { end, interface }.address());
        let ipv4 = range.map(|range| Derived::new(end.into(), range).address(interface));
        match (ipv6, ipv4) {
            (None, None) => Err(NoAddress(end)),
            _ => Ok(Addresses { ipv6, ipv4 }),
        }
    }

    /// IPv6 first.
    pub fn iter(self) -> impl Iterator<Item = IpAddr> {
        self.ipv6.map(IpAddr::V6).into_iter().chain(self.ipv4.map(IpAddr::V4))
    }
}

impl From<EndpointAddr> for ScionHost {
    fn from(end: EndpointAddr) -> ScionHost {
        ScionHost { isd_as: end.isd_as, ip: end.host.ip() }
    }
}

impl fmt::Display for ScionHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.isd_as, self.ip)
    }
}

impl fmt::Display for InterfaceIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("ingress"),
            egress => write!(f, "egress {egress}"),
        }
    }
}
