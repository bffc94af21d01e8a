//! Whether the far end of a path is where it says it is (RFC 9000 sections 8 and 9).
//!
//! 1. `begin`: a challenge with an unpredictable token goes to the remote address, again after one, two and four probe
//!    timeouts; then validation has failed.
//! 2. `on_response`: a token comes back, by whatever path: the address that it was sent to is validated. A token is good
//!    for [`TOKEN_LIFE`], however many were sent after it: links keep packets through an outage, and deliver them late.
//! 3. `on_received`: the newest packet comes from another address: that one is challenged, while the old stays in
//!    use until the new is validated.
//! 4. `room`: an address that is not validated gets at most three times the bytes that came from it.
//!
//! ```text
//!            begin            on_response
//!   UNKNOWN ------> CHALLENGED ----------> VALIDATED --begin--> CHALLENGED (and still validated)
//!      ^                |
//!      +--- 7 PTO: Failed
//! ```

use super::constants::{AMPLIFICATION, CHALLENGES, TOKEN_LIFE};
use crate::units::{Random, Time};
use crate::wire::Token;
use std::collections::VecDeque;
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
    moved: Option<Address<A>>,
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
        if newest && from != self.current.remote && self.find(from).is_none() {
            let mut moved = Address::new(from, Credit::Bytes(0));
            moved.begin(now);
            self.moved = Some(moved);
        }
        if let Some(address) = self.find(from) {
            address.credit.earn(bytes);
        }
    }

    /// Bytes that may go to `to` now.
    pub fn room(&self, to: A) -> u64 {
        let known = [Some(&self.current), self.moved.as_ref()];
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
            match moved.on_timeout(now, pto, random) {
                ValidationAction::Failed => {
                    self.moved = None;
                    return ValidationAction::MoveFailed;
                }
                ValidationAction::None => {}
                action => return action,
            }
        }
        self.current.on_timeout(now, pto, random)
    }

    fn find(&mut self, remote: A) -> Option<&mut Address<A>> {
        let known = [Some(&mut self.current), self.moved.as_mut()];
        known.into_iter().flatten().find(|a| a.remote == remote)
    }
}

/// How many bytes may go to an address that is not validated. A plain value.
#[derive(Copy, Clone, Debug)]
enum Credit {
    Unlimited,
    Bytes(u64),
}

impl Credit {
    fn earn(&mut self, bytes: u32) {
        if let Credit::Bytes(left) = self {
            *left = left.saturating_add(u64::from(bytes) * AMPLIFICATION);
        }
    }

    fn spend(&mut self, bytes: u32) {
        if let Credit::Bytes(left) = self {
            *left = left.saturating_sub(u64::from(bytes));
        }
    }

    fn left(&self) -> u64 {
        match self {
            Credit::Unlimited => u64::MAX,
            Credit::Bytes(left) => *left,
        }
    }
}

/// One address and the challenges that are out to it. Not validated at first. A part of [`PathValidation`].
#[derive(Clone, Debug)]
struct Address<A> {
    remote: A,
    validated: bool,
    credit: Credit,
    /// Challenges of the last [`TOKEN_LIFE`], oldest first. What an inactive path may send bounds how many they are.
    out: VecDeque<(Token, Time)>,
    /// Challenges sent since `begin`.
    sent: u32,
    next_at: Option<Time>,
}

impl<A: Copy> Address<A> {
    fn new(remote: A, credit: Credit) -> Self {
        Address { remote, validated: false, credit, out: VecDeque::new(), sent: 0, next_at: None }
    }

    fn begin(&mut self, now: Time) {
        self.sent = 0;
        self.next_at = Some(now);
    }

    fn answered(&mut self, now: Time, token: Token) -> Option<Time> {
        let &(_, challenged_at) = self.out.iter().find(|(out, at)| *out == token && now.since(*at) <= TOKEN_LIFE)?;
        self.validated = true;
        self.out.clear();
        self.next_at = None;
        Some(challenged_at)
    }

