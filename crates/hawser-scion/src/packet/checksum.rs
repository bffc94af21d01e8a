//! The Internet checksum (RFC 1071) over the SCION pseudo-header and what a packet carries.
//!
//! Words are added as the processor reads them, eight bytes at a time, and swapped at the end: the sum does not depend
//! on the order of bytes (RFC 1071, 2.B).

/// Half of a word of eight bytes.
const LOW_HALF: u64 = u32::MAX as u64;
/// From this length on the processor's wide registers are worth asking for, in bytes.
#[cfg(target_arch = "x86_64")]
const WIDE_FROM: usize = 256;

/// A sum of 16-bit words in the processor's order, not folded yet. 0 by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum(u64);

impl Sum {
    /// Adds bytes, which begin at an even offset of what is summed.
    #[inline]
    pub(super) fn bytes(self, bytes: &[u8]) -> Sum {
        Sum(fold_once(self.0) + fold_once(sum(bytes)))
    }

    /// Adds a number of 16 bits.
    #[inline]
    pub(super) fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word.to_be()))
    }

    /// Adds what the pseudo-header has beside addresses: length and protocol.
    #[inline]
    pub(super) fn pseudo(self, len: usize, protocol: u8) -> Sum {
        self.word((len >> 16) as u16).word(len as u16).word(protocol.into())
    }

    /// The checksum: the sum's complement.
    #[inline]
    pub(super) fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Whether a sum that a checksum is part of is as it must be.
    #[inline]
    pub(super) fn is_right(self) -> bool {
        self.folded() == u16::MAX
    }

    #[inline]
    fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > u64::from(u16::MAX) {
            sum = (sum >> 16) + (sum & u64::from(u16::MAX));
        }
        u16::from_be(sum as u16)
    }
}

/// So that no sum of sums overflows.
#[inline]
fn fold_once(sum: u64) -> u64 {
    (sum >> 32) + (sum & LOW_HALF)
}

/// The sum of bytes, by the widest registers there are.
fn sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= WIDE_FROM && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { sum_avx2(bytes) };
    }
    sum_words(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    sum_words(bytes)
}

/// A loop that the compiler turns into vectors: whole loads, no carries, no overflow below 2³² words.
#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (mut low, mut high) = (0u64, 0u64);
    for word in words {
        let word = u64::from_ne_bytes(*word);
        low = low.wrapping_add(word & LOW_HALF);
        high = high.wrapping_add(word >> 32);
    }
    low.wrapping_add(high).wrapping_add(sum_rest(rest))
}

/// What is left after the last word; a last odd byte is the high one of its 16 bits.
#[inline(always)]
fn sum_rest(bytes: &[u8]) -> u64 {
    let mut last = [0; 8];
    last[..bytes.len()].copy_from_slice(bytes);
    fold_once(u64::from_ne_bytes(last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As RFC 1071 tells it.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071_comes_out() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&bytes).checksum(), !0xddf2);
    }

    #[test]
    fn the_largest_sums_do_not_overflow() {
        let bytes = vec![0xff; 1 << 17];
        assert_eq!(Sum(u64::MAX >> 1).bytes(&bytes).pseudo(usize::from(u16::MAX), u8::MAX).checksum(), {
            let mut all = bytes.clone();
            all.extend([0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff].map(u8::from_be));
            all.extend([0, 0, 0xff, 0xff, 0, 0xff]);
            if cfg!(target_endian = "little") {
                let at = bytes.len();
                all[at..at + 8].reverse();
            }
            naive(&all)
        });
    }

    proptest! {
        #[test]
        fn wide_and_narrow_sums_are_the_naive_one(bytes in proptest::collection::vec(any::<u8>(), 0..3000), cut in 0usize..64) {
            // Cut, so that the bytes begin anywhere in memory.
            let bytes = &bytes[cut.min(bytes.len())..];
            prop_assert_eq!(Sum(sum_words(bytes)).checksum(), naive(bytes));
            prop_assert_eq!(Sum::default().bytes(bytes).checksum(), naive(bytes));
        }

        #[test]
        fn a_sum_may_be_cut_at_any_even_place(bytes in proptest::collection::vec(any::<u8>(), 0..1500), at: u16) {
            let at = (usize::from(at) % (bytes.len() + 1)) & !1;
            let parts = Sum::default().bytes(&bytes[..at]).bytes(&bytes[at..]);
            prop_assert_eq!(parts.checksum(), naive(&bytes));
        }
    }
}
