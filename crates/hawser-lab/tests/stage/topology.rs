//! The topology without a tunnel. Needs root.

use std::net::IpAddr;

use hawser_lab::topology::{Bond, ENDPOINT, Over};
use hawser_wire::traffic::Towards;
use hawser_wire::{Direction, Way};

use crate::common::{Talk, ms};

fn emulated(mbps: f64) -> [Direction; 2] {
    Direction::shaped(mbps, ms(5), ms(100)).both_ways()
}

fn bond(plans: &[[Direction; 2]]) -> Bond {
    Bond::new(plans).expect("the topology stands (these tests need root)")
}

/// Asks the endpoint by each link, and sees that it was asked from the link's address.
fn ask_over_each(bond: &Bond, links: u8) {
    for number in 1..=links {
        let from = Talk::ask_by(&bond.local, &bond.interface(usize::from(number) - 1), (&bond.remote, ENDPOINT.into()));
        assert_eq!(from, IpAddr::from([10, 10, number, 2]));
    }
}

#[test]
fn every_link_has_its_own_way_to_the_one_endpoint() {
    let bond = bond(&[emulated(50.0), emulated(30.0), emulated(20.0)]);
    ask_over_each(&bond, 3);
}

#[test]
fn links_that_share_a_bottleneck_have_addresses_of_their_own_and_one_rate() {
    let way = Direction::shaped(20.0, ms(5), ms(50));
    let bond = Bond::sharing(2, &way, &way).expect("the topology stands (these tests need root)");
    ask_over_each(&bond, 2);
    let got = bond.transfer(Towards::Server, Over::LinkOne, ms(1500)).run().expect("it runs");
    let rate = got.mbps_between(got.start() + ms(500), got.start() + ms(1500));
    assert!((15.0..=20.0).contains(&rate), "{rate} Mbit/s");
    let [bottleneck] = bond.links() else { panic!("{} emulated links", bond.links().len()) };
    assert!(bottleneck.counters(Way::AToB).packets_sent > 1000, "all went through it");
}

#[test]
fn a_plain_transfer_fills_link_one_both_ways() {
    let bond = bond(&[emulated(40.0), emulated(20.0)]);
    for towards in [Towards::Server, Towards::Client] {
        let got = bond.transfer(towards, Over::LinkOne, ms(1500)).run().expect("it runs");
        let rate = got.mbps_between(got.start() + ms(500), got.start() + ms(1500));
        assert!((36.0..=40.0).contains(&rate), "{rate} Mbit/s {towards:?}");
    }
}
