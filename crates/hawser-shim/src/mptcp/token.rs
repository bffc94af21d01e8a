//! Keys of MPTCP connections, and the tokens that name them.

use std::fmt;

use ring::digest::{SHA256, digest};

/// Bytes of a key (RFC 8684 section 3.1).
pub const KEY_BYTES: usize = 8;

/// The key of one end of a connection; said in clear when the connection begins.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(pub [u8; KEY_BYTES]);

/// Names a connection at the end whose key it is made of.
/// Zero is one of its values. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u32);

impl Key {
    /// The first 32 bits of the key's SHA-256 (RFC 8684 section 3.2).
    pub fn token(self) -> Token {
        let hash = digest(&SHA256, &self.0);
        Token(hash.as_ref().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_beginning_of_the_keys_hash() {
        // SHA-256 of eight zero bytes, as sha256sum tells it: af5570f5…
        assert_eq!(Key([0; 8]).token(), Token(0xaf55_70f5));
        assert_eq!(Token(0xaf).to_string(), "000000af");
    }
}
