//! Segments for tests.

use std::net::SocketAddr;

use etherparse::PacketBuilder;

use super::Flags;

pub const CLIENT: &str = "10.1.0.1:40000";
pub const SERVER: &str = "10.2.0.1:80";

/// A segment to be written. Starts as a bare acknowledgment from client to server.
#[derive(Clone, Debug)]
pub struct Draft {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: Flags,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            from: CLIENT.parse().expect("an address"),
            to: SERVER.parse().expect("an address"),
            sequence: 1,
            acknowledgment: 1,
            flags: Flags::ACK,
            window: 500,
            options: Vec::new(),
            payload: Vec::new(),
        }
    }
}

impl Draft {
    /// With MPTCP's option of this body, after what is there.
    pub fn says(mut self, body: &[u8]) -> Self {
        self.options.extend([30, u8::try_from(body.len() + 2).expect("short")]);
        self.options.extend(body);
        self
    }

    /// Whether one of its ends is this.
    pub fn is_between(&self, end: SocketAddr) -> bool {
        self.from == end || self.to == end
    }

    /// The whole packet; its checksums are right.
    pub fn packet(&self) -> Vec<u8> {
        let (source, destination) = (self.from.ip(), self.to.ip());
        let ip = match (source, destination) {
            (std::net::IpAddr::V4(s), std::net::IpAddr::V4(d)) => PacketBuilder::ipv4(s.octets(), d.octets(), 64),
            (std::net::IpAddr::V6(s), std::net::IpAddr::V6(d)) => PacketBuilder::ipv6(s.octets(), d.octets(), 64),
            _ => panic!("both of one version"),
        };
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 1);
        let tcp = ip.tcp(self.from.port(), self.to.port(), self.sequence, self.window).ack(self.acknowledgment);
        let tcp = tcp.options_raw(&options).expect("they fit");
        let mut packet = Vec::new();
        tcp.write(&mut packet, &self.payload).expect("a vector takes all");
        self.finish(packet)
    }

    /// Sets the flags, which the builder knows one by one only, and the checksum.
    fn finish(&self, mut packet: Vec<u8>) -> Vec<u8> {
        let at = if self.from.is_ipv4() { 20 } else { 40 };
        packet[at + 13] = self.flags.0;
        packet[at + 16..at + 18].fill(0);
        let pseudo = hawser_core::packet::checksum::pseudo(self.from.ip(), self.to.ip(), 6, packet.len() - at);
        let sum = hawser_core::packet::checksum::sum(&packet[at..]);
        let checksum = !hawser_core::packet::checksum::add(pseudo, sum);
        packet[at + 16..at + 18].copy_from_slice(&checksum.to_be_bytes());
        packet
    }
}

/// An address of the second version.
pub fn v6(last: u16) -> SocketAddr {
    SocketAddr::new(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into(), 1000 + last)
}
