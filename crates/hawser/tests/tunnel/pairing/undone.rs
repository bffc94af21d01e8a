//! A bond that does not bring what it promised is undone, and whoever came in over an uplink stays.

use rustix::process::{Pid, kill_process};

use super::*;
use crate::footprint::Footprint;
use crate::home::nft;

/// What the hub's firewall drops: all that its peers send into the world.
const NO_WORLD: &str =
    "table inet broken { chain forward { type filter hook forward priority 0; oifname eth0 drop; }; }";

#[test]
fn a_bond_that_brings_no_internet_is_undone_byte_by_byte_and_the_shell_over_an_uplink_lives() {
    let scene = Scene::new("undone");
    let home = &scene.home;
    home.make_dirty();
    let token = scene.serve();
    nft(&home.remote, NO_WORLD);
    let before = Footprint::of(&home.local);
    let mut shells = [Shell::new(home, "192.0.1.1", 9001), Shell::new(home, "192.0.2.1", 9001)];
    let said = scene.join(&token, "--within 5");
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("link one: active") && said.err.contains("link two: active"), "{}", said.err);
    assert!(said.err.contains("the internet, which answered before, did not within 5 s"), "{}", said.err);
    assert!(said.err.contains("undone: ") && said.err.contains("hint: on the server"), "{}", said.err);
    before.assert_same(&home.local, "after the roll-back");
    assert!(!scene.file("home").parent().expect("a folder").exists(), "no file is left");
    shells.iter_mut().for_each(|shell| shell.assert_lives("after the roll-back"));
}

#[test]
fn a_terminal_that_goes_ends_nothing_and_who_interrupts_has_it_undone() {
    let scene = Scene::new("signals");
    let home = &scene.home;
    let token = scene.serve();
    nft(&home.remote, NO_WORLD);
    let before = Footprint::of(&home.local);
    let mut command = home.local.command(env!("CARGO_BIN_EXE_hawser"));
    command.args(["join", &token, "--probe", &format!("{}:{PROBE}", WORLD[0]), "-c"]).arg(scene.file("home"));
    let mut join = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let pid = Pid::from_raw(join.id().cast_signed()).expect("a process");
    let end = Instant::now() + PATIENCE;
    while Client::status(&scene.socket("home")).is_err() {
        assert!(Instant::now() < end, "the portal has not started");
        sleep(ms(20));
    }
    // The terminal, and who would read what is said.
    drop(join.stderr.take());
    kill_process(pid, Signal::HUP).expect("it lives");
    sleep(ms(500));
    assert!(join.try_wait().expect("it can be waited for").is_none(), "it goes on");
    kill_process(pid, Signal::INT).expect("it lives");
    assert_eq!(join.wait().expect("it ends").code(), Some(1));
    before.assert_same(&home.local, "after an interruption");
    assert!(!scene.file("home").parent().expect("a folder").exists(), "no file is left");
}
