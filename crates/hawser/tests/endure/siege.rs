//! The attacks of docs/security.md at full length: half a minute each, and ten for pinned keys.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_portal::api::PathState;
use hawser_wire::traffic::UdpFlow;
use hawser_wire::{Moment, Rate};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::attacks::hellos::{BUSY, busiest, threads};
use crate::attacks::{forged_icmp, hellos, nat_and_trains};
use crate::bystander::{Attack, Bystander, Talk};
use crate::census::{Process, dropped_by_tun};
use crate::figures;
use crate::flows::Flows;
use crate::hub::Hub;
use crate::lab::{Lab, REMOTE, ms, parse, states};

/// How long each attack goes on.
const SPELL: Duration = Duration::from_secs(30);
/// What is sent to each peer that vanished: packets a second, and their size with all inner headers.
const VANISHED_PACKETS: f64 = 20_000.0;
const VANISHED_BYTES: usize = 300;
/// What a portal may have more of memory at the end than after a third, in KiB: by then its stores are as full as they
/// get.
const GROWN_KIB: u64 = 4 << 10;
/// How long handshakes are dropped, and the keys' hard end (docs/security.md) with what a look takes.
const PINNED: Duration = Duration::from_secs(600);
const KEYS_END: Duration = Duration::from_secs(181);
/// How soon a peer that vanished for half a minute is back: a handshake comes every half second.
const BACK: Duration = Duration::from_secs(3);
/// The same after minutes, when a handshake comes every five seconds while packets wait (`ASK_LEAST` of the core).
const BACK_AFTER_MINUTES: Duration = Duration::from_secs(6);

/// Writes the figures, and fails where something was missed.
fn judge(case: &str, attacks: Vec<(String, Attack)>) {
    let misses: Vec<String> = attacks
        .iter()
        .flat_map(|(name, attack)| attack.misses.iter().map(move |miss| format!("{name}: {miss}")))
        .collect();
    let found: Vec<Value> = attacks
        .into_iter()
        .map(|(name, attack)| json!({ "case": name, "figures": attack.figures, "misses": attack.misses }))
        .collect();
    figures::write(case, &format!("make endure CASE={case}"), &json!({ "on": figures::on(), "cases": found }));
    assert!(misses.is_empty(), "{misses:#?}");
}

#[test]
fn hellos_and_connections_for_half_a_minute_cost_a_peer_nothing() {
    let mut attacks = vec![("2,000 tls hellos a second".to_owned(), hellos::by_the_thousand(SPELL))];
    for descriptors in [128, 64] {
        let name = format!("200 streams on {descriptors} descriptors");
        attacks.push((name, hellos::few_descriptors(descriptors, SPELL)));
    }
    judge("hellos", attacks);
}

#[test]
fn forged_icmp_for_half_a_minute_costs_nothing() {
    let rates = [5_000, 20_000];
    let names = rates.map(|rate| format!("{rate} forged icmp a second, to each portal"));
    judge("forged", names.into_iter().zip(forged_icmp::flood(&rates, SPELL)).collect());
}

#[test]
fn behind_a_nat_that_changes_ports_a_link_has_its_rate() {
    let run = |number: u32| {
        let (usual, ..) = nat_and_trains::upload(false, SPELL);
        let (rate, told, without) = nat_and_trains::upload(true, SPELL);
        let figures = json!({ "mbps_without_nat": usual, "mbps": rate, "share": rate / usual, "told": told });
        let mut attack = Attack { figures, misses: Vec::new() };
        attack.must(rate >= usual * nat_and_trains::SHARE, "the rate from the third second on");
        attack.must(told == 1 && without, "it is not said once, or not in the status");
        (format!("run {number}"), attack)
    };
    judge("nat", (1..=3).map(run).collect());
}

