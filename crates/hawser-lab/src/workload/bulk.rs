//! Bulk transfers: as much as goes, from or to the client or both at once, by one stream or several.
//!
//! 1. All streams are connected before anything is measured, those of competing hosts too.
//! 2. They run for the ground's time; meanwhile MPTCP's subflows are looked at: each must have the congestion control.
//! 3. A stream that breaks is a finding: its goodput so far, and a gap to the end.

use hawser_wire::traffic::{
    Congestion, ConnectedFlows, Flows, FlowsReport, Reliable, RunningFlows, Stack, StreamInfo, Timeline, Towards,
};
use hawser_wire::{Moment, Namespace};

use super::figures::{Span, jain};
use super::options::{Options, Ways};
use super::subflows::check_congestion;
use super::{Ground, Workload, stack};
use crate::contender::Transport;
use crate::error::LabError;
use crate::experiment::Findings;
use crate::stage::Ends;

/// Bulk transfers. Starts unconnected; one owner.
pub(super) struct Bulk {
    ways: Ways,
    clients: usize,
    congestion: Congestion,
    competitors: Vec<String>,
    ready: Vec<(Whose, ConnectedFlows)>,
}

/// Whose streams they are. Plain data.
#[derive(Clone, Debug)]
enum Whose {
    Client(Towards),
    Competitor(String),
}

impl Bulk {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            ways: options.ways(Ways::Down)?,
            clients: options.count("clients", 1, 1)?,
            congestion: options.congestion()?,
            competitors: options.names("competitors")?,
            ready: Vec::new(),
        })
    }

    /// One stream of CUBIC.
    pub(super) fn plain(ways: Ways) -> Self {
        let (competitors, ready) = (Vec::new(), Vec::new());
        Self { ways, clients: 1, congestion: Congestion::Cubic, competitors, ready }
    }

    fn connect(
        &self,
        ground: &Ground,
        host: &Namespace,
        ends: Ends,
        stack: Stack,
        towards: Towards,
    ) -> Result<ConnectedFlows, LabError> {
        let kind = Reliable { stack, congestion: self.congestion };
        let is_client = host.name() == ground.client.name();
        let flows = Flows {
            client: host.clone(),
            server: ground.server.clone(),
            destination: (ends.server, 0).into(),
            kind: if is_client { kind } else { Reliable { congestion: Congestion::Cubic, ..kind } },
            towards,
            count: if is_client { self.clients } else { 1 },
        };
        Ok(flows.connect()?)
    }

    /// Step 2, for MPTCP: a plain socket told when it was made.
    fn check_subflows(&self, ground: &Ground, ports: &[(Towards, u16)]) -> Result<(), LabError> {
        if ground.socket == Transport::Tcp {
            return Ok(());
        }
        ports.iter().try_for_each(|&(towards, port)| {
            let sender = if towards == Towards::Server { &ground.client } else { &ground.server };
            check_congestion(sender, port, self.congestion)
        })
    }
}

impl Workload for Bulk {
    /// Step 1.
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        for &towards in self.ways.all() {
            let flows = self.connect(ground, &ground.client, ground.ends, stack(ground.socket), towards)?;
            self.ready.push((Whose::Client(towards), flows));
            for name in &self.competitors {
                let beside = ground.bystanders.iter().find(|beside| beside.name == *name).ok_or_else(|| {
                    let fault = format!("no host `{name}` beside the client to compete with it");
                    LabError::Workload { workload: "bulk".to_owned(), fault }
                })?;
                let flows = self.connect(ground, &beside.host, beside.ends, Stack::Tcp, towards)?;
                self.ready.push((Whose::Competitor(name.clone()), flows));
            }
        }
        Ok(())
    }

    /// Steps 2 and 3.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let span = Span { start, duration: ground.duration };
        let mut ports = Vec::new();
        let mut running: Vec<(Whose, RunningFlows)> = Vec::new();
        for (whose, flows) in self.ready.drain(..) {
            if let Whose::Client(towards) = whose {
                ports.push((towards, flows.port()));
            }
            running.push((whose, flows.start(start, ground.duration)?));
        }
        span.sleep_to_middle();
        let checked = self.check_subflows(ground, &ports);
        let finish = |(whose, flows): (Whose, RunningFlows)| Ok((whose, flows.finish()?));
        let reports: Vec<(Whose, FlowsReport)> = running.into_iter().map(finish).collect::<Result<_, LabError>>()?;
        checked?;
        Ok(findings(&reports, ground.socket, span))
    }
}

fn findings(reports: &[(Whose, FlowsReport)], kind: Transport, span: Span) -> Findings {
    let mut found = Findings::default();
    let mut all = Timeline::new(span.start);
    let mut shares = Vec::new();
    let (mut senders, mut receivers): (Vec<StreamInfo>, Vec<StreamInfo>) = (Vec::new(), Vec::new());
    let mut broken = 0_u32;
    let ways = reports.iter().filter(|(whose, _)| matches!(whose, Whose::Client(_))).count();
    for (whose, report) in reports {
        let towards = match whose {
            Whose::Client(towards) => *towards,
            Whose::Competitor(name) => {
                let rate = report.all.mbps_between(span.start, span.end());
                *found.metrics.entry(format!("competitor_{name}_mbps")).or_default() += rate;
                shares.push(rate);
                continue;
            }
        };
        all.absorb(&report.all);
        if ways > 1 {
            let name = if towards == Towards::Server { "goodput_up_mbps" } else { "goodput_down_mbps" };
            found.put_rate(name, &report.all, span);
        }
        for flow in &report.flows {
            shares.push(flow.timeline.mbps_between(span.start, span.end()));
            senders.extend(flow.sender);
            receivers.extend(flow.receiver);
            broken += u32::from(flow.broken.is_some());
        }
    }
    put_clients(&mut found, reports, span);
    found.put_goodput(&all, span);
    found.put_streams(kind, &senders, &receivers);
    found.put("broken_flows", broken.into());
    if shares.len() > 1 {
        found.metrics.extend(jain(&shares).map(|index| ("jain".to_owned(), index)));
    }
    found
}

/// A figure and a line for each of several clients: of both directions together.
fn put_clients(found: &mut Findings, reports: &[(Whose, FlowsReport)], span: Span) {
    let ways: Vec<&FlowsReport> =
        reports.iter().filter(|(whose, _)| matches!(whose, Whose::Client(_))).map(|(_, report)| report).collect();
    let clients = ways.first().map_or(0, |report| report.flows.len());
    for client in 0..clients {
        let mut all = Timeline::new(span.start);
        ways.iter().for_each(|report| all.absorb(&report.flows[client].timeline));
        if clients > 1 {
            found.put_rate(&format!("client_{}_mbps", client + 1), &all, span);
        }
    }
}
