//! Portals that initiate, restart, change keys, or have odd clocks.

use crate::situations;
use hawser_core::endpoint::Event;
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::portal::Clock;
use hawser_sim::{Act, LOCAL, REMOTE, on};
use std::time::Duration;

fn pair() -> [LinkSpec; 2] {
    [link(50.0, 20.0), link(50.0, 20.0)]
}

fn clock(days: u64, ppm: i32) -> Clock {
    Clock { offset: Duration::from_secs(days * 86_400), ppm }
}

situations! {
    both_initiate_at_once: on(&[link(50.0, 20.0), link(50.0, 20.0)]).both_initiate().share(0.9);
    first_initiations_lost: on(&pair()).at(0.0, Act::Loss(0, 1.0)).at(0.0, Act::Loss(1, 1.0)).at(1.2, Act::Loss(0, 0.0)).at(1.2, Act::Loss(1, 0.0))
        .lasts(8.0).gap(3.0, 8.0, 200.0).share_between(5.0, 8.0, 0.9);
    half_of_everything_lost_at_first: on(&pair()).at(0.0, Act::Loss(0, 0.5)).at(0.0, Act::Loss(1, 0.5)).at(2.0, Act::Loss(0, 0.0)).at(2.0, Act::Loss(1, 0.0))
        .disorder(0.001).lasts(10.0).share_between(7.0, 10.0, 0.85);
    clocks_far_apart: on(&pair()).clocks([clock(0, 0), clock(4_000, 0)]).share(0.9);
    clock_200_ppm_fast: on(&pair()).clocks([clock(3, 200), clock(0, -200)]).lasts(20.0).share(0.9);
    remote_killed_and_restarted: on(&pair()).lasts(10.0).at(3.0, Act::Kill(REMOTE)).at(3.2, Act::Start(REMOTE))
        .gap(2.0, 10.0, 3_000.0).share_between(8.0, 10.0, 0.9).stream_may_fail();
    remote_closes_and_restarts: on(&pair()).lasts(10.0).at(3.0, Act::Close(REMOTE)).at(3.5, Act::Start(REMOTE))
        .gap(2.0, 10.0, 3_000.0).share_between(8.0, 10.0, 0.9).stream_may_fail();
    local_killed_and_restarted: on(&pair()).lasts(10.0).at(3.0, Act::Kill(LOCAL)).at(3.2, Act::Start(LOCAL))
        .gap(2.0, 10.0, 1_500.0).share_between(8.0, 10.0, 0.9).stream_may_fail();
    local_closes_and_restarts: on(&pair()).lasts(10.0).at(3.0, Act::Close(LOCAL)).at(3.5, Act::Start(LOCAL))
        .gap(2.0, 10.0, 1_500.0).share_between(8.0, 10.0, 0.9).stream_may_fail();
    remote_down_for_long: on(&pair()).lasts(16.0).at(3.0, Act::Kill(REMOTE)).at(10.0, Act::Start(REMOTE))
        .gap(10.0, 16.0, 2_000.0).share_between(14.0, 16.0, 0.9).stream_may_fail();
}

/// Two minutes and a little under load, slowly: the keys change without a packet out of order.
#[test]
fn new_keys_under_load() {
    let case = on(&[link(2.0, 20.0), link(2.0, 20.0)])
        .lasts(125.0)
        .share_between(115.0, 125.0, 0.9)
        .gap(2.0, 125.0, 300.0)
        .pings_lost(10);
    let seen = case.run("new_keys_under_load");
    for side in [LOCAL, REMOTE] {
        let fresh = seen.world.portals[side].told.iter().filter(|(_, event)| matches!(event, Event::Session { .. }));
        assert_eq!(fresh.count(), 2, "side {side}: the first keys and the second, nothing else");
    }
}
