//! One address of a path: the challenges that are out to it, and the bytes that may go to it until it answers.

use super::ValidationAction;
use crate::path::constants::{
    AMPLIFICATION, CHALLENGE_WAIT_MAX, CHALLENGES, MAX_PTO_DOUBLINGS, TOKEN_LIFE, TOKENS_MAX,
};
use crate::units::{Random, Time};
use crate::wire::Token;
use std::collections::VecDeque;
use std::time::Duration;

/// How many bytes may go to an address that is not validated. A plain value.
#[derive(Copy, Clone, Debug)]
pub(super) enum Credit {
    Unlimited,
    Bytes(u64),
}

impl Credit {
    pub(super) fn earn(&mut self, bytes: u32) {
        if let Credit::Bytes(left) = self {
            *left = left.saturating_add(u64::from(bytes) * AMPLIFICATION);
        }
    }

    pub(super) fn spend(&mut self, bytes: u32) {
        if let Credit::Bytes(left) = self {
            *left = left.saturating_sub(u64::from(bytes));
        }
    }

    pub(super) fn left(&self) -> u64 {
        match self {
            Credit::Unlimited => u64::MAX,
            Credit::Bytes(left) => *left,
        }
    }
}

/// One address and the challenges that are out to it. Not validated at first. A part of [`super::PathValidation`].
#[derive(Clone, Debug)]
pub(super) struct Address<A> {
    pub(super) remote: A,
    pub(super) validated: bool,
    pub(super) credit: Credit,
    /// Challenges of the last [`TOKEN_LIFE`], oldest first, [`TOKENS_MAX`] at most.
    out: VecDeque<(Token, Time)>,
    /// When `begin` was called last, and challenges sent since.
    begun_at: Time,
    sent: u32,
    pub(super) next_at: Option<Time>,
}

impl<A: Copy> Address<A> {
    pub(super) fn new(remote: A, credit: Credit) -> Self {
        let (out, begun_at) = (VecDeque::new(), Time::ZERO);
        Address { remote, validated: false, credit, out, begun_at, sent: 0, next_at: None }
    }

    pub(super) fn begin(&mut self, now: Time) {
        (self.begun_at, self.sent) = (now, 0);
        self.next_at = Some(now);
    }

    /// Whether challenges go there now.
    pub(super) fn is_challenged(&self) -> bool {
        self.next_at.is_some()
    }

    pub(super) fn answered(&mut self, now: Time, token: Token) -> Option<Time> {
        let &(_, challenged_at) = self.out.iter().find(|(out, at)| *out == token && now.since(*at) <= TOKEN_LIFE)?;
        self.validated = true;
        self.out.clear();
        self.next_at = None;
        Some(challenged_at)
    }

    /// Sends the next challenge, or fails, if that is due; not before `least` has passed since `begin`.
    pub(super) fn on_timeout(
        &mut self,
        now: Time,
        pto: Duration,
        least: Duration,
        random: &mut dyn Random,
    ) -> ValidationAction<A> {
        if self.next_at.is_none_or(|at| at > now) {
            return ValidationAction::None;
        }
        if self.sent >= CHALLENGES && now.since(self.begun_at) >= least {
            self.next_at = None;
            return ValidationAction::Failed;
        }
        let mut token = [0; 8];
        random.fill(&mut token);
        let token = Token(token);
        self.out.retain(|(_, at)| now.since(*at) <= TOKEN_LIFE);
        if self.out.len() == TOKENS_MAX {
            self.out.pop_front();
        }
        self.out.push_back((token, now));
        let wait = pto * (1 << self.sent.min(MAX_PTO_DOUBLINGS));
        self.next_at = Some(now + wait.min(CHALLENGE_WAIT_MAX));
        self.sent += 1;
        let to = self.remote;
        ValidationAction::Challenge { to, token }
    }
}
