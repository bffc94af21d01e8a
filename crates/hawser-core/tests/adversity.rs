//! What two portals live through: links cut, moved, blocked and flapping, keys replaced under load,
//! restarts. Every test runs under virtual time, and none may leave a deadline that nobody clears.

use crate::support;
use std::cell::Cell;
use std::rc::Rc;

use hawser_core::drops::DropReason;
use hawser_core::endpoint::Event;
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::units::{ByteCount, LinkId, PeerId};
use support::world::{Fate, LOCAL, REMOTE, REMOTES, World, ms, number};

/// Neither portal holds a train any more: every segment was released by whoever owed it.
fn assert_nothing_is_owed(world: &mut World) {
    world.run(ms(10_000));
    for portal in [LOCAL, REMOTE] {
        let snapshot = world.portals[portal].endpoint.snapshot(world.now);
        assert_eq!(snapshot.trains, ByteCount::ZERO, "portal {portal}: {snapshot:#?}");
    }
}

#[test]
fn two_links_and_both_directions_in_order() {
    let mut world = World::new(&[0, 0], 1).settled();
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    assert_eq!(world.stream(LOCAL, 300), 300);
    assert_eq!(world.stream(REMOTE, 300), 300);
    assert_nothing_is_owed(&mut world);
}

#[test]
fn a_challenge_that_comes_late_from_an_address_left_behind_does_no_harm() {
    let mut world = World::new(&[0], 1);
    let mut first = true;
    world.rule = Box::new(move |_, flight| {
        let late = flight.from == LOCAL && flight.is_data() && std::mem::take(&mut first);
        if late { Fate::Delay(ms(4_000)) } else { Fate::Pass }
    });
    world.run(ms(2_500));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (1, 1));
    world.portals[LOCAL].links[0] = "192.0.2.77:7777".parse().expect("an address");
    world.run(ms(2_500));
    assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (1, 1));
}

#[test]
fn a_nat_that_rebinds_costs_a_moment_and_both_sides_know_the_new_address() {
    let mut world = World::new(&[0, 0], 1).settled();
    let new = "192.0.2.77:7777".parse().expect("an address");
    world.portals[LOCAL].links[0] = new;
    assert_eq!((world.stream(LOCAL, 2_000), world.stream(REMOTE, 2_000)), (2_000, 2_000));
    assert!(world.paths(REMOTE).iter().any(|path| path.remote == new && path.state == HealthState::Active));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    assert_nothing_is_owed(&mut world);
}

#[test]
fn a_socket_that_is_full_wakes_nobody() {
    for portal in [LOCAL, REMOTE] {
        let mut world = World::new(&[0, 0], 1).settled();
        world.portals[portal].blocked.insert(0);
        for number in 0..200 {
            world.inner(LOCAL, number, 400);
            world.inner(REMOTE, number, 400);
            world.run(ms(1));
        }
        world.run(ms(3_000));
        world.portals[portal].blocked.clear();
        world.run(ms(3_000));
        assert_eq!(world.stream(LOCAL, 100), 100);
        assert_nothing_is_owed(&mut world);
    }
    let mut world = World::new(&[0], 1);
    world.run(ms(25));
    world.portals[LOCAL].blocked.insert(0);
    world.portals[REMOTE].blocked.insert(0);
    world.run(ms(5_000));
    world.portals.iter_mut().for_each(|portal| portal.blocked.clear());
    world.run(ms(5_000));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
}

#[test]
fn new_keys_under_load_lose_nothing() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.run(ms(117_500));
    let before = world.portals[LOCAL].events.len();
    assert_eq!(world.stream(LOCAL, 3_000), 3_000);
    let rekeyed = Event::Session { peer: PeerId(0), new: false };
    assert_eq!(world.portals[LOCAL].events[before..], [Event::Session { peer: PeerId(0), new: false }]);
    assert!(world.portals[REMOTE].events.contains(&rekeyed));
    assert_eq!(world.sessions(LOCAL), 1);
    assert_nothing_is_owed(&mut world);
}

#[test]
fn new_keys_come_although_their_first_responses_are_lost() {
    let mut world = World::new(&[0], 1).settled();
    let mut lost = 0;
    world.rule = Box::new(move |_, flight| {
        let response = flight.bytes[0] >> 4 == 2;
        lost += u32::from(response);
        if response && lost <= 3 { Fate::Drop } else { Fate::Pass }
    });
    world.run(ms(117_500));
    assert_eq!(world.stream(REMOTE, 5_000), 5_000);
    let rekeyed = Event::Session { peer: PeerId(0), new: false };
    assert_eq!(world.portals[LOCAL].events.iter().filter(|event| **event == rekeyed).count(), 1);
}

