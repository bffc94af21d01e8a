//! How much of a link a TCP stream in the tunnel, or through the shim, can get at best.

use crate::shim::Carried;

/// An IP packet on a link, in bytes. Source: RFC 894.
pub(super) const MTU: f64 = 1500.0;
/// What a datagram costs beside the inner packet, in bytes: IPv4 and UDP headers, and what Hawser adds. Sources: RFC
/// 791, RFC 768; docs/wire.md.
pub(super) const OUTER: f64 = 28.0;
pub(super) const SEALED: f64 = 31.0;
/// IPv4 and TCP headers of the inner packet, with timestamps, in bytes. Sources: RFC 791, RFC 9293, RFC 7323.
pub(super) const INNER_HEADERS: f64 = 20.0 + 32.0;
/// SCION's common and address header with IPv4 hosts; a path's meta field, a segment's info field, and a hop field, in
/// bytes. Source: draft-dekater-scion-dataplane.
const ADDRESSES: f64 = 36.0;
const META: f64 = 4.0;
const INFO: f64 = 8.0;
const HOP: f64 = 12.0;
/// UDP's header within SCION. Source: RFC 768.
const INNER_UDP: f64 = 8.0;
/// Before the TCP options of the shim's compact datagram, with what is kept free; and MPTCP's options with timestamps.
/// Source: crates/hawser-shim/README.md, "What it costs".
const COMPACT: f64 = 22.0;
const OPTIONS: f64 = 40.0;
/// TCP's header before its options, where TCP is SCION's layer 4. Source: RFC 9293 section 3.1.
const TCP: f64 = 20.0;

/// Inner TCP payload that links of a total rate (both in Mbit/s) can carry.
pub(super) fn usable_mbps(total_mbps: f64) -> f64 {
    total_mbps * (MTU - OUTER - SEALED - INNER_HEADERS) / MTU
}

/// Inner TCP payload of a packet that fills a SCION path of one segment over this many ASes.
pub(super) fn portals_payload(ases: u8) -> f64 {
    MTU - scion_headers(1, ases) - INNER_UDP - SEALED - INNER_HEADERS
}

/// TCP payload of the shim's packet that fills a SCION path, as a share of it.
pub(super) fn shim_share(segments: u8, hop_fields: u8, carried: Carried) -> f64 {
    let headers = match carried {
        Carried::Udp => INNER_UDP + COMPACT,
        Carried::Tcp => TCP,
    };
    (MTU - scion_headers(segments, hop_fields) - headers - OPTIONS) / MTU
}

/// IP, UDP and SCION headers, with a path of this many segments and hop fields.
fn scion_headers(segments: u8, hop_fields: u8) -> f64 {
    OUTER + ADDRESSES + META + INFO * f64::from(segments) + HOP * f64::from(hop_fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_follows_from_the_headers() {
        let table = [
            // Of a full packet 1389 bytes are payload.
            (usable_mbps(1500.0), 1389.0),
            (usable_mbps(100.0), 92.6),
            // A datagram has 1392 bytes over two ASes (docs/scion.md), of which 31 are Hawser's and 52 TCP/IP's.
            (portals_payload(2), 1309.0),
            (portals_payload(3), 1297.0),
            // crates/hawser-shim/README.md: 1298 bytes of data up and down over three hops; where TCP is SCION's layer
            // 4, 1308.
            (shim_share(2, 4, Carried::Udp) * MTU, 1298.0),
            (shim_share(2, 4, Carried::Tcp) * MTU, 1308.0),
        ];
        for (found, expected) in table {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
    }
}
