//! A gate beside an endpoint whose peers never came: what it decides by itself. The rest runs in hawser-sim.

use super::*;
use crate::testing::{endpoint, ms};

const ME: MemberId = MemberId(1);
const OTHER: MemberId = MemberId(2);
const PEER: PeerId = PeerId(0);

#[derive(Default)]
struct Nobody;

impl Sink for Nobody {
    fn deliver(&mut self, _: &[u8], _: bool) {
        panic!("nothing came");
    }
}

fn member() -> (Gate, Endpoint) {
    let (mut gate, mut endpoint) = (Gate::new(ME, Timing::DEFAULT), endpoint(1));
    gate.add_peer(ms(0), PEER, &mut endpoint, &mut Nobody);
    (gate, endpoint)
}

/// A claim comes, with an echo of what the member wrote then.
fn claim(gate: &mut Gate, endpoint: &mut Endpoint, now: u64, epoch: u64, owner: MemberId, echo: Option<u64>) {
    let claim = Claim { epoch: Epoch::new(epoch).expect("in range"), owner };
    let message =
        ClaimMessage::Claim(crate::claim::ClaimFrame { claim, echo: echo.map(|at| crate::units::Stamp(ms(at))) });
    let mut bytes = [0; ClaimMessage::MAX_LEN];
    let mut out = Writer::new(&mut bytes);
    message.encode(&mut out).expect("room");
    let frame = HubFrame::new(HubFrameType::Claim, out.written()).expect("it is short");
    gate.handle_event(ms(now), &Event::HubSaid { peer: PEER, frame }, endpoint, &mut Nobody);
}

fn announced(gate: &mut Gate) -> Vec<(Announcement, Option<u64>)> {
    std::iter::from_fn(|| gate.poll_event()).map(|one| (one.announcement, one.epoch.map(Epoch::get))).collect()
}

#[test]
fn a_lease_ends_before_the_batch_that_comes_after_it() {
    let (mut gate, mut endpoint) = member();
    claim(&mut gate, &mut endpoint, 100, 5, ME, Some(90));
    assert_eq!((gate.role(ms(100), PEER), announced(&mut gate)), (Role::Owner, vec![(Announcement::Owner, Some(5))]));
    assert_eq!(gate.poll_timeout(), ms(4090), "a lease after the stamp");
    let mut now = ms(100);
    while now < ms(4090) {
        now = gate.note_rest(now, ms(4090));
        assert!(gate.handle_batch(now, &mut endpoint, &mut Nobody), "{now:?}");
    }
    assert_eq!((gate.role(ms(4090), PEER), announced(&mut gate)), (Role::Lapsed, vec![]), "routes stay while it asks");
    gate.handle_event(ms(4100), &Event::Holds { peer: PEER }, &mut endpoint, &mut Nobody);
    gate.handle_timeout(ms(8100), &mut endpoint, &mut Nobody);
    assert_eq!(announced(&mut gate), [(Announcement::Withdrawn, Some(5))], "a peer that does not answer is not here");
}

#[test]
fn who_did_not_run_when_it_was_due_owns_nothing_until_it_is_claimed_again() {
    for (woken, role) in [(1250, Role::Owner), (1251, Role::Lapsed)] {
        let (mut gate, mut endpoint) = member();
        claim(&mut gate, &mut endpoint, 900, 5, ME, Some(890));
        assert_eq!(gate.note_rest(ms(900), ms(1000)), ms(1000));
        let ran = gate.handle_batch(ms(woken), &mut endpoint, &mut Nobody);
        assert_eq!((ran, gate.role(ms(woken), PEER)), (role == Role::Owner, role), "woken at {woken} ms, due at 1 s");
        claim(&mut gate, &mut endpoint, woken + 10, 5, ME, Some(woken + 5));
        assert_eq!(gate.role(ms(woken + 10), PEER), Role::Owner);
    }
}

#[test]
fn who_stood_still_with_packets_in_hand_forwards_none_of_them() {
    let (mut gate, mut endpoint) = member();
    claim(&mut gate, &mut endpoint, 900, 5, ME, Some(890));
    assert!(gate.handle_batch(ms(1000), &mut endpoint, &mut Nobody));
    let steps = [(1010, true), (1260, true), (1511, false), (1512, false)];
    assert_eq!(steps.map(|(at, _)| gate.runs(ms(at))), steps.map(|(_, runs)| runs), "250 ms from one to the next");
    assert_eq!(gate.role(ms(1511), PEER), Role::Owner, "it does not know yet");
    assert_eq!(gate.note_rest(ms(1512), ms(2000)), ms(1762));
    assert!(!gate.handle_batch(ms(1513), &mut endpoint, &mut Nobody), "a rest makes nobody forget it");
    assert_eq!((gate.role(ms(1513), PEER), gate.runs(ms(1514))), (Role::Lapsed, true));
}

