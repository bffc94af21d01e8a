//! What is compared: one file each. A [`Contender`] sets itself up, and tells what applications use until its [`Down`].
//!
//! 1. [`make`] finds the kind, and the kind reads its options: none is ignored.
//! 2. It is set up on a stage, and waits until it carries traffic; each step is noted with what undoes it ([`undo`]).
//! 3. [`Down`] ends its programs and takes the steps back, the last one first.
//!
//! Kernel: [`forwarded`], [`mptcp`]. Programs: [`hawser`], and those of [`tunnel`], which shares what tunnels have in
//! common; each adapter only says what its program is told.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Pid;

use crate::error::LabError;
use crate::options::Options;
use crate::scenario::ContenderPlan;
use crate::stage::{Ends, Stage};

pub use hawser::Running;
pub use hawser_wire::traffic::Stack as Transport;

mod forwarded;
mod hawser;
mod links;
mod mptcp;
mod tunnel;
mod undo;

/// Where programs are. Plain data.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The `hawser` executable.
    pub hawser: PathBuf,
    /// The folder where tools that the lab builds are kept.
    pub cache: PathBuf,
}

/// What applications use while a contender is up. Plain data.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The addresses at which client and server reach each other.
    pub ends: Ends,
    /// What sockets are made.
    pub socket: Transport,
    /// Its programs, for their costs.
    pub programs: Vec<Program>,
    /// Its portals, where it has any: for what happens to them, and what they tell.
    pub portals: Option<Arc<Running>>,
}

/// A process of a contender. Plain data.
#[derive(Clone, Debug)]
pub struct Program {
    /// `local` or `remote`.
    pub role: &'static str,
    /// Its process.
    pub pid: Pid,
}

/// Something that carries traffic between client and server, down at first. It sets itself up, and returns once it
/// carries traffic over every link that is up; its error tells what it said.
pub type Contender = Box<dyn FnOnce(&Stage) -> Result<(Offer, Down), LabError>>;

/// Ends a contender and undoes what it set; after it the stage is as it was. Its error tells what stays.
pub type Down = Box<dyn FnOnce(&Stage) -> Result<(), LabError>>;

/// What makes a contender of one kind.
type Make = fn(&ContenderPlan, &Programs) -> Result<Contender, LabError>;

/// Every kind there is, but for tunnels.
static KINDS: [(&str, Make); 4] =
    [("tcp", forwarded::tcp), ("mptcp", mptcp::make), ("hawser", hawser::make), ("ecmp", forwarded::ecmp)];

/// Every kind there is.
pub(crate) fn kinds() -> impl Iterator<Item = &'static (&'static str, Make)> {
    KINDS.iter().chain(&tunnel::KINDS)
}

/// Step 1: a contender as planned, down.
///
/// # Errors
/// [`LabError::Refused`] for a kind or option that is not known, or a value that means nothing.
pub fn make(plan: &ContenderPlan, programs: &Programs) -> Result<Contender, LabError> {
    let Some((_, make)) = kinds().find(|(kind, _)| *kind == plan.kind) else {
        let kinds = kinds().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ");
        let fault = format!("there is no kind {:?}, but: {kinds}", plan.kind);
        return Err(LabError::refused(format!("set up {}", plan.label), fault));
    };
    make(plan, programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan with these options, in TOML.
    pub(super) fn plan(kind: &str, options: &str) -> ContenderPlan {
        let options = options.parse().unwrap_or_else(|error| panic!("options of a test: {error}\n{options}"));
        ContenderPlan { kind: kind.to_owned(), label: kind.to_owned(), options }
    }

    pub(super) fn programs() -> Programs {
        Programs { hawser: "/nowhere/hawser".into(), cache: "/nowhere".into() }
    }

    fn refusal(kind: &str, options: &str) -> String {
        match make(&plan(kind, options), &programs()) {
            Err(error @ LabError::Refused { .. }) => error.to_string(),
            Err(error) => panic!("{kind} {options}: {error}"),
            Ok(_) => panic!("{kind} understands {options}"),
        }
    }

    #[test]
    fn what_is_not_known_is_refused_and_what_exists_is_named() {
        let table = [
            (
                "tpc",
                "",
                "set up tpc: there is no kind \"tpc\", but: tcp, mptcp, hawser, ecmp, wireguard-go, mlvpn, mlvpn-rs, \
                         glorytun, engarde, openvpn, mqvpn, yardstick",
            ),
            ("ecmp", "link = \"eth\"", "set up ecmp: no option `link`, nor any other"),
            ("tcp", "links = \"eth\"", "set up tcp: no option `links`; there are: link"),
            ("tcp", "link = 1", "set up tcp: option `link` is 1, but takes a string"),
            (
                "mptcp",
                "path-manager = \"mesh\"",
                "set up mptcp: option `path-manager` is \"mesh\", but takes \"fullmesh\" | \"ndiffports\" | \
                 \"default\"",
            ),
            ("mptcp", "subflows = 3", "set up mptcp: subflows is for path-manager = \"ndiffports\""),
            (
                "mptcp",
                "path-manager = \"ndiffports\"\nsubflows = 9",
                "set up mptcp: option `subflows` is 9, but takes a whole number up to 8",
            ),
            ("mptcp", "checksums = 1", "set up mptcp: option `checksums` is 1, but takes true | false"),
            ("hawser", "transport = 1", "set up hawser: transport is neither a string nor a table of links"),
            ("hawser", "fec = \"on\"", "set up hawser: option `fec` is \"on\", but takes \"off\" | \"auto\""),
            (
                "openvpn",
                "protocol = \"ip\"",
                "set up openvpn: option `protocol` is \"ip\", but takes \"udp\" | \"tcp\"",
            ),
        ];
        for (kind, options, expected) in table {
            assert_eq!(refusal(kind, options), expected);
        }
    }

    #[test]
    fn every_kind_is_made_without_options() {
        for (kind, _) in kinds() {
            assert!(make(&plan(kind, ""), &programs()).is_ok(), "{kind}");
        }
    }
}
