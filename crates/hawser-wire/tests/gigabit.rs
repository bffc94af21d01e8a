//! A gigabit each second through one link, by the kernel's TCP. Needs root.

mod common;

use common::{ADDRESS_B, between, measured, ms};
use hawser_wire::traffic::{Congestion, TcpTransfer};
use hawser_wire::{Direction, EmulatedLink, LinkSpec};

/// Rate of IP packets.
const RATE_MBIT: f64 = 1000.0;
/// What TCP brings of it: 1448 bytes of each packet of 1500 (timestamps, RFC 7323).
const TCP_SHARE: f64 = 1448.0 / 1500.0;

#[test]
fn one_stream_fills_a_gigabit_one_way() {
    measured(|| {
        let (a, b) = between("giga");
        let (from, to) = (a.namespace.clone(), b.namespace.clone());
        let way = Direction::shaped(RATE_MBIT, ms(2), ms(20));
        let link = EmulatedLink::new(LinkSpec::symmetric("gigabit", a, b, &way)).expect("the link starts");
        let transfer = TcpTransfer {
            from,
            to,
            destination: format!("{ADDRESS_B}:5001").parse().expect("an address"),
            source: None,
            congestion: Congestion::Cubic,
            duration: ms(3000),
        };
        let got = transfer.run().expect("the transfer runs");
        let mbps = got.mbps_between(got.start() + ms(1000), got.start() + ms(3000));
        let cost = common::thread_cpu("wire-gigabit");
        println!("{mbps:.1} Mbit/s of {:.1}; the link's thread took {cost:?}", RATE_MBIT * TCP_SHARE);
        println!("{:?}", link.counters(hawser_wire::Way::AToB));
        assert!(mbps >= 0.97 * RATE_MBIT * TCP_SHARE, "{mbps:.1} Mbit/s");
    });
}
