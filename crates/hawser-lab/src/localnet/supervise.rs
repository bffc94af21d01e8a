//! What keeps a network after `hawser scion net up` has returned, and how it is asked.
//!
//! ```text
//!             up: starts                       whole
//!   (nothing) ─────────► starting ──────► started ──────► ready
//!       ▲                   │ fails          │ down, SIGTERM │
//!       └───────────────────┴────────────────┴───────────────┘
//! ```
//!
//! 1. `up` runs this executable once more, in the background, and reads from its standard output how far it is.
//! 2. [`keep`] listens at an abstract socket that bears the network's name: nobody else can, and it goes with its
//!    process.
//! 3. The network is started, and told; it is waited for, and told.
//! 4. Until `up` has said that it wants to go on, its end is the network's: Ctrl-C leaves nothing.
//! 5. Then whoever is root may [`ask`]: one line, one answer, both in JSON. `down` ends the process as SIGTERM does:
//!    `cleanup` removes everything, and the socket closes when that is done.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{Localnet, NetLink, PATIENCE, Status, Topology};
use crate::error::LabError;
use crate::text::told;

/// What the names of the sockets begin with; the network's follows.
const PREFIX: &str = "hawser/scion/";
/// Where the system lists them; an abstract one is written with this mark. Source: proc_net(5), unix.
const SOCKETS: &str = "/proc/net/unix";
const ABSTRACT: char = '@';
/// How long someone who asks may take to say what, and how long an answer may take.
const ASKING: Duration = Duration::from_secs(1);
const ANSWERING: Duration = Duration::from_secs(30);
/// What `up` says when it has seen enough.
const GO_ON: u8 = b'.';

/// How far a network is, as `up` reads it, a line of JSON each: its processes run (none), it was whole after this many
/// seconds, or it ends, or will never be whole.
type Progress = Result<Option<f64>, String>;
/// What a running network answers, in JSON: its status, where that was asked for, or why it could not.
type Answer = Result<Option<Status>, String>;

/// What a running network can be told. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Tell how it is.
    Status,
    /// End.
    Down,
    /// Take this link down.
    Cut(String),
    /// Bring this link back.
    Restore(String),
}

/// Steps 2 to 5, for the process in the background: returns only where the network could not be started.
///
/// # Errors
/// As [`Localnet::start`]; and where there is a network of this name already.
pub fn keep(topology: &Topology, services: &Path) -> Result<(), LabError> {
    let listener = listen(&topology.name)?;
    thread::spawn(heed_up);
    let localnet = Localnet::start(topology, services)?;
    say(&Ok(None));
    let whole: OnceLock<Progress> = OnceLock::new();
    let wait = || match localnet.wait_ready(PATIENCE) {
        Ok(time) => Ok(Some(time.as_secs_f64())),
        Err(error) => Err(error.to_string()),
    };
    thread::scope(|scope| {
        scope.spawn(|| say(whole.get_or_init(wait)));
        for stream in listener.incoming().flatten() {
            if let Err(error) = serve(&stream, &localnet, whole.get()) {
                tracing::debug!(%error, "answer");
            }
        }
    });
    Ok(())
}

/// Step 2.
fn listen(name: &str) -> Result<UnixListener, LabError> {
    let listening = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            LabError::Network { network: name.to_owned(), fault: "it is up already".to_owned() }
        }
        _ => LabError::system(format!("listen for network {name}"), error),
    };
    let address = SocketAddr::from_abstract_name(format!("{PREFIX}{name}")).map_err(listening)?;
    UnixListener::bind_addr(&address).map_err(listening)
}

