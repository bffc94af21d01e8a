//! Bulk transfers: as much as goes, from or to the client or both at once, by one stream or several.
//!
//! 1. All streams are connected before anything is measured, those of competing hosts too.
//! 2. They run for the ground's time; meanwhile MPTCP's subflows are looked at: each must have the congestion control.
//! 3. A stream that breaks is a finding: its goodput so far, and a gap to the end.

use hawser_wire::WireError;
use hawser_wire::traffic::{ConnectedFlows, Flows, FlowsReport, RunningFlows, Timeline};

use super::subflows::check_congestion;
use super::{
    Congestion, DOWN, Findings, Ground, LabError, Moment, Options, Reliable, Span, Stack, Towards, WAYS, Ways, Workload,
};

/// Bulk transfers. Starts unconnected; one owner.
pub(super) struct Bulk {
    ways: Ways,
    clients: usize,
    congestion: Congestion,
    competitors: Vec<String>,
    /// The client's streams each way, and each competitor's.
    ready: Vec<(Towards, ConnectedFlows)>,
    competing: Vec<(String, ConnectedFlows)>,
}

impl Bulk {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        let ways = options.choice("direction", &WAYS, DOWN)?;
        let (clients, congestion) = (options.count("clients", 1, 1)?, options.congestion()?);
        Ok(Self { clients, congestion, competitors: options.names("competitors")?, ..Self::plain(ways) })
    }

    /// One stream of CUBIC.
    pub(super) fn plain(ways: Ways) -> Self {
        let (competitors, ready, competing) = (Vec::new(), Vec::new(), Vec::new());
        Self { ways, clients: 1, congestion: Congestion::Cubic, competitors, ready, competing }
    }

    /// Step 2, for MPTCP: a plain socket told when it was made.
    fn check_subflows(&self, ground: &Ground, ports: &[(Towards, u16)]) -> Result<(), LabError> {
        if ground.socket == Stack::Tcp {
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
        for &towards in self.ways {
            let own = Flows {
                client: ground.client.clone(),
                server: ground.server.clone(),
                destination: (ground.ends.server, 0).into(),
                kind: ground.kind(self.congestion),
                towards,
                count: self.clients,
            };
            self.ready.push((towards, own.connect()?));
            for name in &self.competitors {
                let beside = ground.bystanders.iter().find(|beside| beside.name == *name).ok_or_else(|| {
                    let fault = format!("no host `{name}` beside the client to compete with it");
                    LabError::Workload { workload: "bulk".to_owned(), fault }
                })?;
                let (client, destination) = (beside.host.clone(), (beside.ends.server, 0).into());
                let kind = Reliable { stack: Stack::Tcp, congestion: Congestion::Cubic };
                let flows = Flows { client, destination, kind, count: 1, ..own.clone() };
                self.competing.push((name.clone(), flows.connect()?));
            }
        }
        Ok(())
    }

    /// Steps 2 and 3.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let span = Span { start, duration: ground.duration };
        let ports: Vec<_> = self.ready.iter().map(|(towards, flows)| (*towards, flows.port())).collect();
        let begin = |flows: ConnectedFlows| flows.start(start, ground.duration);
        let (own, competing) = (each(self.ready.drain(..), begin)?, each(self.competing.drain(..), begin)?);
        (start + ground.duration / 2).sleep_until();
        let checked = self.check_subflows(ground, &ports);
        let (own, competing) = (each(own, RunningFlows::finish)?, each(competing, RunningFlows::finish)?);
        checked?;
        Ok(findings(&own, &competing, ground.socket, span))
    }
}

/// What comes of each, with whose it is.
fn each<W, A, B>(
    all: impl IntoIterator<Item = (W, A)>,
    then: impl Fn(A) -> Result<B, WireError>,
) -> Result<Vec<(W, B)>, LabError> {
    all.into_iter().map(|(whose, flows)| Ok((whose, then(flows)?))).collect()
}

fn findings(own: &[(Towards, FlowsReport)], competing: &[(String, FlowsReport)], stack: Stack, span: Span) -> Findings {
    let mut found = Findings::default();
    let mut all = Timeline::new(span.start);
    for (towards, report) in own {
        all.absorb(&report.all);
        if own.len() > 1 {
            let name = if *towards == Towards::Server { "goodput_up_mbps" } else { "goodput_down_mbps" };
            found.put_rate(name, &report.all, span);
        }
    }
    put_clients(&mut found, own, span);
    found.put_goodput(&all, span);
    let flows = || own.iter().flat_map(|(_, report)| &report.flows);
    let senders: Vec<_> = flows().filter_map(|flow| flow.sender).collect();
    let receivers: Vec<_> = flows().filter_map(|flow| flow.receiver).collect();
    found.put_streams(stack, &senders, &receivers);
    found.put("broken_flows", flows().filter(|flow| flow.broken.is_some()).count() as f64);
    let mbps = |got: &Timeline| got.mbps_between(span.start, span.end());
    let mut shares: Vec<f64> = flows().map(|flow| mbps(&flow.timeline)).collect();
    for (name, report) in competing {
        let rate = mbps(&report.all);
        *found.metrics.entry(format!("competitor_{name}_mbps")).or_default() += rate;
        shares.push(rate);
    }
    found.put_jain(&shares);
    found
}

/// A figure and a line for each of several clients: of both directions together.
fn put_clients(found: &mut Findings, own: &[(Towards, FlowsReport)], span: Span) {
    let clients = own.first().map_or(0, |(_, report)| report.flows.len());
    for client in (0..clients).filter(|_| clients > 1) {
        let mut all = Timeline::new(span.start);
        own.iter().for_each(|(_, report)| all.absorb(&report.flows[client].timeline));
        found.put_rate(&format!("client_{}_mbps", client + 1), &all, span);
    }
}
