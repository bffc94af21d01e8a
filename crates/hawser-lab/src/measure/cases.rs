//! The cases, a row each of issues 2 and 4, "Must show".

use super::{outages, scion, shim};
use crate::topology::Flow;

/// How a link is cut. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `ip link set down` at the local portal.
    Down,
    /// Every packet vanishes.
    Silent,
}

/// What is done and measured. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Coupled controllers beside plain streams at a shared bottleneck: `bond_mbps stream_mbps streams filled`.
    Coupling,
    /// Many sessions of one generator through one link: `jain mib_a_peer startup_s mbps least_mbps`.
    Peers,
    /// A link that is away for a while, drawn by seeds: a part for each, `back_s local_bits remote_bits`; of all `late too_loud` and so on.
    Outages,
    /// SCION paths, in networks of their own: `ratio gap_ms recovered_s`, and chosen by what they share `disjoint_ratio gain`.
    Scion,
    /// The shim over SCION paths, in networks of their own.
    Shim(shim::What),
}

/// What a figure must be. Constant.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Not less.
    AtLeast(f64),
    /// More.
    Above(f64),
    /// Not more.
    AtMost(f64),
}

impl Bound {
    /// Whether a value is within.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::Above(bound) => value > bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

/// Which of the runs counts. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The middle one.
    Median,
    /// The one that is farthest from the target.
    Worst,
}

/// What a case must reach. Constant.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Whose runs; empty: those of every label.
    pub label: &'static str,
    /// The figure's name.
    pub figure: &'static str,
    /// What it must be.
    pub bound: Bound,
    /// In which run.
    pub of: Of,
}

pub(super) const fn target(figure: &'static str, bound: Bound) -> Target {
    Target { label: "", figure, bound, of: Of::Median }
}

pub(super) const fn always(figure: &'static str, bound: Bound) -> Target {
    Target { label: "", figure, bound, of: Of::Worst }
}

/// A row of the table. Constant.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// In a few words.
    pub about: &'static str,
    /// Which ways the stream goes, one after the other.
    pub flows: &'static [Flow],
    /// What is measured.
    pub probe: Probe,
    /// What it must reach.
    pub targets: &'static [Target],
}

const BOTH: &[Flow] = &[Flow::Up, Flow::Down];

/// Of one plain stream. Source: issue 4, "Must show".
const fn streams(label: &'static str, bound: Bound) -> Target {
    Target { label, ..target("streams", bound) }
}

/// All cases. Source: issues 2 and 4, "Must show".
pub const CASES: &[Case] = &[
    // Source: issue 4, "Must show"; "about two" is taken as a fifth more or less.
    Case {
        name: "coupling",
        about: "two links through one bottleneck, 20 Mbit/s, 40 ms, beside two Reno streams",
        flows: &[Flow::Up],
        probe: Probe::Coupling,
        targets: &[
            streams("lia", Bound::AtLeast(0.7)),
            streams("lia", Bound::AtMost(1.15)),
            streams("olia", Bound::AtLeast(0.7)),
            streams("olia", Bound::AtMost(1.15)),
            streams("balia", Bound::AtLeast(0.7)),
            streams("balia", Bound::AtMost(1.15)),
            streams("newreno", Bound::AtLeast(1.6)),
            streams("newreno", Bound::AtMost(2.4)),
        ],
    },
    // Source: issue 4, "Must show".
    Case {
        name: "peers",
        about: "200 sessions of 1,000 configured peers through one link of 400 Mbit/s",
        flows: &[Flow::Up],
        probe: Probe::Peers,
        targets: &[target("jain", Bound::AtLeast(0.95)), target("mib_a_peer", Bound::AtMost(2.0))],
    },
    shim::CASES[0],
    shim::CASES[1],
    shim::CASES[2],
    shim::CASES[3],
    shim::CASES[4],
    shim::CASES[5],
    // Source: issue 6, "Must show".
    Case {
        name: "scion",
        about: "2 and 4 SCION paths of 20 Mbit/s, a cut, a UDP link beside them, shared and disjoint ones",
        flows: BOTH,
        probe: Probe::Scion,
        targets: scion::TARGETS,
    },
    outages::CASE,
];

impl Case {
    /// The case of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_says_which_side_is_right() {
        let table = [
            (Bound::AtLeast(1.0), [false, true, true]),
            (Bound::Above(1.0), [false, false, true]),
            (Bound::AtMost(1.0), [true, true, false]),
        ];
        for (bound, holds) in table {
            assert_eq!([0.9, 1.0, 1.1].map(|value| bound.holds(value)), holds, "{bound:?}");
        }
    }

    #[test]
    fn every_case_has_a_name_of_its_own_and_a_target() {
        let cases: Vec<&Case> = CASES.iter().collect();
        for (index, case) in cases.iter().enumerate() {
            assert!(cases[..index].iter().all(|other| other.name != case.name), "{}", case.name);
            assert!(!case.targets.is_empty() && !case.flows.is_empty(), "{}", case.name);
            assert!(Case::named(case.name).is_some());
        }
    }
}