/// Nothing is due for 1.2 s, and the process is stopped as soon as it rests.
#[test]
fn a_stop_that_ends_before_anything_is_due_is_noticed_while_a_lease_runs() {
    for (stopped, role) in [(500, Role::Owner), (501, Role::Lapsed), (1000, Role::Lapsed)] {
        let (mut gate, mut endpoint) = member();
        claim(&mut gate, &mut endpoint, 900, 5, ME, Some(890));
        assert_eq!(gate.note_rest(ms(900), ms(2100)), ms(1150), "it is woken before");
        let let_go = ms(900 + stopped);
        let ran = gate.handle_batch(let_go, &mut endpoint, &mut Nobody);
        assert_eq!((ran, gate.role(let_go, PEER)), (role == Role::Owner, role), "stopped for {stopped} ms");
    }
}

#[test]
fn who_owns_nobody_rests_until_something_is_due() {
    let (mut gate, mut endpoint) = member();
    assert_eq!(gate.note_rest(ms(0), Time::NEVER), Time::NEVER);
    claim(&mut gate, &mut endpoint, 100, 5, OTHER, None);
    assert_eq!(gate.note_rest(ms(100), ms(9000)), ms(9000), "it stands by");
    claim(&mut gate, &mut endpoint, 200, 6, ME, Some(190));
    assert_eq!(gate.note_rest(ms(200), ms(9000)), ms(450), "it owns");
    assert_eq!(gate.note_rest(ms(200), ms(300)), ms(300));
    assert_eq!(gate.note_rest(ms(4190), ms(9000)), ms(9000), "its lease is over");
}

#[test]
fn who_owns_is_told_with_its_epoch_and_a_new_peer_in_an_old_place_begins_without() {
    let (mut gate, mut endpoint) = member();
    claim(&mut gate, &mut endpoint, 100, 5, OTHER, None);
    claim(&mut gate, &mut endpoint, 200, 6, ME, Some(150));
    claim(&mut gate, &mut endpoint, 300, 5, OTHER, None);
    claim(&mut gate, &mut endpoint, 400, 7, OTHER, None);
    gate.handle_event(ms(500), &Event::Closed { peer: PEER }, &mut endpoint, &mut Nobody);
    let all = [(Announcement::Standby, Some(5)), (Announcement::Owner, Some(6)), (Announcement::Standby, Some(7))];
    assert_eq!(announced(&mut gate), [&all[..], &[(Announcement::Withdrawn, Some(7))]].concat());
    gate.add_peer(ms(600), PEER, &mut endpoint, &mut Nobody);
    assert_eq!((gate.role(ms(600), PEER), gate.known(PEER), gate.poll_timeout()), (Role::None, None, Time::NEVER));
}

#[test]
fn a_removed_peer_is_owned_no_more_and_keeps_no_member_from_ending() {
    let (mut gate, mut endpoint) = member();
    claim(&mut gate, &mut endpoint, 200, 6, ME, Some(150));
    assert!(gate.role(ms(250), PEER) == Role::Owner && !gate.is_drained());
    let key = endpoint.key_of(PEER).expect("it is there");
    gate.remove_peer(PEER);
    assert!(gate.is_drained());
    let told: Vec<_> = std::iter::from_fn(|| gate.poll_event()).collect();
    assert!(told.iter().all(|one| one.key == key), "whoever has its place is another one");
    let told: Vec<_> = told.iter().map(|one| (one.announcement, one.epoch.map(Epoch::get))).collect();
    assert_eq!(told, [(Announcement::Owner, Some(6)), (Announcement::Withdrawn, None)]);
    gate.remove_peer(PEER);
    assert_eq!(gate.poll_event(), None, "once");
    assert_eq!((gate.role(ms(250), PEER), gate.known(PEER), gate.poll_timeout()), (Role::None, None, Time::NEVER));
}

