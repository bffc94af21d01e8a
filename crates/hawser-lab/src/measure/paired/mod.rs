//! Hawser beside plain forwarding, wireguard-go and the yardstick, in turns on one unshaped link (issue 3, "Must show").
//!
//! 1. [`cases`] is the table: what is measured, with which contenders, and what must be reached.
//! 2. In each run every contender has its turn, in a topology of its own; the order moves from run to run, so that what the
//!    machine does beside falls on all ([`contender`]).
//! 3. What is measured: [`stream`], [`packets`], [`latency`], [`flows`], [`size`].
//! 4. Figures of one run are set in relation to those of another contender in the same run ([`relation`]).

mod cases;
mod contender;
mod flows;
mod latency;
mod packets;
mod relation;
mod size;
mod stream;

use std::path::Path;

pub use cases::PAIRED;
use contender::{Contender, Contest, Ground};
use relation::Relation;

use super::bench::{Bench, Figures};
use crate::error::LabError;

/// What is measured of whom. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paired {
    contenders: &'static [Contender],
    measure: Measure,
    relations: &'static [Relation],
}

/// What is measured. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// One stream: `mbps cpu_s_per_gb machine_s_per_gb`.
    Stream,
    /// Datagrams of two sizes at one rate: `us_1200 machine_us_1200 kpps_1200 lost_pct_1200`, and the same of 100.
    Packets,
    /// A ping and nothing else: `p50_us p99_us`.
    Latency,
    /// 300 streams, 1,000 calls a second, as many small datagrams as it carries.
    Flows,
    /// `start_ms idle_mib loaded_mib binary_mib`.
    Size,
}

/// Steps 2 to 4: one run.
pub(super) fn run(
    bench: &Bench,
    wireguard: &Path,
    paired: Paired,
    run: u32,
) -> Result<Vec<(String, Figures)>, LabError> {
    let ground = Ground { bench, wireguard };
    let takes_part =
        |contender: &&Contender| bench.only.is_empty() || bench.only.iter().any(|it| it == contender.label());
    let mut contenders: Vec<Contender> = paired.contenders.iter().filter(takes_part).copied().collect();
    if contenders.is_empty() {
        let known: Vec<&str> = paired.contenders.iter().map(|contender| contender.label()).collect();
        let reason = format!("--only names none of {}", known.join(", "));
        return Err(LabError::NoFigure { figure: "contender", reason });
    }
    let first = run as usize % contenders.len();
    contenders.rotate_left(first);
    let mut found = Vec::new();
    for contender in contenders {
        let figures = match paired.measure {
            Measure::Stream => stream::measure(&Contest::start(&ground, contender)?),
            Measure::Packets => packets::measure(&Contest::start(&ground, contender)?),
            Measure::Latency => latency::measure(&Contest::start(&ground, contender)?),
            Measure::Flows => flows::measure(&Contest::start(&ground, contender)?),
            Measure::Size => size::measure(&ground, contender),
        };
        found.push((contender, figures?));
    }
    relation::relate(&mut found, paired.relations);
    Ok(found.into_iter().map(|(contender, figures)| (contender.label().to_owned(), figures)).collect())
}
