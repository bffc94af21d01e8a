//! Names of flows: what a packet's addresses and ports hash to, and its sequence.

pub use crate::wire::{FlowBucket, FlowSequence};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// How many flow buckets a session has: what 12 bits of a DATA frame name (docs/wire.md).
pub const FLOW_BUCKETS: usize = 1 << 12;
/// How many of them, the last ones, are ICMP's. With 300 streams in the others a ping had one with a stream in 7 of 100
/// cases.
const ICMP_BUCKETS: usize = 1 << 7;
/// The buckets of flows whose losses are not retransmitted, below those of ICMP: whose order is restored shares none
/// with them. A rule may send all UDP there: of 128 a new flow beside 60 others had one that another used in 4 of 100
/// cases, beside 100 in 29.
const UNRESENT_BUCKETS: usize = 1 << 10;
/// The buckets of all others.
const RESENT_BUCKETS: usize = FLOW_BUCKETS - ICMP_BUCKETS - UNRESENT_BUCKETS;
/// The longest that a gap in a flow is waited for: a congestion-controlled sender has long retransmitted what is missing.
pub const GAP_MAX: Duration = Duration::from_secs(3);
/// A flow that was silent for so long is a new one: its path is chosen anew.
pub const FORGOTTEN: Duration = Duration::from_secs(60);
/// Flow sequences wrap here: 24 bits of a DATA frame (docs/wire.md).
pub const FLOW_SEQUENCES: u32 = 1 << 24;

/// Which buckets a flow may have; those of one kind are of no other. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Buckets {
    /// Of flows whose losses are retransmitted.
    Resent,
    /// Of flows whose losses are not.
    Unresent,
    /// Of ICMP: a ping waits behind no stream.
    Icmp,
}

impl Buckets {
    /// The first of them, and how many there are.
    const fn range(self) -> (usize, usize) {
        match self {
            Self::Resent => (0, RESENT_BUCKETS),
            Self::Unresent => (RESENT_BUCKETS, UNRESENT_BUCKETS),
            Self::Icmp => (RESENT_BUCKETS + UNRESENT_BUCKETS, ICMP_BUCKETS),
        }
    }
}

/// What a flow hashes to. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowHash {
    /// The bucket that it has where no other flow does (`queue::ways`).
    pub home: FlowBucket,
    /// What tells it from the others of a few buckets.
    pub tag: NonZeroU32,
}

/// The secret that flows are hashed with, so that nobody can aim packets at one bucket. Never
/// printed. A plain value, shared by copying.
#[derive(Copy, Clone)]
pub struct FlowKey([u64; 2]);

impl FlowKey {
    /// From 128 random bits.
    pub const fn new(k0: u64, k1: u64) -> FlowKey {
        FlowKey([k0, k1])
    }

    /// What a flow described by `words` hashes to, of these buckets.
    pub fn hash(&self, words: &[u64], buckets: Buckets) -> FlowHash {
        let hash = siphash::<1, 3>(self.0, words);
        let (first, count) = buckets.range();
        let home = FlowBucket(first as u16 + (hash % count as u64) as u16);
        FlowHash { home, tag: NonZeroU32::new((hash >> 32) as u32).unwrap_or(NonZeroU32::MIN) }
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowKey(..)")
    }
}

/// SipHash with `C` compression and `D` finalization rounds over whole little-endian words
/// (Aumasson and Bernstein, "SipHash: a fast short-input PRF", section 2).
fn siphash<const C: usize, const D: usize>(key: [u64; 2], words: &[u64]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let length = (words.len() as u64 * 8) << 56;
    for &word in words.iter().chain(std::iter::once(&length)) {
        v[3] ^= word;
        (0..C).for_each(|_| sip_round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..D).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

/// One SipRound.
fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hasher};

    #[test]
    fn siphash_agrees_with_its_authors_vectors() {
        // Key 00..0f; inputs of 0 and 8 bytes 00..07, from vectors.h of the reference implementation.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash::<2, 4>(key, &[]).to_le_bytes()[..4], [0x31, 0x0e, 0x0e, 0xdd]);
        assert_eq!(
            siphash::<2, 4>(key, &[0x0706_0504_0302_0100]).to_le_bytes(),
            [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93]
        );
    }

    #[test]
    fn icmp_and_what_is_not_sent_again_and_others_never_share_a_bucket() {
        let key = FlowKey::new(1, 2);
        let buckets = |of: Buckets| -> Vec<usize> {
            let mut all: Vec<usize> = (0..40_000).map(|flow| key.hash(&[flow], of).home.index()).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let [icmp, unresent, others] = [Buckets::Icmp, Buckets::Unresent, Buckets::Resent].map(buckets);
        assert_eq!(icmp, (FLOW_BUCKETS - ICMP_BUCKETS..FLOW_BUCKETS).collect::<Vec<_>>());
        assert_eq!(unresent, (RESENT_BUCKETS..FLOW_BUCKETS - ICMP_BUCKETS).collect::<Vec<_>>());
        assert!(others.len() > RESENT_BUCKETS * 9 / 10 && others[others.len() - 1] < unresent[0]);
    }

    #[test]
    fn siphash_agrees_with_the_standard_library() {
        for words in [&[][..], &[1], &[u64::MAX, 7, 0x0123_4567_89ab_cdef]] {
            let mut hasher = DefaultHasher::new();
            words.iter().for_each(|w: &u64| hasher.write(&w.to_le_bytes()));
            assert_eq!(siphash::<1, 3>([0, 0], words), hasher.finish());
        }
    }

    #[test]
    fn a_sequence_expands_to_the_nearest_full_number() {
        let base = 1 << 24;
        for (low, expected, full) in [
            (0, base, base),
            (5, base, base + 5),
            (0xff_ffff, base, base - 1),
            (0, 2 * base - 1, 2 * base),
            (0xff_ffff, 2 * base + 3, 2 * base - 1),
            (3, 5 * base + 0x7f_ffff, 5 * base + 3),
        ] {
            assert_eq!(FlowSequence(low).expand(expected), full, "{low} near {expected}");
        }
        assert_eq!(FlowSequence(0xff_ffff).next(), FlowSequence(0));
    }
}
