use super::*;

/// Few enough that a test has the time, and 20 for each member: the example has a million.
const PEERS: u32 = 4_000;

/// A mended member takes in epochs at once.
fn setup(dies: Dies, has: Has) -> Setup {
    Setup { peers: PEERS, dies, has, costs: Costs { take_in: Duration::ZERO, ..Costs::ASSUMED } }
}

#[test]
fn whatever_peers_do_a_members_death_moves_each_and_all_members_know() {
    for has in [Has::PacketsUp, Has::PacketsDown, Has::Nothing] {
        let figures = run(setup(Dies::Member, has));
        println!("{has:?}: {figures:?}");
        assert!((5..50).contains(&figures.lost), "{has:?}: {figures:?}");
        let (moved, routed, known) = (figures.moved.all, figures.routed.all, figures.etcd.known.all);
        assert!(moved.is_some() && routed.is_some() && routed < known, "{has:?}: {figures:?}");
        assert!(figures.moved.half < Some(1_000), "{has:?}: {figures:?}");
        // A load of each member's in ten seconds, and what moves without need.
        assert!((19.0..30.0).contains(&figures.etcd.at_rest.keys), "{has:?}: {figures:?}");
    }
}

#[test]
fn the_last_of_a_wave_waits_for_its_members_routes() {
    let fast = setup(Dies::Rack, Has::PacketsUp);
    let slow = Setup { costs: Costs { route: Duration::from_millis(200), ..fast.costs }, ..fast };
    let [fast, slow] = [fast, slow].map(run);
    assert!(slow.moved.all < Some(2_000), "claims wait for no route: {slow:?}");
    assert!(slow.routed.all > fast.routed.all.map(|all| all + 200), "{fast:?} {slow:?}");
}
