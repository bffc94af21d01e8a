//! The keys of data datagrams: sealing, opening, labels.
//!
//! 1. The handshake's split gives a secret for each direction; HKDF-SHA-256 (RFC 5869) makes a key,
//!    an IV and a label key of it, bound to the transcript, the cipher and the protection.
//! 2. The nonce is (path id, packet number) XOR the IV: no pair may come twice under one key.
//! 3. To encrypt, the header is associated data and the frames are sealed; to authenticate, header
//!    and frames are both associated data. The tag is the last 16 bytes. BLAKE2s only authenticates:
//!    its tag is a mac over nonce, header and frames.

use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use snow::HandshakeState;
use std::sync::Arc;
use zeroize::Zeroizing;

use super::mac::{keyed, verify};
use super::secrets::{IV_LEN, KeySecrets, SessionSecrets};
use crate::units::{PacketNumber, PathId};
use crate::wire::handshake::KEY_LEN;
use crate::wire::{Cipher, DATA_HEADER_LEN, Label, Protection, TAG_LEN};

/// What HKDF makes, by its info label.
const KEY_INFO: &[u8] = b"hawser 1 key";
const IV_INFO: &[u8] = b"hawser 1 iv";
const LABEL_INFO: &[u8] = b"hawser 1 label";

/// Why nothing was sealed. Not constructed by hand; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SealError {
    /// The buffer does not hold header, frames and tag, exactly.
    #[error("seal: buffer has the wrong length")]
    Length,
    /// The cipher refused, which does not happen below 64 GiB.
    #[error("seal: cipher failed")]
    Cipher,
}

/// Why nothing was opened. Not constructed by hand; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// Shorter than header and tag.
    #[error("open: datagram too short")]
    TooShort,
    /// The frames do not fit where they should go.
    #[error("open: no room for the frames")]
    NoRoom,
    /// Not sealed with this key for this path and number, or changed since.
    #[error("open: datagram unauthentic")]
    Unauthentic,
}

/// Which end of the handshake one is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Initiator,
    Responder,
}

/// The keys of a session's two directions. No zero value; erased when dropped.
#[derive(Debug)]
pub struct TransportKeys {
    /// Seals what is sent.
    pub send: Arc<SealKey>,
    /// Opens what is received.
    pub recv: Arc<OpenKey>,
}

impl TransportKeys {
    /// What they do to inner packets, and by which cipher.
    pub fn kind(&self) -> (Protection, Cipher) {
        (self.send.0.secrets.protection, self.send.0.secrets.cipher)
    }

    /// Makes the keys of a finished handshake.
    pub(super) fn derive(side: Side, noise: &mut HandshakeState, cipher: Cipher, protection: Protection) -> Self {
        let (to_responder, to_initiator) = noise.dangerously_get_raw_split();
        let (to_responder, to_initiator) = (Zeroizing::new(to_responder), Zeroizing::new(to_initiator));
        let transcript = noise.get_handshake_hash();
        let (send, recv) = match side {
            Side::Initiator => (to_responder, to_initiator),
            Side::Responder => (to_initiator, to_responder),
        };
        TransportKeys {
            send: Arc::new(SealKey(Keys::derive(&send, transcript, cipher, protection))),
            recv: Arc::new(OpenKey(Keys::derive(&recv, transcript, cipher, protection))),
        }
    }

    /// What they are made of: for a key log.
    pub fn secrets(&self) -> SessionSecrets {
        SessionSecrets { sent: self.send.0.secrets.clone(), received: self.recv.0.secrets.clone() }
    }
}

/// Seals the datagrams of one direction. No zero value; share it between threads.
#[derive(Debug)]
pub struct SealKey(Keys);

impl SealKey {
    /// The key that these secrets make.
    pub fn new(secrets: &KeySecrets) -> Self {
        SealKey(Keys::new(secrets.clone()))
    }

    /// The label of a path's datagrams.
    pub fn label(&self, path: PathId) -> Label {
        self.0.label(path)
    }

    /// Seals in place. `datagram` is the header, the frames, and room for the tag.
    ///
    /// # Errors
    /// [`SealError::Length`] where it is shorter than header and tag.
    pub fn seal(&self, path: PathId, number: PacketNumber, datagram: &mut [u8]) -> Result<(), SealError> {
        let (covered, tag_room) = datagram.split_last_chunk_mut::<TAG_LEN>().ok_or(SealError::Length)?;
        let (header, frames) = covered.split_at_mut_checked(DATA_HEADER_LEN).ok_or(SealError::Length)?;
        let nonce = self.0.nonce(path, number);
        let tag = match &self.0.lock {
            Lock::Encrypt(aead) => aead.seal_in_place_separate_tag(nonce, Aad::from(&*header), frames),
            Lock::Authenticate(aead) => aead.seal_in_place_separate_tag(nonce, Aad::from(&*covered), &mut []),
            Lock::Mac(key) => {
                *tag_room = keyed(key, &[nonce.as_ref(), covered]);
                return Ok(());
            }
        };
        tag_room.copy_from_slice(tag.map_err(|_| SealError::Cipher)?.as_ref());
        Ok(())
    }

