//! The sandbox of contrib/systemd/hawser.service around a portal that works: whatever it asks the kernel for, the unit
//! allows.
//!
//! 1. A portal runs under strace(1) through all of its life. 2. Each of its system calls is held against the unit.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use hawser_portal::api::PathState;
use rustix::process::Signal;

use crate::dns::host::{Host, Keeper};
use crate::lab::{Lab, REMOTE, ms, states};

/// What a portal may open for writing under `ProtectSystem=strict`, beside the folder of its control socket.
const WRITABLE: [&str; 4] = ["/run/hawser", "/proc/sys/net", "/dev/net/tun", "/dev/null"];

fn unit() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd/hawser.service");
    fs::read_to_string(path).expect("the unit is there")
}

/// The values of a directive, in their order.
fn values(unit: &str, directive: &str) -> Vec<String> {
    unit.lines().filter_map(|line| line.strip_prefix(directive)?.strip_prefix('=')).map(str::to_owned).collect()
}

/// The system calls of a name of `SystemCallFilter`: itself, or what systemd has in the group.
fn calls(name: &str) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return [name.to_owned()].into();
    }
    let said = Command::new("systemd-analyze").args(["syscall-filter", name]).output();
    let said = said.expect("systemd-analyze runs (package systemd; `make tools` installs it)");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let names = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.flat_map(calls).collect()
}

/// What the unit's filter lets through: groups are added and taken away in their order.
fn allowed(unit: &str) -> BTreeSet<String> {
    let mut allowed = calls("@default");
    for value in values(unit, "SystemCallFilter") {
        let (takes, names) = value.strip_prefix('~').map_or((false, value.as_str()), |names| (true, names));
        for call in names.split_whitespace().flat_map(calls) {
            if takes {
                allowed.remove(&call)
            } else {
                allowed.insert(call)
            };
        }
    }
    allowed
}

/// The system calls in a trace, each with its arguments: `PID name(arguments) = result`; one that another thread
/// interrupts is written in two lines.
fn traced(trace: &str) -> Vec<(&str, &str)> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let calls = trace.lines().filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('));
    calls.filter(|(name, _)| name.bytes().all(plain)).collect()
}

/// A portal's whole life, as strace saw it: start, traffic, an interface made anew, a reload, the end.
fn life(lab: &Lab) -> String {
    let trace = lab.path("trace");
    let _remote = lab.start("remote");
    // By `-D` the portal is the child, and strace stands aside.
    let by = ["strace", "-D", "-f", "-qq", "-s", "200", "-o", trace.to_str().expect("a plain path")];
    let mut local = lab.start_by("local", &by);
    local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
    lab.assert_none_lost(&lab.ping(REMOTE, ms(20), ms(200)).run().expect("a ping"));
    lab.local.delete_interface("one").expect("it can be deleted");
    lab.join("one");
    local.wait_for("the path to be back", |status| states(status) == [PathState::Active; 2]);
    lab.edit("local.toml", "10.99.0.0/16", "10.98.0.0/16");
    local.signal(Signal::HUP);
    local.wait_for_log("configuration read again: changed");
    local.signal(Signal::TERM);
    assert!(local.wait().success(), "{}", local.log());
    fs::read_to_string(&trace).expect("strace wrote it")
}

