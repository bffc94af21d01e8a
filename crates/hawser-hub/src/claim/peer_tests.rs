//! Every arrow of the peer's drawing, and when it does not move.

use super::*;
use crate::units::{Epoch, MemberId, Stamp};
use hawser_core::units::Time;
use std::time::Duration;

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).expect("in range")
}

fn claim(number: u64, owner: MemberId) -> Claim {
    Claim { epoch: epoch(number), owner }
}

fn ack(number: u64, role: Role, stamp: u64) -> ClaimAck {
    ClaimAck {
        epoch: Epoch::new(number),
        role,
        draining: false,
        brought: false,
        misses: false,
        stamp: Stamp(ms(stamp)),
    }
}

fn draining(number: u64, role: Role) -> ClaimAck {
    ClaimAck { draining: true, ..ack(number, role, 7) }
}

/// All that is due: whom it goes to, the epoch, the owner.
fn sent(peer: &mut Claimant, now: u64) -> Vec<(MemberId, Claim)> {
    std::iter::from_fn(|| peer.poll_transmit(ms(now))).map(|(id, frame)| (id, frame.claim)).collect()
}

/// A peer whose active member is `A`, since just before 1 s, when both have answered what they were told.
fn settled() -> Claimant {
    let mut peer = Claimant::new(epoch(5), A, B, Timing::DEFAULT);
    assert_eq!(sent(&mut peer, 990), [(A, claim(5, A)), (B, claim(5, A))]);
    peer.handle_ack(ms(992), A, ack(5, Role::Lapsed, 1));
    assert_eq!(sent(&mut peer, 992), [(A, claim(5, A))]);
    peer.handle_ack(ms(994), A, ack(5, Role::Owner, 2));
    peer.handle_ack(ms(994), B, ack(5, Role::Standby, 3));
    assert_eq!(
        sent(&mut peer, 995),
        [(A, claim(5, A)), (B, claim(5, A))],
        "its lease is the newest stamp's from now on"
    );
    peer.handle_ack(ms(997), A, ack(5, Role::Owner, 3));
    peer.handle_ack(ms(997), B, ack(5, Role::Standby, 4));
    assert_eq!((peer.phase(), peer.carrier()), (Phase::Settled, A));
    peer
}

/// The same, after a packet to `A` at 1 s was not answered until 1.35 s, while `B` answered.
fn claiming() -> Claimant {
    let mut peer = settled();
    peer.handle_sent(ms(1000), A);
    assert_eq!(peer.poll_timeout(), ms(1175), "half of the silence: the packet may be lost, and both are asked");
    assert_eq!(sent(&mut peer, 1175), [(A, claim(5, A)), (B, claim(5, A))]);
    peer.handle_ack(ms(1190), B, ack(5, Role::Standby, 5));
    assert_eq!(peer.poll_timeout(), ms(1275), "once more");
    assert_eq!(sent(&mut peer, 1275), [(A, claim(5, A))]);
    assert_eq!(peer.poll_timeout(), ms(1350));
    peer.handle_timeout(ms(1350));
    peer
}

#[test]
fn a_silent_owner_loses_the_peer_to_a_standby_that_answers() {
    let mut peer = claiming();
    assert_eq!((peer.claim(), peer.phase(), peer.carrier()), (claim(6, B), Phase::Claiming, B));
    let (to, frame) = peer.poll_transmit(ms(1350)).expect("at once");
    assert_eq!(
        (to, frame.echo),
        (B, Some(Stamp(ms(5)))),
        "the newest stamp: its lease begins without a round trip more"
    );
    assert_eq!(sent(&mut peer, 1350), [(A, claim(6, B))], "the old owner is fenced, should it hear");
    peer.handle_ack(ms(1370), B, ack(6, Role::Owner, 6));
    assert_eq!(peer.phase(), Phase::Settled);
}

