//! Two portals and the allocator watched: nothing is allocated per packet once they have run for a
//! while, and what goes on for ever costs no memory.

use crate::allocator::{allocations, held};
use crate::support;
use hawser_core::packet::flow::FLOW_BUCKETS;
use hawser_core::packet::{FlowBucket, FlowSequence, Offload};
use hawser_core::path::health::DownReason;
use hawser_core::resequence::{Arrival, Outcome, Resequencer};
use hawser_core::rules::{Rule, Rules, Treatment, Via};
use hawser_core::scheduler::{Kind, Weight};
use hawser_core::session::Terms;
use hawser_core::units::{LinkGroup, LinkId, LinkTag, Time};
use std::time::Duration;
use support::world::{LOCAL, World, ms};
use support::{Buffer, connected, packet};

/// One round of the story without a wire of its own: 20 packets in, carried but for one of `lost`, out, acknowledged.
fn round(
    now: Time,
    local: &mut support::Portal,
    remote: &mut support::Portal,
    buffer: &mut Buffer,
    inner: &[u8],
    lost: usize,
) {
    for _ in 0..20 {
        local.endpoint.read_buffer()[..inner.len()].copy_from_slice(inner);
        local.endpoint.handle_inner(now, inner.len(), Offload::default());
    }
    local.endpoint.handle_timeout(now, &mut Nowhere);
    remote.endpoint.handle_timeout(now, &mut Nowhere);
    carry(now, local, remote, buffer, lost);
    carry(now, remote, local, buffer, usize::MAX);
}

struct Nowhere;

impl hawser_core::session::Sink for Nowhere {
    fn deliver(&mut self, _: &[u8], _: bool) {}
}

/// Carries what `from` has to say, but for every so manieth datagram.
fn carry(now: Time, from: &mut support::Portal, to: &mut support::Portal, buffer: &mut Buffer, lost: usize) {
    let mut carried = 0;
    while let Some(transmit) = from.endpoint.poll_transmit(now, buffer) {
        let source = std::net::SocketAddr::from(([192, 0, 2, transmit.link.0 as u8 + 1], 1000));
        let remote = std::net::SocketAddr::from(([198, 51, 100, 1], 4920));
        let outward = transmit.remote == remote;
        let (source, link) = if outward { (source, 0) } else { (remote, u16::from(transmit.remote != first())) };
        for datagram in buffer.0[..transmit.len].chunks_mut(transmit.segment_size) {
            carried += 1;
            if carried % lost == 0 {
                continue;
            }
            let ecn = hawser_core::units::Ecn::Ect0;
            to.endpoint.handle_datagram(now, LinkId(link), source, None, ecn, datagram, &mut Nowhere);
        }
    }
}

fn first() -> std::net::SocketAddr {
    std::net::SocketAddr::from(([192, 0, 2, 1], 1000))
}

#[test]
fn a_packet_from_tun_to_tun_allocates_nothing() {
    let (mut local, mut remote, mut now) = connected();
    let mut buffer = Buffer(vec![0; 65_536]);
    let inner = packet(7);
    for _ in 0..3_000 {
        round(now, &mut local, &mut remote, &mut buffer, &inner, usize::MAX);
        now = now + ms(1);
    }
    let begun = now;
    let sent = |portal: &support::Portal| {
        portal.endpoint.snapshot(begun).peers.iter().flatten().map(|session| session.tx_bytes.0).sum::<u64>()
    };
    let (packets, before) = (sent(&local), allocations());
    for _ in 0..2_000 {
        round(now, &mut local, &mut remote, &mut buffer, &inner, usize::MAX);
        now = now + Duration::from_millis(1);
    }
    let allocations = allocations() - before;
    let packets = (sent(&local) - packets) / inner.len() as u64;
    assert!(packets > 30_000, "{packets} packets");
    // Two seconds of housekeeping may give buffers back and take them again; a snapshot allocates too.
    assert!(allocations < 40, "{allocations} allocations for {packets} packets");
}

/// Packets that repairs cover, every tenth datagram lost: the repairs' buffers are used again and again.
#[test]
fn a_packet_that_repairs_cover_allocates_nothing() {
    let (mut local, mut remote, mut now) = connected();
    let treatment = Treatment { resend: false, fec: true, ..Treatment::default() };
    local.endpoint.set_rules(Time::ZERO, Rules::new(Vec::new(), treatment));
    let mut buffer = Buffer(vec![0; 65_536]);
    let inner = packet(7);
    let mut go = |rounds: u64| {
        for _ in 0..rounds {
            round(now, &mut local, &mut remote, &mut buffer, &inner, 10);
            now = now + ms(1);
        }
        let repaired = |portal: &support::Portal| {
            portal.endpoint.snapshot(now).peers.iter().flatten().map(|session| session.fec.repaired).sum::<u64>()
        };
        (repaired(&remote), allocations())
    };
    let (repaired, before) = go(3_000);
    let (more, allocations) = go(2_000);
    let (repaired, allocations) = (more - repaired, allocations - before);
    assert!(repaired > 1_000, "{repaired} packets came back");
    // As above.
    assert!(allocations < 40, "{allocations} allocations while {repaired} packets came back");
}

