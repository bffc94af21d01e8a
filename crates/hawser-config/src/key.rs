//! Keys: 32 bytes, written in base64 as WireGuard writes them.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x25519_dalek::{PublicKey as X25519Public, StaticSecret};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a key of any kind (RFC 7748 section 6.1; a preshared key is as long, Noise section 9).
pub const KEY_BYTES: usize = 32;
/// Mode bits that let others than the owner read, write or execute a file.
const OTHERS: u32 = 0o077;
/// A key file holds one line of 44 characters; anything longer than this is another file. Bytes.
const KEY_FILE_LIMIT: u64 = 4096;

/// Why text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is nothing but white space.
    #[error("the key is empty")]
    Empty,
    /// It is not base64.
    #[error("the key is not base64")]
    NotBase64,
    /// It is base64 of too much or too little.
    #[error("the key has {0} bytes instead of 32")]
    WrongLength(usize),
    /// All bits are zero: nobody's key.
    #[error("the key is all zeroes")]
    Zero,
}

/// Why a key file was not read.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file could not be read, as the system said.
    #[error("read key {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// Others than the owner have access, by these permission bits.
    #[error("read key {}: mode {:04o} lets others in", .0.display(), .1)]
    Exposed(PathBuf, u32),
    /// Somebody else than the user who reads it, or root, may change it.
    #[error("read key {}: it belongs to user {owner}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who reads it.
        reader: u32,
    },
    /// Not a regular file.
    #[error("read key {}: not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file does not hold a key: what is wrong with its text.
    #[error("read key {}", .0.display())]
    Malformed(PathBuf, #[source] KeyError),
}

impl KeyFileError {
    /// Whether the file is missing or not ours to read, rather than wrong.
    pub fn is_out_of_reach(&self) -> bool {
        use io::ErrorKind::{NotFound, PermissionDenied};
        matches!(self, Self::Read(_, source) if matches!(source.kind(), NotFound | PermissionDenied))
    }

    /// What to do about it, with the command where there is one.
    pub fn hint(&self) -> String {
        match self {
            Self::Read(path, source) if source.kind() == io::ErrorKind::NotFound => {
                format!("make one: (umask 077; hawser genkey > {})", path.display())
            }
            Self::Read(..) => "run as the user who owns the file".to_owned(),
            Self::Exposed(path, _) => format!("chmod 600 {}", path.display()),
            Self::Foreign { path, reader, .. } => format!("chown {reader} {}", path.display()),
            Self::NotAFile(_) | Self::Malformed(..) => {
                "the file must hold one line, as printed by `hawser genkey`".to_owned()
            }
        }
    }
}

/// A portal's public key. Any 32 bytes but zeroes; plain data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Reads base64.
    ///
    /// # Errors
    /// [`KeyError`] where `text` is not base64 of 32 bytes, or all zeroes.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        decode(text).map(|bytes| Self(*bytes))
    }

    /// The key of these bytes.
    ///
    /// # Errors
    /// [`KeyError::Zero`] where all are.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Result<Self, KeyError> {
        if bytes == [0; KEY_BYTES] { Err(KeyError::Zero) } else { Ok(Self(bytes)) }
    }

    /// The raw key.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Secrets of 32 bytes: wiped when dropped, never shown by `Debug`.
macro_rules! secrets {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Zeroize, ZeroizeOnDrop)]
        pub struct $name([u8; KEY_BYTES]);

        impl $name {
            /// Reads the key in `path`, as `hawser genkey` writes it.
            ///
            /// # Errors
            /// [`KeyFileError`] where the file cannot be read, others have access to it, or it holds no key.
            pub fn load(path: &Path) -> Result<Self, KeyFileError> {
                load(path).map(|bytes| Self(*bytes))
            }

            /// The raw key: do not keep a copy.
            pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    )+};
}

secrets! {
    /// A portal's private key. Wiped when dropped; never shown by `Debug`.
    PrivateKey,
    /// A key both portals hold beside their own (Noise psk2). Wiped when dropped; never shown by `Debug`.
    PresharedKey,
}

impl PrivateKey {
    /// A new key from the system's random source, clamped as RFC 7748 section 5 says.
    ///
    /// # Errors
    /// Where the system has no randomness.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes).map_err(|_| io::Error::other("no randomness from the system"))?;
        bytes[0] &= 0b1111_1000;
        bytes[KEY_BYTES - 1] = bytes[KEY_BYTES - 1] & 0b0111_1111 | 0b0100_0000;
        Ok(Self(*bytes))
    }

    /// Reads base64.
    ///
    /// # Errors
    /// [`KeyError`] where `text` is not base64 of 32 bytes, or all zeroes.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        decode(text).map(|bytes| Self(*bytes))
    }

    /// The public key that belongs to it (RFC 7748 section 6.1).
    pub fn public(&self) -> PublicKey {
        PublicKey(*X25519Public::from(&StaticSecret::from(self.0)).as_bytes())
    }

    /// Base64, wiped when dropped.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0))
    }
}

/// Opens a file without waiting: else the call would wait for a FIFO's other end.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Opens, checks the opened file's mode and owner (not the path's, which may change meanwhile), reads, decodes.
fn load(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, KeyFileError> {
    let failed = |source| KeyFileError::Read(path.to_owned(), source);
    let file = open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(KeyFileError::NotAFile(path.to_owned()));
    }
    if meta.mode() & OTHERS != 0 {
        return Err(KeyFileError::Exposed(path.to_owned(), meta.mode() & 0o7777));
    }
    let reader = rustix::process::geteuid().as_raw();
    if meta.uid() != 0 && meta.uid() != reader {
        return Err(KeyFileError::Foreign { path: path.to_owned(), owner: meta.uid(), reader });
    }
    // Room for all of it, so that growing leaves no unwiped copy behind.
    let mut text = Zeroizing::new(Vec::with_capacity(KEY_FILE_LIMIT as usize + 1));
    file.take(KEY_FILE_LIMIT).read_to_end(&mut text).map_err(failed)?;
    let text = std::str::from_utf8(&text).map_err(|_| KeyError::NotBase64);
    text.and_then(decode).map_err(|source| KeyFileError::Malformed(path.to_owned(), source))
}

fn decode(text: &str) -> Result<Zeroizing<[u8; KEY_BYTES]>, KeyError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(KeyError::Empty);
    }
    let bytes = Zeroizing::new(STANDARD.decode(text).map_err(|_| KeyError::NotBase64)?);
    let key: [u8; KEY_BYTES] = bytes.as_slice().try_into().map_err(|_| KeyError::WrongLength(bytes.len()))?;
    let key = Zeroizing::new(key);
    if *key == [0; KEY_BYTES] { Err(KeyError::Zero) } else { Ok(key) }
}
