//! What iperf3 wrote, as JSON: iperf3(1), option --json.

use serde::Deserialize;

use super::{Congestion, Findings, LabError, Ways};
use crate::workload::Towards;

/// Seconds of a reported interval, as it was asked for.
const STEP_S: f64 = 0.5;
/// A shorter interval is what was left at the end: no step of a line.
const LEAST_S: f64 = 0.9 * STEP_S;

/// One end's report. Plain data.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    end: End,
    /// What went wrong, where something did.
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Interval {
    streams: Vec<Count>,
    sum: Count,
    sum_bidir_reverse: Option<Count>,
}

/// Bytes of an interval, sent or received.
#[derive(Debug, Deserialize)]
struct Count {
    #[serde(default)]
    socket: i64,
    seconds: f64,
    bytes: f64,
    #[serde(default)]
    retransmits: f64,
    sender: bool,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    sender_tcp_congestion: Option<String>,
}

impl Report {
    pub(super) fn parse(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| {
            let reason = format!("iperf3 wrote what is no report of it: {error}");
            LabError::NoFigure { figure: "goodput", reason }
        })
    }

    /// That it had the congestion control that was asked for.
    fn check(&self, congestion: Congestion) -> Result<(), LabError> {
        let other = self.end.sender_tcp_congestion.as_ref().filter(|name| *name != congestion.name());
        other.map_or(Ok(()), |other| {
            let reason = format!("iperf3 used {other}, not {}", congestion.name());
            Err(LabError::NoFigure { figure: "congestion control", reason })
        })
    }

    /// Counts of one kind over time: what this end sent, or what it received.
    fn sums(&self, sender: bool) -> impl Iterator<Item = &Count> {
        let sums = self.intervals.iter().flat_map(|each| [Some(&each.sum), each.sum_bidir_reverse.as_ref()]);
        sums.flatten().filter(move |count| count.sender == sender)
    }

    /// Rates of what this end received, in Mbit/s.
    fn line(&self) -> Vec<f64> {
        let whole = self.sums(false).filter(|count| count.seconds >= LEAST_S);
        whole.map(|count| mbps(count.bytes, count.seconds)).collect()
    }

    fn goodput(&self) -> f64 {
        let (bytes, seconds) =
            self.sums(false).fold((0.0, 0.0), |(bytes, seconds), count| (bytes + count.bytes, seconds + count.seconds));
        mbps(bytes, seconds)
    }

    /// Of each stream that this end received, in the order of their start.
    fn streams(&self) -> Vec<f64> {
        let mut streams: Vec<(i64, f64, f64)> = Vec::new();
        let all = self.intervals.iter().flat_map(|interval| &interval.streams).filter(|count| !count.sender);
        for count in all {
            match streams.iter_mut().find(|(socket, ..)| *socket == count.socket) {
                Some((_, bytes, seconds)) => (*bytes, *seconds) = (*bytes + count.bytes, *seconds + count.seconds),
                None => streams.push((count.socket, count.bytes, count.seconds)),
            }
        }
        streams.into_iter().map(|(_, bytes, seconds)| mbps(bytes, seconds)).collect()
    }
}

fn mbps(bytes: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes * 8.0 / seconds / 1e6 } else { 0.0 }
}