/// The same under rules that name links, with losses: each has its own queue of what is to be retransmitted, and shares
/// of its own.
#[test]
fn a_packet_of_a_rule_that_names_links_allocates_nothing() {
    let names = [LinkTag::of("dsl"), LinkTag::of("lte")];
    let weight = |parts| Weight::new(parts).expect("not zero");
    let shares = names.into_iter().zip([weight(3), weight(1)]).collect();
    let weighted = Treatment { scheduler: Kind::Weighted, ..Treatment::default() };
    let table = [
        (Via::in_order(&names[1..], true), Treatment { priority: 2, ..Treatment::default() }),
        (Via::by_weight(shares, true), weighted),
    ];
    for (via, treatment) in table {
        let (mut local, mut remote, mut now) = connected();
        for (group, name) in (0..).map(LinkGroup).zip(names) {
            local.endpoint.set_terms(group, Terms { name, ..Terms::default() });
        }
        let rule = Rule { via: via.clone(), treatment, ..Rule::default() };
        local.endpoint.set_rules(now, Rules::new(vec![rule], Treatment::default()));
        let mut buffer = Buffer(vec![0; 65_536]);
        let inner = packet(7);
        let mut go = |rounds: u64| {
            for _ in 0..rounds {
                round(now, &mut local, &mut remote, &mut buffer, &inner, 1_000);
                now = now + ms(1);
            }
            let paths = local.endpoint.snapshot(now).peers.remove(0).expect("a session").paths;
            let sent =
                |index: usize| paths[index].by_rule.iter().find(|(rule, _)| rule.0 == 1).map_or(0, |(_, sent)| sent.0);
            ([sent(0), sent(1)], allocations())
        };
        let (_, before) = go(3_000);
        let (sent, after) = go(2_000);
        assert!(sent[1] > 1_000_000 && (sent[0] > 0) == via.shared, "{via:?}: {sent:?}");
        // As above.
        assert!(after - before < 40, "{via:?}: {} allocations", after - before);
    }
}

/// What forty minutes of `life` cost beyond the first twenty, in bytes.
fn growth(world: &mut World, mut life: impl FnMut(&mut World)) -> i64 {
    for _ in 0..20 {
        life(world);
    }
    let before = held();
    for _ in 0..40 {
        life(world);
    }
    world.portals.iter_mut().for_each(|portal| portal.events = Vec::new());
    held() - before
}

#[test]
fn a_path_that_is_down_for_an_hour_costs_no_memory() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.cut.insert(1);
    let grown = growth(&mut world, |world| {
        world.run(ms(60_000));
        world.portals.iter_mut().for_each(|portal| portal.events = Vec::new());
    });
    assert!(grown < 100_000, "{grown} bytes");
}

#[test]
fn a_peer_that_is_away_for_an_hour_costs_no_memory() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.cut.extend([0, 1]);
    world.inner(LOCAL, 1, 400);
    let grown = growth(&mut world, |world| {
        world.run(ms(60_000));
        world.portals.iter_mut().for_each(|portal| portal.events = Vec::new());
    });
    assert!(grown < 200_000, "{grown} bytes");
}

#[test]
fn a_link_that_flaps_for_an_hour_costs_no_memory() {
    let mut world = World::new(&[0, 0], 2).settled();
    let grown = growth(&mut world, |world| {
        for _ in 0..3 {
            let now = world.now;
            world.portals[LOCAL].endpoint.handle_link_down(now, LinkId(0), DownReason::LinkLost);
            world.run(ms(1_000));
            let now = world.now;
            world.portals[LOCAL].endpoint.handle_link_up(now, LinkId(0));
            world.run(ms(20_000));
        }
        world.portals.iter_mut().for_each(|portal| portal.events = Vec::new());
    });
    assert!(grown < 20_000, "{grown} bytes");
}

/// Packet `number` of each of these buckets arrives.
fn arrive(to: &mut Resequencer, now: Time, buckets: &[u16], number: u32, outcome: Outcome) {
    for bucket in buckets {
        let arrival = Arrival { bucket: FlowBucket(*bucket), sequence: FlowSequence(number), ..Arrival::default() };
        let seen = to.on_packet(now, arrival, &[7; 100], ms(50), &mut Nowhere);
        assert_eq!(seen, outcome, "packet {number} of bucket {bucket} at {now:?}");
    }
}

#[test]
fn buckets_of_all_flows_cost_half_a_mebibyte_in_use_and_half_of_that_at_rest() {
    let buckets: Vec<u16> = (0..FLOW_BUCKETS as u16).collect();
    // Of some nothing is lost, of some a packet comes late, and of some it is lost for good.
    let (all, whole, late, lossy) = (&buckets[..], &buckets[..2_048], &buckets[2_048..3_072], &buckets[2_048..]);
    let (before, begun) = (held(), Time::ZERO);
    let mut to = Resequencer::new();
    arrive(&mut to, begun, all, 0, Outcome::Delivered);
    arrive(&mut to, begun, all, 1, Outcome::Delivered);
    let in_use = held() - before;
    assert!(in_use <= 512 << 10, "{in_use} bytes in use");

    arrive(&mut to, begun, lossy, 3, Outcome::Held);
    to.handle_timeout(begun + ms(50), &mut Nowhere);
    let soon = begun + ms(2_000);
    to.shrink_idle(soon);
    arrive(&mut to, soon, late, 2, Outcome::Late);
    for (number, of) in [(0, all), (1, all), (2, late), (3, lossy)] {
        arrive(&mut to, soon, of, number, Outcome::Duplicate);
    }
    (3..7).for_each(|second| to.shrink_idle(begun + ms(second * 1_000)));
    let resting = held() - before;
    assert!(resting <= 256 << 10, "{resting} bytes at rest");

    let afterwards = begun + ms(60_000);
    for (number, of) in [(0, all), (1, all), (2, lossy), (3, lossy)] {
        arrive(&mut to, afterwards, of, number, Outcome::Duplicate);
    }
    arrive(&mut to, afterwards, whole, 2, Outcome::Delivered);
    arrive(&mut to, afterwards, lossy, 4, Outcome::Delivered);
}
