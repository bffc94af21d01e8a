//! The secrets of a key set, and the line of a key log that tells them to who reads a capture.
//!
//! 1. A direction's secrets ([`KeySecrets`]) are what its keys are made of. 2. The endpoint hands out both directions'
//!    ([`SessionSecrets`]) only after `Endpoint::tell_keys`. 3. [`KeyLogEntry`] writes and reads them as a line of
//!    text:
//!
//! ```text
//! hawser-keys-1 PEER new|next CIPHER PROTECTION sent KEY IV LABEL-KEY received KEY IV LABEL-KEY
//! ```
//!
//! `PEER` is what the portal calls the peer, `new` begins a session and `next` goes on with it; the secrets are
//! hexadecimal. `sent` is what the portal that wrote the line seals, `received` what it opens.

use std::fmt::{self, Write as _};
use std::str::{FromStr, SplitAsciiWhitespace};

use zeroize::{Zeroize, Zeroizing};

use super::keys::key_len;
use crate::wire::handshake::KEY_LEN;
use crate::wire::{Cipher, Protection};

/// Bytes of an IV (RFC 5116 section 5.1, RFC 8439 section 2.8).
pub const IV_LEN: usize = 12;
/// How a line begins; the number is the format's version.
const MAGIC: &str = "hawser-keys-1";
/// Every cipher and protection, to be found by its name.
const CIPHERS: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305, Cipher::Blake2s];
const PROTECTIONS: [Protection; 2] = [Protection::Encrypt, Protection::Authenticate];
/// What begins a comment.
const COMMENT: char = '#';

/// What the keys of one direction are made of. No zero value; erased when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecrets {
    pub(super) cipher: Cipher,
    pub(super) protection: Protection,
    /// As long as the cipher's keys are.
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) iv: [u8; IV_LEN],
    pub(super) label_key: [u8; KEY_LEN],
}

impl KeySecrets {
    /// What is done to the frames.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    /// What seals them.
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Appends `KEY IV LABEL-KEY`.
    fn write(&self, line: &mut String) {
        for secret in [&**self.key, &self.iv, &self.label_key] {
            line.push(' ');
            for byte in secret {
                // Writing to a String does not fail.
                let _ = write!(line, "{byte:02x}");
            }
        }
    }

    /// Reads `DIRECTION KEY IV LABEL-KEY`.
    fn read(
        direction: &'static str,
        words: &mut SplitAsciiWhitespace<'_>,
        cipher: Cipher,
        protection: Protection,
    ) -> Result<Self, KeyLogError> {
        let mut word = || words.next().ok_or(KeyLogError::Short);
        if word()? != direction {
            return Err(KeyLogError::Direction(direction));
        }
        let key = hex(word()?).filter(|key| key.len() == key_len(cipher)).ok_or(KeyLogError::Key)?;
        let mut secrets = KeySecrets { cipher, protection, key, iv: [0; IV_LEN], label_key: [0; KEY_LEN] };
        let iv = hex(word()?).filter(|iv| iv.len() == IV_LEN).ok_or(KeyLogError::Iv)?;
        secrets.iv.copy_from_slice(&iv);
        let label = hex(word()?).filter(|label| label.len() == KEY_LEN).ok_or(KeyLogError::LabelKey)?;
        secrets.label_key.copy_from_slice(&label);
        Ok(secrets)
    }
}

impl Drop for KeySecrets {
    fn drop(&mut self) {
        self.iv.zeroize();
        self.label_key.zeroize();
    }
}

impl fmt::Debug for KeySecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySecrets")
            .field("cipher", &self.cipher)
            .field("protection", &self.protection)
            .finish_non_exhaustive()
    }
}

/// The secrets of both directions of a key set. No zero value; erased when dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionSecrets {
    /// Of what this portal seals.
    pub sent: KeySecrets,
    /// Of what it opens.
    pub received: KeySecrets,
}

/// A line of a key log. No zero value; erased when dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyLogEntry {
    /// What the portal calls the peer; without white space.
    pub peer: String,
    /// They begin a session; else they go on with the peer's last one.
    pub new: bool,
    /// The secrets.
    pub secrets: SessionSecrets,
}

