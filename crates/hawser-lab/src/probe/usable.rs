//! How much of a link a TCP stream in the tunnel can get at best.

/// An IP packet on a link, in bytes. Source: RFC 894.
pub(super) const MTU: f64 = 1500.0;
/// What a datagram costs beside the inner packet over IPv4 and UDP, in bytes. Source: docs/wire.md.
pub(super) const OVERHEAD: f64 = 59.0;
/// IPv4 and TCP headers of the inner packet, with timestamps, in bytes. Sources: RFC 791, RFC 9293, RFC 7323.
pub(super) const INNER_HEADERS: f64 = 20.0 + 32.0;

/// Inner TCP payload that links of a total rate (both in Mbit/s) can carry.
#[must_use]
pub(super) fn usable_mbps(total_mbps: f64) -> f64 {
    total_mbps * (MTU - OVERHEAD - INNER_HEADERS) / MTU
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_full_packet_1389_bytes_are_payload() {
        assert!((usable_mbps(1500.0) - 1389.0).abs() < 1e-9);
        assert!((usable_mbps(100.0) - 92.6).abs() < 1e-9);
    }
}
