//! Who is compared.

use super::plan::Load;
use super::{CONTENDER, LabError};
use crate::options::Options;
use crate::scenario::ContenderPlan;

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

impl Candidate {
    /// The one that a scenario means by a label.
    pub fn of(plan: &ContenderPlan) -> Result<Self, LabError> {
        let options = Options::of_contender(plan);
        if plan.kind != CONTENDER {
            let fault = format!("kind {:?} beside kind {CONTENDER:?}: they are measured in different ways", plan.kind);
            return Err(options.fault(fault));
        }
        let found = ALL.iter().find(|candidate| candidate.label == plan.label).copied();
        let labels = ALL.map(|candidate| candidate.label).join(", ");
        let none = || options.fault(format!("there is no such candidate, but: {labels}"));
        let candidate = found.ok_or_else(none)?;
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

#[cfg(test)]
mod tests {
    use super::super::plan::Pace;
    use super::*;

    fn plan(kind: &str, label: &str, options: &str) -> ContenderPlan {
        let options = options.parse().expect("TOML");
        ContenderPlan { kind: kind.to_owned(), label: label.to_owned(), options }
    }

    #[test]
    fn a_candidate_is_found_by_its_label() {
        for candidate in ALL {
            assert_eq!(Candidate::of(&plan(CONTENDER, candidate.label, "")).expect("it is one"), candidate);
        }
    }

    #[test]
    fn a_session_is_for_files_and_a_flood_is_of_packets() {
        let packets = Load::Packets { bytes: 1200, pace: Pace::Full };
        for candidate in ALL {
            let packets_alone = candidate.label.ends_with("-flooded");
            assert_eq!(candidate.carries(Load::File { bytes: 1 }), !packets_alone, "{candidate:?}");
            let files_alone = ["bulk", "session"].contains(&candidate.label);
            assert_eq!(candidate.carries(packets), !files_alone, "{candidate:?}");
        }
    }

    #[test]
    fn what_is_no_candidate_is_refused_with_what_there_is() {
        for (kind, label, options, said) in [
            (CONTENDER, "hawsr", "", "bypass-hawser"),
            (CONTENDER, "snet", "queues = true", "no option `queues`"),
            ("tcp", "snet", "", "kind \"tcp\""),
        ] {
            let error = Candidate::of(&plan(kind, label, options)).expect_err("it is none").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