#[test]
fn an_owner_that_other_members_miss_is_asked_and_left_only_if_it_does_not_answer() {
    for answers in [true, false] {
        let mut peer = settled();
        assert_eq!(sent(&mut peer, 1100), []);
        peer.handle_missed(ms(1100));
        assert_eq!(sent(&mut peer, 1100), [(A, claim(5, A))], "it had nothing to say");
        if answers {
            peer.handle_ack(ms(1120), A, ack(5, Role::Owner, 6));
        }
        sent(&mut peer, 1275);
        peer.handle_ack(ms(1290), B, ack(5, Role::Standby, 5));
        peer.handle_timeout(ms(1450));
        assert_eq!(peer.claim(), if answers { claim(5, A) } else { claim(6, B) });
        peer.handle_missed(ms(1460));
        assert_eq!(peer.phase(), if answers { Phase::Settled } else { Phase::Claiming });
    }
}

#[test]
fn an_owner_that_ends_its_session_is_left_at_once_unless_the_other_ones_ended_before() {
    for other_ended in [false, true] {
        let mut peer = settled();
        if other_ended {
            peer.handle_gone(ms(1000), B);
        }
        peer.handle_gone(ms(1000), A);
        assert_eq!(peer.claim(), if other_ended { claim(5, A) } else { claim(6, B) });
        assert!(!other_ended || !peer.handle_move(ms(1000)), "nor is it given away by a planned move");
    }
}

#[test]
fn a_claim_is_said_until_it_is_answered_and_then_each_refresh() {
    let mut peer = claiming();
    let _ = sent(&mut peer, 1350);
    assert_eq!(sent(&mut peer, 1449), []);
    assert_eq!(sent(&mut peer, 1450).first(), Some(&(B, claim(6, B))));
    peer.handle_ack(ms(1460), B, ack(6, Role::Owner, 6));
    peer.handle_ack(ms(1460), A, ack(6, Role::Standby, 6));
    let _ = sent(&mut peer, 1460);
    peer.handle_ack(ms(1461), A, ack(6, Role::Standby, 6));
    peer.handle_ack(ms(1461), B, ack(6, Role::Owner, 6));
    assert_eq!((sent(&mut peer, 3159), peer.poll_timeout()), (vec![], ms(3160)), "1.7 s after the owner was told");
}

#[test]
fn where_neither_answers_nothing_moves_and_when_one_does_the_owner_has_time_to() {
    let mut peer = settled();
    peer.handle_sent(ms(1000), A);
    for now in [1175, 1275, 1350, 1500, 1700, 1900, 2100, 2300] {
        peer.handle_timeout(ms(now));
        let _ = sent(&mut peer, now);
    }
    assert_eq!((peer.claim(), peer.phase()), (claim(5, A), Phase::Settled));
    let mut active_first = peer.clone();
    active_first.handle_heard(ms(2400), A);
    active_first.handle_heard(ms(2400), B);
    assert_eq!(active_first.claim(), claim(5, A));
    peer.handle_heard(ms(2400), B);
    let mut active_later = peer.clone();
    active_later.handle_heard(ms(2410), A);
    active_later.handle_timeout(ms(2760));
    assert_eq!(active_later.claim(), claim(5, A), "the same outage kept its answer");
    for now in [2575, 2590, 2740, 2890] {
        let _ = sent(&mut peer, now);
        peer.handle_heard(ms(now + 5), B);
        assert_eq!(peer.claim(), claim(5, A));
    }
    peer.handle_timeout(ms(2900));
    assert_eq!(peer.claim(), claim(6, B));
}

/// Two links bring an owner's last acknowledgements, one of them after a silence.
#[test]
fn what_a_link_still_held_of_a_silent_owner_is_no_outage_of_the_peers_links() {
    let mut peer = settled();
    peer.handle_sent(ms(1000), A);
    let _ = sent(&mut peer, 1175);
    peer.handle_heard(ms(1360), A);
    peer.handle_sent(ms(1360), A);
    let _ = sent(&mut peer, 1535);
    peer.handle_heard(ms(1540), B);
    peer.handle_timeout(ms(1710));
    assert_eq!(peer.claim(), claim(6, B), "a silence after the last of them");
}

/// The standby is told little: the next that it answers is the question whether it is there.
#[test]
fn a_datagram_to_the_standby_that_was_lost_before_its_owner_fell_silent_is_no_outage_of_the_peers_links() {
    let mut peer = settled();
    peer.handle_sent(ms(400), B);
    peer.handle_sent(ms(1000), A);
    let _ = sent(&mut peer, 1175);
    peer.handle_heard(ms(1195), B);
    peer.handle_timeout(ms(1350));
    assert_eq!(peer.claim(), claim(6, B), "a silence after the owner was sent something");
}

