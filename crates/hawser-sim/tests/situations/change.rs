//! Links that change: rate, delay, MTU, loss, addresses.

use crate::situations;
use hawser_core::congestion::Kind;
use hawser_core::path::health::HealthState;
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::portal::{Portal, Recipe};
use hawser_sim::situation::{address, second};
use hawser_sim::world::{LOCAL, REMOTE, Setup, World};
use hawser_sim::{Act, on};
use std::cell::RefCell;
use std::rc::Rc;

/// What was too large is retransmitted in pieces, and may come after it was given up.
const A_FEW: f64 = 0.000_5;

fn pair() -> [LinkSpec; 2] {
    [link(50.0, 20.0), link(50.0, 20.0)]
}

situations! {
    rate_halves: on(&pair()).lasts(9.0).at(3.0, Act::Rate(0, 25.0)).share_between(6.0, 9.0, 0.85).gap(2.0, 9.0, 200.0);
    rate_doubles: on(&pair()).lasts(9.0).at(3.0, Act::Rate(0, 100.0)).share_between(6.0, 9.0, 0.8).gap(2.0, 9.0, 200.0);
    // What the full buffer holds takes ten times as long as any gap was waited for before.
    rate_falls_to_a_tenth: on(&pair()).lasts(9.0).at(3.0, Act::Rate(0, 5.0)).disorder(0.01).share_between(6.0, 9.0, 0.8).gap(2.0, 9.0, 400.0);
    // BBR believes in the least round trip of the last ten seconds; left out for its poor rate, the
    // path is tried again after five.
    delay_steps_up: on(&pair()).lasts(26.0).at(3.0, Act::RoundTrip(0, 100.0)).share_between(22.0, 26.0, 0.85).gap(2.0, 9.0, 300.0);
    // What was acknowledged late, by whichever path, says little of how long to wait now.
    cut_after_a_delay_that_jumped_and_fell_back: on(&[link(40.0, 20.0), link(40.0, 20.0)]).lasts(10.0).at(3.0, Act::RoundTrip(0, 220.0))
        .at(5.2, Act::RoundTrip(0, 20.0)).at(6.6, Act::Loss(0, 1.0)).gap(2.0, 10.0, 300.0);
    delay_steps_down: on(&[link(50.0, 100.0), link(50.0, 20.0)]).lasts(9.0).at(4.0, Act::RoundTrip(0, 20.0))
        .share_between(6.0, 9.0, 0.85).gap(2.0, 9.0, 200.0);
    loss_begins: on(&pair()).lasts(9.0).at(3.0, Act::Loss(0, 0.03)).share_between(6.0, 9.0, 0.85).gap(2.0, 9.0, 200.0);
    mtu_drops_silently: on(&pair()).lasts(12.0).at(4.0, Act::Mtu(0, 1_300)).disorder(A_FEW).share_between(9.0, 12.0, 0.6).gap(2.0, 12.0, 500.0);
    mtu_drops_below_the_packets: on(&pair()).lasts(12.0).at(4.0, Act::Mtu(0, 1_280)).disorder(A_FEW).share_between(9.0, 12.0, 0.5).gap(2.0, 12.0, 500.0);
    small_mtu_from_the_start: on(&[link(50.0, 20.0).mtu(1_300), link(50.0, 20.0)]).share(0.6);
    mtu_told: on(&[link(50.0, 20.0).mtu(1_300).both(|way| way.refuses = true), link(50.0, 20.0)]).share(0.6);
    nat_that_keeps_its_binding: on(&[link(50.0, 20.0).nat(30), link(50.0, 20.0).nat(30)]).share(0.9);
    nat_that_forgets_soon: on(&[link(50.0, 20.0).nat(2), link(50.0, 20.0).nat(2)]).share(0.9);
    nat_rebinds: on(&pair().map(|link| link.nat(30))).lasts(9.0).at(3.0, Act::Rebind(0)).gap(2.0, 9.0, 200.0).share_between(6.0, 9.0, 0.9).strays(2_000);
    nat_rebinds_under_the_only_link: on(&[link(50.0, 20.0).nat(30)]).lasts(9.0).at(3.0, Act::Rebind(0)).gap(2.0, 9.0, 1_000.0).share_between(6.0, 9.0, 0.9).strays(2_000);
    nat_rebinds_downwards: on(&pair().map(|link| link.nat(30))).downwards().lasts(9.0).at(3.0, Act::Rebind(0)).gap(2.0, 9.0, 300.0).share_between(6.0, 9.0, 0.9).strays(400_000);
    address_changes: on(&pair()).lasts(9.0).at(3.0, Act::Move(0)).gap(2.0, 9.0, 200.0).share_between(6.0, 9.0, 0.9).strays(2_000);
    address_of_the_only_link_changes: on(&[link(50.0, 20.0)]).lasts(9.0).at(3.0, Act::Move(0)).gap(2.0, 9.0, 1_000.0).share_between(6.0, 9.0, 0.9).strays(2_000);
}

