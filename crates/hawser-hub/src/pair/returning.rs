//! Back to a member that the site prefers: its list says in which order it wants them.
//!
//! Deaths, drains and upgrades move peers away from their first member. Where nothing brought them back, after an
//! upgrade of a hub of two all peers would be with one of them, for ever.
//!
//! 1. [`Returning`]: for how long a member has been ready, and for how long it has to be.
//! 2. `go_back`: the standby stands before the owner in the list, and has been ready for long enough. It is claimed as
//!    in a drain, and nothing is lost.

use super::silence::is_away;
use super::standby::{Contact, HEARD_WITHIN};
use super::{Member, Pair};
use crate::claim::Phase;
use hawser_core::endpoint::Endpoint;
use hawser_core::session::Presence;
use hawser_core::units::Time;
use std::time::Duration;

/// A member is ready for so long before it gets a peer back: an operator has drained and started a hub's other members
/// by then, so that nobody comes back to be drained again; and who boots in a circle is not there for so long. Load
/// that is uneven meanwhile harms nobody: the standby is to bear it in any case.
const READY_LEAST: Duration = Duration::from_secs(300);
/// Twice as long after each further failure, and this at most: as routers suppress a route that flaps (RFC 2439), by
/// default for four half-lives of 15 minutes.
const READY_MOST: Duration = Duration::from_secs(3600);
/// Failures from before are forgotten where it served for so long: what is further apart is no flapping.
const FORGOTTEN_AFTER: Duration = READY_MOST;
/// The peers of a member come back over so long, each at a time of its own: the 5,000 of one of 200 that serve a
/// million (hawser-sim, `million`) are 17 a second, each of which is between two members for a second or two.
const SPREAD: Duration = Duration::from_secs(300);

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Away,
    Steady { since: Time },
    Going,
    Serves { since: Time },
}

/// Whether a peer is to go to a member that it prefers. The member is away at first, and has never failed; the pair's
/// contact with it owns this.
///
/// ```text
///              ready                         ready for long enough
///   +------+ ----------------> +--------+ --------------------------> +-------+
///   | AWAY |                   | STEADY |                             | GOING |
///   +------+ <---------------- +--------+                             +-------+
///    ^ ^  |      not ready          |                                   |   |
///    | |  |                         |             it does not confirm,  |   | it owns
///    | +--|-------------------------|------------ which is a failure ---+   |
///    |    | it owns                 | it owns                               v
///    |    +-------------------------+----------------------------------> +--------+
///    +------------------------------------------------------------------ | SERVES |
///                   packets leave it: a failure, or it drains,           +--------+
///                         or another one is preferred
/// ```
///
/// *Ready*: it stands by for an owner that is behind it in the list, answers, and does not drain. A failure makes it
/// wait for twice as long as the last one did, unless it served for [`FORGOTTEN_AFTER`] in between.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Returning {
    state: State,
    /// How long it has to be ready after its failures; zero without any.
    wait: Duration,
    /// And this peer's own part of [`SPREAD`].
    spread: Duration,
}

impl Returning {
    /// `random` decides when within [`SPREAD`] the peer goes.
    pub fn new(random: u64) -> Self {
        let spread = Duration::from_millis(random % SPREAD.as_millis() as u64);
        Returning { state: State::Away, wait: Duration::ZERO, spread }
    }

    /// Whether it is ready by now.
    pub fn note_ready(&mut self, now: Time, ready: bool) {
        self.state = match (self.state, ready) {
            (State::Away, true) => State::Steady { since: now },
            (State::Steady { .. }, false) => State::Away,
            (state, _) => state,
        };
    }

    /// Whether the peer is to go there.
    pub fn is_due(&self, now: Time) -> bool {
        let wait = self.wait.max(READY_LEAST) + self.spread;
        matches!(self.state, State::Steady { since } if now.since(since) >= wait)
    }

    /// The move began.
    pub fn note_asked(&mut self) {
        self.state = State::Going;
    }

    /// Whether it is on.
    pub fn is_going(&self) -> bool {
        self.state == State::Going
    }

    /// No move is on, and it does not own: the one that was asked for came to nothing.
    pub fn note_refused(&mut self) {
        if self.is_going() {
            (self.state, self.wait) = (State::Away, self.after_failure(Duration::ZERO));
        }
    }

    /// It owns.
    pub fn note_serving(&mut self, now: Time) {
        if !matches!(self.state, State::Serves { .. }) {
            self.state = State::Serves { since: now };
        }
    }

    /// Packets go to another member from now on, because this one failed, or not.
    pub fn note_left(&mut self, now: Time, failed: bool) {
        let served = if let State::Serves { since } = self.state { now.since(since) } else { Duration::ZERO };
        if failed {
            self.wait = self.after_failure(served);
        }
        self.state = State::Away;
    }

    fn after_failure(&self, served: Duration) -> Duration {
        let last = if served < FORGOTTEN_AFTER { self.wait } else { Duration::ZERO };
        (2 * last).clamp(READY_LEAST, READY_MOST)
    }
}

