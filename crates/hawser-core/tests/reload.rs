//! Peers that are removed, added and changed while a portal runs.

use crate::support;
use hawser_core::endpoint::{Event, PeerConfig, Standing};
use hawser_core::handshake::{Identity, Psk};
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::session::PathSnapshot;
use hawser_core::units::{ByteCount, LinkId, PeerId};
use std::collections::BTreeSet;
use support::world::{LOCAL, LOCALS, REMOTE, REMOTES, World, ms, number};

fn local_as(allowed: &str, endpoints: &[&str]) -> PeerConfig {
    PeerConfig {
        public_key: Identity::new([1; 32]).public(),
        psk: Psk::default(),
        endpoints: endpoints.iter().map(|endpoint| endpoint.parse().expect("an endpoint")).collect(),
        ranks: Vec::new(),
        allowed_ips: vec![allowed.parse().expect("a prefix")],
    }
}

#[test]
fn a_removed_peer_leaves_nothing_and_comes_back_when_it_is_added() {
    let mut world = World::new(&[0, 0], 1).settled();
    (0..50).for_each(|number| world.inner(REMOTE, number, 1_000));
    world.run(ms(2));
    world.portals[REMOTE].endpoint.dismiss_peer(PeerId(0));
    world.run(ms(0));
    let now = world.now;
    world.portals[REMOTE].endpoint.remove_peer(now, PeerId(0));
    world.run(ms(3_000));
    let snapshot = world.portals[REMOTE].endpoint.snapshot(world.now);
    assert!(snapshot.peers.iter().all(Option::is_none) && snapshot.trains == ByteCount::ZERO, "{snapshot:?}");
    assert!(world.portals[LOCAL].events.contains(&Event::Closed { peer: PeerId(0) }));
    assert_eq!(world.stream(LOCAL, 50), 0, "it is unknown");
    let now = world.now;
    let id = world.portals[REMOTE].endpoint.add_peer(now, local_as("10.0.0.2/32", &[]));
    assert_eq!(id, PeerId(0), "its place was free");
    assert_eq!(world.portals[REMOTE].endpoint.add_peer(now, local_as("10.9.0.0/16", &[])), PeerId(1));
    world.run(ms(2_000));
    world.portals[REMOTE].inbox.0.clear();
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
}

#[test]
fn what_is_yet_to_be_told_of_a_removed_peer_is_told_of_nobody() {
    let mut world = World::new(&[0], 1).settled();
    let (now, portal) = (world.now, &mut world.portals[REMOTE]);
    portal.endpoint.set_standing(now, PeerId(0), Standing::Held, &mut portal.inbox);
    for removed in [false, true] {
        world.inner(REMOTE, 1, 100);
        let (now, endpoint) = (world.now, &mut world.portals[REMOTE].endpoint);
        assert_eq!(endpoint.key_of(PeerId(0)), Some(Identity::new([1; 32]).public()));
        if removed {
            endpoint.remove_peer(now, PeerId(0));
            assert_eq!(endpoint.add_peer(now, local_as("10.0.0.2/32", &[])), PeerId(0));
        }
        let told = std::iter::from_fn(|| endpoint.poll_event()).any(|event| event == Event::Holds { peer: PeerId(0) });
        assert_eq!(told, !removed);
        world.run(ms(1_500));
    }
}

/// Its CLOSE is lost, and the other side goes on with the session that it has.
#[test]
fn a_peer_that_is_added_again_gets_a_session_though_the_other_side_remembers_all_before() {
    for portal in [LOCAL, REMOTE] {
        let mut world = World::new(&[0], 1).settled();
        assert_eq!((world.stream(LOCAL, 300), world.stream(REMOTE, 300)), (300, 300));
        let hub =
            || PeerConfig { public_key: Identity::new([2; 32]).public(), ..local_as("10.0.0.1/32", &REMOTES[..1]) };
        for round in 0..3 {
            let config = if portal == LOCAL { hub() } else { local_as("10.0.0.2/32", &[]) };
            let now = world.now;
            world.portals[portal].endpoint.remove_peer(now, PeerId(0));
            world.run(ms(700));
            let now = world.now;
            assert_eq!(world.portals[portal].endpoint.add_peer(now, config), PeerId(0));
            world.run(ms(4_000));
            let got = (world.stream(LOCAL, 100), world.stream(REMOTE, 100));
            assert_eq!(got, (100, 100), "added again at portal {portal}, round {round}");
        }
    }
}