    /// Seals what lies elsewhere. `datagram` is the header and the head of the frames (`head_len` bytes
    /// together, written), then room for exactly `body`, which ends the last frame, and the tag.
    ///
    /// # Errors
    /// [`SealError::Length`] where the lengths do not add up.
    pub fn seal_from(
        &self,
        path: PathId,
        number: PacketNumber,
        datagram: &mut [u8],
        head_len: usize,
        body: &[u8],
    ) -> Result<(), SealError> {
        place(datagram, head_len, body)?;
        self.seal(path, number, datagram)
    }
}

/// The first half of [`SealKey::seal_from`]: the body goes where it is sealed later.
///
/// # Errors
/// [`SealError::Length`] where the lengths do not add up.
pub(crate) fn place(datagram: &mut [u8], head_len: usize, body: &[u8]) -> Result<(), SealError> {
    if head_len < DATA_HEADER_LEN || datagram.len() != head_len + body.len() + TAG_LEN {
        return Err(SealError::Length);
    }
    datagram[head_len..][..body.len()].copy_from_slice(body);
    Ok(())
}

/// Opens the datagrams of one direction. No zero value; share it between threads.
#[derive(Debug)]
pub struct OpenKey(Keys);

impl OpenKey {
    /// The key that these secrets make.
    pub fn new(secrets: &KeySecrets) -> Self {
        OpenKey(Keys::new(secrets.clone()))
    }

    /// The label of a path's datagrams.
    pub fn label(&self, path: PathId) -> Label {
        self.0.label(path)
    }

    /// Opens a whole datagram in place, and gives its frames.
    ///
    /// # Errors
    /// [`OpenError`]; the datagram's bytes are then of no use.
    pub fn open<'d>(&self, path: PathId, number: PacketNumber, datagram: &'d mut [u8]) -> Result<&'d [u8], OpenError> {
        let (covered, tag) = datagram.split_last_chunk_mut::<TAG_LEN>().ok_or(OpenError::TooShort)?;
        if covered.len() < DATA_HEADER_LEN {
            return Err(OpenError::TooShort);
        }
        let nonce = self.0.nonce(path, number);
        let opened = match &self.0.lock {
            Lock::Encrypt(aead) => {
                let (header, frames) = covered.split_at_mut(DATA_HEADER_LEN);
                aead.open_in_place_separate_tag(nonce, Aad::from(&*header), (*tag).into(), frames, 0..).is_ok()
            }
            lock => lock.verifies(nonce, covered, tag),
        };
        if !opened {
            return Err(OpenError::Unauthentic);
        }
        Ok(&covered[DATA_HEADER_LEN..])
    }

    /// Opens a whole datagram into `out`, and tells how many bytes of frames are there.
    ///
    /// # Errors
    /// [`OpenError`]; the bytes of `out` are then of no use.
    pub fn open_into(
        &self,
        path: PathId,
        number: PacketNumber,
        datagram: &[u8],
        out: &mut [u8],
    ) -> Result<usize, OpenError> {
        let (covered, tag) = datagram.split_last_chunk::<TAG_LEN>().ok_or(OpenError::TooShort)?;
        let (header, frames) = covered.split_at_checked(DATA_HEADER_LEN).ok_or(OpenError::TooShort)?;
        let out = out.get_mut(..frames.len()).ok_or(OpenError::NoRoom)?;
        let nonce = self.0.nonce(path, number);
        out.copy_from_slice(frames);
        let opened = match &self.0.lock {
            Lock::Encrypt(aead) => {
                aead.open_in_place_separate_tag(nonce, Aad::from(header), (*tag).into(), out, 0..).is_ok()
            }
            lock => lock.verifies(nonce, covered, tag),
        };
        if opened { Ok(frames.len()) } else { Err(OpenError::Unauthentic) }
    }
}

/// What protects a datagram, with its key. No zero value; share it between threads.
enum Lock {
    /// The cipher hides the frames.
    Encrypt(LessSafeKey),
    /// The cipher's tag is over all that stands in clear.
    Authenticate(LessSafeKey),
    /// So is keyed BLAKE2s-128.
    Mac(Zeroizing<Vec<u8>>),
}

