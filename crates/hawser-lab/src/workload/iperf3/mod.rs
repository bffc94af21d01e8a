//! iperf3, where a scenario asks for it: its figures under the names of bulk.
//!
//! 1. Its server runs in the server's namespace, for one test; its client for the ground's time.
//! 2. Each writes as JSON what it counted every half second; what came is what the receiving one counted.
//! 3. One that does not end in time, as over a link that was cut, is told to: it writes then what it had counted.

mod report;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use hawser_wire::Namespace;

use self::report::Report;
use super::{BOTH, Congestion, DOWN, Findings, Ground, LabError, Moment, Options, Span, Stack, WAYS, Ways, Workload};
use crate::cleanup::{Folder, making};
use crate::process::Process;
use crate::wait::until;

const PROGRAM: &str = "iperf3";
/// Its own.
const PORT: u16 = 5201;
/// A listening socket in /proc/net/tcp. Source: linux/net/tcp_states.h.
const LISTENING: &str = "0A";
/// How often it reports, as lines have it.
const INTERVAL: &str = "0.5";
/// How long its server may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after its time it may take to end by itself.
const GRACE: Duration = Duration::from_millis(1500);
/// How often it is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// iperf3. Starts without a server; one owner.
pub(super) struct Iperf3 {
    ways: Ways,
    clients: usize,
    congestion: Congestion,
    ready: Option<(Process, Folder)>,
}

impl Iperf3 {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            ways: options.choice("direction", &WAYS, DOWN)?,
            clients: options.count("clients", 1, 1)?,
            congestion: options.congestion()?,
            ready: None,
        })
    }

    /// Runs the client to its end.
    fn client(&self, ground: &Ground, folder: &Folder, span: Span) -> Result<(), LabError> {
        let (server, clients) = (ground.ends.server.to_string(), self.clients.to_string());
        let seconds = ground.duration.as_secs().max(1).to_string();
        let mut arguments = vec!["--client", &server, "--time", &seconds, "--parallel", &clients];
        arguments.extend(["--congestion", self.congestion.name()]);
        arguments.extend((self.ways == DOWN).then_some("--reverse"));
        arguments.extend((self.ways == BOTH).then_some("--bidir"));
        arguments.extend((ground.socket == Stack::Mptcp).then_some("--mptcp"));
        span.start.sleep_until();
        let mut process = start("client", &ground.client, &arguments, folder)?;
        while process.ended()?.is_none() && Moment::now() < span.end() + GRACE {
            sleep(GLANCE);
        }
        // Step 3: dropped, it gets SIGTERM.
        Ok(())
    }
}

/// Starts one of them, which writes NAME.json.
fn start(name: &str, at: &Namespace, arguments: &[&str], folder: &Folder) -> Result<Process, LabError> {
    let (file, port) = (folder.path().join(format!("{name}.json")), PORT.to_string());
    let file = file.to_string_lossy();
    let all = [&["--port", &port, "--json", "--logfile", &file, "--interval", INTERVAL], arguments].concat();
    let _making = making();
    Process::start(&format!("iperf3-{name}"), at, Path::new(PROGRAM), &all, folder)
}

/// What one of them wrote.
fn read(name: &str, folder: &Folder) -> Result<Report, LabError> {
    let text = fs::read_to_string(folder.path().join(format!("{name}.json")));
    Report::parse(&text.map_err(|error| LabError::system("read what iperf3 wrote", error))?)
}

/// Whether somebody listens at its port.
fn is_listening(at: &Namespace) -> Result<bool, LabError> {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let tables = at.run(|| [read("tcp"), read("tcp6")].concat())?;
    let port = format!(":{PORT:04X}");
    Ok(tables.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some(LISTENING)
    }))
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

impl Workload for Iperf3 {
    /// Step 1.
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        look(ground.socket)?;
        let folder = Folder::new()?;
        let address = ground.ends.server.to_string();
        let mut server = start("server", &ground.server, &["--server", "--one-off", "--bind", &address], &folder)?;
        let listens = until(PATIENCE, GLANCE, || {
            server.check()?;
            Ok(is_listening(&ground.server)?.then_some(()))
        })?;
        listens.ok_or_else(|| server.fault("it does not listen"))?;
        self.ready = Some((server, folder));
        Ok(())
    }

    /// Steps 1 to 3.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let (server, folder) = self.ready.take().ok_or_else(|| super::unprepared("iperf3"))?;
        let span = Span { start, duration: ground.duration };
        let ran = self.client(ground, &folder, span);
        // The server has ended with the client, or is told to now.
        drop(server);
        ran?;
        let (client, server) = (read("client", &folder)?, read("server", &folder)?);
        report::findings(&client, &server, self.ways, self.congestion)
    }
}
