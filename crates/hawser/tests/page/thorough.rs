//! What takes minutes, by `make page-test`: every story of a link with the time until it is seen, accessibility of
//! every view, pictures, attacks on a portal that carries traffic, and what the page costs.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use hawser_portal::api::Status;
use hawser_wire::{Rate, Way};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::lab::{Lab, REMOTE, ms};
use crate::stage::{PATIENCE, SEEN_WITHIN, Stage, browser_beside, link_of, pictures};

/// Screens: a desk's and a telephone's.
const WIDTHS: [u32; 2] = [1280, 390];
const SCHEMES: [&str; 2] = ["light", "dark"];
/// Memory that the page may take, KiB.
const MEMORY_MAX_KIB: u64 = 8 << 10;

/// How long after `since` the page said it, where that is in time.
fn seen(what: &str, since: Instant) {
    let took = since.elapsed();
    println!("seen: {what} after {} ms", took.as_millis());
    assert!(took <= SEEN_WITHIN, "{what}: {took:?}");
}

/// The rules of axe-core (`make page-test` fetches it) that this view does not keep.
fn assert_accessible(browser: &mut Browser, view: &str) {
    let file = std::env::var("HAWSER_AXE").expect("run make page-test, which fetches axe-core");
    let axe = fs::read_to_string(&file).expect("axe-core");
    for width in WIDTHS {
        for scheme in SCHEMES {
            browser.dress(width, scheme);
            sleep(ms(700));
            browser.evaluate(&format!("{axe}; true"));
            let broken = browser.evaluate(
                "axe.run().then((result) => result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html + ' ' + node.failureSummary).join(' | ')}`))",
            );
            assert_eq!(broken, json!([]), "{view}, {width} px, {scheme}");
        }
    }
    browser.dress(WIDTHS[0], SCHEMES[0]);
    println!("axe-core: {view}: no violation in {} screens", WIDTHS.len() * SCHEMES.len());
}

/// The four pictures of a view.
fn take_pictures(stage: &mut Stage, name: &str) {
    fs::create_dir_all(pictures()).expect("a folder");
    for width in WIDTHS {
        for scheme in SCHEMES {
            stage.browser.dress(width, scheme);
            sleep(ms(900));
            let picture = stage.browser.picture();
            fs::write(pictures().join(format!("{name}-{width}-{scheme}.png")), picture).expect("a picture");
        }
    }
    stage.browser.dress(WIDTHS[0], SCHEMES[0]);
}

#[test]
fn a_cut_a_return_and_a_fade_are_seen_within_two_seconds_and_every_view_is_accessible() {
    let mut stage = Stage::new("story", |_| {});
    assert_accessible(&mut stage.browser, "all is well");
    let transfer = stage.transfer(Duration::from_secs(75));
    stage.wait("traffic", "parseFloat(document.getElementById('total-tx').textContent) > 20");
    stage.wait("the flow", "document.querySelector('#flows td')?.textContent.includes(':5000') ?? false");
    sleep(Duration::from_secs(20));

    let since = Instant::now();
    stage.links[1].black_hole(true).expect("it goes silent");
    stage.wait_for_verdict("two is cut");
    seen("a silent cut", since);
    sleep(Duration::from_secs(6));
    take_pictures(&mut stage, "page-cut");
    let since = Instant::now();
    stage.links[1].black_hole(false).expect("it is back");
    stage.wait_for_event("two is back");
    seen("its return", since);

    sleep(Duration::from_secs(12));
    let since = Instant::now();
    stage.links[0].set(Way::AToB, |way| way.rate = Some(Rate::mbit(1.5))).expect("it fades");
    stage.wait_for_verdict("one is fading");
    seen("a fade", since);
    take_pictures(&mut stage, "page-fade");
    stage.links[0].set(Way::AToB, |way| way.rate = Some(Rate::mbit(20.0))).expect("it is back");
    stage.wait_for_event("one fades no more");
    transfer.finish().expect("a stream");

    stage.browser.evaluate("document.querySelector('[aria-label=\"Pause one\"]').click()");
    assert_accessible(&mut stage.browser, "a question");
    stage.browser.evaluate("document.getElementById('ask').close('no')");
    stage.browser.evaluate("document.getElementById('examine').click(); document.getElementById('ask-yes').click()");
    stage.wait("the doctor", "document.querySelectorAll('#findings .finding').length > 0");
    println!("doctor: {}", stage.browser.evaluate("document.getElementById('findings').innerText"));
    assert_accessible(&mut stage.browser, "findings");
    stage.browser.evaluate("document.getElementById('measure').click(); document.getElementById('ask-yes').click()");
    stage.wait("the rates", "document.querySelectorAll('#speeds .finding').length === 2");
    let rates = stage.browser.evaluate("document.getElementById('speeds').innerText");
    println!("speed: {rates}");
    let rates = rates.as_str().unwrap_or_default();
    assert!(["down: ", "up: ", "one: ", "two: ", "What limits: "].iter().all(|word| rates.contains(word)), "{rates}");
    assert_accessible(&mut stage.browser, "rates");
    let mut stranger = browser_beside(&stage.lab);
    stranger.open("http://127.0.0.1:4921/");
    sleep(ms(500));
    assert_accessible(&mut stranger, "log in");
}