impl Contact {
    /// Whether it answers, as far as is known by now, and does not drain.
    fn is_ready(&self, now: Time, presence: &Presence) -> bool {
        let heard = presence.answered_at.is_some_and(|at| now.since(at) < HEARD_WITHIN);
        heard && !is_away(now, presence, false) && !self.draining.drains(now)
    }
}

impl Pair {
    /// Step 2, after it is known where packets go. No move begins while another is on, or the owner is late.
    pub(super) fn go_back(&mut self, now: Time, endpoint: &Endpoint) {
        let [carrier, standby] = [self.carrier, self.standby].map(|member| self.place_of(member));
        let phase = self.claimant.phase();
        for (place, contact) in self.contacts.iter_mut().enumerate().filter(|(place, _)| *place != carrier) {
            let preferred = place == standby && standby < carrier;
            let ready = preferred && contact.is_ready(now, &endpoint.presence(contact.member.peer));
            contact.returning.note_ready(now, ready);
            if phase != Phase::Moving {
                contact.returning.note_refused();
            }
        }
        if phase == Phase::Settled {
            self.contacts[carrier].returning.note_serving(now);
        }
        let due = self.contacts[standby].returning.is_due(now);
        if due && !self.claimant.is_pressed(now) && self.handle_move(now) {
            self.contacts[standby].returning.note_asked();
        }
    }

    /// Packets left a member: it failed, unless it drains, or the other one is preferred.
    pub(super) fn note_left(&mut self, now: Time, old: Member) {
        let [old, to] = [old, self.carrier].map(|member| self.place_of(member));
        let failed = !self.contacts[old].draining.drains(now) && !self.contacts[to].returning.is_going();
        self.contacts[old].returning.note_left(now, failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Time {
        Time::ZERO + Duration::from_secs(60 * minutes)
    }

    /// After how many minutes from now on it gets the peer, if it is ready all the time.
    fn due_after(mut member: Returning, now: u64) -> u64 {
        member.note_ready(at(now), true);
        (0..200).find(|minutes| member.is_due(at(now + minutes))).expect("at last")
    }

    /// One that got the peer back at this minute.
    fn serving(mut member: Returning, now: u64) -> Returning {
        member.note_ready(at(now), true);
        member.note_asked();
        member.note_serving(at(now));
        member
    }

    #[test]
    fn who_is_ready_for_five_minutes_gets_the_peer_within_five_more_by_chance() {
        let due = |random| due_after(Returning::new(random), 0);
        assert_eq!([0, 60_000, 299_999, 300_000, u64::MAX].map(due), [5, 6, 10, 5, 6]);
    }

    #[test]
    fn a_break_makes_the_time_begin_anew() {
        let mut member = Returning::new(0);
        assert!(!member.is_due(at(60)), "it is away");
        member.note_ready(at(0), true);
        member.note_ready(at(4), false);
        assert!(!member.is_due(at(60)), "it went away");
        member.note_ready(at(4), true);
        member.note_ready(at(8), true);
        assert!(!member.is_due(at(8)) && member.is_due(at(9)), "five minutes after it came back");
    }

    #[test]
    fn each_failure_doubles_the_time_up_to_an_hour() {
        let mut member = Returning::new(0);
        let mut waits = Vec::new();
        for _ in 0..6 {
            member = serving(member, 0);
            member.note_left(at(59), true);
            waits.push(due_after(member, 59));
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        member = serving(member, 0);
        member.note_left(at(60), true);
        assert_eq!(due_after(member, 60), 5, "an hour's service is forgiven all that was before");
    }

    #[test]
    fn who_drains_or_gives_the_peer_back_has_not_failed() {
        let mut member = serving(Returning::new(0), 0);
        member.note_left(at(1), false);
        assert_eq!(due_after(member, 1), 5);
        let mut failed = serving(member, 1);
        failed.note_left(at(2), true);
        failed = serving(failed, 2);
        failed.note_left(at(3), true);
        failed = serving(failed, 3);
        failed.note_left(at(4), false);
        assert_eq!(due_after(failed, 4), 10, "nor is it better than it was");
    }

    #[test]
    fn a_move_that_comes_to_nothing_is_a_failure_and_one_that_is_on_is_no_other_ones_affair() {
        let mut member = Returning::new(0);
        for wait in [5, 10] {
            member.note_refused();
            member.note_ready(at(0), true);
            member.note_refused();
            assert!(member.is_due(at(60)), "none was asked for");
            member.note_asked();
            member.note_ready(at(60), false);
            assert!(member.is_going() && !member.is_due(at(60)));
            member.note_refused();
            assert!(!member.is_going());
            assert_eq!(due_after(member, 60), wait);
        }
    }

    #[test]
    fn who_owns_serves_however_that_came_about() {
        let away = Returning { wait: 2 * READY_LEAST, ..Returning::new(0) };
        let mut steady = away;
        steady.note_ready(at(0), true);
        let mut going = steady;
        going.note_asked();
        for mut member in [away, steady, going] {
            member.note_serving(at(1));
            member.note_serving(at(50));
            member.note_ready(at(50), true);
            assert!(!member.is_going() && !member.is_due(at(600)));
            member.note_left(at(61), true);
            assert_eq!(due_after(member, 61), 5, "it served since the first minute");
        }
    }
}