impl Lock {
    /// For what HKDF made.
    fn new(secrets: &KeySecrets) -> Self {
        let algorithm = match secrets.cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Cipher::Blake2s => return Lock::Mac(secrets.key.clone()),
        };
        let key = UnboundKey::new(algorithm, &secrets.key).expect("the key has the cipher's length");
        match secrets.protection {
            Protection::Encrypt => Lock::Encrypt(LessSafeKey::new(key)),
            Protection::Authenticate => Lock::Authenticate(LessSafeKey::new(key)),
        }
    }

    /// Whether the tag is right for what stands in clear; takes the same time for every wrong one. Never for what is
    /// hidden.
    fn verifies(&self, nonce: Nonce, covered: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        match self {
            Lock::Encrypt(_) => false,
            Lock::Authenticate(aead) => {
                aead.open_in_place_separate_tag(nonce, Aad::from(covered), (*tag).into(), &mut [], 0..).is_ok()
            }
            Lock::Mac(key) => verify(key, &[nonce.as_ref(), covered], tag),
        }
    }
}

/// What both directions have in common. The secrets stay: the cipher's own state holds as much.
struct Keys {
    lock: Lock,
    secrets: KeySecrets,
}

impl Keys {
    fn derive(secret: &[u8; KEY_LEN], transcript: &[u8], cipher: Cipher, protection: Protection) -> Self {
        let root = Salt::new(HKDF_SHA256, transcript).extract(secret);
        let key = Zeroizing::new(vec![0; key_len(cipher)]);
        let mut secrets = KeySecrets { cipher, protection, key, iv: [0; IV_LEN], label_key: [0; KEY_LEN] };
        let kind = [cipher as u8, protection.code()];
        expand(&root, KEY_INFO, kind, &mut secrets.key);
        expand(&root, IV_INFO, kind, &mut secrets.iv);
        expand(&root, LABEL_INFO, kind, &mut secrets.label_key);
        Keys::new(secrets)
    }

    fn new(secrets: KeySecrets) -> Self {
        Keys { lock: Lock::new(&secrets), secrets }
    }

    /// Step 2.
    fn nonce(&self, path: PathId, number: PacketNumber) -> Nonce {
        let mut nonce = self.secrets.iv;
        let name = path.0.to_be_bytes().into_iter().chain(number.0.to_be_bytes());
        nonce.iter_mut().zip(name).for_each(|(byte, name)| *byte ^= name);
        Nonce::assume_unique_for_key(nonce)
    }

    fn label(&self, path: PathId) -> Label {
        let [b0, b1, b2, b3, ..] = keyed(&self.secrets.label_key, &[&path.0.to_be_bytes()]);
        Label(u32::from_be_bytes([b0, b1, b2, b3]))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// Bytes of a key: what the cipher asks for, and as many as BLAKE2s takes (RFC 7693 section 2.1).
pub(super) fn key_len(cipher: Cipher) -> usize {
    match cipher {
        Cipher::Aes128Gcm => AES_128_GCM.key_len(),
        Cipher::ChaCha20Poly1305 => CHACHA20_POLY1305.key_len(),
        Cipher::Blake2s => KEY_LEN,
    }
}

/// A length in bytes, as HKDF asks for it.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Fills `out` from `root` (RFC 5869 section 2.3).
fn expand(root: &Prk, label: &[u8], kind: [u8; 2], out: &mut [u8]) {
    root.expand(&[label, &kind], Length(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("at most 32 bytes are asked for, far below HKDF's 255 blocks");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector was made from docs/wire.md by other means (Python's hmac and hashlib), not by this code.
    #[test]
    fn keyed_blake2s_has_its_golden_bytes() {
        let keys = || Keys::derive(&[1; KEY_LEN], &[2; 32], Cipher::Blake2s, Protection::Authenticate);
        let (path, number) = (PathId(5), PacketNumber(1 << 40 | 7));
        let mut datagram = [&[0x40; DATA_HEADER_LEN], &b"frames"[..], &[0; TAG_LEN]].concat();
        SealKey(keys()).seal(path, number, &mut datagram).expect("room");
        let tag: String = datagram[DATA_HEADER_LEN + 6..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(tag, "50fe9f459d10662205b6411011d2741e");
        assert_eq!(OpenKey(keys()).open(path, number, &mut datagram), Ok(&b"frames"[..]));
        assert_eq!(SealKey(keys()).label(path), Label(0x14f06c9b));
    }
}
