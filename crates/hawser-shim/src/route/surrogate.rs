//! IPv6 addresses that embed the SCION end of a shim.
//!
//! ```text
//! 8 bits   16    48   8           16     32
//! fc     | ISD | AS | interface | port | IPv4 host
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_scion::{EndpointAddr, IsdAs};
use ipnet::Ipv6Net;

use super::addresses::InterfaceIndex;

/// The first byte of every surrogate address: unique local addresses that nobody assigns at random, for their bit L is
/// 0 (RFC 4193 section 3.1).
const FIRST_BYTE: u8 = 0xfc;
/// All surrogate addresses.
pub const SURROGATES: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new((FIRST_BYTE as u16) << 8, 0, 0, 0, 0, 0, 0, 0), 8);

/// Where the parts stand, in bits from the last one.
const ISD_AS_AT: u32 = 56;
const INTERFACE_AT: u32 = 48;
const PORT_AT: u32 = 32;

/// A shim's place in SCION: one AS, an IPv4 host in it, and its UDP port. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShimEnd {
    isd_as: IsdAs,
    host: Ipv4Addr,
    port: u16,
}

/// A shim's end and one of its interfaces: what a surrogate address embeds. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Surrogate {
    /// Whose.
    pub end: ShimEnd,
    /// Which of its interfaces.
    pub interface: InterfaceIndex,
}

/// Why a SCION endpoint has no surrogate addresses. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSurrogate {
    /// 128 bits do not hold it.
    #[error("{0}: an ipv6 host does not fit into a surrogate address")]
    Ipv6(EndpointAddr),
    /// It names several ASes.
    #[error("{0}: no single AS")]
    Wildcard(EndpointAddr),
    /// Nobody is there.
    #[error("{0}: no single host and port")]
    Nobody(EndpointAddr),
}

impl ShimEnd {
    /// A shim's end, where it has surrogate addresses.
    ///
    /// # Errors
    /// [`NoSurrogate`] for IPv6 hosts, and for what is no single host's port.
    pub fn new(end: EndpointAddr) -> Result<ShimEnd, NoSurrogate> {
        let EndpointAddr { isd_as, host } = end;
        let IpAddr::V4(ip) = host.ip() else { return Err(NoSurrogate::Ipv6(end)) };
        if isd_as.is_wildcard() {
            return Err(NoSurrogate::Wildcard(end));
        }
        if host.port() == 0 || ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
            return Err(NoSurrogate::Nobody(end));
        }
        Ok(ShimEnd { isd_as, host: ip, port: host.port() })
    }

    /// As SCION writes it.
    pub fn endpoint(self) -> EndpointAddr {
        EndpointAddr::new(self.isd_as, SocketAddr::new(self.host.into(), self.port))
    }
}

impl Surrogate {
    /// The address that embeds it.
    pub fn address(self) -> Ipv6Addr {
        let ShimEnd { isd_as, host, port } = self.end;
        let bits = u128::from(FIRST_BYTE) << 120
            | u128::from(isd_as.to_bits()) << ISD_AS_AT
            | u128::from(self.interface.get()) << INTERFACE_AT
            | u128::from(port) << PORT_AT
            | u128::from(host.to_bits());
        Ipv6Addr::from_bits(bits)
    }

    /// What an address embeds; none where it is no surrogate address of anybody.
    pub fn of(address: Ipv6Addr) -> Option<Surrogate> {
        let bits = address.to_bits();
        if address.octets()[0] != FIRST_BYTE {
            return None;
        }
        let isd_as = IsdAs::from_bits((bits >> ISD_AS_AT) as u64);
        let interface = InterfaceIndex::new((bits >> INTERFACE_AT) as u8)?;
        let host = Ipv4Addr::from_bits(bits as u32);
        let endpoint = EndpointAddr::new(isd_as, SocketAddr::new(host.into(), (bits >> PORT_AT) as u16));
        ShimEnd::new(endpoint).ok().map(|end| Surrogate { end, interface })
    }
}
