//! What a packet costs where nothing can be batched: datagrams, evenly spaced, of two sizes at one rate.
//!
//! They are sent and received one by one, which costs the machine more than forwarding them does; plain forwarding pays the same,
//! and the difference is the tunnel's.

use std::time::Duration;

use hawser_wire::traffic::UdpFlow;
use hawser_wire::{Moment, Rate};

use super::contender::Contest;
use crate::error::LabError;
use crate::measure::bench::Figures;
use crate::measure::cost::Spent;
use crate::topology::Flow;

/// The rate of IP packets, in Mbit/s. Source: issue 3, Build 1.
const MBPS: f64 = 150.0;
/// What of the flow's start is not counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// What is counted.
const COUNTED: Duration = Duration::from_secs(3);
/// How long the flow goes on afterwards.
const REST: Duration = Duration::from_millis(200);
/// UDP payload, and what the figures are called: processes' time a packet, the machine's, thousands a second, lost, processors others took.
const SIZES: [(usize, [&str; 5]); 2] = [
    (1200, ["us_1200", "machine_us_1200", "kpps_1200", "lost_pct_1200", "others_1200"]),
    (100, ["us_100", "machine_us_100", "kpps_100", "lost_pct_100", "others_100"]),
];

pub(super) fn measure(contest: &Contest) -> Result<Figures, LabError> {
    let mut figures = Figures::new();
    for (payload, names) in SIZES {
        figures.extend(names.into_iter().zip(cost(contest, payload)?));
    }
    Ok(figures)
}

#[expect(clippy::cast_precision_loss, reason = "packets of some seconds")]
fn cost(contest: &Contest, payload: usize) -> Result<[f64; 5], LabError> {
    let processes = contest.tunnel.processes();
    let whole = WARM_UP + COUNTED + REST;
    let flow = UdpFlow { payload, ..contest.bond.datagrams(Flow::Up, Rate::mbit(MBPS), whole) };
    let running = flow.start()?;
    (Moment::now() + WARM_UP).sleep_until();
    let (from, before) = (Moment::now(), Spent::so_far(&processes)?);
    (from + COUNTED).sleep_until();
    let (to, spent) = (Moment::now(), Spent::so_far(&processes)?.since(before));
    let got = running.finish()?;
    let arrived =
        got.arrivals.iter().filter(|arrival| arrival.received >= from && arrival.received < to).count() as f64;
    let us_each = |time: Duration| time.as_secs_f64() * 1e6 / arrived;
    let lost = got.lost() as f64 / got.sent as f64 * 100.0;
    let seconds = (to - from).as_secs_f64();
    let others = spent.others.as_secs_f64() / seconds;
    Ok([us_each(spent.own), us_each(spent.machine), arrived / seconds / 1e3, lost, others])
}
