//! What routers and the own socket say of datagrams' sizes stops nothing, whatever they say.
#![allow(missing_docs, reason = "a test")]

mod support;

use hawser_core::units::LinkId;
use support::world::{LOCAL, REMOTE, World};

/// Whoever sees the path can forge an ICMP message that names any size: it shrinks nothing.
#[test]
fn a_forged_word_that_every_datagram_is_too_big_changes_nothing() {
    for size in (0..=1480).step_by(40) {
        let mut world = World::new(&[0], 1).settled();
        let before = [LOCAL, REMOTE].map(|portal| world.paths(portal)[0].mtu);
        for portal in [LOCAL, REMOTE] {
            let remote = world.paths(portal)[0].remote;
            (size..size + 40).for_each(|size| world.portals[portal].endpoint.handle_hint(LinkId(0), remote, size));
        }
        assert_eq!((world.stream(LOCAL, 60), world.stream(REMOTE, 60)), (60, 60), "{size} bytes are too big");
        assert_eq!([LOCAL, REMOTE].map(|portal| world.paths(portal)[0].mtu), before, "after {size}");
    }
}

/// What the own socket says of every size it may say of a device that is broken.
#[test]
fn a_socket_that_refuses_every_size_stops_nothing() {
    for size in (0..=600).step_by(4) {
        let mut world = World::new(&[0], 1).settled();
        for portal in [LOCAL, REMOTE] {
            let remote = world.paths(portal)[0].remote;
            (size..size + 4).for_each(|size| world.portals[portal].endpoint.handle_too_big(LinkId(0), remote, size));
        }
        assert_eq!((world.stream(LOCAL, 60), world.stream(REMOTE, 60)), (60, 60), "{size} bytes are too big");
        let mtus = [LOCAL, REMOTE].map(|portal| world.paths(portal)[0].mtu);
        assert!(mtus.iter().all(|mtu| *mtu >= 548), "{mtus:?} after {size}");
    }
}
