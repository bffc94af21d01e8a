//! Inner packets made by hand, and the bytes that they carry: known from flow and offset alone, so
//! that the far side can check every one of them.

use hawser_core::packet::checksum;
use std::net::Ipv4Addr;

/// IPv4 and TCP headers without options, bytes.
pub const TCP_HEADERS: usize = 40;
/// IPv4 and UDP headers, bytes.
pub const UDP_HEADERS: usize = 28;
/// IPv4 header without options, bytes.
const IPV4: usize = 20;
/// IANA protocol numbers.
pub const TCP: u8 = 6;
/// IANA protocol numbers.
pub const UDP: u8 = 17;
/// IANA protocol numbers.
pub const ICMP: u8 = 1;
/// The pattern repeats after this many bytes: prime, so that no packet size divides it.
const PERIOD: usize = 65_521;
/// The longest piece that is asked for, bytes.
const LONGEST: usize = 65_536;
/// How far the patterns of neighbouring flows lie apart, bytes.
const FLOW_STEP: u64 = 7_919;

/// The bytes of every stream.
pub struct Pattern(Vec<u8>);

impl Default for Pattern {
    fn default() -> Self {
        // A linear congruential generator (Knuth's MMIX constants): any bytes without a short period do.
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        let period: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
        Pattern(period.iter().copied().cycle().take(PERIOD + LONGEST).collect())
    }
}

impl Pattern {
    /// `len` bytes (at most 65,536) of a flow's stream, from `offset`.
    pub fn bytes(&self, flow: u16, offset: u64, len: usize) -> &[u8] {
        let start = ((offset + u64::from(flow) * FLOW_STEP) % PERIOD as u64) as usize;
        &self.0[start..start + len]
    }
}

/// Writes an IPv4 header for `payload` bytes of `protocol`.
pub fn ipv4(out: &mut [u8], from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: usize) {
    out[..IPV4].fill(0);
    out[0] = 0x45;
    out[2..4].copy_from_slice(&((IPV4 + payload) as u16).to_be_bytes());
    out[8] = 64;
    out[9] = protocol;
    out[12..16].copy_from_slice(&from.octets());
    out[16..20].copy_from_slice(&to.octets());
    let sum = !checksum::sum(&out[..IPV4]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Writes a TCP header at its place behind an IPv4 header; the checksum is left to be completed.
pub fn tcp(out: &mut [u8], flow: u16, sequence: u32) {
    let tcp = &mut out[IPV4..TCP_HEADERS];
    tcp.fill(0);
    tcp[0..2].copy_from_slice(&flow.wrapping_add(FLOW_PORT).to_be_bytes());
    tcp[2..4].copy_from_slice(&FLOW_PORT.to_be_bytes());
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    tcp[12] = 5 << 4;
    tcp[13] = 0x10;
}

/// The port of flow 0 and of all destinations.
pub const FLOW_PORT: u16 = 10_000;

/// Writes a UDP header at its place behind an IPv4 header, without a checksum (RFC 768 allows it).
pub fn udp(out: &mut [u8], flow: u16, payload: usize) {
    let udp = &mut out[IPV4..UDP_HEADERS];
    udp.fill(0);
    udp[0..2].copy_from_slice(&flow.wrapping_add(FLOW_PORT).to_be_bytes());
    udp[2..4].copy_from_slice(&FLOW_PORT.to_be_bytes());
    udp[4..6].copy_from_slice(&((payload + 8) as u16).to_be_bytes());
}

/// The flow of a TCP or UDP packet made here.
pub fn flow_of(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[20], packet[21]]).wrapping_sub(FLOW_PORT)
}

/// The sequence number of a TCP packet.
pub fn sequence_of(packet: &[u8]) -> u32 {
    u32::from_be_bytes([packet[24], packet[25], packet[26], packet[27]])
}
