//! Rules that name links, on real portals: calls by one link, bulk by the other, each link cut in turn, and shares.

use std::fs;
use std::time::{Duration, Instant};

use hawser_portal::api::{PathState, RuleStatus, Status};
use hawser_wire::{Direction, EmulatedLink, Namespace};
use rustix::process::Signal;

use crate::lab::{self, LINKS, Lab, Portal, REMOTE, ms, parse, states};

/// Pings stand for calls, and may go by the other link where theirs fails; TCP may not.
const RULES: &str = "[[rule]]\nprotocol = \"icmp\"\nvia = [\"one\"]\npriority = 2\n\
    [[rule]]\nprotocol = \"tcp\"\nvia = [\"two\"]\nstrict = true\n";
const SHARES: &str = "[[rule]]\nprotocol = \"icmp\"\nvia = [\"one\"]\npriority = 2\n\
    [[rule]]\nprotocol = \"tcp\"\nweights = { one = 3, two = 1 }\nstrict = true\n";
/// Each link, in Mbit/s: what this test can have beside others on two cores.
const LINK_MBPS: f64 = 20.0;
/// The places of the rules in the status: calls, bulk, all else.
const CALLS: usize = 0;
const BULK: usize = 1;
const REST: usize = 2;
/// How exact the bytes on each link are.
const WITHIN: f64 = 0.02;
/// A path that is black-holed is noticed, and left, within this time.
const NOTICED: Duration = Duration::from_secs(5);
/// The status is of up to a quarter of a second ago.
const SETTLED: Duration = Duration::from_millis(600);

/// What of a rule went by each link.
fn sent(rule: &RuleStatus) -> [u64; 2] {
    LINKS.map(|link| rule.sent_bytes.get(link).copied().unwrap_or(0))
}

/// What of each rule went by each link since `before`.
fn since(before: &Status, after: &Status) -> Vec<[u64; 2]> {
    let rules = before.rules.iter().zip(&after.rules);
    rules.map(|(before, after)| [0, 1].map(|link| sent(after)[link] - sent(before)[link])).collect()
}

/// Bytes of frames that the kernel sent by each link.
fn by_kernel(namespace: &Namespace) -> [u64; 2] {
    let read = || fs::read_to_string("/proc/thread-self/net/dev").expect("it can be read");
    let text = namespace.run(read).expect("the namespace can be entered");
    LINKS.map(|link| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{link}:"))).expect("the link");
        line.split_whitespace().nth(8).and_then(|word| word.parse().ok()).expect("bytes sent")
    })
}

fn settled(portal: &Portal) -> Status {
    std::thread::sleep(SETTLED);
    portal.status().expect("a status")
}

/// Bulk and calls for this long; what went of each rule by each link, and how many calls came back of how many.
fn traffic(lab: &Lab, portal: &Portal, duration: Duration) -> (Vec<[u64; 2]>, [usize; 2]) {
    let before = settled(portal);
    let transfer = lab::transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), duration);
    let running = transfer.start().expect("a connection");
    let report = lab.ping(REMOTE, ms(20), duration).run().expect("pings");
    running.finish().expect("a transfer");
    (since(&before, &settled(portal)), [report.echoes.len(), report.sent.len()])
}

fn start(rules: &str) -> (Lab, [EmulatedLink; 2], Portal, Portal) {
    let lab = Lab::new("via", rules);
    let links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(LINK_MBPS, ms(10), ms(100))));
    let (local, remote) = lab.start_both();
    (lab, links, local, remote)
}

fn wait_for(portal: &Portal, first: PathState, second: PathState) {
    portal.wait_for("the links to be so", |status| states(status) == [first, second]);
}

