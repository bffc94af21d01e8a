//! Rules that look at the marks which nftables wrote.
//!
//! What a rule calls `redundant` comes twice: the remote portal counts what it drops for that.

use hawser_wire::Namespace;
use hawser_wire::traffic::PingReport;
use rustix::process::Signal;

use crate::home::nft;
use crate::lab::{Lab, Portal, REMOTE, REMOTE_V6, ms};

/// What a packet with this mark gets, in a [[rule]].
fn redundant(mark: &str) -> String {
    format!("[[rule]]\nmark = {mark}\nscheduler = \"redundant\"\n")
}

/// A host's own packets get marks: requests to one address this, to the other that.
fn mark_requests(namespace: &Namespace, ipv4: &str, ipv6: &str) {
    nft(
        namespace,
        &format!(
            "add table inet t; add chain inet t c {{ type route hook output priority mangle; }}; \
             add rule inet t c icmp type echo-request meta mark set {ipv4}; \
             add rule inet t c icmpv6 type echo-request meta mark set {ipv6}"
        ),
    );
}

/// A ping of which nothing is lost, and how many packets came to the remote portal for the second time.
fn ping(lab: &Lab, remote: &Portal, destination: &str) -> (PingReport, u64) {
    let duplicates = || {
        // The second status from now on was asked for after the first, so it is not older than this call.
        let newer = |than: f64| remote.wait_for("a newer status", |status| status.uptime_s > than);
        let status = newer(newer(newer(-1.0).uptime_s).uptime_s);
        status.drops.get("duplicate").copied().unwrap_or(0)
    };
    let before = duplicates();
    let report = lab.ping(destination, ms(10), ms(1_500)).run().expect("a ping");
    lab.assert_none_lost(&report);
    (report, duplicates() - before)
}

/// Whether the requests went by both links: most or few came twice; a busy machine repairs what was only late.
fn goes_twice(lab: &Lab, remote: &Portal, destination: &str) -> bool {
    let (report, duplicates) = ping(lab, remote, destination);
    let sent = report.sent.len() as u64;
    assert!(duplicates * 10 >= sent * 6 || duplicates * 10 <= sent * 3, "{duplicates} of {sent} came twice");
    duplicates * 2 > sent
}

#[test]
fn a_mark_decides_how_a_packet_goes() {
    let lab = Lab::new("mark", "");
    lab.edit("local.toml", "[[peer]]", &format!("{}[[peer]]", redundant("0x10") + &redundant("\"0x200/0xf00\"")));
    let (local, remote) = lab.start_both();
    for destination in [REMOTE, REMOTE_V6] {
        assert!(!goes_twice(&lab, &remote, destination), "{destination}: what bears no mark fits no rule");
    }
    for (marks, twice) in [(["0x10", "0x12ff"], [true, true]), (["0x11", "0x10"], [false, true])] {
        mark_requests(&lab.local, marks[0], marks[1]);
        for (destination, twice) in [REMOTE, REMOTE_V6].into_iter().zip(twice) {
            assert_eq!(goes_twice(&lab, &remote, destination), twice, "{destination} by marks {marks:?}");
        }
        nft(&lab.local, "delete table inet t");
    }
    assert!(!local.log().contains("WARN"), "{}", local.log());
}

#[test]
fn a_mark_that_comes_with_a_reload_waits_for_a_restart() {
    let lab = Lab::new("remark", "");
    lab.edit("local.toml", "[[peer]]", &format!("{}[[peer]]", redundant("0x10")));
    let (mut local, remote) = lab.start_both();
    mark_requests(&lab.local, "0x10", "0x20");
    lab.edit("local.toml", "mark = 0x10", "mark = 0x20");
    local.signal(Signal::HUP);
    local.wait_for_log("the changes need a restart sections=\"rule\"");
    assert!(goes_twice(&lab, &remote, REMOTE) && !goes_twice(&lab, &remote, REMOTE_V6), "the old rule holds");
    // A rule that tells no more apart than the one before is carried out at once.
    lab.edit("local.toml", "mark = 0x20\nscheduler = \"redundant\"", "mark = 0x10\nscheduler = \"weighted\"");
    local.signal(Signal::HUP);
    local.wait_for_log("configuration read again: changed sections=\"rule\"");
    assert!(!goes_twice(&lab, &remote, REMOTE), "the new rule holds");
    local.signal(Signal::TERM);
    assert!(local.wait().success(), "{}", local.log());
}

/// Runs a portal with no more capabilities than these, as a service manager would.
fn start_with(lab: &Lab, capabilities: &str) -> Portal {
    lab.start_by("local", &["setpriv", &format!("--bounding-set=-all,{capabilities}")])
}

#[test]
fn telling_marks_apart_takes_one_capability_more_and_without_it_the_portal_says_so() {
    let lab = Lab::new("bpf", "");
    lab.edit("local.toml", "[[peer]]", &format!("{}[[peer]]", redundant("0x10")));
    let mut local = start_with(&lab, "+net_admin");
    assert_eq!(local.wait().code(), Some(1), "{}", local.log());
    for words in ["CAP_BPF is needed", "SystemCallFilter=bpf"] {
        local.wait_for_log(words);
    }
    // Other traces the kernel changes by itself while links are young.
    assert!(!lab.traces().iter().any(|trace| trace.contains("hawser0")), "it leaves no device: {:#?}", lab.traces());
    let _remote = lab.start("remote");
    let local = start_with(&lab, "+net_admin,+bpf");
    lab.answered_within(ms(5_000));
    let status = std::fs::read_to_string(format!("/proc/{}/status", local.pid())).expect("it runs");
    let held = status.lines().find_map(|line| line.strip_prefix("CapPrm:\t")).expect("a line");
    // linux/capability.h: CAP_NET_ADMIN is number 12, and alone.
    assert_eq!(u64::from_str_radix(held, 16), Ok(1 << 12), "{status}");
}