/// Steps 1 and 3: where `up` has gone, nobody wants to know.
fn say(progress: &Progress) {
    let line = serde_json::to_string(progress).unwrap_or_default();
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Step 4: as long as `up` has not said that it goes on, its end is the network's.
fn heed_up() {
    let mut byte = [0];
    match io::stdin().read(&mut byte) {
        Ok(1) if byte[0] == GO_ON => {}
        _ => end(),
    }
}

/// As SIGTERM from outside: `cleanup` removes everything, and exits.
fn end() {
    // Fails only where there is no such process, and this is it.
    let _ = kill_process(getpid(), Signal::TERM);
}

/// Step 5, for one who asks.
fn serve(mut stream: &UnixStream, localnet: &Localnet, whole: Option<&Progress>) -> io::Result<()> {
    stream.set_read_timeout(Some(ASKING))?;
    stream.set_write_timeout(Some(ASKING))?;
    if !socket_peercred(stream)?.uid.is_root() {
        return write_line(stream, &Answer::Err("this needs root".to_owned()));
    }
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    // Whoever asks knows which network it is.
    let fault = |error: LabError| if let LabError::Network { fault, .. } = error { fault } else { error.to_string() };
    let answer: Answer = match serde_json::from_str(&line) {
        Ok(Order::Down) => {
            end();
            // Closed when the process has ended.
            stream.set_read_timeout(None)?;
            return stream.read_to_end(&mut Vec::new()).map(drop);
        }
        Ok(Order::Status) => Ok(Some(match whole.cloned() {
            None => localnet.status(),
            Some(Ok(ready_s)) => Status { ready_s, ..localnet.status() },
            Some(Err(fault)) => Status { fault: Some(fault), ..localnet.status() },
        })),
        Ok(Order::Cut(link)) => localnet.link(&link).and_then(NetLink::cut).map(|()| None).map_err(fault),
        Ok(Order::Restore(link)) => localnet.link(&link).and_then(NetLink::restore).map(|()| None).map_err(fault),
        Err(error) => Err(format!("\"{}\" is no order: {error}", line.trim_end())),
    };
    write_line(stream, &answer)
}

/// Step 5: an order, or an answer.
fn write_line(mut stream: &UnixStream, said: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(stream, said)?;
    stream.write_all(b"\n")
}

/// The networks that run on this machine, by name.
///
/// # Errors
/// Where the system does not list its sockets.
pub fn running() -> Result<Vec<String>, LabError> {
    let text = std::fs::read_to_string(SOCKETS).map_err(|error| LabError::system("list sockets", error))?;
    let name = |line: &str| Some(line.split_once(ABSTRACT)?.1.strip_prefix(PREFIX)?.to_owned());
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    names.sort_unstable();
    // Each connection to it is listed, too.
    names.dedup();
    Ok(names)
}

/// Tells a running network something; gives its status, where that was the order.
///
/// # Errors
/// Where there is none of this name, it does not answer, or it cannot do what it was told.
pub fn ask(name: &str, order: &Order) -> Result<Option<Status>, LabError> {
    let fault = |fault: String| LabError::Network { network: name.to_owned(), fault };
    let not_up = || fault("it is not up".to_owned());
    let asking = |error: io::Error| match error.kind() {
        // A process that ends resets what it has not read.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => not_up(),
        _ => LabError::system(format!("ask network {name}"), error),
    };
    let address = SocketAddr::from_abstract_name(format!("{PREFIX}{name}")).map_err(asking)?;
    let mut stream = UnixStream::connect_addr(&address).map_err(asking)?;
    stream.set_read_timeout(Some(ANSWERING)).map_err(asking)?;
    let mut text = String::new();
    let answered = write_line(&stream, order).and_then(|()| stream.read_to_string(&mut text)).map_err(asking);
    match answered {
        // As it was told.
        Ok(0) | Err(LabError::Network { .. }) if *order == Order::Down => Ok(None),
        Ok(0) => Err(not_up()),
        Ok(_) => serde_json::from_str::<Answer>(&text).map_err(|error| asking(error.into()))?.map_err(fault),
        Err(error) => Err(error),
    }
}

/// Step 1: runs a command whose process will call [`keep`], and waits until the network is whole, or only until its
/// processes run; then it goes on alone. `None`: it was not waited for.
///
/// # Errors
/// What it failed of; then it has ended, and left nothing.
pub fn bring_up(command: Command, whole: bool) -> Result<Option<f64>, LabError> {
    let mut child = start(command).map_err(|error| LabError::system("start what keeps the network", error))?;
    let failed = |said: String| LabError::Refused { action: "bring the network up".to_owned(), said };
    let output = child.stdout.take().ok_or_else(|| failed("it says nothing".to_owned()))?;
    let read = |line: io::Result<String>| -> io::Result<Progress> { Ok(serde_json::from_str(&line?)?) };
    let mut lines = BufReader::new(output).lines().map(read);
    let found = match lines.find(|progress| !(whole && matches!(progress, Ok(Ok(None))))) {
        Some(Ok(progress)) => progress.map_err(failed),
        Some(Err(error)) => Err(LabError::system("hear from what keeps the network", error)),
        None => Err(failed("it has ended".to_owned())),
    };
    let input = child.stdin.take();
    if found.is_ok() {
        let told = input.map_or(Ok(()), |mut input| input.write_all(&[GO_ON]));
        told.map_err(|error| LabError::system("leave the network to itself", error))?;
    } else {
        // Without a word from here it removes everything, and ends.
        drop(input);
        child.wait().map_err(|error| LabError::system("wait for what kept the network", error))?;
    }
    found
}

/// Signals that would end this process are handed on to the one that it starts.
fn start(mut command: Command) -> io::Result<Child> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    thread::spawn(move || {
        for _ in signals.forever() {
            // Fails only where it has ended; its end is waited for.
            let _ = kill_process(pid, Signal::TERM);
        }
    });
    Ok(child)
}

/// What [`keep`] failed of, for `up`; nothing is left.
pub fn tell_failure(error: &LabError) {
    say(&Err(told(error)));
}
