//! A pair beside an endpoint whose peers never came: what it decides by itself. The rest runs in hawser-sim.

use super::*;
use crate::claim::{ClaimAck, Role};
use crate::testing::{endpoint, ms};
use crate::units::Stamp;

const A: Member = Member { id: MemberId(1), peer: PeerId(0) };
const B: Member = Member { id: MemberId(2), peer: PeerId(1) };
const C: Member = Member { id: MemberId(3), peer: PeerId(2) };

/// `member` answers the first claim.
fn answer(pair: &mut Pair, member: Member, role: Role) {
    let (epoch, stamp) = (Some(Epoch::FIRST), Stamp(ms(10)));
    let ack = ClaimAck { epoch, role, draining: false, brought: false, misses: false, stamp };
    let mut bytes = [0; ClaimMessage::MAX_LEN];
    let mut out = Writer::new(&mut bytes);
    ClaimMessage::Ack(ack).encode(&mut out).expect("room");
    let frame = HubFrame::new(HubFrameType::ClaimAck, out.written()).expect("it is short");
    pair.handle_event(ms(10), &Event::HubSaid { peer: member.peer, frame });
}

/// `A` owns, `B` is its standby, and both have said so.
fn settled() -> (Pair, Endpoint) {
    let mut endpoint = endpoint(3);
    let mut pair = Pair::new(&mut endpoint, Epoch::FIRST, &[A, B, C], 0).expect("three are enough");
    pair.handle_round(ms(0), &mut endpoint);
    answer(&mut pair, A, Role::Owner);
    answer(&mut pair, B, Role::Standby);
    pair.handle_round(ms(10), &mut endpoint);
    assert!(pair.status().settled);
    (pair, endpoint)
}

#[test]
fn a_member_that_was_claimed_without_a_session_gets_the_packets_once_it_has_one_though_it_lost_its_place() {
    let (mut pair, mut endpoint) = settled();
    pair.handle_event(ms(20), &Event::Closed { peer: A.peer });
    pair.handle_round(ms(20), &mut endpoint);
    assert_eq!((pair.status().claim.owner, pair.status().active), (B.id, A), "B's session is over, too");
    // C's begins first.
    assert!(pair.claimant.replace_standby(C.id));
    endpoint.pair([A.peer, C.peer]);
    pair.standby = C;
    pair.handle_round(ms(20), &mut endpoint);
    assert_eq!(endpoint.carrier(B.peer), Some(A.peer), "A's packets may go to B");
    // And then B's does.
    endpoint.pair([B.peer, A.peer]);
    pair.handle_round(ms(20), &mut endpoint);
    assert_eq!((pair.status().active, pair.status().standby), (B, A));
    let claimant = pair.claimant.clone();
    assert!(pair.claimant.replace_standby(A.id) && pair.claimant == claimant, "the claimant knows the same two");
}
