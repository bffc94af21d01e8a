//! Bulk transfers: as much as goes, from or to the client or both at once, by one stream or several.
//!
//! 1. All streams are connected before anything is measured, those of competing hosts too.
//! 2. They run for their time; meanwhile `ss` tells of MPTCP's subflows: each must have the congestion control.
//! 3. A stream that breaks is a finding: its goodput so far, and a gap to the end.

use hawser_wire::WireError;
use hawser_wire::traffic::{ConnectedFlows, Flows, FlowsReport, RunningFlows, Timeline};

use super::{
    Congestion, DOWN, Findings, Ground, LabError, Options, Ready, Reliable, Stack, Towards, WAYS, Ways, When, Workload,
    goodput,
};

pub(super) struct Bulk {
    pub(super) ways: Ways,
    pub(super) clients: usize,
    pub(super) congestion: Congestion,
    competitors: Vec<String>,
}

impl Bulk {
    pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
        let alone = Self::alone(options)?;
        let bulk = Self { competitors: options.names("competitors")?, ..alone };
        Ok(Box::new(move |ground| bulk.prepare(ground)))
    }

    /// Without hosts that compete.
    pub(super) fn alone(options: &mut Options) -> Result<Self, LabError> {
        let plain = Self::plain(options.choice("direction", &WAYS, DOWN)?);
        Ok(Self { clients: options.count("clients", 1, 1)?, congestion: options.congestion()?, ..plain })
    }

    /// One stream of CUBIC.
    pub(super) fn plain(ways: Ways) -> Self {
        Self { ways, clients: 1, congestion: Congestion::Cubic, competitors: Vec::new() }
    }

    /// Step 1; then steps 2 and 3.
    pub(super) fn prepare(self, ground: Ground<'_>) -> Result<Ready<'_>, LabError> {
        let (mut own, mut competing) = (Vec::new(), Vec::new());
        for &towards in self.ways {
            let flows = Flows {
                client: ground.client.clone(),
                server: ground.server.clone(),
                destination: (ground.ends.server, 0).into(),
                kind: ground.kind(self.congestion),
                towards,
                count: self.clients,
            };
            own.push((towards, flows.connect()?));
            for name in &self.competitors {
                let beside = ground.bystanders.iter().find(|beside| beside.name == *name).ok_or_else(|| {
                    let fault = format!("no host `{name}` beside the client to compete with it");
                    LabError::refused("plan workload bulk", fault)
                })?;
                let (client, destination) = (beside.host.clone(), (beside.ends.server, 0).into());
                let kind = Reliable { stack: Stack::Tcp, congestion: Congestion::Cubic };
                let flows = Flows { client, destination, kind, count: 1, ..flows.clone() };
                competing.push((name.clone(), flows.connect()?));
            }
        }
        Ok(Box::new(move |when: When| {
            let ports: Vec<_> = own.iter().map(|(towards, flows)| (*towards, flows.port())).collect();
            let begin = |flows: ConnectedFlows| flows.start(when.start, when.duration);
            let (own, competing) = (each(own, begin)?, each(competing, begin)?);
            (when.start + when.duration / 2).sleep_until();
            let checked = ports.iter().try_for_each(|&(towards, port)| self.check_subflows(ground, towards, port));
            let (own, competing) = (each(own, RunningFlows::finish)?, each(competing, RunningFlows::finish)?);
            checked?;
            Ok(findings(&own, &competing, ground.socket, when))
        }))
    }

    /// Step 2: all established connections of a server's port, looked at from the sender. A plain socket told when it
    /// was made.
    fn check_subflows(&self, ground: Ground<'_>, towards: Towards, port: u16) -> Result<(), LabError> {
        if ground.socket == Stack::Tcp {
            return Ok(());
        }
        let sender = if towards == Towards::Server { ground.client } else { ground.server };
        let filter = format!("( sport = :{port} or dport = :{port} )");
        let arguments = ["--no-header", "--oneline", "--tcp", "--info", "--numeric", "state", "established", &filter];
        let missing = ["the program ss", "install the package iproute2"];
        let asked = sender.command("ss").args(arguments).output();
        let output = asked.map_err(|error| LabError::program("ask ss for subflows", error, missing))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let Some(line) = stranger(&said, self.congestion) else { return Ok(()) };
        let reason = format!("a subflow has another than {}: {line}", self.congestion.name());
        Err(LabError::refused("measure congestion control", reason))
    }
}

/// The line of a connection with another congestion control.
fn stranger(said: &str, congestion: Congestion) -> Option<&str> {
    said.lines().find(|line| !line.split_whitespace().any(|word| word == congestion.name()))
}

/// What comes of each, with whose it is.
fn each<W, A, B>(all: Vec<(W, A)>, then: impl Fn(A) -> Result<B, WireError>) -> Result<Vec<(W, B)>, LabError> {
    all.into_iter().map(|(whose, flows)| Ok((whose, then(flows)?))).collect()
}

fn findings(own: &[(Towards, FlowsReport)], competing: &[(String, FlowsReport)], stack: Stack, when: When) -> Findings {
    let mut found = Findings::default();
    let mut all = Timeline::new(when.start);
    for (towards, report) in own {
        all.absorb(&report.all);
        if own.len() > 1 {
            found.put_rate(goodput(*towards), &report.all, when);
        }
    }
    put_clients(&mut found, own, when);
    found.put_goodput(&all, when);
    let flows = || own.iter().flat_map(|(_, report)| &report.flows);
    let senders: Vec<_> = flows().filter_map(|flow| flow.sender).collect();
    let receivers: Vec<_> = flows().filter_map(|flow| flow.receiver).collect();
    found.put_streams(stack, &senders, &receivers);
    found.put("broken_flows", flows().filter(|flow| flow.broken.is_some()).count() as f64);
    let mbps = |got: &Timeline| got.mbps_between(when.start, when.end());
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
fn put_clients(found: &mut Findings, own: &[(Towards, FlowsReport)], when: When) {
    let clients = own.first().map_or(0, |(_, report)| report.flows.len());
    for client in (0..clients).filter(|_| clients > 1) {
        let mut all = Timeline::new(when.start);
        own.iter().for_each(|(_, report)| all.absorb(&report.flows[client].timeline));
        found.put_rate(&format!("client_{}_mbps", client + 1), &all, when);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_with_another_congestion_control_is_found() {
        let cubic = "0 0 10.0.0.1:5 10.0.0.2:6 tcp-ulp-mptcp flags:Mmec cubic wscale:7,7 rto:204";
        let bbr = "0 0 10.0.1.1:5 10.0.0.2:6 tcp-ulp-mptcp flags:Jjec bbr wscale:7,7 bbr:(bw:1Mbps)";
        let both = format!("{cubic}\n{bbr}\n");
        assert_eq!(stranger(cubic, Congestion::Cubic), None);
        assert_eq!(stranger(&both, Congestion::Cubic), Some(bbr));
        assert_eq!(stranger(&both, Congestion::Bbr), Some(cubic));
        assert_eq!(stranger("", Congestion::Bbr), None, "a stream that is over has no connections");
    }
}