    fn on_timeout(&mut self, now: Time, pto: Duration, random: &mut dyn Random) -> ValidationAction<A> {
        if self.next_at.is_none_or(|at| at > now) {
            return ValidationAction::None;
        }
        if self.sent >= CHALLENGES {
            self.next_at = None;
            return ValidationAction::Failed;
        }
        let mut token = [0; 8];
        random.fill(&mut token);
        let token = Token(token);
        self.out.retain(|(_, at)| now.since(*at) <= TOKEN_LIFE);
        self.out.push_back((token, now));
        self.next_at = Some(now + pto * (1 << self.sent));
        self.sent += 1;
        let to = self.remote;
        ValidationAction::Challenge { to, token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ValidationAction::{Challenge, Failed, MoveFailed};

    const PTO: Duration = Duration::from_millis(100);

    /// Counts up, so that all tokens differ.
    struct Counter(u64);

    impl Random for Counter {
        fn fill(&mut self, bytes: &mut [u8]) {
            self.0 += 1;
            bytes.copy_from_slice(&self.0.to_be_bytes()[..bytes.len()]);
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn challenge(path: &mut PathValidation<char>, random: &mut Counter, ms: u64) -> (char, Token) {
        match path.handle_timeout(at(ms), PTO, random) {
            Challenge { to, token } => (to, token),
            other => panic!("a challenge is due, not {other:?}"),
        }
    }

    /// A path to `a` that answered.
    fn validated(random: &mut Counter) -> PathValidation<char> {
        let mut path = PathValidation::opened_by_peer('a');
        path.begin(at(0));
        let (_, token) = challenge(&mut path, random, 0);
        assert!(path.on_response(at(999), token).is_some());
        path
    }

    #[test]
    fn a_response_validates_the_address_once() {
        let mut random = Counter(0);
        let mut path = PathValidation::opened_by_peer('a');
        assert_eq!(path.poll_timeout(), None);
        path.begin(at(5));
        let (to, token) = challenge(&mut path, &mut random, 5);
        assert_eq!(to, 'a');
        assert_eq!(path.on_response(at(999), Token([9; 8])), None);
        assert!(!path.is_validated());
        let answer = path.on_response(at(999), token);
        assert_eq!(answer, Some(Validated { remote: 'a', challenged_at: at(5) }));
        assert!(path.is_validated());
        assert_eq!(path.on_response(at(999), token), None, "replayed");
        assert_eq!(path.poll_timeout(), None);
    }

    #[test]
    fn challenges_back_off_and_then_validation_has_failed() {
        let mut random = Counter(0);
        let mut path = PathValidation::opened_by_us('a');
        path.begin(at(0));
        let mut tokens = Vec::new();
        for ms in [0, 100, 300] {
            assert_eq!(path.poll_timeout(), Some(at(ms)));
            tokens.push(challenge(&mut path, &mut random, ms).1);
            assert_eq!(path.handle_timeout(at(ms), PTO, &mut random), ValidationAction::None);
        }
        assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2], "unpredictable each time");
        assert_eq!(path.poll_timeout(), Some(at(700)));
        assert_eq!(path.handle_timeout(at(700), PTO, &mut random), Failed);
        assert_eq!(path.poll_timeout(), None);
        // The slowest of answers is still one.
        assert!(path.on_response(at(999), tokens[0]).is_some());
    }

    #[test]
    fn a_token_lives_by_time_and_not_by_how_many_were_sent_after_it() {
        for (after, counts) in [(TOKEN_LIFE, true), (TOKEN_LIFE + Duration::from_millis(1), false)] {
            let mut random = Counter(0);
            let mut path = validated(&mut random);
            path.begin(at(1_000));
            let (_, first) = challenge(&mut path, &mut random, 1_000);
            for ms in (1_500..20_000).step_by(500) {
                path.begin(at(ms));
                challenge(&mut path, &mut random, ms);
            }
            assert_eq!(path.on_response(at(1_000) + after, first).is_some(), counts, "after {after:?}");
        }
    }

    #[test]
    fn a_down_path_is_challenged_again_and_keeps_its_word() {
        let mut random = Counter(0);
        let mut path = validated(&mut random);
        path.begin(at(1_000));
        assert!(path.is_validated());
        let (_, token) = challenge(&mut path, &mut random, 1_000);
        assert!(path.on_response(at(999), token).is_some());
    }

    #[test]
    fn an_unvalidated_address_gets_three_times_what_came_from_it() {
        let mut random = Counter(0);
        let mut path = PathValidation::opened_by_peer('a');
        assert_eq!(path.room('a'), 0);
        path.on_received(at(0), 'a', 100, true);
        assert_eq!(path.room('a'), 300);
        path.on_sent('a', 250);
        assert_eq!(path.room('a'), 50);
        path.begin(at(0));
        let (_, token) = challenge(&mut path, &mut random, 0);
        assert!(path.on_response(at(999), token).is_some());
        assert_eq!(path.room('a'), u64::MAX);
        assert_eq!(path.room('b'), 0, "nobody knows b");
        assert_eq!(PathValidation::opened_by_us('a').room('a'), u64::MAX);
    }

    #[test]
    fn a_moved_address_is_used_only_when_it_answered() {
        let mut random = Counter(0);
        let mut path = validated(&mut random);
        path.on_received(at(50), 'b', 100, true);
        assert_eq!((path.remote(), path.poll_timeout()), ('a', Some(at(50))));
        let (to, token) = challenge(&mut path, &mut random, 50);
        assert_eq!(to, 'b');
        assert_eq!(path.room('b'), 300);
        path.on_received(at(60), 'b', 100, true);
        assert_eq!(path.handle_timeout(at(60), PTO, &mut random), ValidationAction::None);
        assert_eq!(path.remote(), 'a');
        let answer = path.on_response(at(999), token).expect("validated");
        assert_eq!(answer.remote, 'b');
        assert_eq!(path.remote(), 'b');
        assert!(path.is_validated());
        assert_eq!((path.room('b'), path.room('a')), (u64::MAX, 0));
    }

    #[test]
    fn a_spoofed_move_fails_and_harms_nothing() {
        let mut random = Counter(0);
        let mut path = validated(&mut random);
        path.on_received(at(0), 'x', 100, true);
        for ms in [0, 100, 300] {
            assert_eq!(challenge(&mut path, &mut random, ms).0, 'x');
        }
        assert_eq!(path.handle_timeout(at(700), PTO, &mut random), MoveFailed);
        assert_eq!((path.remote(), path.is_validated()), ('a', true));
        assert_eq!(path.room('x'), 0);
    }

    #[test]
    fn an_old_packet_from_elsewhere_moves_nothing() {
        let mut path = validated(&mut Counter(0));
        path.on_received(at(0), 'x', 100, false);
        assert_eq!(path.poll_timeout(), None);
        assert_eq!(path.room('x'), 0);
    }

    #[test]
    fn a_second_move_takes_the_place_of_the_first() {
        let mut random = Counter(0);
        let mut path = validated(&mut random);
        path.on_received(at(0), 'b', 100, true);
        let (_, to_b) = challenge(&mut path, &mut random, 0);
        path.on_received(at(10), 'c', 100, true);
        let (to, to_c) = challenge(&mut path, &mut random, 10);
        assert_eq!(to, 'c');
        assert_eq!(path.on_response(at(999), to_b), None);
        assert_eq!(path.on_response(at(999), to_c).map(|v| v.remote), Some('c'));
    }
}