#[test]
fn a_standby_that_always_answers_late_gets_the_peer_all_the_same() {
    let mut peer = settled();
    peer.handle_sent(ms(1000), A);
    for now in (1000..3000).step_by(50) {
        peer.handle_timeout(ms(now));
        let _ = sent(&mut peer, now);
        if now % 500 == 200 {
            peer.handle_heard(ms(now), B);
        }
    }
    assert_eq!(peer.claim(), claim(6, B));
}

/// Acknowledgements of data tell that the owner is there: it is asked only where nothing comes for a probe timeout.
#[test]
fn an_owner_that_answers_data_is_told_the_claim_each_refresh_alone() {
    let mut peer = settled();
    for now in (1000..2600).step_by(200) {
        peer.handle_sent(ms(now), A);
        // As late as it may be.
        assert_eq!(sent(&mut peer, now + 174), [], "{now} ms");
        peer.handle_heard(ms(now + 174), A);
    }
    peer.handle_sent(ms(2600), A);
    assert_eq!((sent(&mut peer, 2694), sent(&mut peer, 2695)), (vec![], vec![(A, claim(5, A))]));
}

#[test]
fn a_claim_that_was_lost_beside_data_is_said_again_before_the_lease_ends() {
    let mut peer = settled();
    let mut told = Vec::new();
    for now in 1000..6000 {
        peer.handle_sent(ms(now), A);
        peer.handle_heard(ms(now), A);
        told.extend(sent(&mut peer, now).iter().filter(|(to, _)| *to == A).map(|_| now));
        // The first two are lost.
        if told.len() >= 3 && told.last() == Some(&now) {
            peer.handle_ack(ms(now), A, ack(5, Role::Owner, now));
        }
    }
    assert_eq!(told, [2695, 3045, 3395, 5095], "a silence apart, and each refresh");
}

#[test]
fn the_standby_is_told_the_claim_ten_times_as_seldom() {
    let mut peer = settled();
    let mut told = Vec::new();
    for now in 1000..36_000 {
        for (to, _) in sent(&mut peer, now) {
            peer.handle_ack(ms(now), to, ack(5, if to == A { Role::Owner } else { Role::Standby }, now));
            told.extend((to == B).then_some(now));
        }
    }
    assert_eq!(told, [17_995, 34_995]);
}

#[test]
fn what_the_standby_said_before_the_silence_says_nothing() {
    let mut peer = settled();
    peer.handle_sent(ms(1000), A);
    peer.handle_heard(ms(1100), B);
    peer.handle_timeout(ms(1360));
    assert_eq!(peer.claim(), claim(5, A));
}

#[test]
fn a_claim_that_is_not_answered_goes_back_with_a_higher_epoch_and_more_patience() {
    let mut peer = claiming();
    let _ = sent(&mut peer, 1350);
    let mut at = 1350;
    for (given_up, next) in [(350, claim(7, A)), (700, claim(8, B)), (1400, claim(9, A))] {
        let other = if next.owner == A { A } else { B };
        for now in (at..at + given_up).step_by(50) {
            peer.handle_heard(ms(now), other);
            let _ = sent(&mut peer, now);
            assert_ne!(peer.claim(), next, "{now} ms");
        }
        at += given_up;
        peer.handle_timeout(ms(at));
        assert_eq!(peer.claim(), next);
        let _ = sent(&mut peer, at);
    }
}

#[test]
fn a_lapsed_or_restarted_owner_is_claimed_again_in_its_epoch() {
    let mut peer = settled();
    peer.handle_ack(ms(1000), A, ack(5, Role::Lapsed, 9));
    assert_eq!(peer.phase(), Phase::Claiming);
    let (to, frame) = peer.poll_transmit(ms(1000)).expect("at once");
    assert_eq!((to, frame), (A, ClaimFrame { claim: claim(5, A), echo: Some(Stamp(ms(9))) }));

    let mut peer = settled();
    peer.handle_session(ms(1000), A);
    assert_eq!(peer.phase(), Phase::Claiming);
    let (to, frame) = peer.poll_transmit(ms(1000)).expect("at once");
    assert_eq!((to, frame), (A, ClaimFrame { claim: claim(5, A), echo: None }), "the last start's stamps are gone");
}