#[test]
fn a_peer_that_claims_anew_in_each_datagram_is_announced_eight_times_a_second_and_as_it_is_in_the_end() {
    let (mut gate, mut endpoint) = member();
    let mut told = Vec::new();
    for now in 1000..3000 {
        gate.handle_timeout(ms(now), &mut endpoint, &mut Nobody);
        claim(&mut gate, &mut endpoint, now, now, ME, Some(now - 1));
        told.extend(announced(&mut gate).iter().map(|_| now));
    }
    let at_once = [1000, 1001, 1002, 1003];
    assert_eq!(told, at_once.into_iter().chain((1125..3000).step_by(125)).collect::<Vec<_>>());
    assert_eq!(gate.poll_timeout(), ms(3000));
    gate.handle_timeout(ms(3000), &mut endpoint, &mut Nobody);
    assert_eq!(announced(&mut gate), [(Announcement::Owner, Some(2999))]);
    assert_eq!(gate.poll_timeout(), ms(6998), "a lease after the last stamp");
}

#[test]
fn what_waits_to_be_announced_does_not_withdraw_a_peer_that_came_back_without_a_hub() {
    let (mut gate, mut endpoint) = member();
    for now in 1000..1004 {
        claim(&mut gate, &mut endpoint, now, now, ME, Some(now - 1));
    }
    assert_eq!(announced(&mut gate).len(), 4);
    gate.handle_event(ms(1004), &Event::Closed { peer: PEER }, &mut endpoint, &mut Nobody);
    assert_eq!(announced(&mut gate), [], "it waits");
    gate.handle_event(ms(1010), &Event::Session { peer: PEER, new: true }, &mut endpoint, &mut Nobody);
    gate.handle_timeout(ms(1200), &mut endpoint, &mut Nobody);
    assert_eq!((announced(&mut gate), gate.is_plain(PEER)), (vec![(Announcement::Owner, None)], true));
}

#[test]
fn a_peer_that_comes_back_without_a_hub_and_had_not_closed_keeps_its_route() {
    for heard in [true, false] {
        let (mut gate, mut endpoint) = member();
        claim(&mut gate, &mut endpoint, 100, 6, ME, Some(50));
        gate.handle_timeout(ms(4_050), &mut endpoint, &mut Nobody);
        gate.handle_event(ms(4_100), &Event::Holds { peer: PEER }, &mut endpoint, &mut Nobody);
        announced(&mut gate);
        gate.handle_event(ms(6_000), &Event::Session { peer: PEER, new: true }, &mut endpoint, &mut Nobody);
        if heard {
            let claim = Claim { epoch: Epoch::new(7).expect("in range"), owner: OTHER };
            gate.handle_hearsay(ms(6_100), PEER, claim, &mut endpoint, &mut Nobody);
        }
        gate.handle_timeout(ms(20_000), &mut endpoint, &mut Nobody);
        assert_eq!((announced(&mut gate), gate.is_plain(PEER)), (vec![(Announcement::Owner, None)], true), "{heard}");
    }
}

#[test]
fn a_standby_looks_whether_packets_go_on_to_come_and_no_longer_than_they_do() {
    let (mut gate, mut endpoint) = member();
    claim(&mut gate, &mut endpoint, 100, 5, OTHER, None);
    let untold = ms(100) + UNTOLD;
    assert_eq!(gate.poll_timeout(), untold);
    gate.handle_event(ms(200), &Event::Holds { peer: PEER }, &mut endpoint, &mut Nobody);
    assert_eq!(gate.poll_timeout(), ms(300));
    gate.handle_timeout(ms(300), &mut endpoint, &mut Nobody);
    assert_eq!(gate.poll_timeout(), untold, "none are held");
}

#[test]
fn a_standby_that_is_told_nothing_more_or_drains_is_no_way_to_the_peer() {
    let (mut gate, mut endpoint) = member();
    claim(&mut gate, &mut endpoint, 100, 5, OTHER, None);
    assert_eq!(announced(&mut gate), [(Announcement::Standby, Some(5))]);
    claim(&mut gate, &mut endpoint, 60_000, 5, OTHER, None);
    gate.handle_timeout(ms(100) + UNTOLD, &mut endpoint, &mut Nobody);
    assert_eq!((announced(&mut gate), gate.role(ms(100_000), PEER)), (vec![], Role::Standby), "it was told again");
    gate.handle_timeout(ms(60_000) + UNTOLD, &mut endpoint, &mut Nobody);
    assert_eq!(announced(&mut gate), [(Announcement::Withdrawn, Some(5))]);
    assert_eq!((gate.role(ms(150_000), PEER), gate.poll_timeout()), (Role::None, Time::NEVER));
    claim(&mut gate, &mut endpoint, 160_000, 5, OTHER, None);
    assert_eq!(announced(&mut gate), [(Announcement::Standby, Some(5))], "another died");
    for (draining, announces) in [(true, Announcement::Withdrawn), (false, Announcement::Standby)] {
        gate.handle_drain(ms(170_000), None, draining, &mut endpoint, &mut Nobody);
        assert_eq!(announced(&mut gate), [(announces, Some(5))], "drains: {draining}");
    }
}

