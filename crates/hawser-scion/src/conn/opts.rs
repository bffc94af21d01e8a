//! What a connection or socket is opened with, and what it has to say about that.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_net::link::LinkFinding;
use hawser_net::link::udp::{DEFAULT_SEND_BUFFER, UdpOpts};

use super::Pace;
use crate::addr::EndpointAddr;

/// The port that border routers send to where the right one is not in the dispatched range
/// (`EndhostPort` of the reference implementation's topology).
pub const END_HOST_PORT: u16 = 30041;

/// Least MTU of a path, from the SCION header on: 1280 of IPv6 without its and UDP's headers
/// (draft-dekater-scion-dataplane, "Maximum Transmission Unit").
pub const LEAST_MTU: u16 = 1232;

/// The MTU inside an AS where nobody said another: Ethernet's 1500 without headers of IPv4 (20) or
/// IPv6 (40) and of UDP (8).
const DEFAULT_MTU_V4: u16 = 1472;
const DEFAULT_MTU_V6: u16 = 1452;

/// Receive buffer asked for, in bytes: 4 ms at 16 Gbit/s, for a thread that is not scheduled.
pub const DEFAULT_RECEIVE_BUFFER: usize = 16 << 20;

/// The ports that an AS's routers send to directly (`dispatched_ports` of its topology.json; the
/// daemon's PortRange). Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl PortRange {
    /// Whether a port is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// What becomes of packets that carry TCP instead of UDP. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TcpPackets {
    /// They are for another protocol, and counted so.
    #[default]
    Refused,
    /// They are handed out beside datagrams, whatever their port: routers disagree on where they deliver them.
    Taken,
    /// They alone are handed out.
    Only,
}

/// What a connection or socket is opened with. Plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnOpts {
    /// This host's address and port. Port 0 takes a free one, of the dispatched range if that is known.
    pub local: EndpointAddr,
    /// The interface everything must leave and come by.
    pub interface: Option<String>,
    /// The mark of everything sent (`SO_MARK`), for policy routing.
    pub mark: Option<u32>,
    /// Bytes a packet may have inside the AS, from its SCION header on.
    pub mtu: u16,
    /// The AS's dispatched ports; `None` takes it that all are.
    pub dispatched: Option<PortRange>,
    /// Whether packets go to and come from the kernel in trains (UDP GSO and GRO); off, one by one
    /// (`sendmmsg`, `recvmmsg`). A kernel that refuses trains has the latter anyway.
    pub trains: bool,
    /// Whether the checksum of what is received is verified. It is always written.
    pub verify: bool,
    /// What becomes of packets that carry TCP.
    pub tcp: TcpPackets,
    /// How fast to send at most.
    pub pace: Option<Pace>,
    /// How long sending may wait for a full socket; `None` for ever.
    pub send_timeout: Option<Duration>,
    /// The traffic class of every packet.
    pub traffic_class: u8,
    /// Bytes that may wait to be received.
    pub receive_buffer: usize,
    /// Bytes that may wait to be sent.
    pub send_buffer: usize,
}

impl ConnOpts {
    /// An address, and nothing out of the ordinary.
    pub fn new(local: EndpointAddr) -> ConnOpts {
        ConnOpts {
            local,
            interface: None,
            mark: None,
            mtu: if local.host.is_ipv4() { DEFAULT_MTU_V4 } else { DEFAULT_MTU_V6 },
            dispatched: None,
            trains: true,
            verify: true,
            tcp: TcpPackets::Refused,
            pace: None,
            send_timeout: None,
            traffic_class: 0,
            receive_buffer: DEFAULT_RECEIVE_BUFFER,
            send_buffer: DEFAULT_SEND_BUFFER,
        }
    }

    /// The same for the UDP socket below, on one of its ports.
    pub(super) fn udp(&self, port: u16) -> UdpOpts {
        let mut udp = UdpOpts::new(SocketAddr::new(self.local.host.ip(), port));
        udp.interface.clone_from(&self.interface);
        udp.mark = self.mark;
        (udp.receive_buffer, udp.send_buffer) = (self.receive_buffer, self.send_buffer);
        (udp.segmentation, udp.merging) = (self.trains, self.trains);
        udp
    }
}

/// Something that works worse than it could. Made when the socket is opened. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// Packets from other ASes come to another port.
    #[error(
        "bind to port {port}: outside of the dispatched ports {first} to {last}, so packets from other ASes come \
         to port {END_HOST_PORT} (run the dispatcher's shim or `hawser scion xdp attach`, or take port 0)"
    )]
    NotDispatched {
        /// The port.
        port: u16,
        /// The first port that packets come to directly.
        first: u16,
        /// The last.
        last: u16,
    },
    /// Something the UDP socket has to do without.
    #[error(transparent)]
    Link(LinkFinding),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_outside_of_the_range_is_told_with_what_helps() {
        let range = PortRange { first: 31_000, last: 32_767 };
        for (port, inside) in [(30_999, false), (31_000, true), (32_767, true), (32_768, false)] {
            assert_eq!(range.contains(port), inside, "{port}");
        }
        let finding = Finding::NotDispatched { port: 4920, first: range.first, last: range.last };
        let said = finding.to_string();
        assert!(said.contains("31000 to 32767") && said.contains("30041") && said.contains("xdp attach"), "{said}");
    }
}
