//! The Internet checksum: computing (RFC 1071), changing in place (RFC 1624), pseudo-headers
//! (RFC 9293 section 3.1, RFC 8200 section 8.1).
//!
//! A *sum* here is the folded one's complement sum; a *checksum* its complement.

use std::net::IpAddr;

/// The sum over data with a right checksum in it (RFC 1071 section 1, point 3).
const ALL_ONES: u16 = 0xffff;
/// Where UDP's checksum stands in its header (RFC 768); TCP's is elsewhere.
const UDP_OFFSET: u16 = 6;
/// Bytes added up per round, a size that the compiler turns into vector instructions.
const ROUND: usize = 32;

/// Folds carries back in (RFC 1071 section 2, "Deferred Carries").
pub const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The sum of two sums.
pub const fn add(a: u16, b: u16) -> u16 {
    fold(a as u64 + b as u64)
}

/// The sum over `bytes`, padded with a zero byte when their number is odd.
pub fn sum(bytes: &[u8]) -> u16 {
    // Any byte order does until the end (RFC 1071 section 2, "Byte Order Independence"). 32-bit
    // words in a 64-bit sum cannot overflow below 16 GiB.
    let word = |b: &[u8]| u64::from(u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let mut total = 0u64;
    let mut rounds = bytes.chunks_exact(ROUND);
    for round in &mut rounds {
        for w in round.chunks_exact(4) {
            total = total.wrapping_add(word(w));
        }
    }
    let mut words = rounds.remainder().chunks_exact(4);
    for w in &mut words {
        total = total.wrapping_add(word(w));
    }
    let mut last = [0; 4];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    total = total.wrapping_add(word(&last));
    u16::from_be_bytes(fold(total).to_ne_bytes())
}

/// The sum over the pseudo-header of an upper-layer packet of `len` bytes.
pub fn pseudo(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> u16 {
    let address = |a: IpAddr| match a {
        IpAddr::V4(a) => sum(&a.octets()),
        IpAddr::V6(a) => sum(&a.octets()),
    };
    fold(u64::from(address(source)) + u64::from(address(destination)) + u64::from(protocol) + len as u64)
}

/// True when `bytes`, the checksum field within them, and the sum `pseudo` agree.
pub fn verifies(pseudo: u16, bytes: &[u8]) -> bool {
    add(pseudo, sum(bytes)) == ALL_ONES
}

/// The checksum of a transport header and what follows, in which it stands at `offset` with the pseudo-header's sum in
/// it. UDP's is never zero, which says that there is none (RFC 768, RFC 8200 section 8.1).
pub fn of_transport(bytes: &[u8], offset: u16) -> u16 {
    match !sum(bytes) {
        0 if offset == UDP_OFFSET => ALL_ONES,
        checksum => checksum,
    }
}

/// The checksum after one 16-bit word it covers changed (RFC 1624 equation 3).
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 section 4.1, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for w in bytes.chunks(2) {
            total += u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn udp_has_no_checksum_of_zero() {
        let bytes = [0xff, 0xff, 0, 0];
        assert_eq!(of_transport(&bytes, 6), 0xffff);
        assert_eq!(of_transport(&bytes, 16), 0);
        assert_eq!(of_transport(&[0xff, 0xfe, 0, 0], 6), 1);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_largest_packet_of_ones_folds() {
        assert_eq!(sum(&[0xff; 65_535]), plain(&[0xff; 65_535]));
    }

    proptest! {
        #[test]
        fn fast_and_plain_agree(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(sum(&bytes), plain(&bytes));
        }

        #[test]
        fn a_changed_word_keeps_the_checksum_right(
            mut bytes in proptest::collection::vec(any::<u8>(), 20), word in any::<u16>(), pseudo in any::<u16>()
        ) {
            bytes[10..12].fill(0);
            let checksum = !add(pseudo, sum(&bytes));
            let old = u16::from_be_bytes([bytes[2], bytes[3]]);
            bytes[2..4].copy_from_slice(&word.to_be_bytes());
            let changed = update(checksum, old, word);
            bytes[10..12].copy_from_slice(&changed.to_be_bytes());
            prop_assert!(verifies(pseudo, &bytes));
            bytes[0] ^= 1;
            prop_assert!(!verifies(pseudo, &bytes));
        }
    }
}