#[test]
fn one_packet_may_be_late_and_those_that_go_on_coming_are_told_of() {
    // Since when they come, and the last one, ms; whether the peer is told at 300 ms, and whether it is looked again.
    for (brought, told, again) in [
        (None, false, false),
        (Some((200, 200)), false, true),
        (Some((200, 249)), false, true),
        (Some((200, 250)), true, true),
        (Some((50, 200)), false, true),
        (Some((50, 201)), true, true),
    ] {
        let mut ward = Ward::new(None, ME, Timing::DEFAULT);
        let claim = Claim { epoch: Epoch::FIRST, owner: OTHER };
        ward.ownership.handle_claim(ms(100), crate::claim::ClaimFrame { claim, echo: None });
        ward.ownership.poll_ack(ms(100));
        ward.look_at = ms(300);
        ward.on_timeout(ms(300), brought.map(|(first, last)| (ms(first), ms(last))));
        assert_eq!(ward.ownership.poll_ack(ms(300)).is_some_and(|ack| ack.brought), told, "{brought:?}");
        assert_eq!(ward.look_at, if again { ms(400) } else { Time::NEVER }, "{brought:?}");
    }
}

#[test]
fn nonsense_and_other_peers_events_change_nothing() {
    let (mut gate, mut endpoint) = member();
    let frame = HubFrame::new(HubFrameType::Claim, &[9; 26]).expect("it is short");
    for event in [Event::HubSaid { peer: PEER, frame }, Event::HubSaid { peer: PeerId(7), frame }] {
        gate.handle_event(ms(100), &event, &mut endpoint, &mut Nobody);
    }
    assert_eq!((gate.role(ms(100), PEER), announced(&mut gate)), (Role::None, vec![]));
}

#[test]
fn a_claim_that_others_saw_fences_and_an_older_one_does_not() {
    let (mut gate, mut endpoint) = member();
    let heard = |gate: &mut Gate, endpoint: &mut Endpoint, at, epoch, peer| {
        let claim = Claim { epoch: Epoch::new(epoch).expect("in range"), owner: OTHER };
        gate.handle_hearsay(ms(at), peer, claim, endpoint, &mut Nobody);
    };
    heard(&mut gate, &mut endpoint, 0, 4, PEER);
    claim(&mut gate, &mut endpoint, 100, 3, ME, Some(90));
    assert_eq!(gate.role(ms(100), PEER), Role::None, "a claim from before a restart makes nobody an owner");
    claim(&mut gate, &mut endpoint, 100, 5, ME, Some(90));
    announced(&mut gate);
    for epoch in [4, 6] {
        heard(&mut gate, &mut endpoint, 200, epoch, PEER);
        assert_eq!((gate.role(ms(200), PEER), announced(&mut gate)), (Role::Owner, vec![]), "it has a lease");
    }
    gate.handle_timeout(ms(4_090), &mut endpoint, &mut Nobody);
    let withdrawn = vec![(Announcement::Withdrawn, Some(6))];
    assert_eq!((gate.role(ms(4_090), PEER), announced(&mut gate)), (Role::Fenced, withdrawn), "it is over");
    heard(&mut gate, &mut endpoint, 5_000, 7, PeerId(9));
}

#[test]
fn links_have_room_for_another_member_until_the_move_is_over_or_no_longer_asked_for() {
    let (mut gate, mut endpoint) = member();
    let idle = gate.poll_timeout();
    for undone in [false, true] {
        gate.handle_drain(ms(0), None, true, &mut endpoint, &mut Nobody);
        assert_eq!(gate.poll_timeout(), ms(0) + MOVES_FOR);
        if undone {
            gate.handle_drain(ms(1), None, false, &mut endpoint, &mut Nobody);
        } else {
            gate.handle_timeout(ms(0) + MOVES_FOR, &mut endpoint, &mut Nobody);
        }
        assert_eq!(gate.poll_timeout(), idle);
    }
}
