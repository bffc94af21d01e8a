//! Controllers judged by a stranger: ours in a portal and the kernel's in its TCP, each alone on the same emulated link.
//!
//! 1. Two topologies with one link each, alike to the seed. In one, portals with the controller to be judged; in the
//!    other, nothing.
//! 2. Through the tunnel goes UDP above the link's rate, which controls nothing: what the link sees is our controller.
//!    Past it goes one TCP stream, the kernel's controller set on its socket and read back.
//! 3. Both run at the same time, so that what the machine does beside falls on both. After the warm-up the receivers'
//!    goodput is held against what each could get at best, and the mean queue is read from the links' counters.

use std::time::Duration;

use hawser_wire::traffic::{Congestion, UdpFlow, UdpReport};
use hawser_wire::{Counters, Direction, Moment, Rate, Way};

use super::bench::{Bench, Figures};
use super::usable;
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Flow, LinkPlan, Over};

/// What of a start is not counted: slow start, and the way to the first loss.
const WARM_UP: Duration = Duration::from_secs(8);
/// What is offered, against the link's rate.
const OFFERED: f64 = 1.3;
/// An inner packet, headers included, in bytes: with ours around it, it fits any path here.
const INNER_PACKET: f64 = 1400.0;
/// IPv4 and UDP headers, in bytes. Sources: RFC 791, RFC 768.
const INNER_HEADERS: f64 = 20.0 + 8.0;
/// Bits in a byte.
const BYTE_BITS: f64 = 8.0;

/// A controller that both have. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Ours, as `[traffic]` calls it.
    ours: &'static str,
    /// The kernel's.
    kernel: Congestion,
}

/// Those that follow the same text: RFC 9438, RFC 6582 and RFC 9002.
pub(super) const LOSS_BASED: &[Judged] =
    &[Judged { ours: "cubic", kernel: Congestion::Cubic }, Judged { ours: "newreno", kernel: Congestion::Reno }];
/// Ours follows BBRv3 with departures that keep the queue short, the kernel's BBRv1.
pub(super) const MODEL_BASED: &[Judged] = &[Judged { ours: "bbr", kernel: Congestion::Bbr }];

/// A link to judge on, the same both ways. Constant.
struct Setting {
    name: &'static str,
    mbps: f64,
    /// One way.
    delay: Duration,
    queue: Duration,
    /// How long is counted: two sawteeth of NewReno, of a packet a round trip from half of all that fits to all.
    counted: Duration,
}

/// Source: issue 2, "Controllers judged by a stranger"; one and two bandwidth-delay products of buffer.
const SETTINGS: [Setting; 2] = [
    Setting {
        name: "50/20",
        mbps: 50.0,
        delay: Duration::from_millis(10),
        queue: Duration::from_millis(20),
        counted: Duration::from_secs(20),
    },
    Setting {
        name: "20/60",
        mbps: 20.0,
        delay: Duration::from_millis(30),
        queue: Duration::from_millis(120),
        counted: Duration::from_secs(44),
    },
];

/// What one of them did. Plain data.
struct Seen {
    /// Goodput of what is usable.
    share: f64,
    queue_ms: f64,
    /// Packets that found no room before the link.
    drops: f64,
}

/// A run of each controller on each link.
pub(super) fn judge(
    bench: &Bench,
    judged: &[Judged],
    flow: Flow,
    run: u32,
) -> Result<Vec<(String, Figures)>, LabError> {
    let mut all = Vec::new();
    for (index, setting) in SETTINGS.iter().enumerate() {
        for one in judged {
            let seed = u64::from(run) * 1000 + 2 * index as u64;
            all.push((format!("{} {}", one.ours, setting.name), pair(bench, *one, setting, flow, seed)?));
        }
    }
    Ok(all)
}