/// A probe of a size that does not pass is lost alone: nobody takes the path for silent.
#[test]
fn an_idle_path_is_not_suspected_while_its_mtu_is_searched() {
    let recipes = [LOCAL, REMOTE].map(|side| Recipe::of(side, Kind::Bbr));
    let links = vec![link(50.0, 20.0).mtu(1_492), link(30.0, 50.0)];
    let mut world = World::new(Setup { seed: 6, links, recipes, clocks: None, both_initiate: false });
    world.run_until(second(1.0));
    let mut mtus = Vec::new();
    for look in 0..1_000 {
        world.run_until(second(1.0 + f64::from(look) / 100.0));
        let now = world.now;
        let snapshots = world.portals.each_ref().map(|portal| portal.endpoint.snapshot(portal.clock.show(now)));
        let paths = snapshots.iter().flat_map(|snapshot| snapshot.peers.iter().flatten()).flat_map(|peer| &peer.paths);
        mtus = paths.clone().map(|path| path.mtu).collect();
        assert!(paths.clone().all(|path| path.state == HealthState::Active), "at {now:?}: {paths:?}");
    }
    // IPv4 and UDP headers.
    assert_eq!(mtus, [1_464, 1_472, 1_464, 1_472]);
}

/// Where one end suspects the near path, as an acknowledgement was lost, it acknowledges by the far one: what comes
/// that late must not have the other suspect it in turn, and so on for ever (seed 1 of the year, days 286 and 157).
#[test]
fn two_ends_do_not_keep_each_other_suspecting_a_path() {
    // A loss has the path suspected for a round trip: with 2 % of 50 packets a second each way for a tenth of the time.
    for (far, near, least) in [
        (link(50.0, 20.0).jitter(300.0), link(50.0, 45.0).jitter(5.0).loss(0.01), 970),
        (link(50.0, 90.0), link(50.0, 20.0).loss(0.02), 850),
        (link(50.0, 190.0), link(50.0, 20.0).loss(0.01), 900),
        (link(50.0, 400.0), link(50.0, 20.0).loss(0.02), 800),
    ] {
        let shares: Vec<usize> = (0..20).map(|seed| near_path_in_use(seed, [far.clone(), near.clone()])).collect();
        let uses = shares.iter().all(|share| *share > least);
        assert!(uses, "both ends use the near path in {shares:?} of 1,000 looks, beside {far:?}");
    }
}

/// Of 1,000 looks in ten seconds.
fn near_path_in_use(seed: u64, links: [LinkSpec; 2]) -> usize {
    let (recipes, links) = ([LOCAL, REMOTE].map(|side| Recipe::of(side, Kind::Bbr)), links.to_vec());
    let mut world = World::new(Setup { seed, links, recipes, clocks: None, both_initiate: false });
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    for (from, to) in [(LOCAL, REMOTE), (REMOTE, LOCAL)] {
        let ledger = Rc::<RefCell<Ledger>>::default();
        let plan = Plan { from: second(1.0), ..Plan::steady(0.08, 200) };
        world.add_host(from, ends[from], Source::new(plan, ends[from], ends[to], Rc::clone(&ledger)));
        world.add_host(to, ends[to], Sink(ledger));
    }
    let mut used = 0;
    for look in 0..1_000 {
        world.run_until(second(10.0 + f64::from(look) / 100.0));
        let paths = |portal: &Portal| portal.session(world.now).expect("a session").paths;
        let near = paths(&world.portals[LOCAL])[1].id;
        let uses =
            |portal: &Portal| paths(portal).iter().any(|path| path.id == near && path.state == HealthState::Active);
        used += usize::from(world.portals.iter().all(uses));
    }
    used
}
