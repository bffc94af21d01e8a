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
        is_correct(example, "(routes: 0, in the map: 4)");
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
    runs_commands_that_there_are("systemd/hawser.service", 2);
}

#[test]
fn the_kill_switchs_service_runs_a_command_that_there_is() {
    runs_commands_that_there_are("systemd/hawser-kill-switch.service", 1);
}

#[test]
#[cfg(feature = "scion")]
fn the_shims_service_runs_commands_that_there_are() {
    runs_commands_that_there_are("systemd/hawser-shim.service", 2);
}

fn runs_commands_that_there_are(unit: &str, count: usize) {
    let unit = std::fs::read_to_string(contrib().join(unit)).expect("it is there");
    let commands: Vec<&str> = unit.lines().filter_map(|l| l.split_once("=/usr/bin/hawser ")).map(|(_, c)| c).collect();
    assert_eq!(commands.len(), count, "{commands:?}");
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

/// What the shell has before OpenWrt's script: procd's functions, which say how they were called.
const PROCD: &str = r#"
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_set_param() { echo "$*"; }
procd_send_signal() { echo "signal $*"; }
"#;

/// What a function of OpenWrt's script has procd do, with this configuration and this binary in the place of the
/// installed.
fn procd_is_told(function: &str, config: &Path) -> String {
    let script = format!(
        "{PROCD}\n. {}\nPROGRAM={}\nCONFIG={}\n{function}",
        contrib().join("openwrt/hawser.init").display(),
        env!("CARGO_BIN_EXE_hawser"),
        config.display()
    );
    let out = Command::new("sh").args(["-euc", &script]).output().expect("a shell starts");
    String::from_utf8(out.stdout).expect("it is text")
}

#[test]
fn openwrts_service_runs_a_command_that_there_is() {
    let folder = tempfile::tempdir().expect("a directory");
    let config = folder.path().join("hawser.toml");
    assert_eq!(procd_is_told("start_service", &config), "", "without a configuration nothing is started");
    let key = folder.path().join("private.key");
    let made = Command::new(env!("CARGO_BIN_EXE_hawser")).arg("genkey").output().expect("the binary starts");
    std::fs::write(&key, made.stdout).expect("written");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its own");
    let example = std::fs::read_to_string(contrib().join("remote.toml")).expect("it is there");
    std::fs::write(&config, example.replace("/etc/hawser/private.key", key.to_str().expect("text"))).expect("written");
    let told = procd_is_told("start_service", &config);
    let command = told.lines().find_map(|line| line.strip_prefix("command ")).expect("a command is run");
    let words: Vec<&str> = command.split(' ').collect();
    let out = Command::new(words[0]).args(&words[1..]).arg("--help").output().expect("it starts");
    assert!(out.status.success() && words[1] == "up", "{command}");
    assert!(told.contains("respawn 3600 5 0"), "{told}");
    assert_eq!(procd_is_told("reload_service", &config), "signal hawser * HUP\n");
    // A faulty one neither starts nor reaches the portal that runs.
    std::fs::write(&config, "[portal]\nnoise = 1\n").expect("written");
    assert_eq!(procd_is_told("start_service || reload_service || true", &config), "");
}
