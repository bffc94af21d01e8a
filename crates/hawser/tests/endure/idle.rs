//! What a bond costs at which nobody sends: bytes of IP packets on each link by its interface's own counters, and the
//! first packet after it.
//!
//! 1. One bond with both links in one tier, and one whose second link is of a standby tier, each of real portals.
//!    Neighbours know each other, so that no ARP is counted.
//! 2. Nothing is sent for as long as HAWSER_IDLE_S says; the first two minutes, in which paths' MTUs are searched,
//!    count apart.
//! 3. Then a ping: the first request of all must be answered at once.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use hawser_wire::{Moment, Namespace};
use serde_json::{Value, json};

use crate::figures;
use crate::lab::{LINKS, Lab, REMOTE, ms};

/// Until the bond is idle.
const BEGIN: Duration = Duration::from_secs(120);
/// From one look to the next.
const LOOK: Duration = Duration::from_secs(60);
/// What a link may carry, both ways: of a bond that is idle in a month of 30 days, and of a standby tier in a day.
const MONTH_BYTES: f64 = 10e6;
const STANDBY_DAY_BYTES: f64 = 100e3;
const DAY_S: f64 = 86_400.0;
/// What an interface counts of each packet beside its IP bytes. Source: RFC 894.
const ETHERNET: u64 = 14;
/// The first answer after it: the machine is shared.
const FIRST: Duration = Duration::from_millis(50);

/// What the local ends of both links have counted: received and sent bytes and packets.
fn counters(lab: &Lab) -> BTreeMap<&'static str, [u64; 4]> {
    let read = || fs::read_to_string("/proc/thread-self/net/dev").expect("it can be read");
    let devices = lab.local.run(read).expect("the namespace can be entered");
    let of = |link: &'static str| {
        let prefix = format!("{link}:");
        let line = devices.lines().find_map(|line| line.trim_start().strip_prefix(prefix.as_str())).expect("its line");
        let columns: Vec<u64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        (link, [columns[0], columns[8], columns[1], columns[9]])
    };
    LINKS.map(of).into()
}

#[test]
fn an_idle_bond_says_next_to_nothing_and_answers_at_once() {
    let seconds = figures::given("HAWSER_IDLE_S", 3_600);
    let on = figures::on();
    let found = std::thread::scope(|scope| {
        let bonds = [false, true].map(|standby| scope.spawn(move || one_bond(standby, Duration::from_secs(seconds))));
        bonds.map(|bond| bond.join().expect("no panic"))
    });
    let command = format!("make endure CASE=idle IDLE_S={seconds}");
    figures::write("idle", &command, &json!({ "began_on": on, "seconds": seconds, "links": found.concat() }));
    for link in found.iter().flatten() {
        assert!(link["ok"].as_bool() == Some(true), "{link:#}");
    }
}

/// Both ends of a link know each other's hardware address for good.
fn introduce(lab: &Lab, link: &str) {
    let ip = |host: &Namespace, words: &str| {
        let out = host.command("ip").args(words.split(' ')).output().expect("run ip (iproute2)");
        assert!(out.status.success(), "{words}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    let net = 1 + LINKS.iter().position(|name| *name == link).expect("one of the links");
    for (host, other, number) in [(&lab.local, &lab.remote, 2), (&lab.remote, &lab.local, 1)] {
        let shown: Value = serde_json::from_slice(&ip(other, &format!("-j link show dev {link}"))).expect("JSON");
        let address = shown[0]["address"].as_str().expect("an address");
        ip(host, &format!("neigh replace 192.0.{net}.{number} lladdr {address} dev {link} nud permanent"));
    }
}

fn one_bond(standby: bool, time: Duration) -> Vec<Value> {
    let lab = Lab::new("idle", "");
    if standby {
        lab.edit("local.toml", "interface = \"two\"\n", "interface = \"two\"\nmetric = 1\n");
    }
    LINKS.iter().for_each(|link| introduce(&lab, link));
    let (local, _remote) = lab.start_both();
    std::thread::sleep(BEGIN);
    let (start, first) = (Moment::now(), counters(&lab));
    let mut looks = vec![(0.0, first.clone())];
    while start + time > Moment::now() {
        (Moment::now() + LOOK).min(start + time).sleep_until();
        looks.push(((Moment::now() - start).as_secs_f64(), counters(&lab)));
    }
    let seconds = (Moment::now() - start).as_secs_f64();
    let last = counters(&lab);
    let report = lab.ping(REMOTE, ms(20), ms(1_000)).run().expect("a ping");
    lab.assert_none_lost(&report);
    let answer = report.echoes.iter().find(|echo| echo.number == 0).expect("the first").round_trip;
    let of = |link: &'static str| {
        let grown: Vec<u64> = last[link].iter().zip(first[link]).map(|(now, before)| now - before).collect();
        let bytes = grown[0] + grown[1] - ETHERNET * (grown[2] + grown[3]);
        let is_standby = standby && link == "two";
        let a_day = bytes as f64 / seconds * DAY_S;
        let most = if is_standby { STANDBY_DAY_BYTES } else { MONTH_BYTES / 30.0 };
        json!({
            "bond": if standby { "with a standby tier" } else { "one tier" },
            "link": link,
            "standby": is_standby,
            "counted_bytes": { "received": grown[0], "sent": grown[1] }, "received": grown[2], "sent": grown[3],
            "ip_bytes": bytes,
            "a_day_bytes": a_day, "a_month_bytes": a_day * 30.0, "most_a_day_bytes": most,
            "before_that": first[link],
            "first_answer_ms": answer.as_secs_f64() * 1e3, "first_answer_most_ms": FIRST.as_secs_f64() * 1e3,
            "looks": looks.iter().map(|(at, counters)| (at, counters[link])).collect::<Vec<_>>(),
            "ok": a_day <= most && answer <= FIRST,
        })
    };
    let links = LINKS.map(of).to_vec();
    drop(local);
    links
}
