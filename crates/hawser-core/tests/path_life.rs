//! What brings a path back, and what a path that moved or shrank still believes of itself.

mod support;

use hawser_core::path::health::HealthState;
use std::net::SocketAddr;
use support::world::{Fate, LOCAL, World, ms};

#[test]
fn word_of_what_was_sent_before_the_silence_brings_no_path_back() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.stream(LOCAL, 200);
    let one: SocketAddr = world.portals[LOCAL].links[0];
    let cut = world.now + ms(100);
    // From then on nothing gets through, and what comes back of before is late.
    world.rule = Box::new(move |now, flight| match now >= cut {
        true if flight.source == one => Fate::Drop,
        true if flight.to == one => Fate::Delay(ms(80)),
        _ => Fate::Pass,
    });
    let mut states = Vec::new();
    for number in 0..400 {
        world.inner(LOCAL, number, 400);
        world.run(ms(1));
        states.push(world.paths(LOCAL)[0].state);
    }
    let suspected = states.iter().position(|state| *state == HealthState::Suspect).expect("a suspicion");
    assert!((100..170).contains(&suspected), "before the late word: {suspected} ms");
    assert!(!states[suspected..].contains(&HealthState::Active), "{:?}", &states[suspected..]);
}
