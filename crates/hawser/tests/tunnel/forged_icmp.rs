//! Forged ICMP errors against both portals under traffic, from somebody who knows addresses and ports.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use hawser_wire::Rate;
use hawser_wire::traffic::{PingReport, UdpFlow, UdpReport};

use crate::forged;
use crate::lab::{ENDPOINT, LOCAL, Lab, Portal, REMOTE, ms, parse, paths};

/// How long each spell of traffic goes on.
const SPELL: Duration = Duration::from_secs(4);
/// Of what is sent, this share must arrive (docs/security.md).
const GOODPUT: f64 = 0.9;
/// A ping may take this much longer than in peace, in ms, half of the pings at least: others use the processors, too.
const LATER_MS: f64 = 5.0;
/// What the forger says that the path carries.
const MTUS: [u16; 4] = [1_280, 1_452, 576, 68];

/// Flows both ways and a ping beside them.
fn traffic(lab: &Lab) -> ([UdpReport; 2], PingReport) {
    let ways = [(&lab.local, &lab.remote, REMOTE), (&lab.remote, &lab.local, LOCAL)];
    let flows = ways.map(|(from, to, address)| {
        let (from, to, destination) = (from.clone(), to.clone(), SocketAddr::new(parse(address), 5_001));
        let flow =
            UdpFlow { from, to, destination, payload: 1_380, rate: Rate::mbit(10.0), duration: SPELL, linger: ms(300) };
        flow.start().expect("a flow")
    });
    let ping = lab.ping(REMOTE, ms(20), SPELL).run().expect("a ping");
    (flows.map(|flow| flow.finish().expect("a flow")), ping)
}

/// Where the local portal's link has its socket.
fn port_of(local: &Portal, link: &str) -> SocketAddrV4 {
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

#[test]
fn forged_icmp_changes_no_mtu_costs_no_datagram_and_no_time() {
    let lab = Lab::new("forge", "");
    let (local, remote) = lab.start_both();
    let whole = |status: &hawser_portal::api::Status| paths(status).iter().all(|path| path.mtu == 1_472);
    for portal in [&local, &remote] {
        portal.wait_for("the whole MTU", whole);
    }
    let (_, peace) = traffic(&lab);
    let usual = peace.round_trips().percentile(50.0).expect("answers");
    let caller = port_of(&local, "one");
    let listener = SocketAddrV4::new(parse(ENDPOINT), 4_920);
    let lines = |portal: &Portal| portal.log().matches("tun mtu").count();
    for rate in [5_000, 20_000] {
        let told = [&local, &remote].map(lines);
        let (to_caller, to_listener) = (messages(caller, listener), messages(listener, caller));
        let forgers = [(lab.remote.clone(), caller, to_caller), (lab.local.clone(), listener, to_listener)].map(
            |(from, to, messages)| {
                std::thread::spawn(move || {
                    from.run(|| forged::flood(to, &messages, rate, SPELL)).expect("the namespace can be entered")
                })
            },
        );
        let (flows, ping) = traffic(&lab);
        let forged = forgers.map(|forger| forger.join().expect("a forger"));
        let said = format!("{rate} a second: {forged:?} forged; {}", remote.log());
        assert_eq!(mtus([&local, &remote]), [1_472; 4], "{said}");
        assert_eq!([&local, &remote].map(lines), told, "the TUN device's MTU moved; {said}");
        for flow in &flows {
            let share = flow.arrivals.len() as f64 / flow.sent as f64;
            assert!(share >= GOODPUT, "{share} of the datagrams; {said}");
        }
        let now = ping.round_trips().percentile(50.0).expect("answers");
        assert!(now <= usual + LATER_MS, "a ping takes {now} ms, {usual} in peace; {said}");
        let refused = |portal: &Portal| portal.status().expect("a status").drops["send_refused_bytes"];
        assert_eq!([&local, &remote].map(refused), [0; 2], "{said}");
        assert!(forged.iter().all(|count| *count > rate), "{said}");
    }
    local.wait_for("the forged ones to be counted", |status| status.drops["icmp_ignored"] > 0);
}
