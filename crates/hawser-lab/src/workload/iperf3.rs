//! iperf3, where a scenario asks for it: its figures under the names of bulk.
//!
//! 1. Its server runs in the server's namespace, for one test; its client for the workload's time.
//! 2. Each writes as JSON what it counted every half second (iperf3(1), option --json); what came is what the receiving
//!    one counted.
//! 3. One that does not end in time, as over a link that was cut, is told to: it writes then what it had counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hawser_wire::Namespace;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bulk::Bulk;
use super::{
    BOTH, Congestion, DOWN, Findings, Ground, LabError, Moment, Options, Ready, Stack, Towards, Ways, When, Workload,
    goodput,
};
use crate::cleanup::Folder;
use crate::process::Process;
use crate::wait::{listens, until};

const PROGRAM: &str = "iperf3";
/// Its own.
const PORT: u16 = 5201;
/// How long its server may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after its time it may take to end by itself.
const GRACE: Duration = Duration::from_millis(1500);
/// How often it is looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// Seconds of a reported interval, as lines have it.
const STEP_S: f64 = 0.5;
/// A shorter interval is what was left at the end: no step of a line.
const LEAST_S: f64 = 0.9 * STEP_S;

/// For the same as bulk.
pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
    let bulk = Bulk::alone(options)?;
    Ok(Box::new(move |ground| prepare(bulk, ground)))
}

fn prepare(bulk: Bulk, ground: Ground<'_>) -> Result<Ready<'_>, LabError> {
    look(ground.socket)?;
    let folder = Folder::new()?;
    let address = ground.ends.server.to_string();
    let mut server = start("server", ground.server, &["--server", "--one-off", "--bind", &address], &folder)?;
    let listening = until(PATIENCE, GLANCE, || {
        server.check()?;
        Ok(listens(ground.server, "tcp", PORT)?.then_some(()))
    })?;
    listening.ok_or_else(|| server.fault("it does not listen"))?;
    Ok(Box::new(move |when: When| {
        if client(&bulk, ground, &folder, when)? {
            // It ends behind the client; told to while it writes, it writes twice.
            until(GRACE, GLANCE, || server.ended())?;
        }
        drop(server);
        let [client, server] = ["client", "server"].map(|name| Report::read(name, &folder));
        findings(&client?, &server?, bulk.ways, bulk.congestion)
    }))
}

/// Runs the client to its end: whether it ended by itself.
fn client(bulk: &Bulk, ground: Ground<'_>, folder: &Folder, when: When) -> Result<bool, LabError> {
    let Bulk { ways, clients, congestion, .. } = bulk;
    let (server, clients) = (ground.ends.server.to_string(), clients.to_string());
    let seconds = when.duration.as_secs().max(1).to_string();
    let mut arguments = vec!["--client", &server, "--time", &seconds, "--parallel", &clients];
    arguments.extend(["--congestion", congestion.name()]);
    arguments.extend((*ways == DOWN).then_some("--reverse"));
    arguments.extend((*ways == BOTH).then_some("--bidir"));
    arguments.extend((ground.socket == Stack::Mptcp).then_some("--mptcp"));
    when.start.sleep_until();
    let mut process = start("client", ground.client, &arguments, folder)?;
    let ended = until(when.end() + GRACE - Moment::now(), GLANCE, || process.ended())?;
    // Step 3: dropped, it gets SIGTERM.
    Ok(ended.is_some())
}

/// Starts one of them, which writes NAME.json.
fn start(name: &str, at: &Namespace, arguments: &[&str], folder: &Folder) -> Result<Process, LabError> {
    let (port, interval) = (PORT.to_string(), STEP_S.to_string());
    let file = folder.path().join(format!("{name}.json"));
    let file = file.to_string_lossy();
    let all = [&["--port", &port, "--json", "--logfile", &file, "--interval", &interval], arguments].concat();
    Process::start(&format!("iperf3-{name}"), at, Path::new(PROGRAM), &all, folder)
}

/// That it is installed, and knows MPTCP where that is asked for.
fn look(socket: Stack) -> Result<(), LabError> {
    let missing = ["the program iperf3", "install the package iperf3"];
    let asked = Command::new(PROGRAM).arg("--help").output();
    let help = asked.map_err(|error| LabError::program("look for iperf3", error, missing))?;
    let text = [help.stdout, help.stderr].concat();
    if socket == Stack::Mptcp && !String::from_utf8_lossy(&text).contains("--mptcp") {
        let hint = "install iperf3 3.19 or later, or use workload bulk";
        return Err(LabError::missing("an iperf3 that makes MPTCP streams", hint));
    }
    Ok(())
}

/// One end's report. Plain data.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    end: Map<String, Value>,
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

impl Report {
    /// What one of them wrote.
    fn read(name: &str, folder: &Folder) -> Result<Self, LabError> {
        let text = fs::read_to_string(folder.path().join(format!("{name}.json")));
        Self::parse(&text.map_err(|error| LabError::system("read what iperf3 wrote", error))?)
    }

    fn parse(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| {
            let reason = format!("iperf3 wrote what is no report of it: {error}");
            LabError::refused("measure goodput", reason)
        })
    }

    /// That it had the congestion control that was asked for.
    fn check(&self, congestion: Congestion) -> Result<(), LabError> {
        let asked = congestion.name();
        let used = self.end.get("sender_tcp_congestion").and_then(Value::as_str).unwrap_or(asked);
        let reason = format!("iperf3 used {used}, not {asked}");
        if used == asked { Ok(()) } else { Err(LabError::refused("measure congestion control", reason)) }
    }

    /// Counts of one kind over time: what this end sent, or what it received.
    fn sums(&self, sender: bool) -> impl Iterator<Item = &Count> {
        let sums = self.intervals.iter().flat_map(|each| [Some(&each.sum), each.sum_bidir_reverse.as_ref()]);
        sums.flatten().filter(move |count| count.sender == sender)
    }

    /// Rates of what this end received.
    fn line(&self) -> Vec<f64> {
        self.sums(false).filter(|count| count.seconds >= LEAST_S).map(|count| mbps([count])).collect()
    }

    /// Of each stream that this end received, in the order of their start, as sockets are numbered.
    fn streams(&self) -> Vec<f64> {
        let mut streams: BTreeMap<i64, Vec<&Count>> = BTreeMap::new();
        for count in self.intervals.iter().flat_map(|interval| &interval.streams).filter(|count| !count.sender) {
            streams.entry(count.socket).or_default().push(count);
        }
        streams.into_values().map(mbps).collect()
    }
}

