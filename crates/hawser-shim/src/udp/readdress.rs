//! Another address in a packet of UDP (RFC 768, RFC 8200 section 8.1), with its checksums changed in place (RFC 1624).

use std::net::IpAddr;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{IPV4_HEADER, IPV6_HEADER};

use super::CHECKSUM_AT;

/// Where the checksum stands in an IPv4 header (RFC 791 section 3.1).
const IPV4_CHECKSUM_AT: usize = 10;

/// Which of a packet's addresses. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

/// Puts `address` in a packet. `udp_at`: where its UDP header starts; none where it has none, as later fragments.
/// `partial`: the UDP checksum is the pseudo-header's sum alone. Nothing is changed where address and packet are of two
/// IP versions.
pub fn readdress(packet: &mut [u8], end: End, address: IpAddr, udp_at: Option<usize>, partial: bool) {
    let is_v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    let header = if is_v4 { IPV4_HEADER } else { IPV6_HEADER };
    if is_v4 != address.is_ipv4() || packet.len() < header {
        return;
    }
    let (at, len) = match (is_v4, end) {
        (true, End::Source) => (12, 4),
        (true, End::Destination) => (16, 4),
        (false, End::Source) => (8, 16),
        (false, End::Destination) => (24, 16),
    };
    let old = checksum::sum(&packet[at..at + len]);
    match address {
        IpAddr::V4(ip) => packet[at..at + len].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => packet[at..at + len].copy_from_slice(&ip.octets()),
    }
    let new = checksum::sum(&packet[at..at + len]);
    if is_v4 {
        change(packet, IPV4_CHECKSUM_AT, |sum| checksum::update(sum, old, new));
    }
    let Some(at) = udp_at.map(|at| at + CHECKSUM_AT).filter(|at| at + 2 <= packet.len()) else { return };
    if partial {
        change(packet, at, |sum| !checksum::update(!sum, old, new));
        return;
    }
    // Zero says that there is none (RFC 768), and is never one.
    change(packet, at, |sum| match sum {
        0 => 0,
        sum => match checksum::update(sum, old, new) {
            0 => u16::MAX,
            sum => sum,
        },
    });
}

fn change(packet: &mut [u8], at: usize, law: impl FnOnce(u16) -> u16) {
    let changed = law(u16::from_be_bytes([packet[at], packet[at + 1]]));
    packet[at..at + 2].copy_from_slice(&changed.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use hawser_core::packet::inner::PROTOCOL_UDP;
    use proptest::prelude::*;

    use super::*;
    use crate::udp::{Content, addresses};

    fn packet(v6: bool, payload: &[u8]) -> Vec<u8> {
        let builder =
            if v6 { PacketBuilder::ipv6([1; 16], [2; 16], 64) } else { PacketBuilder::ipv4([10; 4], [20; 4], 64) };
        let mut packet = Vec::new();
        builder.udp(1000, 53).write(&mut packet, payload).unwrap();
        packet
    }

    fn is_right(packet: &[u8]) -> bool {
        let (source, destination) = addresses(packet).unwrap();
        let at = if source.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        let pseudo = checksum::pseudo(source, destination, PROTOCOL_UDP, packet.len() - at);
        let header = source.is_ipv6() || checksum::verifies(0, &packet[..at]);
        header && checksum::verifies(pseudo, &packet[at..])
    }

    proptest! {
        #[test]
        fn checksums_stay_right_and_wrong_ones_wrong(
            v6 in any::<bool>(), four in any::<[u8; 4]>(), sixteen in any::<[u8; 16]>(), source in any::<bool>(),
            payload in proptest::collection::vec(any::<u8>(), 0..60), damage in 1..u16::MAX
        ) {
            let address = if v6 { IpAddr::from(sixteen) } else { IpAddr::from(four) };
            let at = if v6 { IPV6_HEADER } else { IPV4_HEADER };
            let end = if source { End::Source } else { End::Destination };
            let mut right = packet(v6, &payload);
            readdress(&mut right, end, address, Some(at), false);
            let (from, to) = addresses(&right).unwrap();
            prop_assert_eq!(if source { from } else { to }, address);
            prop_assert!(is_right(&right) && matches!(Content::of(&right), Content::Datagram(_)));

            let mut wrong = packet(v6, &payload);
            let sum = u16::from_be_bytes([wrong[at + 6], wrong[at + 7]]);
            // One more or less is another sum, but for the two zeros.
            prop_assume!(!matches!(checksum::add(sum, damage), 0 | u16::MAX) && checksum::add(sum, damage) != sum);
            wrong[at + 6..at + 8].copy_from_slice(&checksum::add(sum, damage).to_be_bytes());
            readdress(&mut wrong, end, address, Some(at), false);
            prop_assert!(!is_right(&wrong));

            let mut partial = packet(v6, &payload);
            let sum = |packet: &[u8]| {
                let (from, to) = addresses(packet).unwrap();
                checksum::pseudo(from, to, PROTOCOL_UDP, packet.len() - at)
            };
            let before = sum(&partial);
            partial[at + 6..at + 8].copy_from_slice(&before.to_be_bytes());
            readdress(&mut partial, end, address, Some(at), true);
            let found = u16::from_be_bytes([partial[at + 6], partial[at + 7]]);
            // Zero and all ones are one sum.
            prop_assert_eq!(found % u16::MAX, sum(&partial) % u16::MAX);
        }
    }

    #[test]
    fn no_checksum_stays_none_and_another_version_changes_nothing() {
        let mut none = packet(false, b"hello");
        none[26..28].fill(0);
        readdress(&mut none, End::Source, [10, 0, 0, 7].into(), Some(IPV4_HEADER), false);
        assert_eq!(none[26..28], [0, 0]);
        let mut other = packet(false, b"hello");
        readdress(&mut other, End::Source, [7; 16].into(), Some(IPV4_HEADER), false);
        assert_eq!(other, packet(false, b"hello"));
    }
}