/// All homes but the first are stopped, without a word, while packets for them go on.
fn vanish(homes: usize) -> Attack {
    let hub = Hub::new(homes);
    let first = &hub.homes[0];
    let talk = Talk { hosts: [&first.namespace, &hub.namespace], addresses: [&first.address, REMOTE] };
    let peace = Bystander::between(talk, SPELL);
    let process = || Process::of(hub.portal.pid()).expect("it runs");
    let drops = || hub.portal.status().expect("a status").drops;
    let unread = dropped_by_tun(&hub.namespace).unwrap_or_default();
    let (before, counted, since, spent) = (process(), drops(), Instant::now(), threads(&hub.portal));
    hub.homes[1..].iter().for_each(|home| home.portal.signal(Signal::STOP));
    let flows: Vec<_> = hub.homes[1..]
        .iter()
        .map(|home| {
            let flow = UdpFlow {
                from: hub.namespace.clone(),
                to: home.namespace.clone(),
                destination: SocketAddr::new(parse(&home.address), 5_002),
                payload: VANISHED_BYTES - 28,
                rate: Rate::mbit(VANISHED_PACKETS * VANISHED_BYTES as f64 * 8e-6),
                duration: SPELL,
                linger: ms(300),
            };
            flow.start().expect("a flow")
        })
        .collect();
    let (attacked, filled) = std::thread::scope(|scope| {
        let attacked = scope.spawn(|| Bystander::between(talk, SPELL));
        std::thread::sleep(SPELL / 3);
        let filled = process();
        (attacked.join().expect("no panic"), filled)
    });
    let (after, busy) = (process(), busiest(&hub.portal, &spent, since));
    let unread = dropped_by_tun(&hub.namespace).unwrap_or_default() - unread;
    hub.homes[1..].iter().for_each(|home| home.portal.signal(Signal::CONT));
    let sent: Vec<u64> = flows.into_iter().map(|flow| flow.finish().expect("a flow").sent).collect();
    let grown: Value =
        drops().iter().map(|(name, now)| (name.clone(), json!(now - counted[name]))).filter(|(_, n)| *n != 0).collect();
    let figures = json!({ "sent_to_vanished": sent, "drops": grown, "busiest_thread": busy, "dropped_in_the_tun_queue": unread, "before": before, "after_10_s": filled, "after": after });
    let mut attack = Attack::of(&peace, &attacked, figures);
    attack.must(busy < BUSY, "a thread spins");
    attack.must(after.rss_kib < filled.rss_kib + GROWN_KIB, "memory grows");
    attack.must(grown["bad_inner"].is_null(), "counted as bad_inner");
    // Who comes back is a peer as before.
    for home in &hub.homes[1..] {
        let back = Instant::now();
        home.portal.wait_for("its path to be active", |status| states(status) == [PathState::Active]);
        attack.must(back.elapsed() < BACK, "a peer that came back has no path");
    }
    attack
}

#[test]
fn peers_that_vanished_under_a_load_leave_the_others_theirs() {
    let attacks = [3, 4].map(|homes| (format!("{} of {homes} peers vanish", homes - 1), vanish(homes)));
    judge("vanished", attacks.into());
}

/// Drops what is a handshake, by its first byte (docs/wire.md), and nothing else.
const NO_HANDSHAKES: &str = "table inet pin { chain input { type filter hook input priority 0; \
    udp dport 4920 @th,64,4 1 counter drop; udp dport 4920 @th,64,4 2 counter drop; udp dport 4920 @th,64,4 3 counter drop; }; }";

fn nft(lab: &Lab, rules: &str) {
    let output = lab.remote.command("nft").arg(rules).output().expect("run nft (nftables)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A second later each time: whether anything came in it.
fn heard_by_second(flows: &Flows, time: Duration) -> Vec<bool> {
    let start = Moment::now();
    let mut heard = Vec::new();
    while Moment::now() < start + time {
        let (from, due) = (Moment::now(), start + Duration::from_secs(heard.len() as u64 + 1));
        due.sleep_until();
        let [up, down, ..] = flows.heard();
        heard.push(up.last() > from || down.last() > from);
    }
    heard
}

#[test]
fn whoever_drops_handshakes_for_ten_minutes_has_no_key_pinned() {
    let lab = Lab::new("pin", "");
    let (local, remote) = lab.start_both();
    let flows = Flows::start(&lab, 1);
    let age = local.status().and_then(|status| status.peers[0].handshake_age_s).expect("a session");
    nft(&lab, NO_HANDSHAKES);
    let heard = heard_by_second(&flows, PINNED);
    let last = heard.iter().rposition(|heard| *heard).map_or(0, |second| second + 1);
    let drops = [&local, &remote].map(|portal| portal.status().expect("a status").drops);
    nft(&lab, "delete table inet pin");
    let back = flows.back_after(Moment::now(), Duration::from_secs(30));
    let figures = json!({
        "handshake_age_s": age, "seconds_with_traffic": last, "heard_in_seconds": heard.iter().filter(|heard| **heard).count(),
        "back_ms": back.map(|back| back.map(|back| back.as_millis() as u64)), "drops": drops,
    });
    let mut attack = Attack { figures, misses: Vec::new() };
    let end = KEYS_END.as_secs_f64() - age;
    attack.must(last as f64 <= end + 1.0, "traffic under keys beyond their end");
    attack.must(last > 60, "traffic ends long before its keys");
    attack.must(
        back[..2].iter().all(|back| back.is_some_and(|back| back < BACK_AFTER_MINUTES)),
        "datagrams are not back",
    );
    judge("pinned", vec![("handshakes dropped for ten minutes".into(), attack)]);
}
