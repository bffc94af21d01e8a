//! Speed tests between two portals: filler by every path, bounded, ended at a word, and behind what users send.

use crate::allocator::allocations_of;
use crate::support;
use hawser_core::session::{Direction, SpeedError, SpeedRun, Terms};
use hawser_core::units::{ByteCount, Ecn, LinkGroup, LinkTag, PeerId, Rate};
use std::time::Duration;
use support::world::{LOCAL, REMOTE, World, ms};
use support::{Buffer, step};

const PEER: PeerId = PeerId(0);
/// Bytes of a run.
const BYTES: ByteCount = ByteCount(300_000);
/// What each link carries at most, bits a second: a world's links know no rate.
const RATE: u64 = 2_000_000;

/// Two portals that are connected by two links.
fn connected() -> World {
    let mut world = World::new(&[0, 0], 1);
    for (group, name) in [(0, "one"), (1, "two")] {
        let terms = Terms { max_rate: Some(Rate::from_bits(RATE)), name: LinkTag::of(name), ..Terms::default() };
        world.portals[LOCAL].endpoint.set_terms(LinkGroup(group), terms);
    }
    world.settled()
}

fn run(direction: Direction) -> SpeedRun {
    SpeedRun { direction, link: None, time: Duration::from_secs(2), bytes: BYTES }
}

fn begin(world: &mut World, run: SpeedRun) -> Result<(), SpeedError> {
    let now = world.now;
    world.portals[LOCAL].endpoint.measure_speed(now, PEER, run)
}

/// What came to a portal by all paths.
fn received(world: &World, portal: usize) -> u64 {
    world.paths(portal).iter().map(|path| path.filler.received.0).sum()
}

fn delivered(world: &World, portal: usize) -> u64 {
    world.paths(portal).iter().map(|path| path.filler.delivered.0).sum()
}

#[test]
fn a_run_goes_up_or_down_by_every_path_and_stops_at_its_bytes() {
    for (direction, sender, receiver) in [(Direction::Up, LOCAL, REMOTE), (Direction::Down, REMOTE, LOCAL)] {
        let mut world = connected();
        begin(&mut world, run(direction)).expect("a run");
        world.run(ms(3_000));
        let came = received(&world, receiver);
        assert!((BYTES.0..BYTES.0 + 2 * 1_500).contains(&came), "{direction:?}: {came}");
        assert_eq!(delivered(&world, sender), came, "each is acknowledged");
        assert!(world.paths(receiver).iter().all(|path| path.filler.received > ByteCount::ZERO), "by both");
        assert_eq!((received(&world, sender), delivered(&world, receiver)), (0, 0), "and nothing the other way");
        assert!(world.portals[receiver].inbox.0.is_empty(), "filler is no packet of users");
    }
}

#[test]
fn a_link_that_is_named_carries_all_of_it() {
    let mut world = connected();
    begin(&mut world, SpeedRun { link: Some(LinkTag::of("two")), ..run(Direction::Down) }).expect("a run");
    world.run(ms(3_000));
    let by: Vec<bool> = world.paths(LOCAL).iter().map(|path| path.filler.received > ByteCount::ZERO).collect();
    assert_eq!(by, [false, true]);
    let unknown = SpeedRun { link: Some(LinkTag::of("none")), ..run(Direction::Up) };
    assert_eq!(begin(&mut world, unknown), Err(SpeedError::NoPath));
}

#[test]
fn a_word_ends_a_run_and_one_at_a_time_is_on() {
    let mut world = connected();
    let long = SpeedRun { bytes: ByteCount(1 << 40), ..run(Direction::Down) };
    begin(&mut world, long).expect("a run");
    assert_eq!(begin(&mut world, long), Err(SpeedError::Busy));
    world.run(ms(200));
    let now = world.now;
    world.portals[LOCAL].endpoint.end_speed(now, PEER);
    world.run(ms(500));
    let came = received(&world, LOCAL);
    assert!(came > 0);
    world.run(ms(1_000));
    assert_eq!(received(&world, LOCAL), came, "no more of it");
}

#[test]
fn what_a_peer_may_ask_for_is_bounded() {
    let mut world = connected();
    let minute = SpeedRun { time: Duration::from_secs(600), ..run(Direction::Down) };
    // A whole minute uses up what a peer has; one that follows at once is refused.
    for refused in [false, true] {
        let long = SpeedRun { bytes: ByteCount(1 << 40), ..minute };
        begin(&mut world, long).expect("it is asked for");
        world.run(if refused { ms(1_000) } else { Duration::from_secs(60) });
        let snapshot = world.portals[LOCAL].endpoint.snapshot(world.now);
        assert_eq!(snapshot.peers[0].as_ref().expect("a session").speed.refused, refused);
    }
}

#[test]
fn filler_costs_no_allocation_a_packet() {
    let (mut local, mut remote, mut now) = support::connected();
    let long = SpeedRun { time: Duration::from_secs(60), bytes: ByteCount(1 << 32), ..run(Direction::Up) };
    let slow = Terms { max_rate: Some(Rate::from_bits(20_000_000)), ..Terms::default() };
    [0, 1].into_iter().for_each(|group| local.endpoint.set_terms(LinkGroup(group), slow));
    local.endpoint.measure_speed(now, PEER, long).expect("a run");
    let mut buffer = Buffer(vec![0; 65_536]);
    let (mut sent, mut allocations) = (0_u64, 0);
    for round in 0..2_000 {
        step(now, &mut local, &mut remote);
        now = now + ms(1);
        if round < 1_500 {
            continue;
        }
        let mut transmit = None;
        allocations += allocations_of(|| transmit = local.endpoint.poll_transmit(now, &mut buffer));
        let Some(transmit) = transmit else { continue };
        let (source, link) = (local.address(transmit.link), remote.link_at(transmit.remote));
        for datagram in buffer.0[..transmit.len].chunks_mut(transmit.segment_size) {
            sent += 1;
            remote.endpoint.handle_datagram(now, link, source, None, Ecn::NotEct, datagram, &mut remote.delivered);
        }
    }
    assert!(sent > 200, "{sent}");
    // Buffers grow by doubling, if at all.
    assert!(allocations * 50 < sent, "{allocations} for {sent} datagrams");
}
