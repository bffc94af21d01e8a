//! Links that come and go.

use std::time::Duration;

use hawser_portal::api::PathState;

use crate::lab::{Lab, REMOTE, ms, parse, states};

/// A ping that goes on while a link changes.
const CHANGE: Duration = Duration::from_millis(800);

#[test]
fn a_link_that_is_set_down_takes_no_packet_with_it_and_comes_back() {
    let lab = Lab::new("down", "");
    let (local, _remote) = lab.start_both();
    for link in ["one", "two"] {
        let ping = lab.ping(REMOTE, ms(10), CHANGE).start().expect("a ping");
        std::thread::sleep(ms(200));
        lab.local.set_down(link).expect("it goes down");
        let report = ping.finish().expect("a report");
        // What is promised for a hard cut of a 100/s ping is three.
        assert!(report.lost() <= 3, "{} of {} lost; log:\n{}", report.lost(), report.sent.len(), local.log());
        local.wait_for("the path to be down", |status| {
            let down = |state: &PathState| matches!(state, PathState::Down | PathState::NoRoute);
            states(status).iter().filter(|state| down(state)).count() == 1
        });
        let ping = lab.ping(REMOTE, ms(10), CHANGE).start().expect("a ping");
        lab.local.set_up(link).expect("it comes up");
        lab.route(link);
        lab.assert_none_lost(&ping.finish().expect("a report"));
        local.wait_for("the path to be back", |status| states(status) == [PathState::Active; 2]);
    }
}

#[test]
fn an_interface_that_is_made_anew_is_used_again() {
    let lab = Lab::new("anew", "");
    let (local, _remote) = lab.start_both();
    lab.local.delete_interface("one").expect("it can be deleted");
    local.wait_for("the path to be down", |status| states(status) != [PathState::Active; 2]);
    lab.join("one");
    local.wait_for("the path to be back", |status| states(status) == [PathState::Active; 2]);
    lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
}

#[test]
fn a_portal_waits_for_interfaces_and_routes_and_says_so() {
    let lab = Lab::new("late", "");
    for link in ["one", "two"] {
        lab.local.delete_interface(link).expect("it can be deleted");
    }
    let _remote = lab.start("remote");
    let local = lab.start("local");
    local.wait_for("links that are down", |status| states(status) == [PathState::Down; 2]);
    // A link with an address and no route. The kernel then asks for the endpoint on the link itself, where no real one
    // would answer.
    lab.remote.set_sysctl("ipv4/conf/all/arp_ignore", "1").expect("a sysctl");
    let (near, far) = (lab.end(&lab.local, "two", 1), lab.end(&lab.remote, "two", 2));
    hawser_wire::veth(&near, &far, 1500).expect("a veth pair");
    local.wait_for("a link without a route", |status| states(status) == [PathState::Down, PathState::NoRoute]);
    lab.route("two");
    lab.join("one");
    local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
    lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
}

#[test]
fn an_address_that_changes_moves_the_link() {
    let lab = Lab::new("move", "");
    let (local, _remote) = lab.start_both();
    lab.remote.add_address("one", parse("192.0.7.2/24")).expect("an address");
    lab.local.add_address("one", parse("192.0.7.1/24")).expect("an address");
    lab.local.remove_address("one", parse("192.0.1.1/24")).expect("it had it");
    let gateway = Some("192.0.7.2".parse().expect("an address"));
    lab.local.add_route(parse("198.51.100.7/32"), gateway, Some("one")).expect("a route");
    local.wait_for_log("local=192.0.7.1:");
    local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
    lab.local.set_down("two").expect("it goes down");
    assert!(lab.answered_within(ms(1_000)) < ms(1_000));
}
