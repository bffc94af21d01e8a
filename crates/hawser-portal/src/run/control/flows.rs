//! The largest flows, for whoever asks: the packet thread counts them only meanwhile.
//!
//! ```text
//!   off --ask--> counting, nothing told --report--> counting, and each question is answered at once
//!    ^                                                  |
//!    +------------- no question for 10 s ---------------+
//! ```
//!
//! 1. [`FlowDesk::ask`]: a question comes. 2. [`FlowDesk::tick`]: once a second the packet thread is to tell; after the
//!    last question it counts no more. 3. [`FlowDesk::take`]: it has told, and whoever waits is answered.

use std::time::{Duration, Instant};

use hawser_config::{Keyword, Transport};
use hawser_core::flows::{FlowId, FlowPath, FlowShare, FlowSnapshot, LargestFlows};
use hawser_core::units::ByteCount;
use tokio::sync::oneshot;

use super::reload::Places;
use crate::api::{FLOWS_SCHEMA, FlowPathStatus, FlowStatus, Flows};
use crate::run::messages::Command;
use crate::run::plan::SocketPlan;

/// The interval that rates are of.
const EVERY: Duration = Duration::from_secs(1);
/// After the last question flows are counted for so long: a few times what who watches waits between two.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Flows that are told.
pub const FLOWS_TOLD: usize = 64;

/// Answers questions about flows. At first nobody has asked; the control thread owns it.
#[derive(Debug, Default)]
pub struct FlowDesk {
    asked: Option<Instant>,
    told: Option<Instant>,
    last: Option<Flows>,
    waiting: Vec<oneshot::Sender<Flows>>,
}

impl FlowDesk {
    /// Step 1. The first answer takes a second, for until then there is nothing to tell.
    pub fn ask(&mut self, now: Instant, answer: oneshot::Sender<Flows>) -> Option<Command> {
        let begins = self.asked.replace(now).is_none();
        match &self.last {
            // Whoever asked may be gone.
            Some(flows) => drop(answer.send(flows.clone())),
            None => self.waiting.push(answer),
        }
        begins.then(|| {
            self.told = Some(now);
            Command::WatchFlows(true)
        })
    }

    /// Step 2.
    pub fn tick(&mut self, now: Instant) -> Option<Command> {
        let asked = self.asked?;
        if now.duration_since(asked) >= KEPT_FOR {
            *self = Self::default();
            return Some(Command::WatchFlows(false));
        }
        let due = self.told.is_none_or(|told| now.duration_since(told) >= EVERY);
        due.then(|| {
            self.told = Some(now);
            Command::Flows
        })
    }

    /// Step 3. What comes after the last question is of no use to the next.
    pub fn take(&mut self, flows: Flows) {
        if self.asked.is_none() {
            return;
        }
        for answer in self.waiting.drain(..) {
            let _ = answer.send(flows.clone());
        }
        self.last = Some(flows);
    }
}

/// The document, from what the core tells.
pub fn compose(places: &Places, plans: &[SocketPlan], told: &LargestFlows, now: hawser_core::units::Time) -> Flows {
    let interval_s = told.interval.as_secs_f64();
    let one = |flow: &FlowSnapshot| {
        let FlowId { peer, protocol, local, remote, ports } = flow.id;
        let per_second = |bytes: ByteCount| if interval_s > 0.0 { bytes.0 as f64 / interval_s } else { 0.0 };
        Some(FlowStatus {
            // A peer that went took its flows along.
            peer: places.peer(peer)?.name.to_string(),
            protocol: protocol_name(protocol),
            local_address: local,
            local_port: ports.map(|(local, _)| local),
            remote_address: remote,
            remote_port: ports.map(|(_, remote)| remote).filter(|_| !is_icmp(protocol)),
            rule: flow.treatment.and_then(|(rule, _)| Some(rule? + 1)),
            scheduler: flow.treatment.map(|(_, treatment)| treatment.scheduler.word().to_owned()),
            tx_bytes_per_s: per_second(flow.sent_lately),
            rx_bytes_per_s: per_second(flow.received_lately),
            tx_bytes: flow.sent.0,
            rx_bytes: flow.received.0,
            counted_s: now.since(flow.since).as_secs_f64(),
            paths: flow.shares.iter().flatten().filter_map(|share| path(plans, share)).collect(),
        })
    };
    Flows { schema: FLOWS_SCHEMA, interval_s, flows: told.flows.iter().filter_map(one).collect() }
}

fn path(plans: &[SocketPlan], share: &FlowShare) -> Option<FlowPathStatus> {
    let FlowPath { link, remote } = share.path;
    let plan = plans.iter().find(|plan| plan.id == link)?;
    let told = plan.carriage.transport() != Transport::Scion;
    Some(FlowPathStatus {
        name: plan.name.clone(),
        endpoint: told.then(|| remote.to_string()),
        tx_bytes: share.sent.0,
        rx_bytes: share.received.0,
    })
}

/// IANA's numbers of ICMP, TCP, UDP and ICMPv6.
fn protocol_name(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmpv6".to_owned(),
        other => other.to_string(),
    }
}

fn is_icmp(number: u8) -> bool {
    matches!(number, 1 | 58)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    fn flows(interval_s: f64) -> Flows {
        Flows { schema: FLOWS_SCHEMA, interval_s, flows: Vec::new() }
    }

    #[test]
    fn flows_are_counted_from_the_first_question_until_ten_seconds_after_the_last() {
        let (mut desk, start) = (FlowDesk::default(), Instant::now());
        let word = |command: Option<Command>| match command {
            None => "",
            Some(Command::WatchFlows(true)) => "count",
            Some(Command::WatchFlows(false)) => "stop",
            Some(Command::Flows) => "tell",
            Some(other) => panic!("{other:?}"),
        };
        let ask = |desk: &mut FlowDesk, millis| {
            let (answer, answered) = oneshot::channel();
            (word(desk.ask(at(start, millis), answer)), answered)
        };
        assert_eq!(word(desk.tick(start)), "", "nobody asked");
        let (first, mut answered) = ask(&mut desk, 100);
        assert_eq!((first, word(desk.tick(at(start, 900)))), ("count", ""));
        assert!(answered.try_recv().is_err(), "nothing is known yet");
        assert_eq!(word(desk.tick(at(start, 1_100))), "tell");
        desk.take(flows(1.0));
        assert_eq!(answered.try_recv(), Ok(flows(1.0)));
        let (again, mut answered) = ask(&mut desk, 1_200);
        assert_eq!((again, answered.try_recv()), ("", Ok(flows(1.0))), "at once");
        let table = [(2_000, ""), (2_100, "tell"), (2_300, ""), (11_100, "tell"), (11_200, "stop"), (30_000, "")];
        for (millis, expected) in table {
            assert_eq!(word(desk.tick(at(start, millis))), expected, "after {millis} ms");
        }
        // What was under way meanwhile answers no later question.
        desk.take(flows(9.0));
        let (anew, mut answered) = ask(&mut desk, 40_000);
        assert_eq!((anew, answered.try_recv().is_err()), ("count", true));
    }

    #[test]
    fn protocols_have_the_names_that_rules_use() {
        let names = [1, 6, 17, 58, 47].map(protocol_name);
        assert_eq!(names, ["icmp", "tcp", "udp", "icmpv6", "47"]);
    }
}
