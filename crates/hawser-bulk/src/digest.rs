//! A file's digest: SHA-256 (FIPS 180-4) of the SHA-256 of every block, in order.
//!
//! A tree of two levels: blocks are hashed as they are read and written, in any order, by several threads, and what a
//! broken transfer left is checked block by block.

use std::fmt;

use ring::digest::{Context, SHA256, digest};

/// Bytes of a digest.
pub const DIGEST_LEN: usize = 32;

/// A SHA-256. All zeroes, by default, stand for a block that is missing: nothing is known that hashes to them. Plain
/// data.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct Digest(pub [u8; DIGEST_LEN]);

impl Digest {
    /// Of a block.
    pub fn of_block(block: &[u8]) -> Digest {
        let mut bytes = [0; DIGEST_LEN];
        bytes.copy_from_slice(digest(&SHA256, block).as_ref());
        Digest(bytes)
    }

    /// Of a file, whose blocks have these.
    pub fn of_file<'d>(blocks: impl IntoIterator<Item = &'d Digest>) -> Digest {
        let mut context = Context::new(&SHA256);
        blocks.into_iter().for_each(|block| context.update(&block.0));
        let mut bytes = [0; DIGEST_LEN];
        bytes.copy_from_slice(context.finish().as_ref());
        Digest(bytes)
    }

    /// Whether it stands for a block that is missing.
    pub fn is_missing(&self) -> bool {
        *self == Digest::default()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf abc | sha256sum`, and the same over its 32 bytes.
    #[test]
    fn a_file_of_one_block_has_the_hash_of_its_hash() {
        let block = Digest::of_block(b"abc");
        assert_eq!(block.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            Digest::of_file([&block]).to_string(),
            "4f8b42c22dd3729b519ba6f68d2da7cc5b2d606d05daed5ad5128cc03e6c6358"
        );
        assert_eq!(Digest::of_file([]), Digest::of_block(b""));
        assert!(Digest::default().is_missing() && !block.is_missing());
    }
}
