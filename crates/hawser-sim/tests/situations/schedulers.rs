//! Schedulers, rules, and the terms that links are offered on.

use crate::situations;
use hawser_core::drops::DropReason;
use hawser_core::rules::{Rule, Rules, Treatment};
use hawser_core::scheduler::{Kind, Weight};
use hawser_core::session::Terms;
use hawser_core::units::Rate;
use hawser_sim::host::flow::Plan;
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::situation::{Case, Seen};
use hawser_sim::world::REMOTE;
use hawser_sim::{Act, on};

/// UDP's number (IANA).
const UDP: u8 = 17;
/// What the pings and the sparse flow need beside the bulk, bytes, in a situation's time.
const BESIDE: u64 = 2_000_000;

fn pair() -> [LinkSpec; 2] {
    [link(50.0, 20.0), link(50.0, 20.0)]
}

/// All flows under one scheduler.
fn all(scheduler: Kind) -> Rules {
    Rules::new(Vec::new(), Treatment { scheduler, ..Treatment::default() })
}

/// UDP under a scheduler, losses not retransmitted; the rest as ever.
fn thin(scheduler: Kind) -> Rules {
    let treatment = Treatment { scheduler, resend: false, ..Treatment::default() };
    Rules::new(vec![Rule { protocol: Some(UDP), treatment, ..Rule::default() }], Treatment::default())
}

fn weight(parts: u8) -> Terms {
    Terms { weight: Weight::new(parts).expect("not zero"), ..Terms::default() }
}

fn at_most(mbit: u64) -> Terms {
    Terms { max_rate: Some(Rate::from_bits(mbit * 1_000_000)), ..Terms::default() }
}

fn barred() -> Terms {
    Terms { barred: true, ..Terms::default() }
}

fn flows(flows: u16) -> Plan {
    Plan { flows, ..Plan::greedy(262_144) }
}

/// 200 packets of 200 bytes a second.
fn voice() -> Plan {
    Plan::steady(0.32, 200)
}

fn lossy() -> [LinkSpec; 2] {
    pair().map(|link| link.loss(0.05))
}

situations! {
    weighted_alone: on(&[link(50.0, 20.0)]).rules(all(Kind::Weighted)).share(0.9);
    weighted_equally: on(&pair()).rules(all(Kind::Weighted)).share(0.85);
    // A share is fixed: the slow link has a half, so both carry what it can.
    weighted_against_the_rates: on(&[link(50.0, 20.0), link(10.0, 20.0)]).rules(all(Kind::Weighted)).rate(2.0, 6.0, 16.0);
    weighted_as_the_rates: on(&[link(40.0, 20.0), link(10.0, 20.0)]).rules(all(Kind::Weighted)).terms(0, weight(4)).share(0.85);
    weighted_and_cut: on(&pair()).rules(all(Kind::Weighted)).lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 300.0).rate(3.5, 5.0, 40.0).share_between(7.5, 9.0, 0.8);
    many_flows_over_paths_of_their_own: on(&[link(40.0, 20.0), link(20.0, 90.0)]).rules(all(Kind::Flow)).bulk(flows(60)).lasts(9.0).share(0.8);
    one_flow_over_one_path: on(&pair()).rules(all(Kind::Flow)).rate(2.0, 6.0, 40.0);
    flows_outlive_their_path: on(&pair()).rules(all(Kind::Flow)).bulk(flows(20)).lasts(9.0).at(3.0, Act::Down(0)).at(5.0, Act::Up(0))
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 40.0);
    redundant_bulk_is_as_fast_as_a_path: on(&pair()).rules(all(Kind::Redundant)).rate(2.0, 6.0, 40.0);
    redundant_over_one_path: on(&[link(50.0, 20.0)]).rules(all(Kind::Redundant)).rate(2.0, 6.0, 40.0);
    redundant_notices_no_cut: on(&pair()).rules(all(Kind::Redundant)).bulk(voice()).lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 30.0).rate(2.0, 9.0, 0.3);
    rules_beside_bulk: on(&pair()).rules(thin(Kind::Redundant)).share(0.85).ping(2.0, 6.0, 50.0);
    no_more_than_the_terms: on(&pair()).terms(0, at_most(20)).rate(2.0, 6.0, 60.0);
    barred_alone_carries_nothing_for_a_while: on(&[link(50.0, 20.0)]).lasts(9.0).at(3.0, Act::Terms(0, barred())).at(5.0, Act::Terms(0, Terms::default()))
        .quiet(3.5, 4.9, 0, 2_000).rate(6.0, 9.0, 40.0);
    barred_beside_another: on(&pair()).lasts(9.0).at(3.0, Act::Terms(0, barred())).at(6.0, Act::Terms(0, Terms::default()))
        .quiet(3.5, 6.0, 0, 3_000).gap(2.0, 9.0, 200.0).rate(3.5, 6.0, 42.0).share_between(7.5, 9.0, 0.85);
    barred_downwards: on(&pair()).downwards().lasts(9.0).at(3.0, Act::Terms(0, barred()))
        .quiet(3.5, 9.0, 0, 6_000).gap(2.0, 9.0, 200.0).rate(3.5, 9.0, 42.0);
}