#[test]
fn portals_that_initiate_at_once_agree_on_keys() {
    // Both know the other's address, so both initiate at the start, and again when keys grow old.
    let mut world = World::mutual().settled();
    assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    for _ in 0..3 {
        world.portals.iter_mut().for_each(|portal| portal.inbox.0.clear());
        world.run(ms(110_000));
        for number in 0..20_000u16 {
            if number.is_multiple_of(4) {
                world.inner(LOCAL, number, 100);
                world.inner(REMOTE, number, 100);
            }
            world.run(ms(1));
        }
        world.run(ms(500));
        for portal in [LOCAL, REMOTE] {
            let mut came: Vec<_> = world.portals[portal].inbox.0.iter().map(|p| number(p)).collect();
            came.sort_unstable();
            came.dedup();
            assert_eq!(came.len(), 5_000, "portal {portal}");
        }
    }
    assert_eq!((world.sessions(LOCAL), world.sessions(REMOTE)), (1, 1));
}

#[test]
fn portals_that_lost_each_other_and_initiate_at_once_find_together() {
    let mut world = World::mutual().settled();
    world.cut.insert(0);
    world.run(ms(20_000));
    world.cut.clear();
    world.run(ms(3_000));
    assert_eq!((world.stream(LOCAL, 2_000), world.stream(REMOTE, 2_000)), (2_000, 2_000));
}

#[test]
fn a_link_whose_endpoint_dies_takes_the_other_endpoint() {
    for links in [&[0][..], &[0, 0][..]] {
        let mut world = World::new(links, 2).settled();
        assert_eq!(world.active(LOCAL), links.len());
        let dead = world.paths(LOCAL)[0].remote;
        assert!(REMOTES.contains(&dead.to_string().as_str()));
        world.rule =
            Box::new(move |_, flight| if flight.to == dead || flight.source == dead { Fate::Drop } else { Fate::Pass });
        world.run(ms(5_000));
        assert_eq!(world.active(LOCAL), links.len());
        assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
        assert_nothing_is_owed(&mut world);
    }
}

#[test]
fn a_restart_of_either_side_is_over_in_three_seconds() {
    for portal in [LOCAL, REMOTE] {
        let mut world = World::new(&[0, 0], 1).settled();
        assert_eq!(world.stream(LOCAL, 50), 50);
        world.restart(portal);
        world.run(ms(3_000));
        assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
        assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
        assert_nothing_is_owed(&mut world);
    }
}

#[test]
fn a_peer_that_was_killed_and_started_under_traffic_is_back_within_half_a_second() {
    let mut world = World::new(&[0, 0], 1).settled();
    assert_eq!(world.stream(LOCAL, 50), 50);
    world.restart(REMOTE);
    world.portals[REMOTE].inbox.0.clear();
    let back = (0..100).find(|number| {
        world.inner(LOCAL, *number, 400);
        world.run(ms(10));
        !world.portals[REMOTE].inbox.0.is_empty()
    });
    assert!(back.is_some_and(|tens| tens < 50), "after {back:?} times 10 ms");
}

#[test]
fn a_peer_that_is_only_far_away_is_not_taken_for_silent() {
    let mut world = World::new(&[0, 0], 1);
    let initiations = Rc::new(Cell::new(0));
    let counted = Rc::clone(&initiations);
    world.rule = Box::new(move |_, flight| {
        counted.set(counted.get() + usize::from(!flight.is_data()));
        Fate::Delay(ms(250))
    });
    world.run(ms(20_000));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    let before = initiations.get();
    for number in 0..20 {
        world.inner(LOCAL, number, 400);
        world.run(ms(1_500));
    }
    assert_eq!(initiations.get(), before, "each was acknowledged half a second later");
}

#[test]
fn a_silent_cut_moves_what_was_in_flight_and_the_path_returns() {
    let mut world = World::new(&[0, 0], 1).settled();
    for cut in [0, 1] {
        for number in 0..3_000u16 {
            if number == 300 {
                world.cut.insert(cut);
            }
            if number == 1_500 {
                world.cut.clear();
            }
            world.inner(LOCAL, number, 400);
            world.run(ms(1));
        }
        world.run(ms(1_000));
        let mut came: Vec<_> = world.portals[REMOTE].inbox.0.iter().map(|p| number(p)).collect();
        came.sort_unstable();
        came.dedup();
        assert_eq!(came.len(), 3_000);
        world.portals[REMOTE].inbox.0.clear();
        assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
        world.run(ms(31_000));
    }
    assert_nothing_is_owed(&mut world);
}

