//! Links that choose their transport: UDP is blocked under a download and let through again.

use std::time::{Duration, Instant};

use hawser_portal::api::{PathState, Status};
use hawser_wire::traffic::RunningTcp;
use hawser_wire::{Direction, Moment};

use crate::home::nft;
use crate::lab::{self, LINKS, LOCAL, Lab, Portal, ms, parse, paths, states};

/// What is promised: a download goes on within, and is back by UDP within.
const GOES_ON: Duration = Duration::from_secs(3);
const COMES_BACK: Duration = Duration::from_secs(60);
/// The rate of each link, in Mbit/s.
const LINK_MBPS: f64 = 10.0;
/// Records of TLS 1.3 begin with one of these (RFC 8446 section 5.1).
const TLS_RECORDS: &str = "{ 0x14, 0x15, 0x16, 0x17 }";

fn lab(tag: &str) -> Lab {
    let lab = Lab::new(tag, "");
    for link in LINKS {
        let name = format!("interface = \"{link}\"\n");
        lab.edit("local.toml", &name, &format!("{name}transport = \"auto\"\n"));
    }
    lab.edit("remote.toml", "listen =", "transports = [\"udp\", \"tcp\"]\ntls = true\nlisten =");
    lab
}

/// These rules hold from now on for what comes to either portal by these links: nobody is told of what they drop.
fn block(lab: &Lab, links: &str, rules: &[&str]) {
    unblock(lab);
    for (namespace, side) in [(&lab.local, "sport"), (&lab.remote, "dport")] {
        let rules = rules.iter().map(|rule| format!("iifname {links} {};", rule.replace("PORT", side)));
        let rules: String = rules.collect();
        nft(namespace, &format!("table inet block {{ chain in {{ type filter hook input priority 0; {rules} }}; }}"));
    }
}

fn unblock(lab: &Lab) {
    for namespace in [&lab.local, &lab.remote] {
        nft(namespace, "table inet block; delete table inet block");
    }
}

fn transports(status: &Status) -> Vec<&str> {
    paths(status).iter().map(|path| path.transport.as_str()).collect()
}

/// Until both links carry, by these transports; how long that took.
fn wait_for(local: &Portal, expect: [&str; 2]) -> Duration {
    let start = Instant::now();
    local.wait_for(&format!("{expect:?}"), |status| {
        states(status) == [PathState::Active; 2] && transports(status) == expect
    });
    start.elapsed()
}

/// Begins to download through the tunnel; since when it must not stand still.
fn download(lab: &Lab) -> (RunningTcp, Moment) {
    let port = parse(&format!("{LOCAL}:5001"));
    let transfer = lab::transfer(&lab.remote, &lab.local, port, Duration::from_secs(120));
    let download = transfer.start().expect("a connection");
    std::thread::sleep(ms(1_000));
    (download, Moment::now())
}

/// Ends it a second later: it never stood still for as long as is promised.
fn assert_went_on(download: RunningTcp, start: Moment, local: &Portal) {
    std::thread::sleep(ms(1_000));
    let end = Moment::now();
    download.stop();
    let gap = download.finish().expect("a transfer").longest_gap(start, end);
    println!("longest gap {gap:?}");
    assert!(gap < GOES_ON, "{gap:?}; log:\n{}", local.log());
}

#[test]
fn a_download_goes_on_without_udp_on_one_link_and_on_all_and_returns_to_it() {
    let lab = lab("auto");
    let _links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(LINK_MBPS, ms(10), ms(100))));
    let (local, _remote) = lab.start_both();
    wait_for(&local, ["udp"; 2]);
    let (download, start) = download(&lab);
    std::thread::sleep(ms(500));

    block(&lab, "{ \"one\" }", &["udp PORT 4920 drop"]);
    let one = wait_for(&local, ["tcp", "udp"]);
    block(&lab, "{ \"one\", \"two\" }", &["udp PORT 4920 drop"]);
    let both = wait_for(&local, ["tcp"; 2]);
    let status = local.wait_for("a status", |_| true);
    assert!(paths(&status).iter().all(|path| path.instead_of.as_deref() == Some("udp")), "{status:#?}");
    std::thread::sleep(ms(1_000));
    unblock(&lab);
    let back = wait_for(&local, ["udp"; 2]);
    println!("one link by tcp after {one:?}, both after {both:?}, back after {back:?}");
    assert!(back < COMES_BACK, "{back:?}");
    assert_went_on(download, start, &local);
}

#[test]
fn a_download_goes_on_where_udp_is_blocked_on_all_links_at_once_and_returns_to_it() {
    let lab = lab("autoall");
    let _links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(LINK_MBPS, ms(10), ms(100))));
    let (local, _remote) = lab.start_both();
    wait_for(&local, ["udp"; 2]);
    let (download, start) = download(&lab);
    std::thread::sleep(ms(500));
    block(&lab, "{ \"one\", \"two\" }", &["udp PORT 4920 drop"]);
    let both = wait_for(&local, ["tcp"; 2]);
    std::thread::sleep(ms(1_000));
    unblock(&lab);
    let back = wait_for(&local, ["udp"; 2]);
    println!("both links by tcp after {both:?}, back after {back:?}");
    assert!(back < COMES_BACK, "{back:?}");
    assert_went_on(download, start, &local);
}

#[test]
fn where_only_tls_passes_a_link_goes_by_it() {
    let lab = lab("onlytls");
    let (local, _remote) = lab.start_both();
    // A stream is judged by how it begins: nothing that Hawser says begins with 255.
    let tls = format!("tcp PORT 4920 @ih,0,8 {TLS_RECORDS} ct mark set 1");
    let others = "tcp dport 4920 ct mark != 1 @ih,0,8 != 0xff drop";
    let (download, start) = download(&lab);
    block(&lab, "{ \"one\", \"two\" }", &["udp PORT 4920 drop", &tls, others]);
    let took = wait_for(&local, ["tcp"; 2]);
    println!("by tls after {took:?}");
    assert_went_on(download, start, &local);
}
