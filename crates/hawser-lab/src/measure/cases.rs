//! The cases, a row each of issues 2 and 4, "Must show".

use std::time::Duration;

use hawser_wire::{Direction, Jitter, Loss, Spread};

use super::controllers::{Judged, LOSS_BASED, MODEL_BASED};
use super::paired::{PAIRED, Paired};
use super::{changes, fec, fidelity, outages, scion, shim, thin, tiers};
use crate::topology::{Flow, LinkPlan};

/// A link of a case, the same both ways. Constant.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Rate of IP packets, in Mbit/s.
    pub mbps: f64,
    /// One way, in milliseconds.
    pub delay_ms: u64,
    /// How much the delay differs at most, either way, packets overtaking; in milliseconds.
    pub jitter_ms: u64,
    /// Random loss, in per cent.
    pub loss_percent: f64,
}

/// What waits before a link at most. Source: issue 2, "Must show", first row.
const QUEUE: Duration = Duration::from_millis(100);

pub(super) const fn line(mbps: f64, delay_ms: u64) -> Line {
    Line { mbps, delay_ms, jitter_ms: 0, loss_percent: 0.0 }
}

impl Line {
    /// The link to be made; `seed` is where its chance starts.
    pub(super) fn plan(&self, seed: u64) -> LinkPlan {
        let amplitude = Duration::from_millis(self.jitter_ms);
        let jitter = Jitter { amplitude, spread: Spread::Uniform, reorder: true };
        let direction = Direction::shaped(self.mbps, Duration::from_millis(self.delay_ms), QUEUE);
        LinkPlan::symmetric(&Direction {
            jitter: (self.jitter_ms > 0).then_some(jitter),
            loss: Loss::percent(self.loss_percent).unwrap_or(Loss::None),
            seed,
            ..direction
        })
    }
}

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
    /// One stream: `mbps usable_mbps ratio`; with other links beside it also `beside_mbps beside_ratio added_ratio`.
    Goodput,
    /// One stream, each link in turn cut and brought back: `gap_ms recovered_s at_3s_share ping_lost before_mbps`.
    Cut(How),
    /// One stream and a ping: `idle_ms loaded_ms over_idle_ms`.
    Latency,
    /// One stream by a plain link, and by wireguard-go: `mbps wireguard_mbps ratio`, `cpu_s_per_gb` and so on.
    Unshaped,
    /// Controllers beside the kernel's, on links of its own: `share kernel_share goodput_ratio`, `queue_ms` and so on.
    Controllers(&'static [Judged]),
    /// Coupled controllers beside plain streams at a shared bottleneck: `bond_mbps stream_mbps streams filled`.
    Coupling,
    /// Many sessions of one generator through one link: `jain mib_a_peer startup_s mbps least_mbps`.
    Peers,
    /// A stream beside hostile datagrams: `calm_mbps attacked_mbps ratio hostile_per_s dropped_per_s grown_mib`.
    Hostile,
    /// Random topologies, links drawn by seeds: a part for each, `bond_mbps best_mbps ratio`; of all `share under least` and so on.
    Random,
    /// A link that is away for a while, drawn by seeds: a part for each, `back_s local_bits remote_bits`; of all `late too_loud` and so on.
    Outages,
    /// One stream by each transport, on the lines and, under loss, on those beside: `udp_ratio ip_ratio tcp_ratio` and so on.
    Transports,
    /// SCION paths, in networks of their own: `ratio gap_ms recovered_s`, and chosen by what they share `disjoint_ratio gain`.
    Scion,
    /// The shim over SCION paths, in networks of their own.
    Shim(shim::What),
    /// The remote portal killed and started again: `ping_after_s stream_after_s`.
    Restart,
    /// Plain forwarding, wireguard-go, the yardstick and Hawser in turns.
    Paired(Paired),
    /// One stream by the link of metric 0, the spare one of metric 1 watched: `takeover_ms handback_lost spare_packets_per_s`.
    Tiers(How),
    /// One stream, a link's rate and presence changing: `halved_ratio doubled_ratio lost_ratio regained_ratio`.
    Changes(How),
    /// A thin flow under this rule: `lost_percent delay_p99_ms wire_bytes_per_inner`.
    Thin(&'static str),
    /// The same with repairs and without: `useless_percent extra_percent plain_lost_percent`.
    Fec,
    /// Emulated links against what they are told: `rate_off_percent delay_off_ms lost_beyond_chance` and so on.
    Fidelity,
    /// Datagrams, more than the link carries: `local_mib remote_mib local_most_mib remote_most_mib mbps`.
    Memory,
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
    /// The links; empty: one plain, unshaped link.
    pub lines: &'static [Line],
    /// Other links that Hawser is also measured on, to be compared.
    pub beside: &'static [Line],
    /// Which ways the stream goes, one after the other.
    pub flows: &'static [Flow],
    /// What is measured.
    pub probe: Probe,
    /// What it must reach.
    pub targets: &'static [Target],
}

const EQUAL: [Line; 2] = [line(50.0, 10); 2];
const LOSSY: Line = Line { loss_percent: 1.0, ..line(50.0, 10) };
const HARMFUL: Line = Line { jitter_ms: 20, ..line(5.0, 75) };
/// A portal's memory counts only while it is busy: this much received, in Mbit/s of inner packets.
const BUSY_MBPS: f64 = 85.0;
/// Memory that is flat may still fill what a busier moment needs, in MiB.
const GROWN_MIB: f64 = 4.0;
const BOTH: &[Flow] = &[Flow::Up, Flow::Down];
const CUT: &[Target] = &[always("gap_ms", Bound::AtMost(200.0)), always("recovered_s", Bound::AtMost(3.0))];
const CUT_DOWN: &[Target] = &[CUT[0], CUT[1], always("ping_lost", Bound::AtMost(3.0))];

/// Within 15 %. Source: issue 2, "Controllers judged by a stranger".
const AS_FAST: [Target; 2] =
    [target("goodput_ratio", Bound::AtLeast(0.85)), target("goodput_ratio", Bound::AtMost(1.15))];
const QUEUES_NO_MORE: Target = target("queue_ratio", Bound::AtMost(1.15));
const QUEUES_NO_LESS: Target = target("queue_ratio", Bound::AtLeast(0.85));

/// Of one plain stream. Source: issue 4, "Must show".
const fn streams(label: &'static str, bound: Bound) -> Target {
    Target { label, ..target("streams", bound) }
}

/// All cases. Source: issues 2 and 4, "Must show".
pub const CASES: &[Case] = &[
    Case {
        name: "equal",
        about: "50 + 50 Mbit/s, 10 ms each way",
        lines: &EQUAL,
        beside: &[],
        flows: BOTH,
        probe: Probe::Goodput,
        targets: &[target("ratio", Bound::AtLeast(0.95))],
    },
    Case {
        name: "unequal",
        about: "40 Mbit/s 10 ms + 10 Mbit/s 40 ms, and the 40 alone",
        lines: &[line(40.0, 10), line(10.0, 40)],
        beside: &[line(40.0, 10)],
        flows: BOTH,
        probe: Probe::Goodput,
        targets: &[target("ratio", Bound::AtLeast(0.90)), target("beside_ratio", Bound::Above(1.0))],
    },
    Case {
        name: "harmful",
        about: "100 Mbit/s 10 ms + 5 Mbit/s 75 ms with 20 ms jitter, and the first alone",
        lines: &[line(100.0, 10), HARMFUL],
        beside: &[line(100.0, 10)],
        flows: BOTH,
        probe: Probe::Goodput,
        targets: &[target("beside_ratio", Bound::AtLeast(0.98))],
    },
    Case {
        name: "loss",
        about: "50 + 50 Mbit/s, 1 % random loss on both",
        lines: &[LOSSY; 2],
        beside: &[],
        flows: BOTH,
        probe: Probe::Goodput,
        targets: &[target("ratio", Bound::AtLeast(0.80))],
    },
    Case {
        name: "fourth",
        about: "4 × 20 Mbit/s against 3 × 20",
        lines: &[line(20.0, 10); 4],
        beside: &[line(20.0, 10); 3],
        flows: BOTH,
        probe: Probe::Goodput,
        targets: &[target("added_ratio", Bound::AtLeast(0.90))],
    },
    Case {
        name: "cut-down",
        about: "50 + 50 Mbit/s, a link set down and up again",
        lines: &EQUAL,
        beside: &[],
        flows: BOTH,
        probe: Probe::Cut(How::Down),
        targets: CUT_DOWN,
    },
    Case {
        name: "cut-silent",
        about: "50 + 50 Mbit/s, a link black-holed and back",
        lines: &EQUAL,
        beside: &[],
        flows: BOTH,
        probe: Probe::Cut(How::Silent),
        targets: CUT,
    },
    Case {
        name: "latency",
        about: "50 + 50 Mbit/s, a ping beside a full load",
        lines: &EQUAL,
        beside: &[],
        flows: BOTH,
        probe: Probe::Latency,
        targets: &[target("over_idle_ms", Bound::AtMost(20.0))],
    },
    Case {
        name: "unshaped",
        about: "a veth without offloads, against wireguard-go in turns",
        lines: &[],
        beside: &[],
        flows: &[Flow::Up],
        probe: Probe::Unshaped,
        targets: &[target("ratio", Bound::AtLeast(1.0)), target("cpu_ratio", Bound::AtMost(1.0))],
    },
    Case {
        name: "restart",
        about: "the remote portal killed, started again after a second",
        lines: &EQUAL,
        beside: &[],
        flows: BOTH,
        probe: Probe::Restart,
        targets: &[target("ping_after_s", Bound::AtMost(3.0))],
    },
    Case {
        name: "memory",
        about: "100 Mbit/s, 300 ms round trip",
        lines: &[line(100.0, 150)],
        beside: &[],
        flows: BOTH,
        probe: Probe::Memory,
        targets: &[
            target("local_most_mib", Bound::AtMost(64.0)),
            target("remote_most_mib", Bound::AtMost(64.0)),
            target("mbps", Bound::AtLeast(BUSY_MBPS)),
        ],
    },
    tiers::SILENT,
    tiers::DOWN,
    changes::SILENT,
    changes::DOWN,
    thin::REDUNDANT,
    fec::FEC,
    fidelity::FIDELITY,
    Case {
        name: "controllers",
        about: "our CUBIC and NewReno beside the kernel's, one link",
        lines: &[],
        beside: &[],
        flows: &[Flow::Up],
        probe: Probe::Controllers(LOSS_BASED),
        targets: &[AS_FAST[0], AS_FAST[1], QUEUES_NO_MORE, QUEUES_NO_LESS],
    },
    // One-sided: ours departs from BBRv3, and the kernel's is BBRv1, to queue less.
    Case {
        name: "controllers-bbr",
        about: "our BBR beside the kernel's, one link",
        lines: &[],
        beside: &[],
        flows: &[Flow::Up],
        probe: Probe::Controllers(MODEL_BASED),
        targets: &[AS_FAST[0], QUEUES_NO_MORE],
    },
    // Source: issue 4, "Must show"; "about two" is taken as a fifth more or less.
    Case {
        name: "coupling",
        about: "two links through one bottleneck, 20 Mbit/s, 40 ms, beside two Reno streams",
        lines: &[],
        beside: &[],
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
        lines: &[],
        beside: &[],
        flows: &[Flow::Up],
        probe: Probe::Peers,
        targets: &[target("jain", Bound::AtLeast(0.95)), target("mib_a_peer", Bound::AtMost(2.0))],
    },
    Case {
        name: "hostile",
        about: "100 Mbit/s beside 50,000 hostile datagrams a second",
        lines: &[line(100.0, 10)],
        beside: &[],
        flows: &[Flow::Up],
        probe: Probe::Hostile,
        targets: &[
            target("ratio", Bound::AtLeast(0.90)),
            target("hostile_per_s", Bound::AtLeast(49_000.0)),
            // All but the initiations, which are answered with a cookie.
            target("dropped_per_s", Bound::AtLeast(35_000.0)),
            target("grown_mib", Bound::AtMost(GROWN_MIB)),
        ],
    },
    // Source: issue 4, "Must show".
    Case {
        name: "transports",
        about: "50 + 50 Mbit/s by udp, ip and tcp, also with 1 % loss",
        lines: &EQUAL,
        beside: &[LOSSY; 2],
        flows: BOTH,
        probe: Probe::Transports,
        targets: &[
            target("udp_ratio", Bound::AtLeast(0.93)),
            target("ip_ratio", Bound::AtLeast(0.93)),
            target("tcp_ratio", Bound::AtLeast(0.93)),
            target("ip_wire_less", Bound::Above(0.0)),
            target("loss_udp_to_cubic", Bound::AtLeast(3.0)),
        ],
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
        lines: &[],
        beside: &[],
        flows: BOTH,
        probe: Probe::Scion,
        targets: scion::TARGETS,
    },
    outages::CASE,
    // Source: issue 2, "Against tuning to a table".
    Case {
        name: "random",
        about: "12 random topologies, against the best link alone",
        lines: &[],
        beside: &[],
        flows: &[Flow::Up],
        probe: Probe::Random,
        targets: &[target("under_too_many", Bound::AtMost(0.0)), target("least", Bound::AtLeast(0.85))],
    },
];

impl Case {
    /// The case of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().chain(PAIRED).find(|case| case.name == name)
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
        let cases: Vec<&Case> = CASES.iter().chain(PAIRED).collect();
        for (index, case) in cases.iter().enumerate() {
            assert!(cases[..index].iter().all(|other| other.name != case.name), "{}", case.name);
            assert!(!case.targets.is_empty() && !case.flows.is_empty(), "{}", case.name);
            assert!(Case::named(case.name).is_some());
        }
    }
}
