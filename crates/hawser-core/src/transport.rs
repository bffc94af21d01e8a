//! How a link carries datagrams, as far as the core must know it.

use crate::alias::Alias;
use std::net::SocketAddr;

/// How a link carries datagrams. UDP by default; a plain name.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// In UDP datagrams.
    #[default]
    Udp,
    /// In IP packets of a protocol of their own, which have no ports: addresses have port 0.
    Ip,
    /// In records of a TCP stream to each remote address: nothing is lost or overtaken while the stream lives, and the
    /// kernel decides how fast it goes.
    Tcp,
    /// In SCION packets: an address is the [`Alias`] of a SCION path to an endpoint.
    Scion,
}

/// Bytes of an IPv4 header without options (RFC 791 section 3.1).
pub(crate) const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header without extensions (RFC 8200 section 3).
pub(crate) const IPV6_HEADER: usize = 40;
/// Bytes of a UDP header (RFC 768).
pub(crate) const UDP_HEADER: usize = 8;
/// Bytes before each record on a stream (docs/wire.md). The headers of TCP and IP are the kernel's: so are all numbers
/// that it tells of a stream, and one segment's headers serve several records, or half of one.
const RECORD_HEADER: usize = 2;
/// The largest datagram of a stream, in bytes: what `ip` over IPv4 carries on Ethernet (RFC 894), the most that any of
/// the others does, so that a stream is never the path that limits the MTU of TUN.
const STREAM_DATAGRAM: u16 = 1480;

impl Transport {
    /// Bytes that go beside each datagram to this address.
    pub fn overhead(self, remote: &SocketAddr) -> usize {
        let ip = if remote.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        match self {
            Transport::Udp => ip + UDP_HEADER,
            Transport::Ip => ip,
            Transport::Tcp => RECORD_HEADER,
            Transport::Scion => Alias::of(remote).map_or(ip + UDP_HEADER, |alias| alias.overhead()),
        }
    }

    /// Bytes that the link needs before each datagram to this address, where the core leaves room for them.
    pub fn room_before(self, remote: &SocketAddr) -> usize {
        match self {
            Transport::Udp | Transport::Ip | Transport::Tcp => 0,
            Transport::Scion => Alias::of(remote).map_or(0, |alias| alias.header()),
        }
    }

    /// The largest datagram that this address is said to carry, before anything was tried.
    pub fn said_size(self, remote: &SocketAddr) -> Option<u16> {
        match self {
            Transport::Udp | Transport::Ip | Transport::Tcp => None,
            Transport::Scion => Alias::of(remote).and_then(|alias| alias.largest()),
        }
    }

    /// The largest datagram where that is no question of the path; none where it is to be found out.
    pub const fn fixed_size(self) -> Option<u16> {
        match self {
            Transport::Udp | Transport::Ip | Transport::Scion => None,
            Transport::Tcp => Some(STREAM_DATAGRAM),
        }
    }

    /// Whether the kernel has a congestion control of its own below, and there is nothing to mark, to probe or to pace.
    pub const fn is_stream(self) -> bool {
        matches!(self, Transport::Tcp)
    }

    /// Whether its addresses are aliases: each stands for a way of its own, and all are used together.
    pub const fn has_aliases(self) -> bool {
        matches!(self, Transport::Scion)
    }

    /// Whether its addresses have ports.
    pub const fn has_ports(self) -> bool {
        !matches!(self, Transport::Ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::LinkId;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const HOSTS: [SocketAddr; 2] = [
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1),
        SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 1),
    ];

    #[test]
    fn each_transport_has_its_overhead() {
        let table = [(Transport::Udp, [28, 48]), (Transport::Ip, [20, 40]), (Transport::Tcp, [2, 2])];
        for (transport, overhead) in table {
            assert_eq!(HOSTS.map(|host| transport.overhead(&host)), overhead, "{transport:?}");
            assert_eq!(HOSTS.map(|host| transport.room_before(&host)), [0, 0], "{transport:?}");
        }
    }

    #[test]
    fn an_alias_says_what_a_scion_path_costs() {
        for (ipv6, overhead) in [(false, 108), (true, 128)] {
            let alias = Alias::new(LinkId(1), 1392, ipv6, 80, 5, 1).expect("it fits").address();
            let scion = Transport::Scion;
            assert_eq!((scion.overhead(&alias), scion.room_before(&alias)), (overhead, 80));
            assert_eq!(scion.said_size(&alias), Some(1392));
        }
    }

    #[test]
    fn no_datagram_on_ethernet_is_larger_than_a_streams() {
        for transport in [Transport::Udp, Transport::Ip] {
            for host in HOSTS {
                assert!(1500 - transport.overhead(&host) <= usize::from(STREAM_DATAGRAM));
            }
        }
    }
}
