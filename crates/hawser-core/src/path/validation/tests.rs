//! Validation, step by step.

use super::*;
use crate::path::constants::TOKEN_LIFE;
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
