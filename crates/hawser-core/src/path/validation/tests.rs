//! Validation, step by step.

use super::*;
use crate::path::constants::{CHALLENGE_WAIT_MAX, TOKEN_LIFE, TOKENS_MAX};
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

/// All that is done until `end`, and when.
fn run(
    path: &mut PathValidation<char>,
    random: &mut Counter,
    pto: Duration,
    end: Time,
) -> Vec<(Time, ValidationAction<char>)> {
    let mut done = Vec::new();
    while let Some(now) = path.poll_timeout().filter(|at| *at <= end) {
        done.push((now, path.handle_timeout(now, pto, random)));
    }
    done
}

/// The token of the first challenge.
fn first_token(done: &[(Time, ValidationAction<char>)]) -> Token {
    match done.first() {
        Some((_, Challenge { token, .. })) => *token,
        other => panic!("a challenge comes first, not {other:?}"),
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
fn however_often_an_address_is_challenged_a_bounded_number_is_remembered() {
    let mut random = Counter(0);
    let mut path = validated(&mut random);
    let mut tokens = Vec::new();
    for ms in 1_000..2_000 {
        path.begin(at(ms));
        tokens.push(challenge(&mut path, &mut random, ms).1);
    }
    let kept = tokens.len() - TOKENS_MAX;
    assert_eq!(path.on_response(at(2_000), tokens[kept - 1]), None);
    assert!(path.on_response(at(2_000), tokens[kept]).is_some());
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
    let done = run(&mut path, &mut random, PTO, at(60_000));
    let ((_, end), challenges) = done.split_last().expect("an end");
    assert_eq!(*end, MoveFailed);
    assert!(challenges.iter().all(|(_, action)| matches!(action, Challenge { to: 'x', .. })), "{challenges:?}");
    assert_eq!((path.remote(), path.is_validated()), ('a', true));
    assert_eq!(path.room('x'), 0);
    path.on_received(at(60_000), 'x', 100, true);
    assert_eq!(path.room('x'), 300, "another packet earns no more than the first");
}

#[test]
fn a_move_has_three_probe_timeouts_of_the_path_or_of_one_of_which_nothing_is_known() {
    for (pto_ms, least_ms) in [(20, 2_997), (999, 2_997), (4_000, 12_000)] {
        let mut random = Counter(0);
        let mut path = validated(&mut random);
        path.on_received(at(0), 'b', 100, true);
        let done = run(&mut path, &mut random, Duration::from_millis(pto_ms), at(60_000));
        let failed = done.iter().position(|(_, action)| *action == MoveFailed).expect("an end");
        assert_eq!(failed, done.len() - 1, "the last that is done");
        let (took, least) = (done[failed].0.since(at(0)), Duration::from_millis(least_ms));
        assert!(took >= least && took <= least + CHALLENGE_WAIT_MAX, "{pto_ms} ms: {took:?}");
        let apart = |pair: &[(Time, ValidationAction<char>)]| pair[1].0.since(pair[0].0);
        assert!(done.windows(2).all(|pair| apart(pair) <= CHALLENGE_WAIT_MAX), "asked all the time: {done:?}");
    }
}

#[test]
fn an_answer_that_takes_longer_than_its_move_may_is_followed() {
    let mut random = Counter(0);
    let mut path = validated(&mut random);
    // A tenth of a second was measured, and since then a queue takes five.
    let mut done = Vec::new();
    for ms in (0..5_000).step_by(100) {
        path.on_received(at(ms), 'b', 100, true);
        done.extend(run(&mut path, &mut random, PTO, at(ms)));
    }
    assert!(done.iter().any(|(_, action)| *action == MoveFailed));
    let answer = path.on_response(at(5_000), first_token(&done));
    assert_eq!(answer, Some(Validated { remote: 'b', challenged_at: at(0) }));
    assert_eq!((path.remote(), path.room('b'), path.poll_timeout()), ('b', u64::MAX, None));
}

#[test]
fn a_move_that_failed_is_forgotten_once_the_peer_is_heard_where_it_was() {
    let mut random = Counter(0);
    let mut path = validated(&mut random);
    path.on_received(at(0), 'x', 100, true);
    let token = first_token(&run(&mut path, &mut random, PTO, at(10_000)));
    path.on_received(at(10_000), 'a', 100, false);
    assert!(path.clone().on_response(at(10_001), token).is_some(), "an old packet says nothing");
    path.on_received(at(10_000), 'a', 100, true);
    assert_eq!(path.on_response(at(10_001), token), None);
    assert_eq!(path.remote(), 'a');
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
