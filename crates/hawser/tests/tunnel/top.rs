//! `hawser top` in a real terminal, beside a real bond.

use rustix::process::Signal;

use crate::lab::{Lab, REMOTE, ms, parse, transfer};
use crate::tmux::Tmux;

#[test]
fn top_shows_a_bond_and_goes_on_while_its_portal_is_killed_and_started() {
    let lab = Lab::new("top", "");
    let (mut local, _remote) = lab.start_both();
    let command = format!("{} top --every 0.2 --socket {}", env!("CARGO_BIN_EXE_hawser"), local.socket.display());
    let top = Tmux::start((80, 24), &command);
    let running = transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), ms(4_000));
    let running = running.start().expect("a connection");
    // A flow by its address and port, beside two paths that carry it.
    let line = |picture: &str, words: &[&str]| picture.lines().any(|line| words.iter().all(|word| line.contains(word)));
    top.wait_for("both paths and the flow", |picture| {
        let paths = ["one", "two"].iter().all(|path| line(picture, &[path, "active", "bit/s"]));
        let flow = |unit: &str| line(picture, &["tcp", "10.77.0.2:", "10.77.0.1:5001", unit]);
        paths && (flow("Mbit/s") || flow("Gbit/s"))
    });
    running.finish().expect("a transfer");
    local.signal(Signal::KILL);
    local.wait();
    top.wait_for("that nobody answers", |picture| {
        picture.contains("! no answer for") && picture.contains("no portal is running")
    });
    let local = lab.start("local");
    top.wait_for("the new portal's paths", |picture| {
        !picture.contains("no answer") && ["one", "two"].iter().all(|path| line(picture, &[path, "active"]))
    });
    top.press(&["q"]);
    top.assert_ended(0);
    drop(local);
}
