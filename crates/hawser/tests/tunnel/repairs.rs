//! A sparse flow over a link that loses, with repairs and without.

use hawser_portal::api::FecStatus;
use hawser_wire::traffic::{UdpFlow, UdpReport};
use hawser_wire::{Direction, Loss, Rate, Way};

use crate::lab::{LINKS, Lab, REMOTE, ms, parse};

/// Packets a second, and bytes of each one's UDP payload.
const PACKETS: f64 = 200.0;
const PAYLOAD: usize = 200;
/// Bits of a packet, IPv4 and UDP headers included.
const PACKET_BITS: f64 = (PAYLOAD + 28) as f64 * 8.0;
/// Per cent that the link loses, either way.
const LOSS: f64 = 5.0;
/// Of a hundred packets at most this many are lost after repair.
const STILL_LOST: f64 = 0.5;
/// Bytes on the wire for each without repairs, at most.
const BYTES: f64 = 1.3;
/// On a machine that is shared a repair may take far longer than the 60 ms that `measure fec` holds it to.
const REPAIRED_MS: f64 = 250.0;

/// What became of the flow, the bytes that its link carried, and what the portals say of repairs: the sender, the
/// receiver.
fn thin_flow(rule: &str) -> (UdpReport, u64, [FecStatus; 2]) {
    let lab = Lab::new("fec", &format!("[[rule]]\nprotocol = \"udp\"\nretransmit = false\n{rule}"));
    let lossy =
        Direction { loss: Loss::percent(LOSS).expect("a percentage"), ..Direction::shaped(20.0, ms(10), ms(100)) };
    let link = lab.emulate(LINKS[0], &lossy);
    // The other link stays out of it.
    lab.edit("local.toml", "interface = \"two\"\n", "interface = \"two\"\nmetric = 1\n");
    let (local, remote) = lab.start_both();
    let wire = || -> u64 { Way::BOTH.map(|way| link.counters(way).bytes_in).iter().sum() };
    let before = wire();
    let flow = UdpFlow {
        from: lab.local.clone(),
        to: lab.remote.clone(),
        destination: parse(&format!("{REMOTE}:5002")),
        payload: PAYLOAD,
        rate: Rate::mbit(PACKETS * PACKET_BITS / 1e6),
        duration: ms(8_000),
        linger: ms(500),
    };
    let report = flow.run().expect("a flow");
    let carried = wire() - before;
    // The status is of up to a quarter of a second ago.
    std::thread::sleep(ms(300));
    let fec = [&local, &remote].map(|portal| portal.status().expect("a status").peers[0].fec);
    (report, carried, fec)
}

#[test]
fn a_rule_with_fec_loses_a_tenth_for_a_quarter_more_bytes() {
    let lost = |report: &UdpReport| report.lost() as f64 / report.sent as f64 * 100.0;
    let (plain, plain_bytes, nothing) = thin_flow("");
    let (repaired, bytes, [sender, receiver]) = thin_flow("fec = \"auto\"\n");
    assert!(lost(&plain) > LOSS / 2.0, "nothing is retransmitted: {} % lost", lost(&plain));
    assert_eq!(nothing, [FecStatus::default(); 2], "nobody asked for repairs");
    let said = format!("{sender:?}, {receiver:?}");
    assert!(lost(&repaired) < STILL_LOST, "{} % lost; {said}", lost(&repaired));
    assert_eq!(repaired.duplicates(), 0);
    assert!(bytes as f64 <= plain_bytes as f64 * BYTES, "{bytes} bytes, {plain_bytes} without repairs; {said}");
    let (usual, slow) = (repaired.delays().percentile(50.0), repaired.delays().percentile(99.0));
    let later = slow.zip(usual).map_or(f64::INFINITY, |(slow, usual)| slow - usual);
    assert!(later < REPAIRED_MS, "{later} ms");
    assert!(sender.overhead_pct > 0.0 && sender.protected_packets > repaired.sent / 2, "{said}");
    assert!(receiver.repaired_packets as f64 > repaired.sent as f64 * LOSS / 2.0 / 100.0, "{said}");
}
