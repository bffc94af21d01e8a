//! What is sent, as a scenario's workload says.

use crate::error::LabError;
use crate::options::Options;
use crate::scenario::WorkloadPlan;

/// What a workload is. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// Where its ends are.
    pub place: Place,
    /// What they exchange.
    pub load: Load,
}

/// Where the ends are. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Two hosts of one AS, joined by a veth: no router in between.
    Within,
    /// Hosts of two core ASes, each behind its border router.
    Between,
}

/// What the ends exchange. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// Packets of this many bytes of payload.
    Packets { bytes: usize, pace: Pace },
    /// A file of this many bytes, over QUIC.
    File { bytes: u64 },
}

/// How fast packets are sent. Constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// As fast as it goes.
    Full,
    /// At this share of what arrived when they were sent as fast as it goes.
    Share(f64),
    /// As fast as they arrive with no more than this lost, in percent. Source: RFC 2544 section 26.1, "Throughput",
    /// where it is none at all; between programs that the kernel schedules a packet in a thousand says nothing.
    Lossless(f64),
}

/// Payload of a packet, where the scenario does not say. Source: SCION.md, "Figures to beat".
const PAYLOAD: usize = 1200;
/// A file, where the scenario does not say.
const FILE: u64 = 1_000_000_000;
const PLACES: [(&str, Place); 2] = [("within", Place::Within), ("between", Place::Between)];

impl Plan {
    /// Reads it, strictly.
    pub fn of(plan: &WorkloadPlan) -> Result<Self, LabError> {
        let mut options = Options::of_workload(plan);
        let place = options.choice("place", &PLACES, Place::Within)?;
        let load = match plan.kind.as_str() {
            "scion-packets" => {
                let bytes = options.count("bytes", 1, PAYLOAD)?;
                Load::Packets { bytes, pace: Pace::of(&mut options)? }
            }
            "scion-file" => Load::File { bytes: options.bytes("bytes")?.unwrap_or(FILE) },
            other => {
                let kinds = super::WORKLOADS.join(", ");
                return Err(options.fault(format!("no kind `{other}` of SCION end hosts; there are: {kinds}")));
            }
        };
        options.finish()?;
        Ok(Self { place, load })
    }
}

impl Pace {
    fn of(options: &mut Options) -> Result<Self, LabError> {
        let (share, most) = (options.number("pace", 1.0)?, options.number("lossless", 100.0)?);
        match (share, most) {
            (1.0, 100.0) => Ok(Self::Full),
            (share, 100.0) if share < 1.0 => Ok(Self::Share(share)),
            (1.0, most) if most < 100.0 => Ok(Self::Lossless(most)),
            (1.0, most) => Err(options.fault(format!("option `lossless` is {most}, but takes percents below 100"))),
            (share, 100.0) => Err(options.fault(format!("option `pace` is {share}, but takes a share up to 1"))),
            _ => Err(options.fault("options `pace` and `lossless` exclude each other: take one".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(kind: &str, options: &str) -> Result<Plan, LabError> {
        let options = options.parse().expect("TOML");
        let duration = Duration::from_secs(1);
        Plan::of(&WorkloadPlan { kind: kind.to_owned(), name: "one".to_owned(), duration, options })
    }

    #[test]
    fn a_workload_says_what_is_sent_and_where() {
        let packets = |bytes, pace| Load::Packets { bytes, pace };
        let between = "place = 'between'\nbytes = 100\npace = 0.9";
        let table = [
            ("scion-packets", "", Place::Within, packets(1200, Pace::Full)),
            ("scion-packets", between, Place::Between, packets(100, Pace::Share(0.9))),
            ("scion-packets", "lossless = 0.1", Place::Within, packets(1200, Pace::Lossless(0.1))),
            ("scion-file", "", Place::Within, Load::File { bytes: 1_000_000_000 }),
            ("scion-file", "bytes = '2MB'", Place::Within, Load::File { bytes: 2_000_000 }),
        ];
        for (kind, options, place, load) in table {
            assert_eq!(read(kind, options).expect("it is right"), Plan { place, load }, "{kind} {options}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_would() {
        for (kind, options, said) in [
            ("bulk", "", "scion-packets"),
            ("scion-packets", "place = 'here'", "within"),
            ("scion-packets", "pace = 1.1", "up to 1"),
            ("scion-packets", "lossless = 101", "below 100"),
            ("scion-packets", "pace = 0.5\nlossless = 1", "exclude each other"),
            ("scion-file", "pace = 0.9", "no option `pace`"),
        ] {
            let error = read(kind, options).expect_err("it is wrong").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
