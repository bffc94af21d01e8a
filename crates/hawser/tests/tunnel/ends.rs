//! How portals end, and what they leave.

use std::time::Duration;

use hawser_portal::api::PathState;
use rustix::process::Signal;

use crate::at_rest::at_rest;
use crate::lab::{Lab, ms, states};

/// The contract's time for traffic to flow again after the remote portal was killed and started anew.
const RESTART_MAX: Duration = Duration::from_secs(3);
#[test]
fn a_portal_that_is_told_to_end_leaves_nothing_behind() {
    let lab = Lab::new("term", "");
    let before = at_rest(|| lab.traces());
    let (mut local, mut remote) = lab.start_both();
    assert_ne!(lab.traces(), before);
    assert_eq!(lab.rp_filter("two"), "2", "strict would swallow what comes back by the second link");
    assert_eq!(lab.rp_filter("one"), "0", "nothing needs changing where nothing is in the way");
    local.signal(Signal::TERM);
    assert!(local.wait().success(), "{}", local.log());
    assert_eq!(lab.traces(), before, "{}", local.log());
    assert!(!local.socket.exists());
    // The other one was told.
    remote.wait_for_log("session closed by peer");
    remote.signal(Signal::INT);
    assert!(remote.wait().success(), "{}", remote.log());
}

#[test]
fn a_remote_portal_that_was_killed_and_started_again_is_found_by_itself() {
    let lab = Lab::new("kill", "");
    let (local, mut remote) = lab.start_both();
    remote.signal(Signal::KILL);
    remote.wait();
    std::thread::sleep(ms(300));
    let _remote = lab.start("remote");
    lab.answered_within(RESTART_MAX);
    local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
}

#[test]
fn what_a_killed_portal_left_is_cleaned_by_the_next() {
    let lab = Lab::new("left", "");
    let before = at_rest(|| lab.traces());
    let (mut local, _remote) = lab.start_both();
    local.signal(Signal::KILL);
    local.wait();
    assert_eq!(lab.rp_filter("two"), "2", "a killed portal undoes nothing");
    let mut local = lab.start("local");
    local.wait_for_log("cleaned up after a killed portal");
    lab.answered_within(RESTART_MAX);
    local.signal(Signal::TERM);
    assert!(local.wait().success(), "{}", local.log());
    assert_eq!(lab.traces(), before, "{}", local.log());
}

#[test]
fn a_portal_that_loses_its_tun_device_undoes_the_rest_and_fails() {
    let lab = Lab::new("gone", "");
    let before = at_rest(|| lab.traces());
    let (mut local, _remote) = lab.start_both();
    lab.local.delete_interface("hawser0").expect("it can be deleted");
    assert_eq!(local.wait().code(), Some(1), "{}", local.log());
    assert!(local.log().contains("error: use tun device: it was deleted"), "{}", local.log());
    assert_eq!(lab.traces(), before);
}

#[test]
fn a_second_portal_is_refused_and_the_first_goes_on() {
    let lab = Lab::new("twice", "");
    let (local, _remote) = lab.start_both();
    let mut second = lab.start("local");
    assert_eq!(second.wait().code(), Some(1));
    assert!(second.log().contains("another portal is running on it"), "{}", second.log());
    lab.answered_within(ms(1_000));
    drop(local);
}

#[test]
fn a_reload_says_what_needs_a_restart() {
    let lab = Lab::new("hup", "");
    let (local, _remote) = lab.start_both();
    local.signal(Signal::HUP);
    local.wait_for_log("nothing has changed");
    lab.edit("local.toml", "[tun]\n", "[tun]\nmtu = 1300\n");
    local.signal(Signal::HUP);
    local.wait_for_log("the changes need a restart sections=\"tun\"");
    lab.edit("local.toml", "[[peer]]", "[[pear]]");
    local.signal(Signal::HUP);
    local.wait_for_log("pear");
    local.wait_for_log("the old one stays in force");
    lab.answered_within(ms(1_000));
}
