//! Names and numbers of a hub that must not be mixed.

use blake2::{Blake2s256, Digest};
use hawser_core::handshake::PublicKey;
use hawser_core::units::Time;

/// Orders the owners of one peer: the higher epoch's counts. The peer alone makes epochs, and gives each to one member.
/// Never zero, and at most [`Epoch::LAST`]. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(u64);

impl Epoch {
    /// The least.
    pub const FIRST: Epoch = Epoch(1);
    /// The greatest: above it `next` has none. A peer that moved a million times a second would need 292,000 years.
    pub const LAST: Epoch = Epoch(u64::MAX >> 1);

    /// From a number; none for zero and above [`Epoch::LAST`].
    pub const fn new(number: u64) -> Option<Self> {
        match number {
            1..=0x7fff_ffff_ffff_ffff => Some(Epoch(number)),
            _ => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch after this one; none after the last.
    pub const fn next(self) -> Option<Self> {
        Epoch::new(self.0 + 1)
    }
}

/// A member of the hub: the first eight bytes of its public key's BLAKE2s-256. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

impl MemberId {
    /// That of a public key.
    pub fn of(key: &PublicKey) -> Self {
        MemberId(name(&key.0))
    }
}

fn name(of: &[u8]) -> u64 {
    Blake2s256::digest(of).first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// A peer, the same to all members: the first eight bytes of its public key's BLAKE2s-256. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerTag(pub u64);

impl PeerTag {
    /// That of a public key.
    pub fn of(key: &PublicKey) -> Self {
        PeerTag(name(&key.0))
    }

    /// One for a peer whose key nobody knows yet, by what it is called.
    pub fn of_name(called: &str) -> Self {
        PeerTag(name(called.as_bytes()))
    }
}

/// A member's clock when it wrote: the peer echoes it, and the member alone reads it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stamp(pub Time);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_end_where_the_wire_ends() {
        assert_eq!((Epoch::new(0), Epoch::new(1)), (None, Some(Epoch::FIRST)));
        assert_eq!(Epoch::new(Epoch::LAST.get() + 1), None);
        assert_eq!(Epoch::LAST.next(), None);
        assert!(Epoch::FIRST.next() > Some(Epoch::FIRST));
    }
}