#[test]
fn the_unit_allows_everything_that_a_portal_does() {
    let lab = Lab::new("sand", "[[rule]]\nmark = 7\nscheduler = \"redundant\"\n");
    let trace = life(&lab);
    let unit = unit();
    let calls = traced(&trace);
    let used: BTreeSet<String> = calls.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert!(["poll", "sendmmsg", "capset", "bpf"].iter().all(|call| used.contains(*call)), "{used:?}");
    let allowed = allowed(&unit);
    let refused: Vec<_> = used.difference(&allowed).collect();
    assert!(refused.is_empty(), "SystemCallFilter lacks {refused:?}");

    let families = values(&unit, "RestrictAddressFamilies").join(" ");
    let folder = lab.path("");
    for (name, arguments) in calls {
        let first = arguments.split([',', ')']).next().unwrap_or_default();
        match name {
            "socket" => assert!(families.split(' ').any(|family| family == first), "RestrictAddressFamilies: {first}"),
            "mmap" | "mprotect" => {
                let both = arguments.contains("PROT_WRITE") && arguments.contains("PROT_EXEC");
                assert!(!both, "MemoryDenyWriteExecute: {arguments}");
            }
            "open" | "openat" if ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| arguments.contains(flag)) => {
                let path = Path::new(arguments.split('"').nth(1).unwrap_or_default());
                let fits = WRITABLE.iter().any(|root| path.starts_with(root)) || path.starts_with(&folder);
                assert!(fits, "ProtectSystem: {arguments}");
            }
            _ => {}
        }
    }
}

#[test]
fn the_unit_allows_everything_that_sets_and_unsets_name_servers() {
    for (keeper, program) in [(Keeper::Resolvconf, "/resolvconf"), (Keeper::Resolved, "/resolvectl")] {
        let lab = Lab::new("sanddns", "");
        lab.edit("local.toml", "[tun]\n", "[tun]\ndns = [\"10.77.0.1\"]\n");
        let host = Host::new(&lab, keeper);
        let trace = lab.path("trace");
        let strace = ["strace", "-D", "-f", "-qq", "-s", "200", "-o", trace.to_str().expect("a plain path")];
        let mut local = lab.start_by("local", &[&host.by(), &strace[..]].concat());
        local.wait_for("name servers", |status| status.dns.is_some());
        local.signal(Signal::TERM);
        assert!(local.wait().success(), "{}", local.log());
        let trace = fs::read_to_string(&trace).expect("strace wrote it");
        let calls = traced(&trace);
        let runs = calls.iter().filter(|(name, words)| *name == "execve" && words.contains(program)).count();
        assert!(runs > 1, "{program} ran {runs} times");
        let allowed = allowed(&unit());
        let refused: BTreeSet<_> = calls.iter().filter(|(name, _)| !allowed.contains(*name)).collect();
        assert!(refused.is_empty(), "SystemCallFilter lacks what {program} needs: {refused:?}");
        let families: BTreeSet<_> = calls.iter().filter(|(name, _)| *name == "socket").collect();
        let families: BTreeSet<_> = families.iter().filter_map(|(_, words)| words.split(',').next()).collect();
        let known = values(&unit(), "RestrictAddressFamilies").join(" ");
        assert!(families.iter().all(|family| known.contains(family)), "{families:?}");
    }
    // What Debian's resolvconf writes lies there.
    assert!(unit().lines().any(|line| line == "ReadWritePaths=-/run/resolvconf"));
}

#[test]
fn the_unit_has_the_full_sandbox_and_systemd_understands_it() {
    let unit = unit();
    for directive in [
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_BPF",
        "AmbientCapabilities=",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateMounts=yes",
        "DevicePolicy=closed",
        "DeviceAllow=/dev/net/tun rw",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "RestrictNamespaces=yes",
        "MemoryDenyWriteExecute=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "RuntimeDirectory=hawser",
        "StateDirectory=hawser",
        "UMask=0077",
    ] {
        assert!(unit.lines().any(|line| line == directive), "{directive} is missing");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.service");
    // The program itself need not be installed where this runs.
    fs::write(&path, unit.replace("/usr/bin/hawser", env!("CARGO_BIN_EXE_hawser"))).expect("a file");
    let analyze = |arguments: &[&str]| {
        let said = Command::new("systemd-analyze").args(arguments).arg(&path).output();
        let said = said.expect("systemd-analyze runs (package systemd; `make tools` installs it)");
        let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{text}");
        text.into_owned()
    };
    assert_eq!(analyze(&["verify"]), "");
    // Tenths of systemd's score from 0 (safe) to 10: what is left is that it administers the network, as root.
    analyze(&["security", "--offline=true", "--threshold=26"]);
}
