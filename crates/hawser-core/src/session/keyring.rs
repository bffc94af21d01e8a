//! The keys of a session: the present ones, and the old ones for what is still under way.
//!
//! ```text
//!            install                    install                 expiry
//!   (none) ----------> current = A ----------> current = B ----------> current = B
//!                                              previous = A            (A retired)
//! ```
//!
//! Two portals may initiate at once, and each have keys of its own initiation first. Then those
//! of side 0 stay: it only `admits` the others, to open what was sealed under them before the peer
//! saw the first datagram under its own.

use super::constants::OLD_KEY_TIMEOUTS;
use crate::endpoint::labels::KeyId;
use crate::handshake::{REKEY_AFTER, REKEY_AFTER_PACKETS, TransportKeys};
use crate::units::{PathId, Time};
use crate::wire::{Cipher, Label, Protection};
use std::time::Duration;

/// Keys under a name. Made by a handshake; a session or a pending handshake owns it.
pub(crate) struct KeySet {
    pub id: KeyId,
    pub keys: TransportKeys,
    pub made_at: Time,
    /// They answer an initiation of ours.
    pub ours: bool,
}

/// Sets of old keys that are kept at most.
const PREVIOUS_MAX: usize = 2;

/// The keys of a session. Begins with those of its first handshake; the session owns it.
pub(super) struct Keyring {
    current: KeySet,
    /// Oldest first, and when each is retired.
    previous: Vec<(KeySet, Time)>,
    /// Packets sealed under the current keys, over all paths.
    sealed: u64,
    /// Packets opened under the current keys: the peer may have no way to initiate.
    opened: u64,
}

impl Keyring {
    pub fn new(keys: KeySet) -> Self {
        Keyring { current: keys, previous: Vec::new(), sealed: 0, opened: 0 }
    }

    /// Seals under `keys` from now on; tells which keys are retired by it, if any.
    pub fn install(&mut self, now: Time, keys: KeySet, longest_timeout: Duration) -> Option<KeyId> {
        let old = std::mem::replace(&mut self.current, keys);
        (self.sealed, self.opened) = (0, 0);
        self.admit(now, old, longest_timeout)
    }

    /// Opens what comes under `keys` for a while; tells which keys are retired by it, if any.
    pub fn admit(&mut self, now: Time, keys: KeySet, longest_timeout: Duration) -> Option<KeyId> {
        self.previous.push((keys, now + longest_timeout * OLD_KEY_TIMEOUTS));
        (self.previous.len() > PREVIOUS_MAX).then(|| self.previous.remove(0).0.id)
    }

    /// Whether the present keys are of our own initiation, and the peer was not heard under them yet.
    pub fn awaits_first_datagram(&self) -> bool {
        self.current.ours && self.opened == 0
    }

    /// A packet opened under these keys.
    pub fn note_opened(&mut self, id: KeyId) {
        self.opened += u64::from(self.current.id == id);
    }

    /// The label of a path's datagrams under the present keys.
    pub fn label(&self, path: PathId) -> Label {
        self.current.keys.send.label(path)
    }

    /// The keys to seal with, counting one packet.
    pub fn seal(&mut self) -> &TransportKeys {
        self.sealed += 1;
        &self.current.keys
    }

    /// The keys of that name, while they live.
    pub fn open(&self, id: KeyId) -> Option<&TransportKeys> {
        if self.current.id == id {
            return Some(&self.current.keys);
        }
        self.previous.iter().find(|(keys, _)| keys.id == id).map(|(keys, _)| &keys.keys)
    }

    /// Every live name.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        std::iter::once(self.current.id).chain(self.previous.iter().map(|(keys, _)| keys.id))
    }

    /// When the old keys go.
    pub fn expires(&self) -> Option<Time> {
        self.previous.iter().map(|(_, at)| *at).min()
    }

    /// Drops old keys whose time is over; tells their name. Call it until there are none.
    pub fn retire(&mut self, now: Time) -> Option<KeyId> {
        let over = self.previous.iter().position(|(_, at)| *at <= now)?;
        Some(self.previous.remove(over).0.id)
    }

    /// When new keys are due.
    pub fn rekey_at(&self) -> Time {
        if self.sealed.max(self.opened) >= REKEY_AFTER_PACKETS {
            Time::ZERO
        } else {
            self.current.made_at + REKEY_AFTER
        }
    }

    /// What the present keys do to inner packets, and by which cipher.
    pub fn kind(&self) -> (Protection, Cipher) {
        self.current.keys.kind()
    }

    /// When the present keys were made.
    pub fn made_at(&self) -> Time {
        self.current.made_at
    }
}

#[cfg(test)]
mod tests;
