//! How true the emulated links are to what they are told, from 1 to 500 Mbit/s; no portal takes part.

use std::time::Duration;

use hawser_wire::Spread;
use hawser_wire::fidelity::{DELAY_BOUND_MS, RATE_BOUND, RATES_MBIT, of_jitter, of_rate, of_tcp};

use super::bench::Figures;
use super::cases::{Bound, Case, Probe, Target, target};
use crate::error::LabError;
use crate::topology::Flow;

/// How long each rate is measured, twice: with more than it carries, and with less.
const EACH: Duration = Duration::from_secs(2);
/// A link alone, one way. Source: issue 5, "Build", 2.
const ALONE_MBIT: f64 = 1000.0;
const ALONE_FOR: Duration = Duration::from_secs(3);
/// Of what it could bring.
const ALONE_FILLED: f64 = 0.97;
/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;

/// What the figures of each rate of `RATES_MBIT`, of each spread and of the link alone stand under.
const RATES: [&str; RATES_MBIT.len()] =
    ["1 Mbit/s", "10 Mbit/s", "50 Mbit/s", "100 Mbit/s", "200 Mbit/s", "500 Mbit/s"];
const JITTERS: [(&str, Spread); 2] = [("uniform", Spread::Uniform), ("normal", Spread::Normal)];
const ALONE: &str = "1 Gbit/s tcp";

/// Of each rate.
const OF_RATE: [Target; 3] = [
    target("rate_off_percent", Bound::AtMost(RATE_BOUND * PER_CENT)),
    target("delay_off_ms", Bound::AtMost(DELAY_BOUND_MS)),
    target("lost_beyond_chance", Bound::AtMost(0.0)),
];

/// Source: issue 5, "Must show".
const TARGETS: [Target; RATES.len() * OF_RATE.len() + JITTERS.len() + 1] = {
    let filled = target("filled", Bound::AtLeast(ALONE_FILLED));
    let mut all = [Target { label: ALONE, ..filled }; RATES.len() * OF_RATE.len() + JITTERS.len() + 1];
    let mut next = 0;
    while next < RATES.len() * OF_RATE.len() {
        all[next] = Target { label: RATES[next / OF_RATE.len()], ..OF_RATE[next % OF_RATE.len()] };
        next += 1;
    }
    let mut jitter = 0;
    while jitter < JITTERS.len() {
        all[next + jitter] = Target { label: JITTERS[jitter].0, ..target("ks_to_critical", Bound::AtMost(1.0)) };
        jitter += 1;
    }
    all
};

pub(super) const FIDELITY: Case = Case {
    name: "fidelity",
    about: "emulated links against what they are told: rate, delay, loss, jitter, and a gigabit alone",
    lines: &[],
    beside: &[],
    flows: &[Flow::Up],
    probe: Probe::Fidelity,
    targets: &TARGETS,
};

/// Every rate, every spread, and the link alone, one after the other; each run has its own chance.
pub(super) fn judge(run: u32) -> Result<Vec<(String, Figures)>, LabError> {
    let mut told = Vec::new();
    for (label, mbit) in RATES.into_iter().zip(RATES_MBIT) {
        told.push((label.to_owned(), rate(mbit, run)?));
    }
    for (label, spread) in JITTERS {
        let found = of_jitter(spread, run.into())?;
        let figures = [("ks_distance", found.distance), ("ks_to_critical", found.distance / found.critical)];
        told.push((label.to_owned(), Figures::from(figures)));
    }
    let filled = of_tcp(ALONE_MBIT, ALONE_FOR)?;
    told.push((ALONE.to_owned(), Figures::from([("filled", filled)])));
    Ok(told)
}

#[expect(clippy::cast_precision_loss, reason = "counts of packets")]
fn rate(mbit: f64, run: u32) -> Result<Figures, LabError> {
    let found = of_rate(mbit, EACH, run.into())?;
    let (least, most) = found.allowed;
    let beyond = least.saturating_sub(found.lost) + found.lost.saturating_sub(most);
    Ok(Figures::from([
        ("rate_off_percent", found.rate_error.abs() * PER_CENT),
        ("delay_off_ms", found.delay_error_ms.abs()),
        ("delay_p5_ms", found.delay_error_p5_ms),
        ("delay_p95_ms", found.delay_error_p95_ms),
        ("sent", found.sent as f64),
        ("lost", found.lost as f64),
        ("lost_beyond_chance", beyond as f64),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rate_and_each_jitter_has_its_targets() {
        for (label, mbit) in RATES.into_iter().zip(RATES_MBIT) {
            assert_eq!(label, format!("{mbit} Mbit/s"));
            assert_eq!(TARGETS.iter().filter(|target| target.label == label).count(), OF_RATE.len(), "{label}");
        }
        for label in ["uniform", "normal", ALONE] {
            assert_eq!(TARGETS.iter().filter(|target| target.label == label).count(), 1, "{label}");
        }
    }
}