#[test]
fn epochs_of_an_earlier_life_are_claimed_above() {
    let mut peer = settled();
    peer.handle_ack(ms(1000), B, ack(40, Role::Fenced, 9));
    assert_eq!((peer.claim(), peer.phase()), (claim(41, A), Phase::Claiming));
    // It has this very one, and as another's.
    peer.handle_ack(ms(1001), A, ack(41, Role::Standby, 9));
    assert_eq!(peer.claim(), claim(42, A));
    peer.handle_ack(ms(1002), B, ack(Epoch::LAST.get(), Role::Fenced, 9));
    assert_eq!(peer.claim(), claim(42, A), "nothing is above the last");
}

#[test]
fn a_draining_owner_goes_on_until_the_other_one_owns() {
    let mut peer = settled();
    peer.handle_ack(ms(1000), A, draining(5, Role::Owner));
    assert_eq!((peer.claim(), peer.phase(), peer.carrier()), (claim(6, B), Phase::Moving, A));
    assert_eq!(sent(&mut peer, 1000), [(B, claim(6, B)), (A, claim(5, A))]);
    peer.handle_ack(ms(1020), B, ack(6, Role::Owner, 9));
    assert_eq!((peer.phase(), peer.carrier()), (Phase::Settled, B));
    peer.let_go();
    assert_eq!(sent(&mut peer, 1020), [(B, claim(6, B)), (A, claim(6, B))], "now it is fenced");
    peer.handle_ack(ms(1030), A, draining(6, Role::Standby));
    assert_eq!(peer.claim(), claim(6, B));
}

/// A planned move from `A` to `B` that `B` confirmed at 1.02 s, and neither has anything to be told; `A` was not let go.
fn moved() -> Claimant {
    let mut peer = settled();
    assert!(peer.handle_move(ms(1000)));
    let _ = sent(&mut peer, 1000);
    peer.let_go();
    assert_eq!(sent(&mut peer, 1001), [], "not before the new one owns");
    peer.handle_ack(ms(1020), B, ack(6, Role::Owner, 8));
    assert_eq!(
        sent(&mut peer, 1020),
        [(B, claim(6, B)), (A, claim(5, A))],
        "what is under way to the old one is its own"
    );
    peer.handle_ack(ms(1030), A, ack(5, Role::Owner, 9));
    peer.handle_ack(ms(1030), B, ack(6, Role::Owner, 9));
    peer
}

#[test]
fn an_old_owner_of_a_planned_move_is_told_so_once_it_is_let_go() {
    let mut peer = moved();
    assert_eq!((sent(&mut peer, 1040), peer.claim()), (vec![], claim(6, B)));
    peer.let_go();
    assert_eq!(sent(&mut peer, 1040), [(A, claim(6, B))]);
    let told = peer.clone();
    peer.let_go();
    assert_eq!(peer, told, "once");

    let mut restarted = moved();
    restarted.handle_session(ms(1040), A);
    assert_eq!(sent(&mut restarted, 1040), [(A, claim(6, B))], "an old owner that restarted has nothing left to do");
}

#[test]
fn a_new_owner_that_falls_silent_at_once_is_left_as_soon_as_any() {
    let mut peer = moved();
    peer.handle_sent(ms(1100), B);
    assert_eq!(sent(&mut peer, 1275), [(B, claim(6, B)), (A, claim(5, A))], "the old one is asked as what it is");
    peer.handle_ack(ms(1290), A, ack(5, Role::Owner, 10));
    peer.handle_timeout(ms(1450));
    assert_eq!((peer.claim(), peer.phase()), (claim(7, A), Phase::Claiming), "0.35 s after it was sent something");
    assert_eq!(sent(&mut peer, 1450), [(A, claim(7, A)), (B, claim(7, A))]);
}

