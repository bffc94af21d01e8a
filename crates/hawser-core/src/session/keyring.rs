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
//! saw the first datagram under its own. But where it was not heard for longer than handshakes that cross
//! take, the peer may have them no more, and its own are taken.
//!
//! Keys have a hard end, in time and in packets (`handshake::REJECT_AFTER`): whoever drops the handshakes that would
//! replace them stops the traffic, and pins no key.

use super::constants::{BATCH_SEGMENTS, CROSSING, CROSSING_TIMEOUTS, OLD_KEY_TIMEOUTS};
use crate::drops::DropReason;
use crate::handshake::{
    self, ASK_AFTER, ASK_AFTER_PACKETS, IDLE_ASK, IDLE_REKEY, OpenKey, REJECT_AFTER, REJECT_AFTER_PACKETS, REKEY_AFTER,
    REKEY_AFTER_PACKETS, SealKey, TransportKeys,
};
use crate::units::{KeyId, PacketNumber, PathId, Time};
use crate::wire::{Cipher, Label, Protection};
use std::sync::Arc;
use std::time::Duration;

/// Keys under a name. Made by a handshake; a session or a pending handshake owns it.
pub(crate) struct KeySet {
    pub id: KeyId,
    pub keys: TransportKeys,
    pub made_at: Time,
    /// They answer an initiation of ours.
    pub ours: bool,
}

impl KeySet {
    /// Whether nothing may be sealed or opened under them for their age.
    pub fn is_too_old(&self, now: Time) -> bool {
        now.since(self.made_at) >= REJECT_AFTER
    }
}

/// Why keys are used no more. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyEnd {
    /// No handshake replaced them in time.
    #[error("use keys: older than {} s", REJECT_AFTER.as_secs())]
    Age,
    /// They served for as many packets as they may.
    #[error("use keys: they served for {REJECT_AFTER_PACKETS} packets")]
    Packets,
}

/// Who begins the handshake that replaces keys.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rekey {
    /// We do: we know where the peer listens.
    Lead,
    /// The peer does, and we where it is late.
    Follow,
}

/// Keys in use, and what they served for.
struct Live {
    set: KeySet,
    /// Packets sealed under them, over all paths.
    sealed: u64,
    /// Packets opened under them, and the first one's time: the peer may have no way to initiate.
    opened: u64,
    first_opened: Option<Time>,
}

impl Live {
    fn new(set: KeySet) -> Self {
        Live { set, sealed: 0, opened: 0, first_opened: None }
    }

    /// Whether `more` packets may be sealed, or opened, under them.
    fn permit(&self, now: Time, more: u64) -> Result<(), KeyEnd> {
        if self.set.is_too_old(now) {
            Err(KeyEnd::Age)
        } else if self.sealed.max(self.opened) + more > REJECT_AFTER_PACKETS {
            Err(KeyEnd::Packets)
        } else {
            Ok(())
        }
    }
}

/// Sets of old keys that are kept at most.
const PREVIOUS_MAX: usize = 2;

/// The keys of a session. Begins with those of its first handshake; the session owns it.
pub(super) struct Keyring {
    current: Live,
    /// Oldest first, and when each is retired.
    previous: Vec<(Live, Time)>,
    /// That nothing may be sealed under the present ones any more was told.
    told_over: bool,
}

impl Keyring {
    pub fn new(keys: KeySet) -> Self {
        Keyring { current: Live::new(keys), previous: Vec::new(), told_over: false }
    }

    /// Seals under `keys` from now on; tells which keys are retired by it, if any.
    pub fn install(&mut self, now: Time, keys: KeySet, longest_timeout: Duration) -> Option<KeyId> {
        let old = std::mem::replace(&mut self.current, Live::new(keys));
        self.told_over = false;
        self.keep(now, old, longest_timeout)
    }

    /// Opens what comes under `keys` for a while; tells which keys are retired by it, if any.
    pub fn admit(&mut self, now: Time, keys: KeySet, longest_timeout: Duration) -> Option<KeyId> {
        self.keep(now, Live::new(keys), longest_timeout)
    }

    fn keep(&mut self, now: Time, keys: Live, longest_timeout: Duration) -> Option<KeyId> {
        self.previous.push((keys, now + longest_timeout * OLD_KEY_TIMEOUTS));
        (self.previous.len() > PREVIOUS_MAX).then(|| self.previous.remove(0).0.set.id)
    }

    /// Nothing may be sealed under the present keys. Tells whether that is yet to be told.
    pub fn tell_over(&mut self) -> bool {
        !std::mem::replace(&mut self.told_over, true)
    }

