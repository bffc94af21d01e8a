//! What the judges say of a few plain networks: TCP's streams through the bond against the same on one link.

use hawser_core::policy::{Law, Tuning};
use hawser_sim::Act;
use hawser_sim::judge::{Network, Question, bulk, short, sparse};
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::tcp::Congestion;

const DOWN: Question = Question { congestion: Congestion::Cubic, down: true };

fn network(name: &str, links: &[LinkSpec], acts: &[(f64, Act)]) -> Network {
    let (links, acts) = (links.to_vec(), acts.to_vec());
    Network { name: name.to_owned(), seed: 1, links, acts, seconds: 16.0, ..Network::default() }
}

fn pair() -> [LinkSpec; 2] {
    [link(20.0, 40.0), link(20.0, 40.0)]
}

#[test]
fn two_equal_links_carry_a_stream_like_one_of_twice_the_rate() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for down in [false, true] {
            let verdict = bulk::judge(&network("equal", &pair(), &[]), Question { congestion, down });
            assert!(verdict.capacity == 40.0 && verdict.alone.len() == 2);
            let (share, best) = (verdict.share() / bulk::LAYER3, verdict.bond.mbit / verdict.best());
            assert!(share > 0.85 && best > 1.6, "{congestion:?} down {down}: {share:.3} of what can be had, {best:.2}");
            assert!(verdict.bond.story.timeouts == 0, "{:?}", verdict.bond.story);
        }
    }
}

#[test]
fn one_link_carries_through_the_portals_what_it_carries_alone_but_for_their_headers() {
    let verdict = bulk::judge(&network("one", &[link(30.0, 30.0)], &[]), DOWN);
    let ratio = verdict.bond.mbit / verdict.best() * (1448.0 / 1500.0) / bulk::LAYER3;
    assert!((0.95..1.02).contains(&ratio), "{ratio:.3}");
    assert!(verdict.bond.ping[1] < 80.0 && verdict.bond.pings_lost == 0, "{:?}", verdict.bond.ping);
}

#[test]
fn a_link_that_keeps_what_it_holds_for_3_s_ends_no_stream() {
    let acts = [(5.0, Act::Stall(0)), (8.0, Act::Resume(0))];
    let bond = bulk::run(network("keeps", &pair(), &acts).bond(), &network("keeps", &pair(), &acts), DOWN);
    // What the inner sender lost when the queue had half the rate is late by that queue: two seconds are looked at
    // together.
    let meanwhile = (bond.seconds[6] + bond.seconds[7]) / 2.0;
    assert!(meanwhile > 12.0, "the other link carries it meanwhile: {:?}", bond.seconds);
    assert!(bond.seconds[15] > 17.0, "and afterwards: {:?}", bond.seconds);
}

#[test]
fn short_flows_take_about_as_long_as_on_the_best_link_alone_and_less_beside_a_download() {
    let links = [link(20.0, 40.0), link(10.0, 80.0)];
    for bytes in [30_000, 300_000] {
        let alone = short::judge(&network("short", &links, &[]), DOWN, bytes, false);
        assert_eq!(alone.bond.unfinished + alone.best.unfinished, 0);
        assert!(alone.ratios()[0] < 1.25, "{bytes} bytes: {:?}, {alone:?}", alone.ratios());
        let beside = short::judge(&network("short", &links, &[]), DOWN, bytes, true);
        assert!(beside.ratios()[0] < 1.0, "{bytes} bytes beside a download: {:?}", beside.ratios());
    }
}

#[test]
fn calls_lose_nothing_beside_a_download() {
    let verdict = sparse::judge(&network("calls", &pair(), &[]), DOWN);
    assert!(verdict.idle.late < 10.0 && verdict.idle.useless == 0.0, "{verdict:?}");
    assert!(verdict.loaded.late < 60.0 && verdict.loaded.useless < 0.001, "{verdict:?}");
}

