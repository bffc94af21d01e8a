//! Whether the far end of a path is where it says it is (RFC 9000 sections 8 and 9).
//!
//! 1. `begin`: a challenge with an unpredictable token goes to the remote address, again after one, two and four probe
//!    timeouts (half a second at most); then validation has failed.
//! 2. `on_response`: a token comes back, by whatever path: the address that it was sent to is validated. A token is
//!    good for [`super::constants::TOKEN_LIFE`], however many were sent after it: links keep packets through an outage,
//!    and deliver them late.
//! 3. `on_received`: the newest packet comes from another address: that one is challenged, while the old stays in
//!    use until the new is validated. A move may take three probe timeouts. Later answers to what went there count too,
//!    until something newer comes from elsewhere: a round trip may be longer than any that was measured.
//! 4. `room`: an address that is not validated gets at most three times the bytes that came from it.
//!
//! ```text
//!            begin            on_response
//!   UNKNOWN ------> CHALLENGED ----------> VALIDATED --begin--> CHALLENGED (and still validated)
//!      ^                |
//!      +--- 7 PTO: Failed
//! ```

mod address;

use super::constants::{INITIAL_PTO, MOVE_PTOS};
use crate::units::{Random, Time};
use crate::wire::Token;
use address::{Address, Credit};
use std::time::Duration;

/// What the session has to do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum ValidationAction<A> {
    /// Nothing.
    None,
    /// Send a challenge, if there is `room` for it.
    Challenge {
        /// Where to.
        to: A,
        /// What it carries.
        token: Token,
    },
    /// The remote address in use did not answer: the path is down.
    Failed,
    /// The address it seemed to move to did not answer: it stays where it was.
    MoveFailed,
}

/// An address that answered. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Validated<A> {
    /// It is the path's remote address from now on.
    pub remote: A,
    /// When the challenge was sent that it answered.
    pub challenged_at: Time,
}

/// Validation of the remote address (of type `A`) of one path. Nothing is out at first. One path owns it.
#[derive(Clone, Debug)]
pub struct PathValidation<A> {
    current: Address<A>,
    /// Where it seems to have moved to; or did, where no challenges go there any more.
    moved: Option<Address<A>>,
}

/// How long a move may take: three times the larger of the path's probe timeout and that of a path of which nothing is
/// known (RFC 9000 section 8.2.4).
fn move_time(pto: Duration) -> Duration {
    pto.max(INITIAL_PTO) * MOVE_PTOS
}

impl<A: Copy + Eq> PathValidation<A> {
    /// A path that we open to an address from our configuration: what we send it is no amplification.
    pub fn opened_by_us(remote: A) -> Self {
        PathValidation { current: Address::new(remote, Credit::Unlimited), moved: None }
    }

    /// A path that a packet from `remote` opened.
    pub fn opened_by_peer(remote: A) -> Self {
        PathValidation { current: Address::new(remote, Credit::Bytes(0)), moved: None }
    }

    /// The address in use.
    pub fn remote(&self) -> A {
        self.current.remote
    }

    /// Whether the address in use ever answered.
    pub fn is_validated(&self) -> bool {
        self.current.validated
    }

    /// Challenges the address in use (again): the path is new, or down and to be probed.
    pub fn begin(&mut self, now: Time) {
        self.current.begin(now);
    }

    /// A packet of `bytes` that opened under the session's keys came from `from`; `newest`: its number is the
    /// largest of the path so far, so that an old packet replayed from elsewhere moves nothing (RFC 9000 section 9.3).
    pub fn on_received(&mut self, now: Time, from: A, bytes: u32, newest: bool) {
        if newest && from == self.current.remote {
            // It is there still: whoever forwarded a packet of its from elsewhere is not to have it move later.
            self.moved = None;
        } else if newest && self.find(from).is_none() {
            let known = self.moved.take().filter(|moved| moved.remote == from);
            let mut moved = known.unwrap_or_else(|| Address::new(from, Credit::Bytes(0)));
            moved.begin(now);
            self.moved = Some(moved);
        }
        if let Some(address) = self.find(from) {
            address.credit.earn(bytes);
        }
    }

    /// Bytes that may go to `to` now.
    pub fn room(&self, to: A) -> u64 {
        let moved = self.moved.as_ref().filter(|moved| moved.is_challenged());
        let known = [Some(&self.current), moved];
        match known.into_iter().flatten().find(|address| address.remote == to) {
            None => 0,
            Some(address) => {
                if address.validated {
                    u64::MAX
                } else {
                    address.credit.left()
                }
            }
        }
    }

    /// `bytes` went to `to`.
    pub fn on_sent(&mut self, to: A, bytes: u32) {
        if let Some(address) = self.find(to) {
            address.credit.spend(bytes);
        }
    }

    /// A response came, by whatever path. None for a token that is not (or no longer) out.
    pub fn on_response(&mut self, now: Time, token: Token) -> Option<Validated<A>> {
        if let Some(challenged_at) = self.current.answered(now, token) {
            return Some(Validated { remote: self.current.remote, challenged_at });
        }
        let challenged_at = self.moved.as_mut()?.answered(now, token)?;
        self.current = self.moved.take()?;
        Some(Validated { remote: self.current.remote, challenged_at })
    }

    /// When `handle_timeout` has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        let moved = self.moved.as_ref().and_then(|address| address.next_at);
        [self.current.next_at, moved].into_iter().flatten().min()
    }

    /// Does what is due; call it until it says [`ValidationAction::None`]. `pto` is the path's probe timeout.
    pub fn handle_timeout(&mut self, now: Time, pto: Duration, random: &mut dyn Random) -> ValidationAction<A> {
        if let Some(moved) = &mut self.moved {
            match moved.on_timeout(now, pto, move_time(pto), random) {
                ValidationAction::Failed => {
                    // It earns anew what may go there. Answers to what went still count.
                    moved.credit = Credit::Bytes(0);
                    return ValidationAction::MoveFailed;
                }
                ValidationAction::None => {}
                action => return action,
            }
        }
        self.current.on_timeout(now, pto, Duration::ZERO, random)
    }

    /// What is known of an address in use, or challenged.
    fn find(&mut self, remote: A) -> Option<&mut Address<A>> {
        let moved = self.moved.as_mut().filter(|moved| moved.is_challenged());
        let known = [Some(&mut self.current), moved];
        known.into_iter().flatten().find(|a| a.remote == remote)
    }
}

#[cfg(test)]
mod tests;