/// Figures from what both ends wrote, under the names of bulk.
pub(super) fn findings(
    client: &Report,
    server: &Report,
    ways: Ways,
    congestion: Congestion,
) -> Result<Findings, LabError> {
    [client, server].into_iter().try_for_each(|report| report.check(congestion))?;
    let ends = |way: &Towards| match way {
        Towards::Server => ("goodput_up_mbps", server, client),
        Towards::Client => ("goodput_down_mbps", client, server),
    };
    let receivers: Vec<(&str, &Report, &Report)> = ways.iter().map(ends).collect();
    if receivers.iter().all(|(_, receiver, _)| receiver.intervals.is_empty()) {
        let said = client.error.as_ref().or(server.error.as_ref());
        let reason = said.cloned().unwrap_or_else(|| "iperf3 counted nothing".to_owned());
        return Err(LabError::NoFigure { figure: "goodput", reason });
    }
    let mut found = Findings::default();
    let mut sum: Vec<f64> = Vec::new();
    for (name, receiver, _) in &receivers {
        let line = receiver.line();
        sum = (0..sum.len().max(line.len())).map(|i| at(&sum, i) + at(&line, i)).collect();
        if receivers.len() > 1 {
            found.put(*name, receiver.goodput());
            found.put_line(*name, STEP_S, line);
        }
    }
    found.put("goodput_mbps", receivers.iter().map(|(_, receiver, _)| receiver.goodput()).sum());
    found.put_line("goodput_mbps", STEP_S, sum);
    let sent = receivers.iter().flat_map(|(.., sender)| sender.sums(true));
    found.put("retransmissions", sent.map(|count| count.retransmits).sum());
    let clients: Vec<f64> = receivers.iter().flat_map(|(_, receiver, _)| receiver.streams()).collect();
    if clients.len() > receivers.len() {
        found.put_jain(&clients);
        for (number, rate) in (1..).zip(clients.iter().take(clients.len() / receivers.len())) {
            found.put(format!("client_{number}_mbps"), *rate);
        }
    }
    found.put("broken_flows", f64::from(client.error.is_some()));
    Ok(found)
}

fn at(values: &[f64], index: usize) -> f64 {
    values.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::DOWN;

    fn count(socket: i64, bytes: u64, sender: bool) -> String {
        format!(r#"{{"socket":{socket},"seconds":0.5,"bytes":{bytes},"retransmits":2,"sender":{sender}}}"#)
    }

    /// Two intervals of two streams each.
    fn report(sender: bool, end: &str) -> Report {
        let interval = |first: u64, second: u64| {
            let (a, b) = (count(5, first, sender), count(7, second, sender));
            let sum = count(0, first + second, sender);
            format!(r#"{{"streams":[{a},{b}],"sum":{sum}}}"#)
        };
        let (one, two) = (interval(62_500, 125_000), interval(125_000, 125_000));
        Report::parse(&format!(r#"{{"start":{{}},"intervals":[{one},{two}],{end}}}"#)).expect("a report")
    }

    const CUBIC: &str = r#""end":{"sender_tcp_congestion":"cubic"}"#;

    #[test]
    fn a_download_is_what_the_client_received_and_the_server_sent_again() {
        let (client, server) = (report(false, CUBIC), report(true, CUBIC));
        let found = findings(&client, &server, DOWN, Congestion::Cubic).expect("figures");
        let figure = |name: &str| found.metrics[name];
        assert_eq!((figure("goodput_mbps"), figure("retransmissions")), (3.5, 4.0));
        assert_eq!((figure("client_1_mbps"), figure("client_2_mbps")), (1.5, 2.0));
        assert!((figure("jain") - 3.5 * 3.5 / (2.0 * 6.25)).abs() < 1e-9);
        assert_eq!(found.lines.len(), 1);
        assert_eq!((found.lines[0].step_s, &*found.lines[0].values), (0.5, &[3.0, 4.0][..]));
    }

    #[test]
    fn another_congestion_control_than_asked_for_is_an_error() {
        let (client, server) = (report(false, CUBIC), report(true, CUBIC));
        let error = findings(&client, &server, DOWN, Congestion::Bbr).expect_err("it is cubic").to_string();
        assert!(error.contains("cubic") && error.contains("bbr"), "{error}");
    }

    #[test]
    fn one_that_was_interrupted_has_what_it_had_counted_and_one_that_never_ran_says_why() {
        let broken = r#""end":{},"error":"interrupt - the client has terminated""#;
        let (client, server) = (report(false, broken), report(true, broken));
        let found = findings(&client, &server, DOWN, Congestion::Cubic).expect("figures");
        assert_eq!((found.metrics["goodput_mbps"], found.metrics["broken_flows"]), (3.5, 1.0));
        let dead = || Report::parse(r#"{"intervals":[],"end":{},"error":"no route to host"}"#).expect("a report");
        let error = findings(&dead(), &dead(), DOWN, Congestion::Cubic).expect_err("nothing").to_string();
        assert!(error.contains("no route to host"), "{error}");
        assert!(Report::parse("iperf3: error").is_err());
    }
}
