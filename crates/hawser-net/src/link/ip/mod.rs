//! IP links: a datagram is the payload of an IP packet of a protocol of its own, without ports.
//!
//! 1. [`IpLink::bind`] opens a raw socket, the rest as for UDP (`udp/socket.rs`), but without trains and merging.
//! 2. A filter in the kernel drops at once what cannot be a datagram of Hawser (`filter.rs`): others may speak the
//!    same protocol.
//! 3. Sending and receiving are those of UDP; over IPv4 the kernel gives the IP header too, which is stepped over.

mod filter;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use super::udp::{UdpLink, UdpOpts};
use super::{Link, LinkError, LinkFinding, PathError, RecvBatch, SendBatch, SendOutcome};

pub(super) use filter::attach;

/// Bytes of IP headers before each datagram (RFC 791, RFC 8200; no options).
const HEADROOM_V4: usize = 20;
const HEADROOM_V6: usize = 40;

/// A protocol number of IP headers that no other part of the kernel takes care of. No default; plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpProtocol(u8);

impl IpProtocol {
    /// For experiments (RFC 3692 section 2.1): nobody else's by right.
    pub const EXPERIMENT: IpProtocol = IpProtocol(253);

    /// Those that a kernel or its users have other plans for (IANA, protocol numbers): IPv6's hop-by-hop options, ICMP,
    /// IGMP, IPv4 in IP, TCP, UDP, IPv6 in IP, IPv6's routing and fragment headers, GRE, ESP, AH, ICMPv6, no next
    /// header, destination options, SCTP, UDP-Lite, and what a raw socket takes for all of them.
    const TAKEN: [u8; 18] = [0, 1, 2, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 136, 255];

    /// The protocol of this number, if it is free to be used.
    pub fn new(number: i64) -> Option<IpProtocol> {
        u8::try_from(number).ok().filter(|number| !Self::TAKEN.contains(number)).map(IpProtocol)
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// A raw socket bound to an address and, if asked for, to an interface. All ports are 0.
/// Starts with nothing received. For one thread.
#[derive(Debug)]
pub struct IpLink(UdpLink);

impl IpLink {
    /// Opens a link in the calling thread's network namespace; the port of the address counts for nothing.
    ///
    /// # Errors
    /// [`LinkError`], saying at which step. A raw socket needs CAP_NET_RAW.
    pub fn bind(opts: UdpOpts, protocol: IpProtocol) -> Result<IpLink, LinkError> {
        let local = SocketAddr::new(opts.local.ip(), 0);
        let opts = UdpOpts { local, segmentation: false, protocol: Some(protocol), ..opts };
        UdpLink::bind(opts).map(IpLink)
    }

    /// What the link has to do without.
    pub fn findings(&self) -> &[LinkFinding] {
        self.0.findings()
    }
}

impl Link for IpLink {
    fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        self.0.recv(batch)
    }

    fn send(&mut self, batch: &mut SendBatch) -> io::Result<SendOutcome> {
        self.0.send(batch)
    }

    fn next_error(&mut self) -> io::Result<Option<PathError>> {
        self.0.next_error()
    }

    fn reopen(&mut self) -> Result<bool, LinkError> {
        self.0.reopen()
    }

    /// Its port is 0: for the kernel it would be the protocol.
    fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.0.local_addr().ip(), 0)
    }

    fn interface_index(&self) -> Option<u32> {
        self.0.interface_index()
    }

    fn headroom(&self) -> usize {
        if self.0.local_addr().is_ipv4() { HEADROOM_V4 } else { HEADROOM_V6 }
    }

    fn kernel_drops(&self) -> u64 {
        self.0.kernel_drops()
    }
}

impl AsFd for IpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Bytes of the IPv4 header that a raw socket gives before the payload (RFC 791 section 3.1: its length, in 32-bit
/// words, is in the low half of the first byte); `None` where that cannot be.
pub(super) fn header_len(packet: &[u8]) -> Option<usize> {
    let len = usize::from(packet.first()? & 0x0f) * 4;
    (len >= HEADROOM_V4 && len < packet.len()).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_of_others_are_refused() {
        for (number, free) in
            [(253, true), (254, true), (146, true), (6, false), (58, false), (255, false), (256, false), (-1, false)]
        {
            assert_eq!(IpProtocol::new(number).is_some(), free, "{number}");
        }
        assert_eq!(IpProtocol::new(253), Some(IpProtocol::EXPERIMENT));
    }

    #[test]
    fn the_header_is_as_long_as_it_says_and_leaves_something() {
        for (first, packet, len) in
            [(0x45, 21, Some(20)), (0x4f, 61, Some(60)), (0x45, 20, None), (0x44, 40, None), (0x4f, 60, None)]
        {
            let mut bytes = vec![0; packet];
            bytes[0] = first;
            assert_eq!(header_len(&bytes), len, "{first:#x} {packet}");
        }
        assert_eq!(header_len(&[]), None);
    }
}
