//! The payload of both handshake messages: what a side can and wishes, and what was chosen.
//!
//! ```text
//! version 1 | protection 1 | ciphers 1 | chosen 1 | instance 8 (with what is spoken) | freshness 12 (zero in a response)
//! ```

use super::{Reader, Version, WireError};

/// The version of the protocol that this code speaks.
const VERSION: u8 = 1;
/// Bytes that are an initiation's freshness, and zero here.
const RESERVED_LEN: usize = 12;

/// What is done to inner packets. The stricter wish of two sides wins. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Protection {
    /// In clear, but nobody can change them.
    Authenticate,
    /// Nobody else can read or change them.
    #[default]
    Encrypt,
}

impl Protection {
    /// Its number on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Protection::Encrypt => 0,
            Protection::Authenticate => 1,
        }
    }

    /// Its name, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Protection::Encrypt => "encrypt",
            Protection::Authenticate => "authenticate",
        }
    }

    /// The stricter of two wishes.
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The cipher of data datagrams. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cipher {
    /// AES-128-GCM (RFC 5116 section 5.1).
    Aes128Gcm = 0,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305 = 1,
    /// Keyed BLAKE2s-128 (RFC 7693): authenticates, and cannot encrypt.
    Blake2s = 2,
}

impl Cipher {
    /// Its name, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Cipher::Aes128Gcm => "aes-128-gcm",
            Cipher::ChaCha20Poly1305 => "chacha20-poly1305",
            Cipher::Blake2s => "blake2s",
        }
    }

    /// Whether it can do what is wished.
    pub fn can(self, protection: Protection) -> bool {
        self != Cipher::Blake2s || protection == Protection::Authenticate
    }
}

/// A set of ciphers. Empty by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CipherSet(u8);

impl CipherSet {
    /// No cipher: the instance says what is spoken.
    const SAYS_VERSION: u8 = 1 << 7;
    /// The ones that this version knows, best first.
    const KNOWN: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305, Cipher::Blake2s];

    /// A set of these.
    pub fn of(ciphers: &[Cipher]) -> Self {
        CipherSet(ciphers.iter().fold(0, |bits, cipher| bits | 1 << *cipher as u8))
    }

    /// The ones that encrypt, for a machine: AES-128-GCM only where it `has_aes` instructions.
    pub fn for_machine(has_aes: bool) -> Self {
        let chacha = Self::of(&[Cipher::ChaCha20Poly1305]);
        if has_aes { chacha.with(Cipher::Aes128Gcm) } else { chacha }
    }

    /// This set and one more.
    #[must_use]
    pub fn with(self, cipher: Cipher) -> Self {
        CipherSet(self.0 | 1 << cipher as u8)
    }

    /// Whether the cipher is in the set.
    pub fn contains(self, cipher: Cipher) -> bool {
        self.0 & 1 << cipher as u8 != 0
    }

    /// The best cipher of both sets that can do what is wished: AES-128-GCM where both have it.
    pub fn best_common(self, other: Self, protection: Protection) -> Option<Cipher> {
        let common = |cipher: &Cipher| self.contains(*cipher) && other.contains(*cipher);
        Self::KNOWN.into_iter().filter(common).find(|cipher| cipher.can(protection))
    }
}

/// Random, made when a portal starts: the same one means new keys for a live session. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId(pub u64);

/// What a side can and wishes. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// What it wishes at least.
    pub protection: Protection,
    /// What it can.
    pub ciphers: CipherSet,
    /// Which start of the portal this is.
    pub instance: InstanceId,
}

impl Offer {
    /// Bytes of the payload.
    pub const LEN: usize = 24;

    /// The same, of a portal that speaks `version`.
    #[must_use]
    pub fn speaking(self, version: Version) -> Self {
        let ciphers = CipherSet(self.ciphers.0 | CipherSet::SAYS_VERSION);
        Offer { ciphers, instance: InstanceId(version.put(self.instance.0)), ..self }
    }

    /// The same; if it says nothing of what is spoken, it says our version.
    #[must_use]
    pub fn spoken(self) -> Self {
        if self.says_version() { self } else { self.speaking(Version::OURS) }
    }

    /// The same of another start of the portal.
    #[must_use]
    pub fn started_as(self, instance: InstanceId) -> Self {
        let other = Offer { instance, ..self };
        if self.says_version() { other.speaking(self.version()) } else { other }
    }

    /// What its portal speaks.
    pub fn version(&self) -> Version {
        if self.says_version() { Version::take(self.instance.0) } else { Version::UNSAID }
    }

    fn says_version(&self) -> bool {
        self.ciphers.0 & CipherSet::SAYS_VERSION != 0
    }

    /// The payload: in a response with the cipher that was chosen, in an initiation with none.
    pub fn encode(&self, chosen: Option<Cipher>) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0] = VERSION;
        out[1] = self.protection.code();
        out[2] = self.ciphers.0;
        out[3] = chosen.map_or(0, |cipher| cipher as u8);
        out[4..12].copy_from_slice(&self.instance.0.to_be_bytes());
        out
    }

    /// Reads a payload. An initiation has no choice: its `chosen` byte is zero, as AES-128-GCM's.
    ///
    /// # Errors
    /// [`WireError`] for another version, a number that this version does not know, a reserved byte
    /// or another length. Ciphers that this version does not know are not an error.
    pub fn decode(payload: &[u8]) -> Result<(Self, Cipher), WireError> {
        let mut from = Reader::new(payload);
        if from.u8()? != VERSION {
            return Err(WireError::OutOfRange);
        }
        let protection = match from.u8()? {
            0 => Protection::Encrypt,
            1 => Protection::Authenticate,
            _ => return Err(WireError::OutOfRange),
        };
        let ciphers = CipherSet(from.u8()?);
        let chosen = match from.u8()? {
            0 => Cipher::Aes128Gcm,
            1 => Cipher::ChaCha20Poly1305,
            2 => Cipher::Blake2s,
            _ => return Err(WireError::OutOfRange),
        };
        let instance = InstanceId(from.u64()?);
        if *from.array()? != [0; RESERVED_LEN] {
            return Err(WireError::Reserved);
        }
        from.finish()?;
        Ok((Offer { protection, ciphers, instance }, chosen))
    }
}
