//! What is checked before any costly work: mac1, mac2 and the cookie.

use std::net::{IpAddr, SocketAddr};

use blake2::digest::consts::U16;
use blake2::digest::{Digest, Mac};
use blake2::{Blake2s256, Blake2sMac};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::identity::PublicKey;
use crate::wire::handshake::{INITIATION_LEN, KEY_LEN, MAC_LEN, SALT_LEN};
use crate::wire::{Freshness, TAG_LEN};

/// Sets the key of mac1 apart from every other hash.
const MAC1_LABEL: &[u8] = b"hawser mac1";
/// Sets the key of an enrolment's mac1 apart from every other hash.
pub(super) const ENROLMENT_LABEL: &[u8] = b"hawser enrolment mac1";
/// Sets the key that seals a cookie apart from every other hash.
const COOKIE_LABEL: &[u8] = b"hawser cookie";
/// Sets an echo apart from mac2.
const ECHO_LABEL: &[u8] = b"hawser echo";
/// Where mac1 begins in an initiation: what it covers.
const MAC1_AT: usize = INITIATION_LEN - 2 * MAC_LEN;
/// Where mac2 begins in an initiation: what it covers.
const MAC2_AT: usize = INITIATION_LEN - MAC_LEN;

/// Keyed BLAKE2s with 16 bytes of output (RFC 7693 section 2.9).
type Blake2s128Mac = Blake2sMac<U16>;

/// A mac or a cookie.
pub(super) type MacBytes = [u8; MAC_LEN];

/// What a responder gave to an initiator under load; good for one address and about two minutes.
/// No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cookie(pub(super) MacBytes);

/// Keyed BLAKE2s-128 over `parts`, one after another.
pub(super) fn keyed(key: &[u8], parts: &[&[u8]]) -> MacBytes {
    mac_of(key, parts).finalize().into_bytes().into()
}

/// Whether `mac` is [`keyed`] over `parts`; takes the same time for every wrong one.
pub(super) fn verify(key: &[u8], parts: &[&[u8]], mac: &MacBytes) -> bool {
    mac_of(key, parts).verify(mac.into()).is_ok()
}

fn mac_of(key: &[u8], parts: &[&[u8]]) -> Blake2s128Mac {
    let mac = <Blake2s128Mac as Mac>::new_from_slice(key).expect("our keys have at most 32 bytes");
    parts.iter().fold(mac, |mac, part| mac.chain_update(part))
}

/// The key of mac1 of messages to one portal: known to all who know its public key, and its secret where it enrols. No
/// zero value; share it.
#[derive(Clone)]
pub(super) struct Mac1Key([u8; KEY_LEN]);

impl Mac1Key {
    /// For messages to `receiver`.
    pub(super) fn to(receiver: &PublicKey) -> Self {
        Mac1Key::of(MAC1_LABEL, receiver, &[])
    }

    /// For messages to `receiver` from who also knows `secret`.
    pub(super) fn of(label: &[u8], receiver: &PublicKey, secret: &[u8]) -> Self {
        let hash = Blake2s256::new().chain_update(label).chain_update(receiver.0).chain_update(secret);
        Mac1Key(hash.finalize().into())
    }

    /// Writes mac1 into the last but 16 of a message's bytes.
    pub(super) fn sign(&self, message: &mut [u8]) -> MacBytes {
        let (covered, macs) = message.split_at_mut(message.len() - 2 * MAC_LEN);
        let mac1 = keyed(&self.0, &[covered]);
        macs[..MAC_LEN].copy_from_slice(&mac1);
        mac1
    }

    /// Whether a message of known length holds the right mac1.
    pub(super) fn verify(&self, message: &[u8], mac1: &MacBytes) -> bool {
        verify(&self.0, &[&message[..message.len() - 2 * MAC_LEN]], mac1)
    }
}

impl Cookie {
    /// The cookie of an address, under the responder's secret.
    pub(super) fn of(secret: &[u8; KEY_LEN], from: SocketAddr) -> Self {
        let port = from.port().to_be_bytes();
        Cookie(match from.ip().to_canonical() {
            IpAddr::V4(ip) => keyed(secret, &[&ip.octets(), &port]),
            IpAddr::V6(ip) => keyed(secret, &[&ip.octets(), &port]),
        })
    }

    /// Writes mac2 into the last 16 bytes of an initiation that has its mac1.
    pub(super) fn sign(&self, initiation: &mut [u8; INITIATION_LEN]) {
        let mac2 = keyed(&self.0, &[&initiation[..MAC2_AT]]);
        initiation[MAC2_AT..].copy_from_slice(&mac2);
    }

    /// Whether an initiation's mac2 was made with this cookie.
    pub(super) fn verify(&self, initiation: &[u8; INITIATION_LEN]) -> bool {
        let (covered, mac2) = initiation.split_last_chunk().expect("longer than a mac");
        verify(&self.0, &[covered], mac2)
    }

    /// What an initiation says under its seal of having this cookie.
    pub(super) fn echo(&self) -> [u8; Freshness::ECHO_LEN] {
        *keyed(&self.0, &[ECHO_LABEL]).first_chunk().expect("a mac is longer")
    }

    /// The cookie, sealed by `responder` for whoever sent the message with that mac1.
    pub(super) fn seal(
        &self,
        responder: &PublicKey,
        salt: &[u8; SALT_LEN],
        mac1: &MacBytes,
    ) -> [u8; MAC_LEN + TAG_LEN] {
        let mut sealed = [0; MAC_LEN + TAG_LEN];
        let (cookie, room) = sealed.split_at_mut(MAC_LEN);
        cookie.copy_from_slice(&self.0);
        let tag = cookie_key(responder, salt)
            .seal_in_place_separate_tag(zero_nonce(), Aad::from(mac1), cookie)
            .expect("16 bytes are not too long to seal");
        room.copy_from_slice(tag.as_ref());
        sealed
    }

    /// Opens what [`Cookie::seal`] made; `None` where it is not for the message with that mac1.
    pub(super) fn open(
        sealed: &[u8; MAC_LEN + TAG_LEN],
        responder: &PublicKey,
        salt: &[u8; SALT_LEN],
        mac1: &MacBytes,
    ) -> Option<Self> {
        let mut opened = *sealed;
        let cookie = cookie_key(responder, salt).open_in_place(zero_nonce(), Aad::from(mac1), &mut opened).ok()?;
        cookie.first_chunk().copied().map(Cookie)
    }
}

/// A key of one use, by its salt.
fn cookie_key(responder: &PublicKey, salt: &[u8; SALT_LEN]) -> LessSafeKey {
    let hash = Blake2s256::new().chain_update(COOKIE_LABEL).chain_update(responder.0);
    let key: Zeroizing<[u8; KEY_LEN]> = Zeroizing::new(hash.chain_update(salt).finalize().into());
    let key = UnboundKey::new(&CHACHA20_POLY1305, &*key).expect("the key has 32 bytes");
    LessSafeKey::new(key)
}

/// Every salt makes a key of its own, so that the nonce need not differ.
fn zero_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; ring::aead::NONCE_LEN])
}

/// mac1 of an initiation's bytes.
pub(super) fn mac1_of(initiation: &[u8; INITIATION_LEN]) -> MacBytes {
    *initiation[MAC1_AT..].first_chunk().expect("two macs follow")
}
