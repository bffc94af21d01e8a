//! Datagrams for tests.

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;
use hawser_core::packet::checksum;

use super::addresses;

/// The packet of a datagram, with right checksums; IPv4 with "don't fragment".
pub fn packet(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let builder = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 64),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 64),
        _ => panic!("both of one version"),
    };
    let mut packet = Vec::new();
    builder.udp(from.port(), to.port()).write(&mut packet, payload).expect("a vector takes all");
    packet
}

/// The same, where routers may fragment it.
pub fn may_be_cut(mut packet: Vec<u8>, identification: u16) -> Vec<u8> {
    packet[6] = 0;
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    fix_header(&mut packet);
    packet
}

/// Makes the checksum of an IPv4 header right.
pub fn fix_header(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = !checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Leaves the UDP checksum to whoever sends it: the pseudo-header's sum alone.
pub fn partial(mut packet: Vec<u8>) -> Vec<u8> {
    let (at, sum) = pseudo(&packet);
    packet[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Completes such a one.
pub fn completed(mut packet: Vec<u8>) -> Vec<u8> {
    let (at, _) = pseudo(&packet);
    let sum = checksum::of_transport(&packet[at..], 6);
    packet[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn pseudo(packet: &[u8]) -> (usize, u16) {
    let (from, to) = addresses(packet).expect("a packet");
    let at = if from.is_ipv4() { 20 } else { 40 };
    (at, checksum::pseudo(from, to, 17, packet.len() - at))
}
