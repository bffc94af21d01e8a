//! How a link carries datagrams, as far as the core must know it.

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
}

/// Bytes of an IPv4 header without options (RFC 791 section 3.1).
const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header without extensions (RFC 8200 section 3).
const IPV6_HEADER: usize = 40;
/// Bytes of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;
/// Bytes before each record on a stream (docs/wire.md). The headers of TCP and IP are the kernel's: so are all numbers
/// that it tells of a stream, and one segment's headers serve several records, or half of one.
const RECORD_HEADER: usize = 2;
/// The largest datagram of a stream, in bytes: what `ip` over IPv4 carries on Ethernet (RFC 894), the most that any of the
/// others does, so that a stream is never the path that limits the MTU of TUN.
const STREAM_DATAGRAM: u16 = 1480;

impl Transport {
    /// Bytes that go beside each datagram.
    pub const fn overhead(self, ipv4: bool) -> usize {
        let ip = if ipv4 { IPV4_HEADER } else { IPV6_HEADER };
        match self {
            Transport::Udp => ip + UDP_HEADER,
            Transport::Ip => ip,
            Transport::Tcp => RECORD_HEADER,
        }
    }

    /// The largest datagram where that is no question of the path; none where it is to be found out.
    pub const fn fixed_size(self) -> Option<u16> {
        match self {
            Transport::Udp | Transport::Ip => None,
            Transport::Tcp => Some(STREAM_DATAGRAM),
        }
    }

    /// Whether the kernel has a congestion control of its own below, and there is nothing to mark, to probe or to pace.
    pub const fn is_stream(self) -> bool {
        matches!(self, Transport::Tcp)
    }

    /// Whether its addresses have ports.
    pub const fn has_ports(self) -> bool {
        !matches!(self, Transport::Ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_has_its_overhead() {
        let table = [(Transport::Udp, [28, 48]), (Transport::Ip, [20, 40]), (Transport::Tcp, [2, 2])];
        for (transport, overhead) in table {
            assert_eq!([true, false].map(|ipv4| transport.overhead(ipv4)), overhead, "{transport:?}");
        }
    }

    #[test]
    fn no_datagram_on_ethernet_is_larger_than_a_streams() {
        for transport in [Transport::Udp, Transport::Ip] {
            for ipv4 in [true, false] {
                assert!(1500 - transport.overhead(ipv4) <= usize::from(STREAM_DATAGRAM));
            }
        }
    }
}