/// Why a line is none of a key log. Not constructed by hand; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyLogError {
    /// It begins otherwise.
    #[error("read key log: a line begins with `{MAGIC}`")]
    Magic,
    /// It ends too early.
    #[error("read key log: the line is cut short")]
    Short,
    /// Neither `new` nor `next`.
    #[error("read key log: after the peer stands `new` or `next`")]
    New,
    /// A cipher that this version does not know.
    #[error("read key log: unknown cipher")]
    Cipher,
    /// A protection that this version does not know.
    #[error("read key log: protection is `encrypt` or `authenticate`")]
    Protection,
    /// Another word in the place of a direction.
    #[error("read key log: `{0}` is missing")]
    Direction(&'static str),
    /// Not hexadecimal, or not of the cipher's length.
    #[error("read key log: a key has not the length of its cipher's, in hexadecimal")]
    Key,
    /// Not hexadecimal, or of another length.
    #[error("read key log: an iv is {IV_LEN} bytes in hexadecimal")]
    Iv,
    /// Not hexadecimal, or of another length.
    #[error("read key log: a label key is {KEY_LEN} bytes in hexadecimal")]
    LabelKey,
    /// More than there should be.
    #[error("read key log: words after the end of the line")]
    Trailing,
}

impl KeyLogEntry {
    /// The line, with its end.
    pub fn line(&self) -> Zeroizing<String> {
        let SessionSecrets { sent, received } = &self.secrets;
        // Reserved at once: a String that grows leaves copies behind.
        let mut line = Zeroizing::new(String::with_capacity(LINE_ROOM + self.peer.len()));
        let new = if self.new { "new" } else { "next" };
        let (cipher, protection) = (sent.cipher.name(), sent.protection.name());
        // Writing to a String does not fail.
        let _ = write!(line, "{MAGIC} {} {new} {cipher} {protection} sent", self.peer);
        sent.write(&mut line);
        line.push_str(" received");
        received.write(&mut line);
        line.push('\n');
        line
    }

    /// The entries of a key log, each with its line's number from 1; empty lines and comments are left out.
    pub fn read_all(text: &str) -> impl Iterator<Item = (usize, Result<KeyLogEntry, KeyLogError>)> + '_ {
        let lines = (1..).zip(text.lines().map(str::trim));
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(COMMENT)).map(|(at, line)| (at, line.parse()))
    }
}

/// A line without its peer's name: words, and both directions' secrets with the longest key.
const LINE_ROOM: usize = 128 + 4 * (KEY_LEN + IV_LEN + KEY_LEN);

impl FromStr for KeyLogEntry {
    type Err = KeyLogError;

    fn from_str(line: &str) -> Result<Self, KeyLogError> {
        let mut words = line.split_ascii_whitespace();
        let mut word = || words.next().ok_or(KeyLogError::Short);
        if word()? != MAGIC {
            return Err(KeyLogError::Magic);
        }
        let peer = word()?.to_owned();
        let new = match word()? {
            "new" => true,
            "next" => false,
            _ => return Err(KeyLogError::New),
        };
        let cipher = named(&CIPHERS, Cipher::name, word()?).ok_or(KeyLogError::Cipher)?;
        let protection = named(&PROTECTIONS, Protection::name, word()?).ok_or(KeyLogError::Protection)?;
        let sent = KeySecrets::read("sent", &mut words, cipher, protection)?;
        let received = KeySecrets::read("received", &mut words, cipher, protection)?;
        match words.next() {
            None => Ok(KeyLogEntry { peer, new, secrets: SessionSecrets { sent, received } }),
            Some(_) => Err(KeyLogError::Trailing),
        }
    }
}

/// The bytes of hexadecimal text.
fn hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    odd.is_empty().then(|| pairs.iter().map(byte).collect::<Option<Vec<u8>>>()).flatten().map(Zeroizing::new)
}

/// The one that is called so.
fn named<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str) -> Option<T> {
    all.iter().copied().find(|one| name_of(*one) == name)
}
