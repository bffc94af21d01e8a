//! Every arrow of the member's drawing, and what a lease bounds.

use super::*;
use crate::units::{Epoch, MemberId, Stamp};
use hawser_core::units::Time;
use std::time::Duration;

const ME: MemberId = MemberId(1);
const OTHER: MemberId = MemberId(2);
const TIMING: Timing = Timing::DEFAULT;

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn claim(epoch: u64, owner: MemberId) -> Claim {
    Claim { epoch: Epoch::new(epoch).expect("in range"), owner }
}

fn frame(epoch: u64, owner: MemberId, echo: Option<u64>) -> ClaimFrame {
    ClaimFrame { claim: claim(epoch, owner), echo: echo.map(|millis| Stamp(ms(millis))) }
}

/// A member after these claims came at 1 s, and what it announces since.
fn member(claims: &[ClaimFrame]) -> (Ownership, Option<Announcement>) {
    let mut member = Ownership::new(ME, TIMING);
    for frame in claims {
        assert_eq!(member.handle_claim(ms(1000), *frame), Verdict::Taken);
    }
    let announcement = member.poll_announcement();
    (member, announcement)
}

fn owner() -> Ownership {
    member(&[frame(5, ME, Some(900))]).0
}

#[test]
fn every_arrow_that_a_claim_draws() {
    let standby = frame(5, OTHER, None);
    let mine = frame(6, ME, Some(900));
    let stale = frame(6, ME, None);
    let table: [(&str, &[ClaimFrame], Role, Option<Announcement>); 6] = [
        ("nothing came", &[], Role::None, None),
        ("absent to standby", &[standby], Role::Standby, Some(Announcement::Standby)),
        ("absent to owner", &[mine], Role::Owner, Some(Announcement::Owner)),
        ("standby to owner", &[standby, mine], Role::Owner, Some(Announcement::Owner)),
        ("standby to owner without an echo", &[standby, stale], Role::Lapsed, Some(Announcement::Standby)),
        ("owner to standby", &[mine, frame(7, OTHER, None)], Role::Standby, Some(Announcement::Standby)),
    ];
    for (what, claims, role, announcement) in table {
        let (member, announced) = member(claims);
        assert_eq!((member.role(ms(1000)), announced), (role, announcement), "{what}");
    }
}

/// The lease of the owner of 5 ends at 4.9 s.
#[test]
fn hearsay_of_a_higher_epoch_fences_once_the_lease_is_over_and_of_no_other() {
    for (what, heard, at, verdict, role) in [
        ("higher, and the peer has not said so", claim(6, OTHER), 4899, Verdict::Early, Role::Owner),
        ("higher", claim(6, OTHER), 4900, Verdict::Taken, Role::Fenced),
        ("higher, and mine: the peer has to say so itself", claim(6, ME), 4900, Verdict::Taken, Role::Fenced),
        ("the same", claim(5, ME), 1000, Verdict::Taken, Role::Owner),
        ("the same, another's", claim(5, OTHER), 4900, Verdict::Conflict, Role::Lapsed),
        ("lower", claim(4, OTHER), 4900, Verdict::Stale, Role::Lapsed),
    ] {
        let mut member = owner();
        assert_eq!((member.handle_hearsay(ms(at), heard), member.role(ms(at))), (verdict, role), "{what}");
        let forwards = member.forwarding(ms(at)) == Forwarding::Forward(claim(5, ME).epoch);
        assert_eq!(forwards, role == Role::Owner, "{what}");
    }
}

/// The owner of 5 heard of 6 at 1.5 s; what the peer says comes at 2 s.
#[test]
fn what_was_heard_during_a_lease_counts_once_it_is_over_unless_the_peer_says_something_as_high() {
    let early = || {
        let mut member = owner();
        assert_eq!(member.handle_hearsay(ms(1500), claim(6, OTHER)), Verdict::Early);
        member
    };
    for (what, said, over, role) in [
        ("the peer says nothing", None, 4900, Role::Fenced),
        ("it renews the lease first", Some(frame(5, ME, Some(2000))), 6000, Role::Fenced),
        ("it says the same", Some(frame(6, OTHER, None)), 4900, Role::Standby),
        ("it gives the epoch to this member", Some(frame(6, ME, Some(2000))), 6000, Role::Lapsed),
        ("it came back", Some(frame(7, ME, Some(2000))), 6000, Role::Lapsed),
    ] {
        let mut member = early();
        said.iter().for_each(|frame| assert_eq!(member.handle_claim(ms(2000), *frame), Verdict::Taken, "{what}"));
        member.poll_ack(ms(2000));
        let due = if role == Role::Fenced { ms(over) } else { Time::NEVER };
        assert_eq!(member.poll_timeout(), due, "{what}");
        member.handle_timeout(ms(over - 1));
        assert_ne!(member.role(ms(over - 1)), Role::Fenced, "{what}");
        member.handle_timeout(ms(over));
        assert_eq!((member.role(ms(over)), member.poll_timeout()), (role, Time::NEVER), "{what}");
    }
    let mut stopped = early();
    stopped.handle_resumed(ms(2000));
    stopped.poll_ack(ms(2000));
    assert!(stopped.poll_timeout() <= ms(2000), "its lease is over");
    stopped.handle_timeout(ms(2000));
    assert_eq!(stopped.role(ms(2000)), Role::Fenced);

    let mut gone = early();
    [8, 7].iter().for_each(|epoch| assert_eq!(gone.handle_hearsay(ms(1600), claim(*epoch, OTHER)), Verdict::Early));
    gone.handle_gone();
    gone.handle_timeout(ms(1600));
    assert_eq!((gone.role(ms(1600)), gone.known()), (Role::None, Some(claim(8, OTHER))), "the highest of them");
}