fn pair(bench: &Bench, judged: Judged, setting: &Setting, flow: Flow, seed: u64) -> Result<Figures, LabError> {
    let plan =
        LinkPlan::symmetric(&Direction { seed, ..Direction::shaped(setting.mbps, setting.delay, setting.queue) });
    let (ours, theirs) = (Bond::new(std::slice::from_ref(&plan))?, Bond::new(&[plan])?);
    let traffic = format!("congestion = \"{}\"\n{}", judged.ours, bench.traffic);
    let _portals = Portals::start(&bench.program, &ours, &traffic)?;
    let udp = overload(&ours, flow, setting).start()?;
    let mut transfer = theirs.transfer(flow, Over::LinkOne, WARM_UP + setting.counted);
    transfer.congestion = judged.kernel;
    let tcp = transfer.start()?;
    let from = Moment::now() + WARM_UP;
    from.sleep_until();
    let before = [&ours, &theirs].map(|bond| counters(bond, flow));
    let to = from + setting.counted;
    to.sleep_until();
    let after = [&ours, &theirs].map(|bond| counters(bond, flow));
    let (udp, tcp) = (udp.finish()?, tcp.finish()?);
    let usable = [
        setting.mbps * (INNER_PACKET - INNER_HEADERS) / (INNER_PACKET + usable::OVERHEAD),
        setting.mbps * (usable::MTU - usable::INNER_HEADERS) / usable::MTU,
    ];
    let goodput = [mbps(&udp, from, to), tcp.mbps_between(from, to)];
    let [ours, kernel] = [0, 1].map(|side| seen(goodput[side] / usable[side], &before[side], &after[side]));
    Ok(Figures::from([
        ("share", ours.share),
        ("kernel_share", kernel.share),
        ("goodput_ratio", ours.share / kernel.share),
        ("queue_ms", ours.queue_ms),
        ("kernel_queue_ms", kernel.queue_ms),
        ("queue_ratio", ours.queue_ms / kernel.queue_ms),
        ("drops", ours.drops),
        ("kernel_drops", kernel.drops),
    ]))
}

/// Step 2, ours.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a constant")]
fn overload(bond: &Bond, flow: Flow, setting: &Setting) -> UdpFlow {
    let like = bond.transfer(flow, Over::Tunnel, WARM_UP + setting.counted);
    UdpFlow {
        from: like.from,
        to: like.to,
        destination: like.destination,
        payload: (INNER_PACKET - INNER_HEADERS) as usize,
        rate: Rate::mbit(setting.mbps * OFFERED),
        duration: WARM_UP + setting.counted,
        linger: Duration::ZERO,
    }
}

/// Of the way that the data goes.
fn counters(bond: &Bond, flow: Flow) -> Counters {
    let way = match flow {
        Flow::Up => Way::AToB,
        Flow::Down => Way::BToA,
    };
    bond.links()[0].counters(way)
}

/// What arrived, each datagram once, in Mbit/s of payload.
#[expect(clippy::cast_precision_loss, reason = "datagrams of one run")]
fn mbps(report: &UdpReport, from: Moment, to: Moment) -> f64 {
    let counted = report.arrivals.iter().filter(|one| one.received >= from && one.received < to);
    let numbers: std::collections::HashSet<u64> = counted.map(|one| one.number).collect();
    numbers.len() as f64 * (INNER_PACKET - INNER_HEADERS) * BYTE_BITS / (to - from).as_secs_f64() / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "packets of one run")]
fn seen(share: f64, before: &Counters, after: &Counters) -> Seen {
    Seen {
        share,
        queue_ms: after.queue_delay_mean_since(before).as_secs_f64() * 1e3,
        drops: (after.dropped_by_queue - before.dropped_by_queue) as f64,
    }
}

#[cfg(test)]
mod tests {
    use hawser_wire::traffic::Arrival;

    use super::*;

    #[test]
    fn a_datagram_counts_once_and_in_its_time() {
        let start = Moment::now();
        let at = |number, received| Arrival { number, sent: start, received };
        let end = start + WARM_UP;
        let arrivals = vec![at(0, start), at(1, start), at(1, start), at(2, end), at(3, end + WARM_UP)];
        let report = UdpReport { arrivals, ..UdpReport::default() };
        let want = 2.0 * 1372.0 * 8.0 / WARM_UP.as_secs_f64() / 1e6;
        assert!((mbps(&report, start, end) - want).abs() < 1e-12);
    }

    #[test]
    fn the_queue_is_that_of_the_counted_time() {
        let before = Counters { packets_sent: 90, dropped_by_queue: 5, ..Counters::default() };
        let later = Duration::from_millis(1200);
        let after = Counters { packets_sent: 290, dropped_by_queue: 7, queue_delay_sum: later, ..Counters::default() };
        let seen = seen(0.9, &before, &after);
        assert!((seen.queue_ms - 6.0).abs() < 1e-9 && (seen.drops - 2.0).abs() < 1e-9);
    }
}
