//! The topology without a tunnel. Needs root.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use hawser_lab::topology::{Bond, ENDPOINT, Over};
use hawser_wire::traffic::Towards;
use hawser_wire::{Direction, Way};
use socket2::SockRef;

use crate::common::ms;

fn emulated(mbps: f64) -> [Direction; 2] {
    Direction::shaped(mbps, ms(5), ms(100)).both_ways()
}

fn bond(plans: &[[Direction; 2]]) -> Bond {
    Bond::new(plans).expect("the topology stands (these tests need root)")
}

/// Asks the endpoint from a link, and gives the address that it was asked from.
fn asked_over(bond: &Bond, index: usize) -> std::io::Result<IpAddr> {
    let far = bond.remote.run(|| UdpSocket::bind((ENDPOINT, 4000))).expect("enters")?;
    let near = bond.local.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).expect("enters")?;
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(ms(3000)))?;
    }
    SockRef::from(&near).bind_device(Some(bond.interface(index).as_bytes()))?;
    near.send_to(b"?", SocketAddr::from((ENDPOINT, 4000)))?;
    let mut answer = [0; 1];
    let (_, from) = far.recv_from(&mut answer)?;
    far.send_to(b"!", from)?;
    near.recv_from(&mut answer)?;
    Ok(from.ip())
}

#[test]
fn every_link_has_its_own_way_to_the_one_endpoint() {
    let bond = bond(&[emulated(50.0), emulated(30.0), emulated(20.0)]);
    for index in 0..3 {
        let from = asked_over(&bond, index).expect("the endpoint answers");
        assert_eq!(from, IpAddr::from([10, 10, u8::try_from(index + 1).expect("few links"), 2]));
    }
}

#[test]
fn links_that_share_a_bottleneck_have_addresses_of_their_own_and_one_rate() {
    let way = Direction::shaped(20.0, ms(5), ms(50));
    let bond = Bond::sharing(2, &way, &way).expect("the topology stands (these tests need root)");
    for index in 0..2 {
        let from = asked_over(&bond, index).expect("the endpoint answers");
        assert_eq!(from, IpAddr::from([10, 10, u8::try_from(index + 1).expect("few links"), 2]));
    }
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