/// The mean rate of several counts, in Mbit/s.
fn mbps<'c>(counts: impl IntoIterator<Item = &'c Count>) -> f64 {
    let (bytes, seconds) =
        counts.into_iter().fold((0.0, 0.0), |(bytes, seconds), count| (bytes + count.bytes, seconds + count.seconds));
    if seconds > 0.0 { bytes * 8.0 / seconds / 1e6 } else { 0.0 }
}

/// Figures from what both ends wrote, under the names of bulk.
fn findings(client: &Report, server: &Report, ways: Ways, congestion: Congestion) -> Result<Findings, LabError> {
    client.check(congestion)?;
    server.check(congestion)?;
    let ends = |way: Towards| if way == Towards::Server { [server, client] } else { [client, server] };
    if ways.iter().all(|&way| ends(way)[0].intervals.is_empty()) {
        let said = client.error.as_ref().or(server.error.as_ref());
        let reason = said.cloned().unwrap_or_else(|| "iperf3 counted nothing".to_owned());
        return Err(LabError::refused("measure goodput", reason));
    }
    let mut found = Findings::default();
    let (mut total, mut again) = (0.0, 0.0);
    let (mut line, mut clients): (Vec<f64>, Vec<f64>) = Default::default();
    for &way in ways {
        let [receiver, sender] = ends(way);
        let (rate, rates) = (mbps(receiver.sums(false)), receiver.line());
        total += rate;
        again += sender.sums(true).map(|count| count.retransmits).sum::<f64>();
        line.resize(line.len().max(rates.len()), 0.0);
        line.iter_mut().zip(&rates).for_each(|(sum, rate)| *sum += rate);
        clients.extend(receiver.streams());
        if ways.len() > 1 {
            found.put(goodput(way), rate);
            found.put_line(goodput(way), STEP_S, rates);
        }
    }
    found.put("goodput_mbps", total);
    found.put_line("goodput_mbps", STEP_S, line);
    found.put("retransmissions", again);
    if clients.len() > ways.len() {
        found.put_jain(&clients);
        for (number, rate) in (1..).zip(&clients[..clients.len() / ways.len()]) {
            found.put(format!("client_{number}_mbps"), *rate);
        }
    }
    found.put("broken_flows", f64::from(client.error.is_some()));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_download_is_what_the_client_received_and_the_server_sent_again_with_the_congestion_control_asked_for() {
        let (client, server) = (report(false, CUBIC), report(true, CUBIC));
        let found = findings(&client, &server, DOWN, Congestion::Cubic).expect("figures");
        let figure = |name: &str| found.metrics[name];
        assert_eq!((figure("goodput_mbps"), figure("retransmissions")), (3.5, 4.0));
        assert_eq!((figure("client_1_mbps"), figure("client_2_mbps")), (1.5, 2.0));
        assert!((figure("jain") - 3.5 * 3.5 / (2.0 * 6.25)).abs() < 1e-9);
        assert_eq!(found.lines.len(), 1);
        assert_eq!((found.lines[0].step_s, &*found.lines[0].values), (0.5, &[3.0, 4.0][..]));
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
