//! Forged ICMP errors against both portals under traffic, from somebody who knows addresses and ports: for as long as
//! is asked.

use std::net::SocketAddrV4;
use std::time::Duration;

use serde_json::json;

use crate::bystander::{Attack, Bystander};
use crate::forged;
use crate::lab::{ENDPOINT, Lab, Portal, parse, paths};

/// What the forger says that the path carries.
const MTUS: [u16; 4] = [1_280, 1_452, 576, 68];

/// Where the local portal's link has its socket.
pub fn port_of(local: &Portal, link: &str) -> SocketAddrV4 {
    let log = local.log();
    let line = log.lines().rfind(|line| line.contains("link open") && line.contains(link)).expect("the link's line");
    let at = line.split("local=").nth(1).expect("its address").split_whitespace().next();
    at.expect("an address").parse().expect("an address")
}

fn mtus(portals: [&Portal; 2]) -> Vec<u16> {
    portals.iter().flat_map(|portal| paths(&portal.status().expect("a status")).to_vec()).map(|path| path.mtu).collect()
}

/// Says so of the true addresses and of others, with a quote that nobody sent.
fn messages(ours: SocketAddrV4, theirs: SocketAddrV4) -> Vec<Vec<u8>> {
    let quote = [0x40, 1, 2, 3, 4, 0, 0, 0, 9];
    let mut messages = vec![forged::message(forged::PORT_UNREACHABLE, ours, theirs, 0, &quote)];
    messages.extend(MTUS.map(|mtu| forged::message(forged::FRAGMENTATION_NEEDED, ours, theirs, mtu, &quote)));
    let nobody = SocketAddrV4::new([203, 0, 113, 9].into(), 9);
    messages.extend(MTUS.map(|mtu| forged::message(forged::FRAGMENTATION_NEEDED, ours, nobody, mtu, &[])));
    messages
}

/// Forged messages to both portals, this many a second each, for a spell.
pub fn flood(rates: &[u64], spell: Duration) -> Vec<Attack> {
    let lab = Lab::new("forge", "");
    let (local, remote) = lab.start_both();
    let whole = |status: &hawser_portal::api::Status| paths(status).iter().all(|path| path.mtu == 1_472);
    for portal in [&local, &remote] {
        portal.wait_for("the whole MTU", whole);
    }
    let peace = Bystander::watch(&lab, spell);
    let caller = port_of(&local, "one");
    let listener = SocketAddrV4::new(parse(ENDPOINT), 4_920);
    let at = |rate: &u64| one_rate(&lab, [&local, &remote], &peace, [caller, listener], *rate, spell);
    let attacks = rates.iter().map(at).collect();
    local.wait_for("the forged ones to be counted", |status| status.drops["icmp_ignored"] > 0);
    attacks
}

fn one_rate(
    lab: &Lab,
    portals: [&Portal; 2],
    peace: &Bystander,
    [caller, listener]: [SocketAddrV4; 2],
    rate: u64,
    spell: Duration,
) -> Attack {
    let lines = |portal: &Portal| portal.log().matches("tun mtu").count();
    let counted = |name: &str| portals.map(|portal| portal.status().expect("a status").drops[name]);
    let (told, refused, ignored) = (portals.map(lines), counted("send_refused_bytes"), counted("icmp_ignored"));
    let (to_caller, to_listener) = (messages(caller, listener), messages(listener, caller));
    let forgers = [(lab.remote.clone(), caller, to_caller), (lab.local.clone(), listener, to_listener)].map(
        |(from, to, messages)| {
            std::thread::spawn(move || {
                from.run(|| forged::flood(to, &messages, rate, spell)).expect("the namespace can be entered")
            })
        },
    );
    let attacked = Bystander::watch(lab, spell);
    let forged = forgers.map(|forger| forger.join().expect("a forger"));
    let ignored = [0, 1].map(|side| counted("icmp_ignored")[side] - ignored[side]);
    let figures = json!({ "a_second_each": rate, "forged": forged, "ignored": ignored, "mtus": mtus(portals) });
    let mut attack = Attack::of(peace, &attacked, figures);
    attack.must(mtus(portals) == [1_472; 4], "a path's MTU moved");
    attack.must(portals.map(lines) == told, "the TUN device's MTU moved");
    attack.must(counted("send_refused_bytes") == refused && refused == [0; 2], "datagrams were refused");
    attack.must(forged.iter().all(|count| *count > rate), "the forger was too slow");
    attack
}
