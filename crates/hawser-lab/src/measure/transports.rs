//! One stream over two links, by each transport: how fast, with how many bytes on the wire, and under loss.
//!
//! 1. Each transport in a topology of its own: goodput against what it can have at best, and what the links carried for it.
//! 2. The same with random loss: `udp`, and `tcp` with the kernel's CUBIC and BBR below.

use std::thread;
use std::time::Duration;

use hawser_wire::{Moment, Way};

use super::bench::{Bench, Figures};
use super::cases::{Case, Line};
use super::usable::{INNER_HEADERS, MTU};
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Flow, Over};

/// What of a stream's start is not counted.
const WARM_UP: Duration = Duration::from_secs(3);
/// What is counted.
const COUNTED: Duration = Duration::from_secs(10);
/// What Hawser adds to an inner packet, and before that the length of its record, in bytes. Source: docs/wire.md.
const SEALED: f64 = 31.0;
const RECORD: f64 = 2.0;
/// IPv4, UDP and TCP headers, the last with timestamps, in bytes. Sources: RFC 791, RFC 768, RFC 9293, RFC 7323.
const IPV4: f64 = 20.0;
const UDP: f64 = 8.0;
const TCP: f64 = 32.0;
/// The largest datagram of a stream, in bytes. Source: docs/wire.md.
const STREAM_DATAGRAM: f64 = 1480.0;

/// A transport, and what is set beside it.
struct Contender {
    /// As `[[link]]` calls it.
    transport: &'static str,
    /// A line for `[traffic]`.
    traffic: &'static str,
}

const UDP_PATHS: Contender = Contender { transport: "udp", traffic: "" };
const IP_PATHS: Contender = Contender { transport: "ip", traffic: "" };
const TCP_PATHS: Contender = Contender { transport: "tcp", traffic: "tcp_congestion = \"cubic\"" };
const TCP_BBR_PATHS: Contender = Contender { transport: "tcp", traffic: "tcp_congestion = \"bbr\"" };

impl Contender {
    /// Bytes of an inner packet that fills a datagram, and those on the wire for it.
    fn packet(&self) -> (f64, f64) {
        match self.transport {
            "udp" => (MTU - IPV4 - UDP - SEALED, MTU),
            "ip" => (MTU - IPV4 - SEALED, MTU),
            // Segments are cut from the stream wherever they are full.
            _ => (STREAM_DATAGRAM - SEALED, (STREAM_DATAGRAM + RECORD) * MTU / (MTU - IPV4 - TCP)),
        }
    }

    /// Inner TCP payload that links of a total rate (both in Mbit/s) can carry.
    fn usable_mbps(&self, total_mbps: f64) -> f64 {
        let (inner, wire) = self.packet();
        total_mbps * (inner - INNER_HEADERS) / wire
    }
}

/// What one of them did. Plain data.
struct Seen {
    mbps: f64,
    /// Bytes on the wire for each byte of inner packets.
    wire: f64,
}

/// A run: every contender on the case's links, then those under loss on the links beside.
pub(super) fn run(bench: &Bench, case: &Case, flow: Flow, run: u32) -> Result<Figures, LabError> {
    let total: f64 = case.lines.iter().map(|line| line.mbps).sum();
    let clean = |contender: &Contender| seen(bench, case.lines, contender, flow, run);
    let lossy = |contender: &Contender| seen(bench, case.beside, contender, flow, run);
    let (udp, ip, tcp) = (clean(&UDP_PATHS)?, clean(&IP_PATHS)?, clean(&TCP_PATHS)?);
    let (udp_loss, tcp_loss, bbr_loss) = (lossy(&UDP_PATHS)?, lossy(&TCP_PATHS)?, lossy(&TCP_BBR_PATHS)?);
    Ok(Figures::from([
        ("udp_mbps", udp.mbps),
        ("udp_ratio", udp.mbps / UDP_PATHS.usable_mbps(total)),
        ("udp_wire", udp.wire),
        ("ip_mbps", ip.mbps),
        ("ip_ratio", ip.mbps / IP_PATHS.usable_mbps(total)),
        ("ip_wire", ip.wire),
        ("ip_wire_less", udp.wire - ip.wire),
        ("tcp_mbps", tcp.mbps),
        ("tcp_ratio", tcp.mbps / TCP_PATHS.usable_mbps(total)),
        ("tcp_wire", tcp.wire),
        ("loss_udp_mbps", udp_loss.mbps),
        ("loss_tcp_cubic_mbps", tcp_loss.mbps),
        ("loss_tcp_bbr_mbps", bbr_loss.mbps),
        ("loss_udp_to_cubic", udp_loss.mbps / tcp_loss.mbps),
    ]))
}

/// One stream by one contender's portals in a fresh topology.
fn seen(bench: &Bench, lines: &[Line], contender: &Contender, flow: Flow, run: u32) -> Result<Seen, LabError> {
    let bond = Bond::new(&bench.plans(lines, run))?;
    let traffic = format!("{}\n{}", bench.traffic, contender.traffic);
    let _portals = Portals::start_over(&bench.program, &bond, contender.transport, &traffic)?;
    let transfer = bond.transfer(flow, Over::Tunnel, WARM_UP + COUNTED + WARM_UP).start()?;
    thread::sleep(WARM_UP);
    let (from, before) = (Moment::now(), carried(&bond, flow));
    (from + COUNTED).sleep_until();
    let (to, after) = (Moment::now(), carried(&bond, flow));
    transfer.stop();
    let got = transfer.finish()?;
    let (inner, _) = contender.packet();
    let received = got.bytes_between(from, to) as f64 * inner / (inner - INNER_HEADERS);
    Ok(Seen { mbps: got.mbps_between(from, to), wire: (after - before) as f64 / received })
}

/// Bytes that came out of the links the way that the data goes.
fn carried(bond: &Bond, flow: Flow) -> u64 {
    let way = match flow {
        Flow::Up => Way::AToB,
        Flow::Down => Way::BToA,
    };
    bond.links().iter().map(|link| link.counters(way).bytes_out).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_can_have_follows_from_its_headers() {
        // 1441, 1449 and 1449 bytes of an inner packet, of which 52 are headers.
        let table = [
            (&UDP_PATHS, 1389.0 / 1500.0),
            (&IP_PATHS, 1397.0 / 1500.0),
            (&TCP_PATHS, 1397.0 / 1482.0 * 1448.0 / 1500.0),
        ];
        for (contender, share) in table {
            let usable = contender.usable_mbps(100.0);
            assert!((usable - 100.0 * share).abs() < 1e-9, "{}: {usable}", contender.transport);
        }
    }
}