#[test]
fn a_fenced_member_follows_the_peer_again() {
    let mut fenced = owner();
    fenced.handle_resumed(ms(1000));
    let _ = fenced.handle_hearsay(ms(1000), claim(6, OTHER));
    assert_eq!(fenced.poll_announcement(), Some(Announcement::Withdrawn));
    assert_eq!(fenced.handle_claim(ms(1000), frame(5, ME, Some(999))), Verdict::Stale, "late, of the lower epoch");
    assert_eq!(fenced.forwarding(ms(1000)), Forwarding::Drop);

    let mut standby = fenced.clone();
    let _ = standby.handle_claim(ms(1000), frame(6, OTHER, None));
    assert_eq!((standby.role(ms(1000)), standby.poll_announcement()), (Role::Standby, Some(Announcement::Standby)));
    let _ = fenced.handle_claim(ms(1000), frame(7, ME, None));
    assert_eq!(fenced.role(ms(1000)), Role::Lapsed, "its lease ended with its epoch");
    let _ = fenced.handle_claim(ms(1000), frame(7, ME, Some(1000)));
    assert_eq!((fenced.role(ms(1000)), fenced.poll_announcement()), (Role::Owner, Some(Announcement::Owner)));
}

#[test]
fn who_is_absent_remembers_what_fences() {
    let mut member = Ownership::new(ME, TIMING);
    let _ = member.handle_hearsay(ms(0), claim(6, ME));
    assert_eq!((member.role(ms(0)), member.poll_announcement()), (Role::None, None), "hearsay makes no owner");
    assert_eq!(member.handle_claim(ms(0), frame(5, ME, Some(0))), Verdict::Stale);
    let _ = member.handle_claim(ms(0), frame(6, ME, Some(0)));
    assert_eq!(member.role(ms(0)), Role::Owner);

    let mut gone = owner();
    gone.handle_gone();
    assert_eq!((gone.role(ms(1000)), gone.poll_announcement()), (Role::None, Some(Announcement::Withdrawn)));
    assert_eq!((gone.known(), gone.poll_ack(ms(1000))), (Some(claim(5, ME)), None));
}

/// The stamp was written at 0.9 s; the lease is 4 s.
#[test]
fn a_lease_counts_from_the_stamp_and_not_from_the_claim() {
    let mut member = owner();
    assert_eq!(member.forwarding(ms(4899)), Forwarding::Forward(claim(5, ME).epoch));
    assert_eq!((member.role(ms(4900)), member.forwarding(ms(4900))), (Role::Lapsed, Forwarding::Hold));
    // It was stopped; a claim had waited in its socket.
    let _ = member.handle_claim(ms(9000), frame(5, ME, Some(1000)));
    assert_eq!(member.forwarding(ms(9000)), Forwarding::Hold);
    // Whose stamp is this?
    let _ = member.handle_claim(ms(9000), frame(5, ME, Some(9001)));
    assert_eq!(member.forwarding(ms(9000)), Forwarding::Hold);
    let _ = member.handle_claim(ms(9000), frame(5, ME, Some(8000)));
    assert_eq!(member.forwarding(ms(11_999)), Forwarding::Forward(claim(5, ME).epoch));
}

#[test]
fn who_did_not_run_asks_before_it_forwards_though_its_lease_lasts() {
    let mut member = owner();
    member.handle_resumed(ms(1500));
    assert_eq!(member.forwarding(ms(1500)), Forwarding::Hold);
    let _ = member.handle_claim(ms(1500), frame(5, ME, Some(1400)));
    assert_eq!(member.forwarding(ms(1500)), Forwarding::Hold, "that waited in a socket");
    let _ = member.handle_claim(ms(1500), frame(5, ME, Some(1500)));
    assert_eq!(member.forwarding(ms(1500)), Forwarding::Forward(claim(5, ME).epoch));
}

