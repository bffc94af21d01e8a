//! What is sent while it is measured: one file each.
//!
//! 1. [`make`] reads a scenario's plan of a workload, strictly.
//! 2. It is prepared: servers listen, clients are connected.
//! 3. It runs for its time, and names what it found. A connection that breaks is something found, no error.
//! 4. Beside any of them a load may run, a bulk stream, and a ping; and the processors may have other work. Its first
//!    seconds may be told apart.

mod beside;
mod bulk;
mod connect;
mod emodel;
mod exchange;
mod figures;
mod http3;
mod iperf3;
mod packets;
mod ping;
mod request;
mod subflows;
mod voip;
mod web;

use std::time::Duration;

use hawser_wire::traffic::{Congestion, Reliable, Stack, Towards};
use hawser_wire::{Moment, Namespace};

use self::figures::Span;
pub(crate) use self::figures::jain;
use crate::error::LabError;
use crate::experiment::Findings;
use crate::options::Options;
use crate::scenario::WorkloadPlan;
use crate::stage::Ends;

/// What [`make`] knows.
pub const KINDS: [&str; 9] = ["bulk", "request", "voip", "web", "http3", "connect", "packets", "ping", "iperf3"];
/// How long connecting may take before anything is measured: three lost SYNs (RFC 6298: 1 + 2 + 4 seconds).
const CONNECT_PATIENCE: Duration = Duration::from_secs(8);

/// In which directions bytes go.
type Ways = &'static [Towards];
const UP: Ways = &[Towards::Server];
const DOWN: Ways = &[Towards::Client];
const BOTH: Ways = &[Towards::Server, Towards::Client];
/// And what options call them.
const WAYS: [(&str, Ways); 3] = [("up", UP), ("down", DOWN), ("both", BOTH)];

/// Where and how a workload runs. Plain data.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Where the client runs.
    pub client: Namespace,
    /// Where the server runs.
    pub server: Namespace,
    /// At which addresses they reach each other.
    pub ends: Ends,
    /// What reliable streams are made of.
    pub socket: Stack,
    /// Hosts whose own plain traffic may compete with the client's.
    pub bystanders: Vec<Beside>,
    /// How long to run.
    pub duration: Duration,
    /// Of whatever is random.
    pub seed: u64,
}

/// A host beside the client. Plain data.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What the scenario calls it.
    pub name: String,
    /// Where it runs.
    pub host: Namespace,
    /// At which addresses it and the server reach each other.
    pub ends: Ends,
}

/// Traffic, ready to run. Once; one owner.
pub trait Workload: Send {
    /// Sets up what takes time (listening, connecting) in both namespaces; nothing is measured yet.
    ///
    /// # Errors
    /// Where a socket or program cannot be had.
    fn prepare(&mut self, _ground: &Ground) -> Result<(), LabError> {
        Ok(())
    }

    /// Runs from `start` (now, or a little later) for the ground's duration, and returns what was found.
    /// Times in the findings are seconds after `start`.
    ///
    /// # Errors
    /// Where the traffic broke in a way that is no finding.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError>;
}

/// Step 1.
///
/// # Errors
/// [`LabError::Workload`] for a kind or an option that there is not, or a value that means nothing: with what exists.
pub fn make(plan: &WorkloadPlan) -> Result<Box<dyn Workload>, LabError> {
    let mut options = Options::of_workload(plan);
    let after = options.time("after")?;
    let workload: Box<dyn Workload> = match plan.kind.as_str() {
        "bulk" => Box::new(bulk::Bulk::parse(&mut options)?),
        "request" => Box::new(request::Request::parse(&mut options)?),
        "voip" => Box::new(voip::Voip::parse(&mut options)?),
        "web" => Box::new(web::Web::parse(&mut options)?),
        "http3" => Box::new(http3::Http3::parse(&mut options)?),
        "connect" => Box::new(connect::Connect::parse(&mut options)?),
        "packets" => Box::new(packets::Packets::parse(&mut options)?),
        "ping" => Box::new(ping::Ping::parse(after, &mut options)?),
        "iperf3" => Box::new(iperf3::Iperf3::parse(&mut options)?),
        other => return Err(options.fault(format!("no kind `{other}`; there are: {}", KINDS.join(", ")))),
    };
    let workload = beside::Accompanied::parse(workload, after, &mut options)?;
    options.finish()?;
    Ok(Box::new(workload))
}

/// How much of a workload's begin does not count.
///
/// # Errors
/// Where its option means nothing.
pub fn after(plan: &WorkloadPlan) -> Result<Duration, LabError> {
    Options::of_workload(plan).time("after").map(Option::unwrap_or_default)
}

impl Ground {
    /// How its streams are made.
    fn kind(&self, congestion: Congestion) -> Reliable {
        Reliable { stack: self.socket, congestion }
    }
}

impl Options {
    fn congestion(&mut self) -> Result<Congestion, LabError> {
        let all = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr].map(|each| (each.name(), each));
        self.choice("congestion", &all, Congestion::Cubic)
    }
}

/// A workload that is run without being prepared.
fn unprepared(kind: &str) -> LabError {
    LabError::Workload { workload: kind.to_owned(), fault: "it was not prepared".to_owned() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A plan with these options, in TOML.
    pub(crate) fn plan(kind: &str, options: &str) -> WorkloadPlan {
        let options = toml::from_str(options).expect("TOML");
        WorkloadPlan { kind: kind.to_owned(), name: "one".to_owned(), duration: Duration::from_secs(1), options }
    }

    #[test]
    fn every_kind_is_made_with_a_ping_beside_it_or_without() {
        for kind in KINDS {
            for options in
                ["", "ping = true", "ping = '20ms'", "ping = false", "load = 'down'\nping = true", "busy = true"]
            {
                assert!(make(&plan(kind, options)).is_ok(), "{kind} {options}");
            }
        }
    }

    #[test]
    fn an_unknown_kind_or_option_is_refused_with_what_exists() {
        let table = [
            ("bulky", "", "http3"),
            ("bulk", "streams = 2", "clients"),
            ("http3", "size = 2", "bytes"),
            ("voip", "codec = 'opus'", "g729a"),
            ("ping", "ping = 'soon'", "10ms"),
            ("voip", "load = 'round'", "both"),
            ("bulk", "busy = 2", "true | false"),
            ("bulk", "after = 5", "4s"),
            ("request", "answers = ['30kB', '0B']", "64kB"),
            ("connect", "request = '100B'", "say both"),
            ("request", "answers = ['30kB']\nanswer = '3kB'", "leave one of them out"),
        ];
        for (kind, options, exists) in table {
            let error = make(&plan(kind, options)).err().expect("it is refused").to_string();
            assert!(error.contains("one") && error.contains(exists), "{error}");
        }
    }
}
