//! The table of issue 3, "Must show".

use super::contender::{Cipher, Contender, Links};
use super::relation::{Base, less, over};
use super::{Measure, Paired};
use crate::measure::cases::{Bound, Case, Probe, Target, target};
use crate::topology::Flow;

const UP: &[Flow] = &[Flow::Up];
/// One of each.
const ALL: &[Contender] = &[Contender::Plain, Contender::WireGuard, Contender::YARDSTICK, Contender::HAWSER];
const TUNNELS: &[Contender] = &[Contender::WireGuard, Contender::YARDSTICK, Contender::HAWSER];
/// Both ciphers, and more links.
const STREAMERS: &[Contender] = &[
    Contender::Plain,
    Contender::WireGuard,
    Contender::YARDSTICK,
    Contender::Yardstick(Cipher::ChaCha),
    Contender::HAWSER,
    Contender::Hawser(Cipher::ChaCha, Links::One),
    Contender::Hawser(Cipher::Aes, Links::Two),
    Contender::Hawser(Cipher::Aes, Links::Four),
];

/// What Hawser must reach.
const fn hawser(figure: &'static str, bound: Bound) -> Target {
    Target { label: Contender::HAWSER.label(), ..target(figure, bound) }
}

const fn case(name: &'static str, about: &'static str, paired: Paired, targets: &'static [Target]) -> Case {
    Case { name, about, lines: &[], beside: &[], flows: UP, probe: Probe::Paired(paired), targets }
}

/// All paired cases: `measure bench` runs them one after the other.
pub const PAIRED: &[Case] = &[
    case(
        "bench-stream",
        "one TCP stream, an unshaped link, in turns",
        Paired {
            contenders: STREAMERS,
            measure: Measure::Stream,
            relations: &[
                over("mbps_of_wireguard", "mbps", Base::WireGuard),
                over("mbps_of_yardstick", "mbps", Base::Yardstick),
                over("mbps_of_one_link", "mbps", Base::OneLink),
                over("machine_of_wireguard", "machine_s_per_gb", Base::WireGuard),
                over("machine_of_yardstick", "machine_s_per_gb", Base::Yardstick),
            ],
        },
        &[
            hawser("mbps_of_yardstick", Bound::AtLeast(1.0)),
            hawser("mbps_of_wireguard", Bound::AtLeast(2.2)),
            hawser("machine_of_wireguard", Bound::AtMost(0.4)),
            hawser("machine_of_yardstick", Bound::AtMost(1.0)),
            Target { label: "hawser-2-links", ..target("mbps_of_one_link", Bound::AtLeast(0.95)) },
        ],
    ),
    case(
        "bench-packets",
        "UDP at 150 Mbit/s, one packet at a time, in turns",
        Paired {
            contenders: ALL,
            measure: Measure::Packets,
            relations: &[
                less("over_plain_us_1200", "machine_us_1200", Base::Plain),
                less("over_plain_us_100", "machine_us_100", Base::Plain),
                over("us_1200_of_wireguard", "us_1200", Base::WireGuard),
                over("over_plain_1200_of_wireguard", "over_plain_us_1200", Base::WireGuard),
                over("over_plain_1200_of_yardstick", "over_plain_us_1200", Base::Yardstick),
            ],
        },
        &[
            hawser("over_plain_1200_of_wireguard", Bound::AtMost(0.25)),
            hawser("us_1200_of_wireguard", Bound::AtMost(0.25)),
        ],
    ),
    case(
        "bench-latency",
        "a ping and nothing else, in turns",
        Paired {
            contenders: ALL,
            measure: Measure::Latency,
            relations: &[
                less("added_p50_us", "p50_us", Base::Plain),
                less("added_p99_us", "p99_us", Base::Plain),
                over("added_of_wireguard", "added_p50_us", Base::WireGuard),
                over("added_of_yardstick", "added_p50_us", Base::Yardstick),
            ],
        },
        &[hawser("added_of_wireguard", Bound::AtMost(0.5))],
    ),
    case(
        "bench-flows",
        "300 streams, 1,000 calls a second, small datagrams, in turns",
        Paired {
            contenders: ALL,
            measure: Measure::Flows,
            relations: &[
                less("ping_p99_over_plain_ms", "ping_p99_ms", Base::Plain),
                over("small_of_wireguard", "small_kpps", Base::WireGuard),
                over("small_of_yardstick", "small_kpps", Base::Yardstick),
            ],
        },
        &[hawser("streams_of_one", Bound::AtLeast(0.9)), hawser("ping_p99_over_plain_ms", Bound::AtMost(5.0))],
    ),
    case(
        "bench-size",
        "start-up, memory and program, in turns",
        Paired { contenders: TUNNELS, measure: Measure::Size, relations: &[] },
        &[hawser("loaded_mib", Bound::AtMost(64.0))],
    ),
];
