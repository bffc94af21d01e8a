//! Two links that share a bottleneck, and two that do not, under coupled controllers.

use crate::situations;
use hawser_core::congestion::Kind;
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::on;

/// Mbit/s of the bottleneck.
const MBIT: f64 = 20.0;
/// Bulk over 20 Mbit/s, less what headers, acknowledgements, the sparse flow and the pings take.
const FILLED: f64 = 17.5;

/// Two links through one pipe.
fn shared() -> [LinkSpec; 2] {
    [link(MBIT, 40.0), link(MBIT, 40.0).through(0)]
}

fn apart() -> [LinkSpec; 2] {
    [link(MBIT, 40.0), link(MBIT, 40.0)]
}

situations! {
    one_bottleneck_with_lia: on(&shared()).congestion(Kind::Lia).lasts(15.0).rate(5.0, 15.0, FILLED);
    one_bottleneck_with_olia: on(&shared()).congestion(Kind::Olia).lasts(15.0).rate(5.0, 15.0, FILLED);
    one_bottleneck_with_balia: on(&shared()).congestion(Kind::Balia).lasts(15.0).rate(5.0, 15.0, FILLED);
    two_bottlenecks_with_lia: on(&apart()).congestion(Kind::Lia).lasts(15.0).share(0.8);
    two_bottlenecks_with_olia: on(&apart()).congestion(Kind::Olia).lasts(15.0).share(0.8);
    two_bottlenecks_with_balia: on(&apart()).congestion(Kind::Balia).lasts(15.0).share(0.8);
    unequal_bottlenecks_with_lia: on(&[link(40.0, 20.0), link(10.0, 40.0)]).congestion(Kind::Lia).lasts(15.0).share(0.75);
}

/// Packets that the bottleneck's queue had no room for until then.
fn dropped_by(kind: Kind, seconds: f64) -> u64 {
    let seen = on(&shared()).congestion(kind).lasts(seconds).run(&format!("{kind:?} at one bottleneck"));
    seen.world.links[0].up.counters.dropped
}

/// Coupled windows grow by a quarter of what uncoupled ones do here, and so overflow the queue as much more seldom: the
/// paths of a session know of each other. What slow start overflows is the same, and not counted.
#[test]
fn coupled_paths_probe_a_bottleneck_as_one_flow_does() {
    let dropped = |kind| dropped_by(kind, 40.0) - dropped_by(kind, 8.0);
    let uncoupled = dropped(Kind::NewReno);
    for kind in [Kind::Lia, Kind::Olia, Kind::Balia] {
        let coupled = dropped(kind);
        assert!(coupled * 2 < uncoupled && coupled > 0, "{kind:?}: {coupled} packets, uncoupled {uncoupled}");
    }
}
