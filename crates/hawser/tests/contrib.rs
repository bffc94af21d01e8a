//! What stands in contrib/ works with this binary.

use std::path::{Path, PathBuf};
use std::process::Command;

fn contrib() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib")
}

#[test]
fn the_example_configurations_are_correct() {
    for example in ["local.toml", "remote.toml"] {
        is_correct(example, "(");
    }
}

#[test]
#[cfg(feature = "scion")]
fn the_example_configurations_of_shims_are_correct() {
    for example in ["shim-a.toml", "shim-b.toml"] {
        is_correct(example, "(routes: 0, in the map: 3)");
    }
}

/// `hawser check` says that an example is, and of what; the key that it names need not be on this machine.
fn is_correct(example: &str, what: &str) {
    let out = Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(["check", "-c"])
        .arg(contrib().join(example))
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&out.stderr);
    let faults: Vec<&str> = said.lines().filter(|line| line.starts_with("error:")).collect();
    let without_key = faults.iter().all(|fault| fault.starts_with("error: read key /etc/hawser/"));
    assert!(said.contains(&format!(": correct {what}")) && without_key, "{example}: {said}");
    assert_eq!(out.status.success(), faults.is_empty(), "{example}: {said}");
}

#[test]
fn the_service_runs_commands_that_there_are() {
    runs_commands_that_there_are("systemd/hawser.service");
}

#[test]
#[cfg(feature = "scion")]
fn the_shims_service_runs_commands_that_there_are() {
    runs_commands_that_there_are("systemd/hawser-shim.service");
}

fn runs_commands_that_there_are(unit: &str) {
    let unit = std::fs::read_to_string(contrib().join(unit)).expect("it is there");
    let commands: Vec<&str> = unit.lines().filter_map(|l| l.split_once("=/usr/bin/hawser ")).map(|(_, c)| c).collect();
    assert_eq!(commands.len(), 2, "check and up: {commands:?}");
    for command in commands {
        // The help of the command with its arguments: a wrong one is exit status 2.
        let out = Command::new(env!("CARGO_BIN_EXE_hawser"))
            .args(command.split(' '))
            .arg("--help")
            .output()
            .expect("the binary starts");
        assert!(out.status.success(), "hawser {command}");
    }
}