#[test]
fn calls_are_in_time_over_a_link_that_falls_to_a_tenth_again_and_again() {
    let falls = (5..13).flat_map(|at| [(f64::from(at), Act::Rate(0, 2.0)), (f64::from(at) + 0.5, Act::Rate(0, 20.0))]);
    let (links, acts) = ([link(20.0, 30.0), link(20.0, 40.0)], falls.collect::<Vec<_>>());
    let useless = |tuning| {
        let network = Network { tuning, ..network("falls", &links, &acts) };
        let (calls, _) = sparse::run(network.bond(), &network, DOWN, true, Some([15.0, 15.0]));
        assert_eq!(calls.lost, 0.0, "{calls:?}");
        calls.useless
    };
    let (hedged, alone) = (useless(Tuning::default()), useless(Tuning::neutral(Law::named("hedge").expect("a law"))));
    assert!(hedged < 0.005 && alone > 2.0 * hedged, "{hedged:.4} of no use, {alone:.4} without copies");
}

#[test]
fn a_ping_does_not_wait_for_what_a_lost_link_leaves_to_be_retransmitted() {
    let cuts = (4..14).step_by(2).flat_map(|at| [(f64::from(at), Act::Cut(0)), (f64::from(at) + 1.0, Act::Heal(0))]);
    let (links, acts) = ([link(40.0, 30.0), link(6.0, 40.0)], cuts.collect::<Vec<_>>());
    let late = |tuning| {
        let network = Network { tuning, ..network("cuts", &links, &acts) };
        bulk::run(network.bond(), &network, DOWN).ping[1]
    };
    let (with, without) = (late(Tuning::default()), late(Tuning::neutral(Law::named("sparse-first").expect("a law"))));
    println!("{with:.0} ms, {without:.0} behind retransmissions");
    assert!(with < 0.7 * without, "{with:.0} ms, {without:.0} behind retransmissions");
}

#[test]
fn a_thin_link_that_stands_again_and_again_does_not_hold_up_a_good_one() {
    let stands = (3..16).flat_map(|at| [(f64::from(at), Act::Rate(0, 0.05)), (f64::from(at) + 0.6, Act::Rate(0, 1.0))]);
    let (links, acts) = ([link(1.0, 70.0), link(12.0, 30.0)], stands.collect::<Vec<_>>());
    let mbit = |tuning| {
        let network = Network { tuning, ..network("stands", &links, &acts) };
        bulk::run(network.bond(), &network, DOWN).mbit
    };
    let (with, without) = (mbit(Tuning::default()), mbit(Tuning::neutral(Law::named("reinject-idle").expect("a law"))));
    println!("{with:.2} {without:.2}");
    assert!(with > 0.9 * 12.0 * bulk::LAYER3 && with > without, "{with:.2} Mbit/s, {without:.2} without the law");
}

/// The longest gap, ms, of a stream of 9 s that loses the first link after 5 s, when no rate is known to be steady yet.
fn gap(links: &[LinkSpec], lost: &Act, down: bool, tuning: Tuning) -> f64 {
    let network = Network { tuning, seconds: 10.0, ..network("lost", links, &[(6.0, lost.clone())]) };
    bulk::run(network.bond(), &network, Question { down, ..DOWN }).gap
}

#[test]
fn a_stream_that_loses_a_link_in_its_first_seconds_is_in_order_again_within_a_fifth_of_a_second() {
    let pair = [link(50.0, 20.0), link(50.0, 20.0)];
    let spare = [link(50.0, 20.0), link(20.0, 40.0).metric(1)];
    let neutral = Tuning::neutral(Law::named("codel-shorten").expect("a law"));
    for (name, links, most, head) in [("two links", pair, 200.0, 500.0), ("a spare link", spare, 300.0, 600.0)] {
        for lost in [Act::Down(0), Act::Cut(0)] {
            for down in [false, true] {
                let gap = |tuning| gap(&links, &lost, down, tuning);
                let (with, without) = (gap(Tuning::default()), gap(neutral));
                println!("{name}, {lost:?}, down {down}: {with} ms, {without} ms where the head is dropped");
                assert!(with <= most && without >= head, "{name}, {lost:?}, down {down}: {with} ms, {without} ms");
            }
        }
    }
}

#[test]
fn the_same_network_is_judged_the_same_again() {
    let lossy = pair().map(|link| link.loss(0.005).jitter(3.0));
    let figures = |seed| {
        let network = Network { seed, ..network("again", &lossy, &[]) };
        let bulk = bulk::run(network.bond(), &network, DOWN);
        (bulk.seconds, bulk.story, short::run(network.bond(), &network, DOWN, 30_000, true).took)
    };
    assert_eq!(figures(5), figures(5));
    assert_ne!(figures(5), figures(6));
}