#[test]
fn a_cap_that_is_reached_is_seen_within_two_seconds() {
    let mut stage = Stage::new("cap", |lab| {
        let state = lab.path("state");
        lab.edit("local.toml", "[tun]", &format!("state_dir = \"{}\"\n[tun]", state.display()));
        lab.edit("local.toml", "interface = \"two\"\n", "interface = \"two\"\ndata_cap = \"15M\"\n");
    });
    let transfer = stage.transfer(Duration::from_secs(12));
    let spent = |status: &Status| status.links.iter().any(|link| link.data_cap.is_some_and(|cap| cap.reached));
    stage.local.wait_for("the cap", spent);
    let since = Instant::now();
    stage.wait_for_verdict("two is at its data cap");
    stage.wait_for_event("two has reached its data cap");
    seen("a cap reached", since);
    take_pictures(&mut stage, "page-cap");
    transfer.finish().expect("a stream");
}

#[test]
fn a_wrong_key_is_seen_within_two_seconds() {
    let lab = Lab::new("wrong", "");
    let other = hawser_config::PrivateKey::generate().expect("randomness").public();
    let right = fs::read_to_string(lab.path("remote.toml")).expect("a configuration");
    let right = right.lines().find_map(|line| line.strip_prefix("public_key = ")).expect("a key").to_owned();
    lab.edit("remote.toml", &right, &format!("\"{other}\""));
    let (_remote, local) = (lab.start("remote"), lab.start("local"));
    local.wait_for("a status", |_| true);
    let mut browser = browser_beside(&lab);
    browser.open(&link_of(&local));
    local.wait_for("the refusal", |status| status.peers.iter().any(|peer| peer.refused.is_some()));
    let since = Instant::now();
    let says = "document.getElementById('verdict').textContent === 'hub refuses this portal' && document.body.innerText.includes(\"does not know this portal's public key\")";
    while browser.evaluate(says) != json!(true) {
        assert!(since.elapsed() < PATIENCE, "{}", browser.evaluate("document.body.innerText"));
        sleep(ms(25));
    }
    seen("a wrong key", since);
    browser.dress(1280, "light");
    assert_accessible(&mut browser, "a wrong key");
}

/// KiB of a process in memory.
fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("proc(5)");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}

/// Clock ticks that the packet thread of a process has used.
fn packet_ticks(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("proc(5)");
    let stats = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let stat = stats.into_iter().find(|stat| stat.contains("(hawser-packet)")).expect("a packet thread");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    [11, 12].map(|at| fields[at].parse::<u64>().expect("a number")).iter().sum()
}

#[test]
fn the_page_costs_little_and_attacks_on_it_harm_no_traffic() {
    let lab = Lab::new("cost", "");
    let (local, _remote) = lab.start_both();
    let pid = local.pid();
    // Clock ticks of the packet thread for each gigabyte of a stream.
    let load = |lab: &Lab| {
        let destination = format!("{REMOTE}:5000").parse().expect("an address");
        let ticks = packet_ticks(pid);
        let timeline =
            crate::lab::transfer(&lab.local, &lab.remote, destination, Duration::from_secs(8)).run().expect("a stream");
        let bytes = timeline.bytes_between(hawser_wire::Moment::now() - Duration::from_secs(30), timeline.end());
        (packet_ticks(pid) - ticks) as f64 / (bytes as f64 / 1e9)
    };
    load(&lab);
    let alone = load(&lab);
    let before = memory_kib(pid);
    let mut browser = browser_beside(&lab);
    browser.open(&link_of(&local));
    sleep(Duration::from_secs(3));
    let watched = load(&lab);
    let with = memory_kib(pid);
    println!(
        "packet thread, ticks a GB: {alone:.0} without, {watched:.0} with the page open; memory: {before} KiB without, {with} with"
    );
    assert!(with.saturating_sub(before) <= MEMORY_MAX_KIB, "{before} and {with} KiB");

    // A thousand wrong logins a second for five seconds, beside a ping.
    let ping = lab.ping(REMOTE, ms(10), Duration::from_secs(5)).start().expect("a ping");
    let body = "{\"token\":\"AAAAAAAAAAAA.AAAA\"}";
    let request = format!(
        "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1:4921\r\nOrigin: http://127.0.0.1:4921\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let attack = || {
        let end = Instant::now() + Duration::from_secs(5);
        let mut tried = 0;
        while Instant::now() < end {
            tried += TcpStream::connect("127.0.0.1:4921")
                .and_then(|mut to| to.write_all(request.as_bytes()))
                .map_or(0, |()| 1);
            sleep(Duration::from_micros(800));
        }
        tried
    };
    let tried = lab.local.run(|| {
        thread::scope(|scope| {
            let all: Vec<_> = (0..6).map(|_| scope.spawn(attack)).collect();
            all.into_iter().map(|one| one.join().expect("it does not panic")).sum::<u32>()
        })
    });
    let report = ping.finish().expect("a report");
    let refused = local.status().and_then(|status| status.web).expect("a page").refused;
    println!(
        "attack: {} wrong logins in 5 s, {} of {} pings lost, memory {} KiB, refused {refused:?}",
        tried.expect("the namespace can be entered"),
        report.lost(),
        report.sent.len(),
        memory_kib(pid)
    );
    lab.assert_none_lost(&report);
    assert!(memory_kib(pid).saturating_sub(before) <= MEMORY_MAX_KIB);
    let still: Value = browser.evaluate("document.getElementById('live').dataset.is");
    assert_eq!(still, json!("live"), "who looks still sees");
}
