//! What a session takes with it when it ends is counted: `session_ended`.

use crate::support;
use hawser_core::drops::DropReason;
use hawser_core::units::PeerId;
use support::world::{LOCAL, REMOTE, World, ms, number};

/// Packets that enter.
const GIVEN: u16 = 50;

/// Packets of the local portal that did not come, and how many of those it was given it counts as dropped, after
/// `ends`.
fn lost_and_counted(ends: impl Fn(&mut World)) -> (u64, u64) {
    let mut world = World::new(&[0], 1).settled();
    assert_eq!(world.stream(LOCAL, 100), 100);
    world.portals[REMOTE].inbox.0.clear();
    world.cut.insert(0);
    (0..GIVEN).for_each(|number| world.inner(LOCAL, number, 400));
    world.run(ms(5));
    ends(&mut world);
    world.cut.clear();
    world.run(ms(15_000));
    let held = world.portals[LOCAL].endpoint.snapshot(world.now).trains;
    assert_eq!(held.0, 0, "nothing is under way any more");
    let came = world.portals[REMOTE].inbox.0.len() as u64;
    let reasons = [DropReason::SessionEnded, DropReason::GaveUp, DropReason::Codel, DropReason::TooOld];
    let counted = reasons.into_iter().map(|reason| world.dropped(LOCAL, reason)).sum();
    (u64::from(GIVEN) - came, counted)
}

#[test]
fn what_is_under_way_to_a_portal_that_starts_again_is_counted() {
    let (lost, counted) = lost_and_counted(|world| world.restart(REMOTE));
    assert!(lost > 0, "the portal that was sent to forgot its keys");
    assert_eq!(lost, counted);
}

#[test]
fn what_is_under_way_to_a_peer_that_is_removed_is_counted() {
    let (lost, counted) = lost_and_counted(|world| {
        let now = world.now;
        world.portals[LOCAL].endpoint.remove_peer(now, PeerId(0));
    });
    assert_eq!((lost, counted), (u64::from(GIVEN), u64::from(GIVEN)));
}

#[test]
fn what_is_under_way_to_a_peer_that_closes_is_counted() {
    let (lost, counted) = lost_and_counted(|world| {
        world.cut.clear();
        world.portals[REMOTE].endpoint.close();
        world.run(ms(1));
        world.cut.insert(0);
        world.run(ms(50));
    });
    assert!(lost > 0, "the session took them with it");
    // Some may have come, and not been acknowledged yet.
    assert!((lost..=u64::from(GIVEN)).contains(&counted), "{lost} lost, {counted} counted");
}

#[test]
fn the_newest_packets_wait_for_a_session() {
    let mut world = World::new(&[0], 1);
    world.cut.insert(0);
    (0..100).for_each(|number| world.inner(LOCAL, number, 400));
    assert_eq!(world.dropped(LOCAL, DropReason::NoSession), 36);
    world.cut.clear();
    let world = world.settled();
    let came: Vec<u16> = world.portals[REMOTE].inbox.0.iter().map(|packet| number(packet)).collect();
    assert_eq!(came, (36..100).collect::<Vec<u16>>());
}
