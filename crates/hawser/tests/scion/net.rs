//! `hawser scion net`: what it keeps, tells and removes.

use std::process::Output;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::command::{CLEANUP, Kept, done, scion};
use super::nobody;
use super::traces::{Traces, wait};

/// How long a network may take to make its first namespace.
const STARTS: Duration = Duration::from_secs(30);

#[test]
fn a_network_goes_on_in_the_background_and_does_what_it_is_told() {
    let net = Kept::up("two-cores", "told", &["--wait", "--links", "3"]);
    let name = net.name.as_str();
    let status = net.status();
    assert!(status["ready_s"].as_f64().expect("it is whole") > 0.0, "{status}");
    let links = |status: &serde_json::Value| {
        let links = status["links"].as_array().expect("links").clone();
        links.iter().map(|link| format!("{} {}", link["name"], link["state"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(links(&status), ["c1 up", "c2 up", "c3 up"]);
    for pair in status["paths"].as_array().expect("paths") {
        assert_eq!(pair["paths"].as_array().map(Vec::len), Some(3), "{status}");
    }
    let (_, table) = done(&["net", "status", name]);
    for word in ["whole after", "programs: ", "1-ff00:0:120,10.120.0.10", "router", "control", "daemon1", "c3"] {
        assert!(table.contains(word), "{word}: {table}");
    }

    let (code, said) = done(&["net", "up", "two-cores", "--name", name]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it is up already"), "{said}");
    assert_eq!(done(&["net", "cut", "c2", name]), (Some(0), String::new()));
    assert_eq!(links(&net.status()), ["c1 up", "c2 cut", "c3 up"]);
    assert_eq!(done(&["net", "restore", "c2", name]), (Some(0), String::new()));
    assert_eq!(links(&net.status()), ["c1 up", "c2 up", "c3 up"]);
    let (code, said) = done(&["net", "cut", "c9", name]);
    assert_eq!((code, said), (Some(1), format!("error: run scion network {name}: there is no link c9\n")));

    assert_eq!(done(&["net", "down", name]), (Some(0), String::new()));
    assert_eq!(Traces::of(net.pid), Traces::default(), "all is gone when it returns");
    let (code, said) = done(&["net", "status", name]);
    assert_eq!((code, said), (Some(1), format!("error: run scion network {name}: it is not up\n")));
}

#[test]
fn what_a_killed_one_left_goes_when_another_starts() {
    let killed = Kept::up("two-cores", "killed", &[]);
    assert!(!Traces::of(killed.pid).namespaces.is_empty());
    let pid = Pid::from_raw(i32::try_from(killed.pid).expect("a process id")).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it runs");
    assert!(wait(CLEANUP, || Traces::of(killed.pid).portals.is_empty()), "the services end by themselves");
    // Its namespaces stay until one starts: this one, or another test's.
    let next = Kept::up("two-cores", "next", &[]);
    assert_eq!(Traces::of(killed.pid), Traces::default(), "all is gone");
    assert_eq!(done(&["net", "down", &next.name]), (Some(0), String::new()));
    assert!(next.is_gone());
}

#[test]
fn an_interrupted_start_leaves_nothing() {
    let name = format!("broken{}", std::process::id());
    let up = scion(&["net", "up", "six-as", "--wait", "--name", &name]).spawn().expect("it starts");
    let own = || -> Vec<String> {
        let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|namespace| namespace.starts_with(&format!("hw-{name}."))).collect()
    };
    assert!(wait(STARTS, || !own().is_empty()), "(needs root, and go)");
    let keeper: u32 = own()[0].rsplit('-').nth(1).and_then(|pid| pid.parse().ok()).expect("a process id");
    kill_process(Pid::from_child(&up), Signal::INT).expect("it runs");
    let Output { status, .. } = up.wait_with_output().expect("it ends");
    assert!(!status.success());
    assert_eq!((own(), Traces::of(keeper)), (Vec::new(), Traces::default()), "all is gone when it returns");
    let (_, said) = done(&["net", "down", &name]);
    assert!(said.contains("it is not up"), "{said}");
}

#[test]
fn only_root_can_and_only_what_there_is() {
    let Output { status, stderr, .. } = nobody::run(&["scion", "net", "up", "six-as"]);
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("hint: run it with sudo: sudo hawser scion net up six-as"), "{said}");
    let (code, said) = done(&["net", "up", "six-ass"]);
    let expected = "error: find topology six-ass: there is none of this name\nhint: did you mean six-as?\n";
    assert_eq!((code, said.as_str()), (Some(2), expected));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("net.toml");
    std::fs::write(&file, "name = \"x\"\n[[as]]\nid = \"1-ff00:0:110\"\n").expect("it can be written");
    let (code, said) = done(&["net", "up", &file.to_string_lossy()]);
    assert_eq!(code, Some(2), "{said}");
    for word in ["ISD 1 has no core", "net.toml:3:", "write core = true"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
