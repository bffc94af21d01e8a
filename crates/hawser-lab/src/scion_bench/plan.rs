//! Who is compared, and what is sent: as a scenario's contenders and workloads say.

use super::{CONTENDER, LabError, WORKLOADS};
use crate::options::Options;
use crate::scenario::{ContenderPlan, WorkloadPlan};

/// An end host's way to send and receive. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What scenarios and tables call it.
    pub label: &'static str,
    /// Whose code sends.
    pub sender: Code,
    /// Whose code receives: the same but where a sender is wanted that is not the limit.
    pub receiver: Code,
    /// How packets come to the receiver.
    pub way: Way,
}

/// Whose code sends and receives. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// snet of v0.11, over a Unix socket.
    Classic,
    /// snet of v0.15.
    Snet,
    /// The same with a thread for system calls and queues between.
    SnetQueues,
    /// Hawser's connection.
    Hawser,
    /// The same without UDP GSO and GRO: sendmmsg and recvmmsg alone.
    HawserPlain,
    /// Hawser's bulk protocol: one session, however many connections.
    Bulk,
    /// Hawser's portals, and TCP through their session: a path of it for each connection.
    Session,
}

/// How packets come to the receiver. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Both ends hand them to a dispatcher, which hands them on.
    Dispatcher,
    /// They are sent to the dispatcher's port, and the shim there forwards them.
    Shim,
    /// They are sent to the dispatcher's port, and the XDP program there makes it the application's.
    Bypass,
    /// They are sent to the application's port.
    Straight,
}

/// Everybody, the slowest first.
pub(super) const ALL: [Candidate; 13] = [
    Candidate { label: "dispatcher", sender: Code::Classic, receiver: Code::Classic, way: Way::Dispatcher },
    Candidate { label: "shim", sender: Code::Snet, receiver: Code::Snet, way: Way::Shim },
    Candidate { label: "shim-flooded", sender: Code::HawserPlain, receiver: Code::Snet, way: Way::Shim },
    Candidate { label: "snet", sender: Code::Snet, receiver: Code::Snet, way: Way::Straight },
    Candidate { label: "snet-queues", sender: Code::SnetQueues, receiver: Code::SnetQueues, way: Way::Straight },
    Candidate { label: "bypass-snet", sender: Code::Snet, receiver: Code::Snet, way: Way::Bypass },
    Candidate { label: "bypass-flooded", sender: Code::HawserPlain, receiver: Code::Snet, way: Way::Bypass },
    Candidate { label: "bypass-queues", sender: Code::SnetQueues, receiver: Code::SnetQueues, way: Way::Bypass },
    Candidate { label: "bypass-hawser", sender: Code::Hawser, receiver: Code::Hawser, way: Way::Bypass },
    Candidate { label: "hawser-sendmmsg", sender: Code::HawserPlain, receiver: Code::HawserPlain, way: Way::Straight },
    Candidate { label: "hawser", sender: Code::Hawser, receiver: Code::Hawser, way: Way::Straight },
    Candidate { label: "bulk", sender: Code::Bulk, receiver: Code::Bulk, way: Way::Straight },
    Candidate { label: "session", sender: Code::Session, receiver: Code::Session, way: Way::Straight },
];

/// A contender's options, where it is of this kind.
pub(crate) fn options_of(plan: &ContenderPlan, kind: &str) -> Result<Options, LabError> {
    let options = Options::of_contender(plan);
    if plan.kind != kind {
        let fault = format!("kind {:?} beside kind {kind:?}: they are measured in different ways", plan.kind);
        return Err(options.fault(fault));
    }
    Ok(options)
}

impl Candidate {
    /// The one that a scenario means by a label.
    pub fn of(plan: &ContenderPlan) -> Result<Self, LabError> {
        let options = options_of(plan, CONTENDER)?;
        let labels = ALL.map(|candidate| candidate.label).join(", ");
        let none = || options.fault(format!("there is no such candidate, but: {labels}"));
        let candidate = ALL.into_iter().find(|candidate| candidate.label == plan.label).ok_or_else(none)?;
        options.finish()?;
        Ok(candidate)
    }

    /// Whether it is for this load: a session and the bulk protocol are for reliable transfer, and two ends of
    /// different code for packets alone.
    pub fn carries(self, load: Load) -> bool {
        match load {
            Load::File { .. } => self.sender == self.receiver,
            Load::Packets { .. } => !matches!(self.sender, Code::Session | Code::Bulk),
        }
    }
}

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
                let kinds = WORKLOADS.join(", ");
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
    use super::*;
    use crate::workload::tests::plan;

    fn candidate(kind: &str, label: &str, options: &str) -> Result<Candidate, LabError> {
        let options = options.parse().expect("TOML");
        Candidate::of(&ContenderPlan { kind: kind.to_owned(), label: label.to_owned(), options })
    }

    #[test]
    fn a_candidate_is_found_by_its_label_and_is_for_files_or_packets() {
        let packets = Load::Packets { bytes: 1200, pace: Pace::Full };
        for one in ALL {
            assert_eq!(candidate(CONTENDER, one.label, "").expect("it is one"), one);
            let packets_alone = one.label.ends_with("-flooded");
            assert_eq!(one.carries(Load::File { bytes: 1 }), !packets_alone, "{one:?}");
            let files_alone = ["bulk", "session"].contains(&one.label);
            assert_eq!(one.carries(packets), !files_alone, "{one:?}");
        }
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
            assert_eq!(Plan::of(&plan(kind, options)).expect("it is right"), Plan { place, load }, "{kind} {options}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_would() {
        let of = |kind: &str, label: &str, options: &str| candidate(kind, label, options).map(drop);
        let sent = |kind: &str, options: &str| Plan::of(&plan(kind, options)).map(drop);
        for (read, said) in [
            (of(CONTENDER, "hawsr", ""), "bypass-hawser"),
            (of(CONTENDER, "snet", "queues = true"), "no option `queues`"),
            (of("tcp", "snet", ""), "kind \"tcp\""),
            (sent("bulk", ""), "scion-packets"),
            (sent("scion-packets", "place = 'here'"), "within"),
            (sent("scion-packets", "pace = 1.1"), "up to 1"),
            (sent("scion-packets", "lossless = 101"), "below 100"),
            (sent("scion-packets", "pace = 0.5\nlossless = 1"), "exclude each other"),
            (sent("scion-file", "pace = 0.9"), "no option `pace`"),
        ] {
            let error = read.expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