#[test]
fn networks_of_a_peer_change_under_a_session_that_goes_on() {
    let mut world = World::new(&[0], 1).settled();
    let now = world.now;
    world.portals[REMOTE].endpoint.change_peer(now, PeerId(0), local_as("10.0.9.0/24", &[]));
    assert_eq!((world.stream(LOCAL, 50), world.stream(REMOTE, 50)), (0, 0));
    let now = world.now;
    world.portals[REMOTE].endpoint.change_peer(now, PeerId(0), local_as("10.0.0.0/24", &[]));
    assert_eq!((world.stream(LOCAL, 50), world.stream(REMOTE, 50)), (50, 50));
    assert_eq!((world.sessions(LOCAL), world.sessions(REMOTE)), (1, 1));
}

#[test]
fn a_path_to_an_endpoint_that_is_the_peers_no_more_is_closed_for_one_to_another() {
    let mut world = World::new(&[0], 2).settled();
    let used = world.paths(LOCAL)[0].remote;
    let other: Vec<&str> = REMOTES.iter().copied().filter(|remote| *remote != used.to_string()).collect();
    let hub = PeerConfig { public_key: Identity::new([2; 32]).public(), ..local_as("10.0.0.1/32", &other) };
    let now = world.now;
    world.portals[LOCAL].endpoint.change_peer(now, PeerId(0), hub);
    world.run(ms(1_000));
    let paths = world.paths(LOCAL);
    assert_eq!((paths.len(), paths[0].remote.to_string().as_str()), (1, other[0]));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
}

#[test]
fn a_metric_that_changes_moves_the_traffic_at_both_ends() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.portals[LOCAL].endpoint.set_metric(LinkId(0), 5);
    world.run(ms(500));
    for portal in [LOCAL, REMOTE] {
        let metrics: Vec<u16> = world.paths(portal).iter().map(|path| path.metric).collect();
        assert_eq!(metrics, [5, 0], "portal {portal} of {LOCALS:?}");
        let before = world.paths(portal)[0].tx_bytes;
        assert_eq!(world.stream(portal, 200), 200);
        assert!(world.paths(portal)[0].tx_bytes.0 - before.0 < 1_000, "portal {portal}");
    }
}

#[test]
fn a_link_that_is_removed_takes_nothing_with_it_and_comes_back() {
    let mut world = World::new(&[0, 0], 1).settled();
    (0..200).for_each(|number| world.inner(LOCAL, number, 1_000));
    world.run(ms(2));
    let now = world.now;
    world.portals[LOCAL].endpoint.remove_link(now, LinkId(0));
    world.run(ms(2_000));
    let got: BTreeSet<u16> = world.portals[REMOTE].inbox.0.iter().map(|packet| number(packet)).collect();
    assert_eq!(got.len(), 200, "what was under way on it came by the other");
    for portal in [LOCAL, REMOTE] {
        let alive = |path: &&PathSnapshot| path.state != HealthState::Down(DownReason::Closed);
        assert_eq!(world.paths(portal).iter().filter(alive).count(), 1, "the peer knows that it is gone for good");
    }
    world.portals[LOCAL].endpoint.remove_link(now, LinkId(0));
    let now = world.now;
    world.portals[LOCAL].add_links(now);
    world.run(ms(1_000));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    assert_eq!(world.sessions(LOCAL), 1, "of the same session");
}
