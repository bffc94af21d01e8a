//! Which addresses hosts and links have.
//!
//! | network | IPv4 | IPv6 | hosts |
//! | --- | --- | --- | --- |
//! | link n, its local end to its router | 10.10.n.0/24 | fd10:n::/64 | router 1, local end 2, 3 … after changes of address |
//! | router n to the remote end | 10.20.n.0/24 | fd20:n::/64 | router 1, remote end (or core) 2 |
//! | core to the remote end's interface n | 10.30.n.0/24 | fd30:n::/64 | core 1, remote end 2 |
//! | client's hosts | 10.1.0.0/24 | fd01::/64 | local end 1, client 2 |
//! | server's hosts | 10.2.0.0/24 | fd02::/64 | remote end 1, server 2 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::scenario::Family;

/// Prefix lengths of every network here, and of all of a kind together.
const NETWORK_V4: u8 = 24;
const NETWORK_V6: u8 = 64;
const KIND: u8 = 16;
/// The host part nearer to the routers.
pub(super) const NEAR: u8 = 1;
/// The host part of ends: hosts, a link's local end, the remote end.
pub(super) const END: u8 = 2;

/// Both.
pub(super) const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// A network. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Net {
    /// Of a link, counted from 1.
    Access(u8),
    /// From its router on.
    Uplink(u8),
    /// Of an interface of the remote end.
    Server(u8),
    /// Of the client's hosts.
    ClientHosts,
    /// Of the server's hosts.
    ServerHosts,
}

impl Net {
    /// The kind, and which one of it.
    const fn parts(self) -> (u8, u8) {
        match self {
            Self::ClientHosts => (1, 0),
            Self::ServerHosts => (2, 0),
            Self::Access(number) => (10, number),
            Self::Uplink(number) => (20, number),
            Self::Server(number) => (30, number),
        }
    }

    /// A host's address.
    pub fn address(self, family: Family, host: u8) -> IpAddr {
        let (kind, number) = self.parts();
        match family {
            Family::V4 => Ipv4Addr::new(10, kind, number, host).into(),
            // The kind's decimal digits, read as hexadecimal, so that both families look alike.
            Family::V6 => {
                let kind = 0xfd00 | u16::from(kind / 10 * 16 + kind % 10);
                Ipv6Addr::new(kind, number.into(), 0, 0, 0, 0, 0, host.into()).into()
            }
        }
    }

    /// A host's address with its prefix length, as an interface has it.
    pub fn interface(self, family: Family, host: u8) -> IpNet {
        let length = if family == Family::V4 { NETWORK_V4 } else { NETWORK_V6 };
        IpNet::new_assert(self.address(family, host), length)
    }

    /// All of it.
    pub fn prefix(self, family: Family) -> IpNet {
        self.interface(family, 0).trunc()
    }

    /// All networks of its kind.
    pub fn kind(self, family: Family) -> IpNet {
        IpNet::new_assert(self.address(family, 0), KIND).trunc()
    }
}

/// The remote end's address, by whichever link. Source: RFC 5737 and RFC 3849, for documentation.
pub(super) const fn endpoint(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)),
        Family::V6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
    }
}

/// An address that means something on its own wire only (RFC 4291, 2.5.6).
pub(super) fn link_local(host: u8) -> IpNet {
    IpNet::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host.into()).into(), NETWORK_V6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_those_of_the_table() {
        let nets = [
            (Net::Access(3).interface(Family::V4, END), "10.10.3.2/24"),
            (Net::Access(3).interface(Family::V6, NEAR), "fd10:3::1/64"),
            (Net::Uplink(12).prefix(Family::V4), "10.20.12.0/24"),
            (Net::Server(1).kind(Family::V6), "fd30::/16"),
            (Net::Server(1).kind(Family::V4), "10.30.0.0/16"),
            (Net::ClientHosts.interface(Family::V6, END), "fd01::2/64"),
            (Net::ServerHosts.interface(Family::V4, END), "10.2.0.2/24"),
            (endpoint(Family::V6).into(), "2001:db8::7/128"),
        ];
        nets.iter().for_each(|(net, told)| assert_eq!(net.to_string(), *told));
    }
}
