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
mod request;
mod voip;
mod web;

use std::time::Duration;

use hawser_wire::traffic::{Congestion, Reliable, Stack, Towards};
use hawser_wire::{Moment, Namespace};

pub(crate) use self::exchange::{accept, dial};
pub(crate) use self::figures::{jain, millis};
use crate::error::LabError;
use crate::experiment::Findings;
use crate::options::Options;
use crate::scenario::WorkloadPlan;
use crate::stage::{Bystander, Ends};

/// What [`make`] knows.
pub const KINDS: [&str; 9] = ["bulk", "request", "voip", "web", "http3", "connect", "packets", "ping", "iperf3"];
/// How long connecting may take before anything is measured: three lost SYNs (RFC 6298: 1 + 2 + 4 seconds).
const CONNECT_PATIENCE: Duration = Duration::from_secs(8);

/// In which directions bytes go.
pub(crate) type Ways = &'static [Towards];
pub(crate) const DOWN: Ways = &[Towards::Client];
pub(crate) const BOTH: Ways = &[Towards::Server, Towards::Client];
/// And what options call them.
const WAYS: [(&str, Ways); 3] = [("up", &[Towards::Server]), ("down", DOWN), ("both", BOTH)];

/// Between whom a workload runs. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'g> {
    /// Where the client runs.
    pub client: &'g Namespace,
    /// Where the server runs.
    pub server: &'g Namespace,
    /// At which addresses they reach each other.
    pub ends: Ends,
    /// What reliable streams are made of.
    pub socket: Stack,
    /// Hosts whose own plain traffic may compete with the client's.
    pub bystanders: &'g [Bystander],
}

/// When a workload runs. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// Its start: now, or a little later. Times in findings are seconds after it.
    pub start: Moment,
    /// How long it runs.
    pub duration: Duration,
    /// How much of its begin does not count.
    pub after: Duration,
}

impl When {
    fn end(self) -> Moment {
        self.start + self.duration
    }
}

/// Traffic, ready to run once: gives what was found, or an error where it broke in a way that is no finding.
pub type Ready<'g> = Box<dyn FnOnce(When) -> Result<Findings, LabError> + Send + 'g>;

/// Traffic, as a scenario plans it: sets up what takes time (listening, connecting) in both namespaces; nothing is
/// measured yet. It is an error where a socket or program cannot be had.
pub type Workload = Box<dyn FnOnce(Ground<'_>) -> Result<Ready<'_>, LabError>>;

/// Step 1.
///
/// # Errors
/// [`LabError::Refused`] for a kind or an option that there is not, or a value that means nothing: with what exists.
pub fn make(plan: &WorkloadPlan) -> Result<Workload, LabError> {
    let mut options = Options::of_workload(plan);
    // Who runs it asks for it: `after`, below.
    options.time("after")?;
    let workload = match plan.kind.as_str() {
        "bulk" => bulk::Bulk::parse(&mut options)?,
        "request" => request::Request::parse(&mut options)?,
        "voip" => voip::Voip::parse(&mut options)?,
        "web" => web::Web::parse(&mut options)?,
        "http3" => http3::parse(&mut options)?,
        "connect" => connect::parse(&mut options)?,
        "packets" => packets::parse(&mut options)?,
        "ping" => beside::ping(&mut options)?,
        "iperf3" => iperf3::parse(&mut options)?,
        other => return Err(options.fault(format!("no kind `{other}`; there are: {}", KINDS.join(", ")))),
    };
    let workload = beside::accompanied(workload, &mut options)?;
    options.finish()?;
    Ok(workload)
}

/// How much of a workload's begin does not count.
///
/// # Errors
/// Where its option means nothing.
pub fn after(plan: &WorkloadPlan) -> Result<Duration, LabError> {
    Options::of_workload(plan).time("after").map(Option::unwrap_or_default)
}

/// In which directions most goes, by a workload's options; both where they do not say.
pub(crate) fn ways(options: &toml::Table) -> Ways {
    // The load beside a workload moves more than it.
    let said = options.get("load").or(options.get("direction")).and_then(toml::Value::as_str);
    WAYS.iter().find(|(name, _)| said == Some(*name)).map_or(BOTH, |(_, ways)| *ways)
}

impl Ground<'_> {
    /// How its streams are made.
    fn kind(self, congestion: Congestion) -> Reliable {
        Reliable { stack: self.socket, congestion }
    }
}

impl Options {
    fn congestion(&mut self) -> Result<Congestion, LabError> {
        let all = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr].map(|each| (each.name(), each));
        self.choice("congestion", &all, Congestion::Cubic)
    }
}

/// What the goodput of a direction is called, where both are told apart.
const fn goodput(towards: Towards) -> &'static str {
    match towards {
        Towards::Server => "goodput_up_mbps",
        Towards::Client => "goodput_down_mbps",
    }
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
            ("bulk", "after = '5'", "4s"),
            ("bulk", "clients = 0", "at least 1"),
            ("voip", "rate = 5", "2M"),
            ("voip", "packet = -1", "64kB"),
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