#[test]
fn everything_cut_and_back_releases_everything() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.cut.extend([0, 1]);
    for number in 0..500 {
        world.inner(LOCAL, number, 1_400);
        world.inner(REMOTE, number, 1_400);
        world.run(ms(2));
    }
    world.run(ms(30_000));
    world.cut.clear();
    world.run(ms(5_000));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
    assert_nothing_is_owed(&mut world);
}

#[test]
fn packets_already_numbered_cross_a_path_that_became_too_small_in_pieces() {
    for links in [&[0][..], &[0, 0][..]] {
        let mut world = World::new(links, 1);
        world.run(ms(8_000));
        world.rule = Box::new(|_, flight| if flight.bytes.len() > 900 { Fate::Drop } else { Fate::Pass });
        for number in 0..400 {
            world.inner(LOCAL, number, if number % 3 == 0 { 200 } else { 1_400 });
            world.run(ms(5));
        }
        world.run(ms(20_000));
        world.portals[REMOTE].inbox.0.clear();
        for number in 0..100 {
            world.inner(LOCAL, number, 1_400);
            world.run(ms(25));
        }
        world.run(ms(1_000));
        assert_eq!(world.portals[REMOTE].inbox.0.len(), 100, "{:#?}", world.paths(LOCAL));
        assert_nothing_is_owed(&mut world);
    }
}

#[test]
fn a_packet_that_pieces_cannot_carry_is_dropped_and_others_go_on() {
    let mut world = World::new(&[0], 1).settled();
    world.rule = Box::new(|_, flight| if flight.bytes.len() > 548 { Fate::Drop } else { Fate::Pass });
    world.stream(LOCAL, 400);
    (0..400).for_each(|number| {
        world.inner(LOCAL, number, 1_400);
        world.run(ms(25));
    });
    world.run(ms(5_000));
    assert_eq!(world.paths(LOCAL)[0].mtu, 548);
    let dropped = world.dropped(LOCAL, DropReason::NoLink);
    for (len, comes) in [(32_768, 1), (32_769, 0), (40_000, 0)] {
        world.portals[REMOTE].inbox.0.clear();
        world.inner(LOCAL, 1, len);
        world.run(ms(1_000));
        assert_eq!(world.portals[REMOTE].inbox.0.len(), comes, "{len} bytes");
    }
    assert_eq!(world.dropped(LOCAL, DropReason::NoLink) - dropped, 2);
    assert_nothing_is_owed(&mut world);
}

#[test]
fn loss_both_ways_is_repaired_and_nothing_leaks() {
    let mut world = World::new(&[0, 0], 1).settled();
    let mut count = 0u32;
    world.rule = Box::new(move |_, _| {
        count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match count >> 24 {
            0..=12 => Fate::Drop,
            13..=40 => Fate::Delay(ms(8)),
            _ => Fate::Pass,
        }
    });
    assert!(world.stream(LOCAL, 3_000) >= 2_990);
    assert!(world.stream(REMOTE, 3_000) >= 2_990);
    world.rule = Box::new(|_, _| Fate::Pass);
    assert_nothing_is_owed(&mut world);
}

#[test]
fn a_higher_metric_carries_nothing_while_a_lower_one_works_in_either_direction() {
    let mut world = World::new(&[0, 1], 1);
    world.run(ms(7_000));
    let metrics = |world: &World, portal: usize| world.paths(portal).iter().map(|path| path.metric).collect::<Vec<_>>();
    assert_eq!((metrics(&world, LOCAL), metrics(&world, REMOTE)), (vec![0, 1], vec![0, 1]));
    let idle = |world: &World, portal: usize| world.paths(portal)[1].tx_bytes.0;
    let before = [idle(&world, LOCAL), idle(&world, REMOTE)];
    assert_eq!((world.stream(LOCAL, 5_000), world.stream(REMOTE, 5_000)), (5_000, 5_000));
    for portal in [LOCAL, REMOTE] {
        // Eleven seconds, each a keepalive of ours and an acknowledgement of theirs.
        let bytes = idle(&world, portal) - before[portal];
        assert!(bytes < 12 * 2 * 60, "portal {portal}: {bytes}");
    }
    let now = world.now;
    world.portals[LOCAL].endpoint.handle_link_down(now, LinkId(0), DownReason::LinkLost);
    assert_eq!((world.stream(LOCAL, 500), world.stream(REMOTE, 500)), (500, 500));
    let now = world.now;
    world.portals[LOCAL].endpoint.handle_link_up(now, LinkId(0));
    world.run(ms(1_000));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    assert_eq!((world.stream(LOCAL, 500), world.stream(REMOTE, 500)), (500, 500));
    assert_nothing_is_owed(&mut world);
}

