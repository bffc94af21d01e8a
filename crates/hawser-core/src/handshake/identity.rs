//! Who a portal is, and whom it knows.

use std::fmt;

use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use crate::wire::handshake::KEY_LEN;

/// A portal's public key (RFC 7748 section 5), by which its peers know it. Any 32 bytes; a plain
/// value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PublicKey(pub [u8; KEY_LEN]);

/// A key that two portals share beforehand, or zero where none is set. Zero by default; erased when
/// dropped.
#[derive(Clone, Default)]
pub struct Psk(Zeroizing<[u8; KEY_LEN]>);

impl Psk {
    /// The key of these bytes.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Psk(Zeroizing::new(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

/// A portal's private key with its public one. No zero value; the private key is erased when
/// dropped.
#[derive(Clone)]
pub struct Identity {
    private: Zeroizing<[u8; KEY_LEN]>,
    public: PublicKey,
}

impl Identity {
    /// From a private key: 32 uniformly random bytes (RFC 7748 section 5 clamps them).
    pub fn new(private: [u8; KEY_LEN]) -> Self {
        let secret = StaticSecret::from(private);
        let public = PublicKey(x25519_dalek::PublicKey::from(&secret).to_bytes());
        Identity { private: Zeroizing::new(private), public }
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) fn private(&self) -> &[u8; KEY_LEN] {
        &self.private
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(secret)")
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}
