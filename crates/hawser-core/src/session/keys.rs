//! New keys for a session, and those that are left (`keyring.rs` holds them).
//!
//! 1. `rekey_at`: when we are to begin a handshake.
//! 2. `install_keys`: its keys seal from now on. `admit_keys`: where both sides began one, keys that only open.
//! 3. `key_ids`, `open_key`: what opens meanwhile. `tell_over`: nothing seals any more.

use super::constants::REKEY_TIMEOUTS;
use super::keyring::{KeySet, Rekey};
use super::{Event, KeyEnd, Session};
use crate::handshake::{IDLE_REKEY, REJECT_AFTER};
use crate::units::{KeyId, Time};

impl Session {
    /// Seals under new keys from now on; the old ones open what is still under way.
    pub fn install_keys(&mut self, now: Time, keys: KeySet) {
        self.liveness.note_handshake(now);
        let (were_over, ours) = (self.keyring.permit(now).is_err(), keys.ours);
        let retired = self.keyring.install(now, keys, self.paths.longest_timeout());
        self.events.extend(retired.map(Event::KeysRetired));
        for path in self.paths.iter_mut() {
            path.label = self.keyring.label(path.id);
            path.wants.ping |= !path.activity.quiet;
            if were_over {
                path.health.probe_now(now);
            }
        }
        // The peer seals under keys of our initiation once it heard us under them.
        if let Some(index) = (0..self.paths.len()).find(|index| ours && self.is_spokesman(*index)) {
            self.paths[index].wants.alive = true;
        }
    }

    /// Keys of the peer's initiation, which crossed ours: they open what comes, and ours stay.
    pub fn admit_keys(&mut self, now: Time, keys: KeySet) {
        let retired = self.keyring.admit(now, keys, self.paths.longest_timeout());
        self.events.extend(retired.map(Event::KeysRetired));
        // The peer seals under its own until it hears us under ours, and what is repeated says that though one is lost.
        if let Some(index) = (0..self.paths.len()).find(|index| self.is_spokesman(*index)) {
            self.paths[index].wants.ping = true;
        }
    }

    /// Whether keys of the peer's initiation, which we answered at `made_at`, are to give way to the present ones.
    pub fn insists_on_keys(&self, now: Time, made_at: Time) -> bool {
        self.paths.ids.side() == 0 && self.keyring.crosses(now, made_at, self.paths.longest_timeout())
    }

    /// Nothing may be sealed: the endpoint hears of it once.
    pub(super) fn tell_over(&mut self, end: KeyEnd) {
        if self.keyring.tell_over() {
            self.events.push(Event::KeysOver(end));
        }
    }

    /// When new keys are due. Those of an idle session may be late where its paths are fast enough for that.
    pub fn rekey_at(&self, who: Rekey) -> Time {
        let takes = self.paths.longest_timeout() * REKEY_TIMEOUTS;
        self.keyring.rekey_at(who, self.liveness.is_idle() && IDLE_REKEY + takes <= REJECT_AFTER)
    }

    /// Every live set of keys.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.keyring.ids()
    }

    /// The receive key of that name, while it lives.
    pub fn open_key(&self, id: KeyId) -> Option<&crate::handshake::OpenKey> {
        self.keyring.open(id)
    }
}