/// Bytes that each link's sender sent, that of the bulk's direction.
fn sent(seen: &Seen, down: bool) -> Vec<u64> {
    let links = seen.world.links.iter();
    links.map(|link| if down { link.down.counters.sent_bytes } else { link.up.counters.sent_bytes }).collect()
}

fn either_way(case: impl Fn() -> Case, name: &str, holds: impl Fn(&Seen, bool)) {
    holds(&case().run(name), false);
    holds(&case().downwards().run(&format!("{name}_downwards")), true);
}

#[test]
fn shares_are_as_the_weights_in_both_directions() {
    let case = || on(&pair()).rules(all(Kind::Weighted)).terms(0, weight(3)).terms(1, weight(1));
    either_way(case, "weighted_three_to_one", |seen, down| {
        let bytes = sent(seen, down);
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((2.8..3.2).contains(&ratio), "{bytes:?}");
    });
}

/// Its terms are told before its first datagram has come.
#[test]
fn the_terms_of_a_far_link_are_heard_too() {
    let links = [link(30.0, 20.0), link(30.0, 300.0)];
    let case = on(&links).rules(all(Kind::Weighted)).terms(1, weight(3)).downwards().lasts(12.0);
    let bytes = sent(&case.run("terms_of_a_far_link"), true);
    let ratio = bytes[1] as f64 / bytes[0] as f64;
    assert!((2.5..3.3).contains(&ratio), "{bytes:?}");
}

#[test]
fn a_flow_uses_one_path_and_no_other() {
    let case = || on(&pair()).rules(all(Kind::Flow));
    either_way(case, "one_flow", |seen, down| {
        let bytes = sent(seen, down);
        let least = bytes.iter().min().expect("two links");
        assert!(*least < BESIDE, "{bytes:?}");
    });
}

#[test]
fn a_limit_holds_in_both_directions() {
    let case = || on(&[link(50.0, 20.0)]).terms(0, at_most(10));
    either_way(case, "at_most_ten", |seen, down| {
        let mbit = sent(seen, down)[0] as f64 * 8.0 / 6.0 / 1e6;
        assert!((8.0..10.3).contains(&mbit), "{mbit} Mbit/s");
    });
}

#[test]
fn redundant_loses_only_what_both_paths_lose() {
    let case = || on(&lossy()).rules(thin(Kind::Redundant)).bulk(voice()).lasts(60.0).disorder(1.0);
    either_way(case, "redundant_and_lossy", |seen, _| {
        let came = seen.bulk.borrow().delivered();
        assert!((0.995..1.0).contains(&came), "{came}");
    });
}

#[test]
fn what_is_not_sent_again_is_lost_and_holds_nothing_up() {
    let case = on(&lossy()[..1]).rules(thin(Kind::Adaptive)).bulk(voice()).lasts(60.0).gap(2.0, 60.0, 50.0);
    let seen = case.run("lossy_without_resending");
    let ledger = seen.bulk.borrow();
    assert!((0.93..0.97).contains(&ledger.delivered()), "{}", ledger.delivered());
    let late = ledger.delay_quantile(hawser_sim::situation::second(2.0), hawser_sim::situation::second(60.0), 1.0);
    assert!(late.as_millis() < 30, "the slowest took {late:?}");
}

/// Redundant copies that came where calls go by two links, of which one is far, under this scheduler.
fn copies(scheduler: Kind) -> u64 {
    let links = [link(20.0, 20.0), link(20.0, 200.0)];
    let seen = on(&links).rules(all(scheduler)).bulk(voice()).run(&format!("copies_{scheduler:?}"));
    let portal = &seen.world.portals[REMOTE];
    portal.endpoint.snapshot(portal.clock.show(seen.world.now)).drops.of(DropReason::Duplicate)
}

#[test]
fn what_weights_or_a_flow_give_a_path_goes_by_no_other() {
    assert_eq!([Kind::Weighted, Kind::Flow].map(copies), [0, 0]);
    assert!(copies(Kind::Redundant) > 500, "the figure counts copies");
}