#[test]
fn a_packet_for_a_lapsed_owner_makes_it_ask_until_the_peer_echoes() {
    let mut member = owner();
    assert_eq!(member.poll_ack(ms(1000)).map(|ack| ack.role), Some(Role::Owner), "the claim's answer");
    member.handle_traffic(ms(2000));
    assert_eq!((member.poll_ack(ms(2000)), member.poll_timeout()), (None, Time::NEVER), "it owns: nothing to ask");

    member.handle_traffic(ms(5000));
    let ack = member.poll_ack(ms(5000)).expect("it asks");
    assert_eq!((ack.role, ack.stamp), (Role::Lapsed, Stamp(ms(5000))));
    assert_eq!((member.poll_ack(ms(5099)), member.poll_timeout()), (None, ms(5100)));
    assert!(member.poll_ack(ms(5100)).is_some());
    let _ = member.handle_claim(ms(5200), frame(5, ME, Some(5000)));
    assert_eq!(member.role(ms(5200)), Role::Owner);
    assert_eq!(member.poll_ack(ms(5200)).map(|ack| ack.role), Some(Role::Owner));
    assert_eq!((member.poll_timeout(), member.poll_announcement()), (Time::NEVER, None), "announced all the while");
}

#[test]
fn prefixes_of_a_peer_that_does_not_echo_for_a_lease_are_withdrawn() {
    let mut member = owner();
    assert_eq!(member.poll_announcement(), None);
    member.handle_traffic(ms(5000));
    member.handle_timeout(ms(8999));
    assert_eq!(member.poll_announcement(), None);
    member.handle_timeout(ms(9000));
    assert_eq!(member.poll_announcement(), Some(Announcement::Withdrawn));
    let _ = member.handle_claim(ms(9500), frame(5, ME, Some(9400)));
    assert_eq!(member.poll_announcement(), Some(Announcement::Owner), "it is back, and nobody else was claimed");
}

#[test]
fn drain_is_said_to_whom_it_concerns() {
    let mut absent = Ownership::new(ME, TIMING);
    absent.handle_drain(true);
    assert_eq!(absent.poll_ack(ms(0)), None);
    let mut member = owner();
    assert_eq!(member.poll_ack(ms(1000)).map(|ack| ack.draining), Some(false));
    member.handle_drain(true);
    assert_eq!(member.poll_ack(ms(1001)).map(|ack| (ack.draining, ack.role)), Some((true, Role::Owner)));
}

#[test]
fn a_standby_that_is_brought_packets_says_so_once_and_nobody_else_does() {
    let (mut standby, _) = member(&[frame(5, OTHER, None)]);
    let said = |member: &mut Ownership| {
        member.poll_ack(ms(1000));
        member.handle_brought();
        member.poll_ack(ms(1001)).map(|ack| (ack.brought, ack.role))
    };
    assert_eq!(said(&mut standby), Some((true, Role::Standby)));
    assert_eq!(standby.poll_ack(ms(1002)), None);
    assert_eq!(said(&mut owner()), None);
    standby.handle_drain(true);
    assert_eq!(said(&mut standby), None, "it wants no peers");
    standby.handle_drain(false);
    standby.handle_brought();
    let _ = standby.handle_claim(ms(1010), frame(6, ME, Some(1002)));
    assert_eq!(standby.poll_ack(ms(1010)).map(|ack| (ack.brought, ack.role)), Some((false, Role::Owner)));
}

#[test]
fn a_standby_says_once_of_the_owner_and_of_no_other_member_that_it_is_missed() {
    let (mut standby, _) = member(&[frame(5, OTHER, None)]);
    let said = |member: &mut Ownership, missed: MemberId| {
        member.poll_ack(ms(1000));
        member.handle_missed(missed);
        member.poll_ack(ms(1001)).map(|ack| (ack.misses, ack.role))
    };
    assert_eq!(said(&mut standby, OTHER), Some((true, Role::Standby)));
    assert_eq!(standby.poll_ack(ms(1002)), None);
    assert_eq!(said(&mut standby, ME), None);
    assert_eq!(said(&mut owner(), ME), None);
    standby.handle_drain(true);
    assert_eq!(said(&mut standby, OTHER), None, "it wants no peers");
    standby.handle_drain(false);
    standby.handle_missed(OTHER);
    let _ = standby.handle_claim(ms(1010), frame(6, ME, Some(1002)));
    assert_eq!(standby.poll_ack(ms(1010)).map(|ack| (ack.misses, ack.role)), Some((false, Role::Owner)));
}