/// A claim goes by each path, and each path's answer comes back by it: the slow one's tells of before.
#[test]
fn an_answer_that_was_overtaken_is_no_news() {
    let mut peer = settled();
    peer.handle_ack(ms(1000), A, draining(5, Role::Owner));
    peer.handle_ack(ms(1020), B, ack(6, Role::Lapsed, 8));
    let _ = sent(&mut peer, 1020);
    peer.handle_ack(ms(1040), B, ack(6, Role::Owner, 10));
    let mut heard_alone = peer.clone();
    peer.handle_ack(ms(1040), B, ack(6, Role::Lapsed, 9));
    assert_eq!(peer, heard_alone, "the move is a planned one still");
    peer.handle_ack(ms(1041), A, ack(5, Role::Owner, 6));
    heard_alone.handle_heard(ms(1041), A);
    assert_eq!(peer, heard_alone, "and who drains does so");
    peer.handle_ack(ms(1042), B, ack(6, Role::Lapsed, 11));
    assert_eq!(peer.phase(), Phase::Claiming, "as what it says later is");
}

#[test]
fn a_planned_move_that_is_not_answered_goes_back() {
    let mut peer = settled();
    assert!(peer.handle_move(ms(1000)));
    let _ = sent(&mut peer, 1000);
    peer.handle_heard(ms(1300), A);
    peer.handle_timeout(ms(1350));
    assert_eq!((peer.claim(), peer.phase()), (claim(7, A), Phase::Claiming));
}

#[test]
fn a_planned_move_between_two_that_are_gone_is_a_claim_like_any_other_which_a_third_may_take() {
    const C: MemberId = MemberId(3);
    let mut peer = settled();
    peer.handle_both_gone();
    assert_eq!(peer, settled(), "nobody moves");
    assert!(peer.handle_move(ms(1000)));
    assert_eq!(sent(&mut peer, 1000), [(B, claim(6, B)), (A, claim(5, A))]);
    assert!(!peer.replace_standby(C), "the old owner is still needed");
    peer.handle_both_gone();
    assert_eq!((peer.claim(), peer.phase(), peer.carrier()), (claim(6, B), Phase::Claiming, B));
    assert!(peer.replace_standby(C));
    assert_eq!(sent(&mut peer, 1400), [(B, claim(6, B)), (C, claim(6, B))]);
    peer.handle_ack(ms(1420), C, ack(6, Role::Standby, 1));
    assert_eq!((peer.claim(), peer.phase(), peer.carrier()), (claim(7, C), Phase::Claiming, C));
}

#[test]
fn nobody_moves_to_who_drains_too_or_is_not_heard() {
    let mut both_drain = settled();
    both_drain.handle_ack(ms(1000), B, draining(5, Role::Standby));
    both_drain.handle_ack(ms(1000), A, draining(5, Role::Owner));
    assert_eq!(both_drain.claim(), claim(5, A));

    let mut unheard = settled();
    assert!(unheard.replace_standby(MemberId(3)));
    assert!(!unheard.handle_move(ms(1000)));
    unheard.handle_ack(ms(1001), MemberId(3), ack(5, Role::Standby, 1));
    assert!(unheard.handle_move(ms(1001)));
    assert!(!unheard.replace_standby(B), "the old owner is still needed");
    assert!(!unheard.handle_move(ms(1001)));
}

#[test]
fn a_peer_that_did_not_run_takes_nobody_for_silent() {
    let mut peer = settled();
    peer.handle_sent(ms(1000), A);
    peer.handle_timeout(ms(60_000));
    peer.handle_heard(ms(60_000), B);
    assert_eq!(peer.claim(), claim(5, A));
    let _ = sent(&mut peer, 60_000);
    peer.handle_heard(ms(60_200), B);
    peer.handle_timeout(ms(60_350));
    assert_eq!(peer.claim(), claim(6, B), "but from now on it counts");

    let mut answered_before = settled();
    answered_before.handle_sent(ms(1000), A);
    let _ = sent(&mut answered_before, 1175);
    answered_before.handle_heard(ms(1190), B);
    answered_before.handle_timeout(ms(60_000));
    answered_before.handle_timeout(ms(60_350));
    assert_eq!(answered_before.claim(), claim(5, A), "and what the other one said before it stopped does not");
}

#[test]
fn strangers_are_not_listened_to() {
    let mut peer = settled();
    peer.handle_ack(ms(1000), MemberId(9), ack(90, Role::Owner, 9));
    assert_eq!(peer, settled());
}
