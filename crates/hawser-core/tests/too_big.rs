//! What routers and the own socket say of datagrams' sizes stops nothing, whatever they say.

use crate::support;
use std::cell::RefCell;
use std::rc::Rc;

use hawser_core::rules::{Rules, Treatment};
use hawser_core::units::LinkId;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

/// Whoever sees the path can forge an ICMP message that names any size: it shrinks nothing.
#[test]
fn a_forged_word_that_every_datagram_is_too_big_changes_nothing() {
    for size in (0..=1480).step_by(40) {
        let mut world = World::new(&[0], 1).settled();
        let before = [LOCAL, REMOTE].map(|portal| world.paths(portal)[0].mtu);
        for portal in [LOCAL, REMOTE] {
            let remote = world.paths(portal)[0].remote;
            (size..size + 40).for_each(|size| {
                world.portals[portal].endpoint.handle_hint(LinkId(0), remote, size, None);
            });
        }
        assert_eq!((world.stream(LOCAL, 60), world.stream(REMOTE, 60)), (60, 60), "{size} bytes are too big");
        assert_eq!([LOCAL, REMOTE].map(|portal| world.paths(portal)[0].mtu), before, "after {size}");
    }
}

/// A datagram of this size at least that left after all was quiet is a probe of the present size.
fn probes_after_a_hint(quote: impl Fn(&[u8]) -> Vec<u8>) -> usize {
    let mut world = World::new(&[0], 1).settled();
    let sent: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let noted = Rc::clone(&sent);
    world.rule = Box::new(move |_, flight| {
        if flight.from == LOCAL && flight.is_data() {
            noted.borrow_mut().push(flight.bytes.clone());
        }
        Fate::Pass
    });
    let (remote, mtu) = (world.paths(LOCAL)[0].remote, world.paths(LOCAL)[0].mtu);
    // It is under way, and nobody has acknowledged it.
    world.inner(LOCAL, 1, 1_400);
    world.run(ms(1));
    let full = sent.borrow().iter().rfind(|bytes| bytes.len() > 1_400).expect("a large datagram").clone();
    sent.borrow_mut().clear();
    world.portals[LOCAL].endpoint.handle_hint(LinkId(0), remote, 1_373, Some(&quote(&full)));
    world.run(ms(500));
    assert_eq!(world.paths(LOCAL)[0].mtu, mtu, "a word alone shrinks nothing");
    let sent = sent.borrow();
    sent.iter().filter(|bytes| bytes.len() >= usize::from(mtu)).count()
}

/// Whoever does not see the path can quote nothing of it.
#[test]
fn a_router_is_heard_only_where_it_quotes_a_datagram_that_is_under_way() {
    let genuine = probes_after_a_hint(|bytes| bytes[..9].to_vec());
    assert_eq!(genuine, 1, "the present size is probed");
    let other = |at: usize| move |bytes: &[u8]| [&bytes[..at], &[bytes[at] ^ 1], &bytes[at + 1..9]].concat();
    assert_eq!(probes_after_a_hint(|_| Vec::new()), 0, "no quote");
    assert_eq!(probes_after_a_hint(|bytes| bytes[..8].to_vec()), 0, "a quote without its number");
    assert_eq!(probes_after_a_hint(other(0)), 0, "another kind of datagram");
    assert_eq!(probes_after_a_hint(other(4)), 0, "another label");
    assert_eq!(probes_after_a_hint(other(5)), 0, "a number that was not sent");
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

/// A repair is longer than what it covers, and the paths' own datagrams do not vouch for its size.
#[test]
fn lost_repairs_make_no_path_smaller() {
    let mut world = World::new(&[0, 0], 1).settled();
    let treatment = Treatment { resend: false, fec: true, ..Treatment::default() };
    let now = world.now;
    world.portals[LOCAL].endpoint.set_rules(now, Rules::new(Vec::new(), treatment));
    world.run(ms(3_000));
    let mtus = |world: &World| world.paths(LOCAL).iter().map(|path| path.mtu).collect::<Vec<_>>();
    let before = mtus(&world);
    // Packets of video: what covers them is a few bytes longer, and lost, as is one packet of ten.
    let (len, mut count, mut repairs) = (1_228, 0, 0);
    let lost = Rc::new(RefCell::new(0));
    let told = Rc::clone(&lost);
    world.rule = Box::new(move |_, flight| {
        if flight.from != LOCAL || !flight.is_data() || flight.bytes.len() < len {
            return Fate::Pass;
        }
        if flight.bytes.len() > len + 35 {
            repairs += 1;
            *told.borrow_mut() = repairs;
            return Fate::Drop;
        }
        count += 1;
        if count % 10 == 0 { Fate::Drop } else { Fate::Pass }
    });
    for number in 0..2_000 {
        world.inner(LOCAL, number, len);
        world.run(ms(5));
    }
    assert!(*lost.borrow() > 20, "{} repairs were lost", lost.borrow());
    assert_eq!(mtus(&world), before);
}