#[test]
fn calls_go_by_one_link_and_bulk_by_the_other_whatever_is_cut() {
    let (lab, links, local, _remote) = start(RULES);
    let rules = local.status().expect("a status").rules;
    let shown: Vec<_> = rules.iter().map(|rule| (rule.matches.as_str(), rule.via.join(" "), rule.strict)).collect();
    let want = [("icmp", "one", false), ("tcp", "two", true), ("everything else", "", false)];
    assert_eq!(shown, want.map(|(matches, via, strict)| (matches, via.to_owned(), strict)));

    let kernel = by_kernel(&lab.local);
    let (went, calls) = traffic(&lab, &local, ms(1_500));
    let carried = by_kernel(&lab.local);
    assert!(went[BULK][0] == 0 && went[BULK][1] > 1_000_000, "bulk by the second alone: {went:?}");
    assert!(went[CALLS][1] == 0 && went[CALLS][0] > 0, "calls by the first alone: {went:?}");
    assert_eq!(calls[0], calls[1], "and all come back");
    let (counted, kernels) = (went.iter().map(|rule| rule[1]).sum::<u64>(), carried[1] - kernel[1]);
    let off = (kernels as f64 - counted as f64) / kernels as f64;
    // The kernel counts what the status does, 14 bytes of Ethernet for each packet, and control frames.
    assert!((-0.001..0.01 + WITHIN).contains(&off), "the kernel counted {kernels}, the status {counted}");

    // The calls' link is cut: they may go by the other.
    links[0].black_hole(true).expect("a black hole");
    local.wait_for("the first link to be left", |status| states(status)[0] == PathState::Down);
    let (went, calls) = traffic(&lab, &local, ms(600));
    assert!(went[CALLS][0] == 0 && went[CALLS][1] > 0 && calls[0] == calls[1], "{went:?}, {calls:?}");
    links[0].black_hole(false).expect("no black hole");
    wait_for(&local, PathState::Active, PathState::Active);

    // The bulk's link is cut: it may not, and waits.
    let before = settled(&local);
    let transfer = lab::transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), ms(3_000));
    let running = transfer.start().expect("a connection");
    links[1].black_hole(true).expect("a black hole");
    let start = Instant::now();
    local.wait_for("the second link to be left", |status| states(status)[1] == PathState::Down);
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
    let calls = lab.ping(REMOTE, ms(20), ms(400)).run().expect("pings");
    lab.assert_none_lost(&calls);
    let went = since(&before, &settled(&local));
    assert_eq!(went[BULK][0], 0, "strict loses rather than leaks: {went:?}");
    links[1].black_hole(false).expect("no black hole");
    wait_for(&local, PathState::Active, PathState::Active);
    running.finish().expect("the stream outlives it");
    let (went, _) = traffic(&lab, &local, ms(500));
    assert!(went[BULK][0] == 0 && went[BULK][1] > 100_000, "as before: {went:?}");
    assert_eq!(local.status().map(|status| sent(&status.rules[BULK])[0]), Some(0), "not a byte, ever");
    assert!(went[REST].iter().sum::<u64>() < 10_000, "{went:?}");
}

#[test]
fn a_rules_own_weights_hold_and_come_with_a_reload_that_breaks_nothing() {
    let (lab, _links, local, remote) = start(RULES);
    let transfer = lab::transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), ms(4_500));
    let running = transfer.start().expect("a connection");
    local.wait_for("bulk by the second link", |status| sent(&status.rules[BULK])[1] > 1_000_000);
    for (portal, name) in [(&local, "local.toml"), (&remote, "remote.toml")] {
        lab.edit(name, RULES, SHARES);
        portal.signal(Signal::HUP);
        portal.wait_for_log("configuration read again: changed sections=\"rule\"");
    }
    local.wait_for("the new rules", |status| !status.rules[BULK].weights.is_empty());
    let before = settled(&local);
    assert!(sent(&before.rules[CALLS])[0] == 0 && before.rules[CALLS].via == ["one"], "a rule that stays, stays");
    let got = running.finish().expect("the stream outlives it");
    let went = since(&before, &settled(&local))[BULK];
    let share = went[0] as f64 / went.iter().sum::<u64>() as f64;
    assert!(
        went[1] > 200_000 && (share - 0.75).abs() < WITHIN * 0.75,
        "{share} of {went:?}; {} bytes",
        got.total_bytes()
    );
}