    /// Whether keys of the peer's initiation, answered at `made_at`, crossed the present ones, which are of our own: the
    /// peer was not heard under these yet, but may yet be; or it was only after that answer. Who answers much later than
    /// it made its own keys answers a later handshake: all that the peer said under these may have been lost.
    pub fn crosses(&self, now: Time, made_at: Time, longest_timeout: Duration) -> bool {
        let Live { set, first_opened, .. } = &self.current;
        let crossing = CROSSING.max(longest_timeout * CROSSING_TIMEOUTS);
        let soon = |at: Time| at.since(set.made_at) < crossing;
        set.ours && first_opened.map_or(soon(now), |at| made_at <= at && soon(made_at))
    }

    /// A packet opened under these keys.
    pub fn note_opened(&mut self, now: Time, id: KeyId) {
        let old = self.previous.iter_mut().map(|(keys, _)| keys);
        if let Some(keys) = std::iter::once(&mut self.current).chain(old).find(|keys| keys.set.id == id) {
            keys.opened += 1;
            keys.first_opened.get_or_insert(now);
        }
    }

    /// The label of a path's datagrams under the present keys.
    pub fn label(&self, path: PathId) -> Label {
        self.current.set.keys.send.label(path)
    }

    /// Whether a batch may be sealed under the present keys.
    ///
    /// # Errors
    /// [`KeyEnd`]: nothing may be, until there are others.
    pub fn permit(&self, now: Time) -> Result<(), KeyEnd> {
        self.current.permit(now, u64::from(BATCH_SEGMENTS))
    }

    /// The keys to seal with, counting one packet, which `permit` allowed.
    ///
    /// # Panics
    /// Beyond the hard end: a bug that would wear out a key.
    pub fn seal(&mut self) -> &TransportKeys {
        assert!(self.current.sealed < REJECT_AFTER_PACKETS, "keys beyond their end");
        self.current.sealed += 1;
        &self.current.set.keys
    }

    /// Puts the body behind the head of a datagram and seals that; or counts it, where it is sealed `later`.
    pub fn seal_from(
        &mut self,
        later: bool,
        (path, number): (PathId, PacketNumber),
        datagram: &mut [u8],
        head_len: usize,
        body: &[u8],
    ) {
        let key = &self.seal().send;
        let sealed = match later {
            false => key.seal_from(path, number, datagram, head_len, body),
            true => handshake::place(datagram, head_len, body),
        };
        debug_assert_eq!(sealed, Ok(()), "a segment fills its datagram");
    }

    /// The key that the present datagrams are sealed with, for a batch whose datagrams were counted one by one.
    pub fn sealer(&self) -> &Arc<SealKey> {
        &self.current.set.keys.send
    }

    /// The keys of that name to open a packet with.
    pub fn opener(&self, now: Time, id: KeyId) -> Result<&Arc<OpenKey>, DropReason> {
        let keys = self.live(id).ok_or(DropReason::UnknownLabel)?;
        keys.permit(now, 1).map_err(|_| DropReason::KeyExpired)?;
        Ok(&keys.set.keys.recv)
    }

    /// The receive key of that name, while it is known.
    pub fn open(&self, id: KeyId) -> Option<&OpenKey> {
        self.live(id).map(|keys| &*keys.set.keys.recv)
    }

    fn live(&self, id: KeyId) -> Option<&Live> {
        let old = self.previous.iter().map(|(keys, _)| keys);
        std::iter::once(&self.current).chain(old).find(|keys| keys.set.id == id)
    }

    /// Every live name.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        std::iter::once(self.current.set.id).chain(self.previous.iter().map(|(keys, _)| keys.set.id))
    }

    /// When the old keys go.
    pub fn expires(&self) -> Option<Time> {
        self.previous.iter().map(|(_, at)| *at).min()
    }

    /// Drops old keys whose time is over; tells their name. Call it until there are none.
    pub fn retire(&mut self, now: Time) -> Option<KeyId> {
        let over = self.previous.iter().position(|(_, at)| *at <= now)?;
        Some(self.previous.remove(over).0.set.id)
    }

    /// When we are to begin a handshake for new keys; later where the session is `idle`.
    pub fn rekey_at(&self, who: Rekey, idle: bool) -> Time {
        let (after, packets) = match (who, idle) {
            (Rekey::Lead, false) => (REKEY_AFTER, REKEY_AFTER_PACKETS),
            (Rekey::Lead, true) => (IDLE_REKEY, REKEY_AFTER_PACKETS),
            (Rekey::Follow, false) => (ASK_AFTER, ASK_AFTER_PACKETS),
            (Rekey::Follow, true) => (IDLE_ASK, ASK_AFTER_PACKETS),
        };
        let served = self.current.sealed.max(self.current.opened);
        if served >= packets { Time::ZERO } else { self.current.set.made_at + after }
    }

    /// What the present keys do to inner packets, and by which cipher.
    pub fn kind(&self) -> (Protection, Cipher) {
        self.current.set.keys.kind()
    }

    /// When the present keys were made.
    pub fn made_at(&self) -> Time {
        self.current.set.made_at
    }
}

#[cfg(test)]
mod tests;