#[test]
fn an_idle_path_costs_a_keepalive_a_second_and_side() {
    let mut world = World::new(&[0, 1], 1);
    world.run(ms(10_000));
    let before = world.portals.each_ref().map(|portal| portal.sent.0);
    world.run(ms(60_000));
    for portal in [LOCAL, REMOTE] {
        let sent = world.portals[portal].sent.0 - before[portal];
        assert!(sent <= 2 * 2 * 61, "portal {portal}: {sent} datagrams in 60 s on two paths");
    }
}

#[test]
fn a_link_that_flaps_often_costs_no_memory_of_paths() {
    let mut world = World::new(&[0, 0], 2).settled();
    for _ in 0..300 {
        let now = world.now;
        world.portals[LOCAL].endpoint.handle_link_down(now, LinkId(0), DownReason::LinkLost);
        world.run(ms(300));
        let now = world.now;
        world.portals[LOCAL].endpoint.handle_link_up(now, LinkId(0));
        world.run(ms(1_500));
    }
    world.run(ms(20_000));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    assert_eq!((world.paths(LOCAL).len(), world.paths(REMOTE).len()), (2, 2));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
    for portal in [REMOTE, LOCAL] {
        world.restart(portal);
        world.run(ms(3_000));
        assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
    }
}

#[test]
fn a_close_ends_the_session_and_a_new_one_begins() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.portals[REMOTE].endpoint.close();
    world.run(ms(50));
    assert!(world.portals[LOCAL].events.contains(&Event::Closed { peer: PeerId(0) }));
    world.restart(REMOTE);
    world.run(ms(2_000));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
    assert_nothing_is_owed(&mut world);
}

#[test]
fn a_machine_that_slept_for_hours_goes_on() {
    let mut world = World::new(&[0, 0], 1).settled();
    assert_eq!(world.stream(LOCAL, 100), 100);
    world.flights.clear();
    world.now = world.now + ms(5 * 3_600_000);
    world.run(ms(3_000));
    assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    assert_nothing_is_owed(&mut world);
}

#[test]
fn what_the_pacer_holds_back_leaves_in_time_although_no_acknowledgement_comes() {
    let mut world = World::new(&[0], 1).settled();
    world.rule = Box::new(|_, flight| if flight.from == REMOTE { Fate::Drop } else { Fate::Pass });
    world.later = ms(2);
    for number in 0..8 {
        world.inner(LOCAL, number, 1_300);
    }
    world.run(ms(25));
    assert_eq!(world.portals[REMOTE].inbox.0.len(), 8, "{:?}", world.paths(LOCAL));
}

#[test]
fn a_path_closed_before_its_first_datagram_came_leaves_nothing_at_the_far_side() {
    let mut world = World::new(&[0], 2);
    // The second endpoint is reached, but so late that its path is closed by then.
    let slow: std::net::SocketAddr = REMOTES[1].parse().expect("an address");
    world.rule = Box::new(move |_, flight| if flight.to == slow { Fate::Delay(ms(400)) } else { Fate::Pass });
    world.run(ms(20_000));
    assert_eq!((world.paths(LOCAL).len(), world.paths(REMOTE).len()), (1, 1), "{:#?}", world.paths(REMOTE));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
}

#[test]
fn a_path_cut_in_one_direction_alone_does_not_stop_the_bond() {
    for deaf in [LOCAL, REMOTE] {
        let mut world = World::new(&[0, 0], 1).settled();
        let one: std::net::SocketAddr = world.portals[LOCAL].links[0];
        world.rule = Box::new(move |_, flight| {
            let there = flight.source == one || flight.to == one;
            if there && flight.from != deaf { Fate::Drop } else { Fate::Pass }
        });
        assert_eq!((world.stream(LOCAL, 1_000), world.stream(REMOTE, 1_000)), (1_000, 1_000), "deaf: {deaf}");
        world.rule = Box::new(|_, _| Fate::Pass);
        world.run(ms(20_000));
        assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2), "deaf: {deaf}");
        assert_nothing_is_owed(&mut world);
    }
}

#[test]
fn an_idle_path_does_not_take_its_keepalives_for_its_rate() {
    let mut world = World::new(&[0], 1);
    world.run(ms(60_000));
    let path = &world.paths(LOCAL)[0];
    assert!(path.window >= ByteCount(14_000), "{path:?}");
    // Half a window a round trip: nothing that a fresh path could not carry.
    for number in 0..300 {
        world.inner(LOCAL, number, 400);
        world.run(ms(1));
        let queued = world.portals[LOCAL].endpoint.snapshot(world.now).peers[0].as_ref().map(|session| session.queued);
        assert!(queued < Some(ByteCount(4_000)), "packet {number}: {queued:?} bytes wait");
    }
}
