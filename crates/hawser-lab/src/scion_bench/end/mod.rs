//! Hawser's own ends: what `hawser scion blast` does. They are told what the programs over snet are told, in the same
//! words.
//!
//! 1. [`Task::run`] opens a connection or socket for each port, and says `ready`.
//! 2. `packets`: of one size, as fast as it goes or at a rate. `file`: over QUIC, a piece for each connection; `bulk`:
//!    over the bulk protocol; `stream`: over TCP, where a tunnel is what is measured.
//! 3. At the end a line of JSON says what was done and what it cost ([`Count`]).

mod bulk;
mod file;
mod packets;
mod stream;

use std::net::SocketAddr;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, Subcommand};
use hawser_scion::conn::{ConnOpts, PathTable, PortRange};
use hawser_scion::{Dataplane, EndpointAddr, Fingerprint, Path};
use hawser_wire::traffic::ProcessUsage;

use super::figures::Count;
use crate::error::LabError;

/// What an end does. Plain data.
#[derive(Debug, Clone, Subcommand)]
pub enum Task {
    /// Send packets of one size
    Send(Order),
    /// Count packets until SIGTERM
    Receive(Order),
    /// Send a file over QUIC
    SendFile(Order),
    /// Write a file that comes over QUIC
    ReceiveFile(Order),
    /// Send a file over the bulk protocol
    SendBulk(Order),
    /// Take a file that comes over the bulk protocol
    ReceiveBulk(Order),
    /// Send a file over TCP; ISD-ASes are passed over
    SendStream(Order),
    /// Write a file that comes over TCP
    ReceiveStream(Order),
}

/// What an end is told. Plain data.
#[derive(Debug, Clone, Args)]
pub struct Order {
    /// This end; connection i takes its port plus i
    #[arg(long, value_name = "ISD-AS,HOST:PORT")]
    local: EndpointAddr,
    /// The other end, in the same way
    #[arg(long, value_name = "ISD-AS,HOST:PORT")]
    remote: Option<EndpointAddr>,
    /// How many connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u16,
    /// How long to send
    #[arg(long, value_name = "TIMEms", value_parser = milliseconds, default_value = "5000ms")]
    duration: Duration,
    /// Bytes of payload in a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1200)]
    payload: usize,
    /// Packets a second over all connections [default: as fast as it goes]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Send and receive packets one by one: no UDP GSO and GRO
    #[arg(long)]
    no_trains: bool,
    /// The file to send or to write
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Bytes of the file to write
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    size: u64,
    /// First port that packets come to directly
    #[arg(long, value_name = "PORT", default_value_t = 31_000)]
    first_port: u16,
    /// Last port that packets come to directly
    #[arg(long, value_name = "PORT", default_value_t = 32_767)]
    last_port: u16,
    /// The path as it stands in a packet; none inside an AS
    #[arg(long, value_name = "HEX", value_parser = hex)]
    path: Option<std::vec::Vec<u8>>,
    /// This end's border router; none inside an AS
    #[arg(long, value_name = "HOST:PORT")]
    next_hop: Option<SocketAddr>,
    /// Bytes that a packet may have on the path, from its SCION header on [default: those of an AS with Ethernet]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
}

/// Bytes of a packet from its SCION header to its payload, without a path: common header 12, addresses 24, UDP 8.
/// Source: scion-header.rst.
pub(super) const HEADER: usize = 12 + 24 + 8;
/// How long a path that was told is taken to last: longer than any run.
const LIFETIME: Duration = Duration::from_secs(3600);

impl Task {
    /// Steps 1 to 3.
    ///
    /// # Errors
    /// Where a socket cannot be opened, or nothing can be sent.
    pub fn run(&self) -> Result<(), LabError> {
        let count = match self {
            Self::Send(order) => packets::send(order),
            Self::Receive(order) => packets::receive(order),
            Self::SendFile(order) => file::send(order),
            Self::ReceiveFile(order) => file::receive(order),
            Self::SendBulk(order) => bulk::send_file(order),
            Self::ReceiveBulk(order) => bulk::receive_file(order),
            Self::SendStream(order) => stream::send(order),
            Self::ReceiveStream(order) => stream::receive(order),
        }?;
        let line = serde_json::to_string(&count).map_err(|error| LabError::system("write a count", error))?;
        println!("{line}");
        Ok(())
    }
}

impl Order {
    /// This end of a connection.
    fn local(&self, connection: u16) -> EndpointAddr {
        shifted(self.local, connection)
    }

    /// The other end of it.
    fn remote(&self, connection: u16) -> Result<EndpointAddr, LabError> {
        let remote = self.remote.ok_or_else(|| failed("read the order", "a sender needs --remote"))?;
        Ok(shifted(remote, connection))
    }

    fn opts(&self, connection: u16) -> ConnOpts {
        ConnOpts {
            dispatched: Some(PortRange { first: self.first_port, last: self.last_port }),
            trains: !self.no_trains,
            ..ConnOpts::new(self.local(connection))
        }
    }

    /// The one path there is, where the other end is in another AS.
    fn paths(&self) -> Result<Arc<PathTable>, LabError> {
        let table = PathTable::default();
        if let (Some(raw), Some(remote)) = (&self.path, self.remote) {
            let next_hop = self.next_hop.ok_or_else(|| failed("read the order", "--path needs --next-hop"))?;
            let path = Path {
                source: self.local.isd_as,
                destination: remote.isd_as,
                dataplane: Dataplane::Scion(raw.clone().into()),
                next_hop: Some(next_hop),
                mtu: self.mtu.unwrap_or(self.opts(0).mtu),
                interfaces: Fingerprint::default(),
                latency: Vec::new(),
                bandwidth: Vec::new(),
                expiry: SystemTime::now() + LIFETIME,
            };
            table.set(remote.isd_as, vec![path]);
        }
        Ok(Arc::new(table))
    }
}

fn shifted(mut endpoint: EndpointAddr, connection: u16) -> EndpointAddr {
    let port = endpoint.host.port().wrapping_add(connection);
    endpoint.host.set_port(port);
    endpoint
}

/// Says that the other end may start.
fn ready() {
    println!("ready");
}

/// A moment from which work is counted. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Begin {
    at: Instant,
    cpu: Duration,
}

impl Begin {
    fn now() -> Result<Self, LabError> {
        Ok(Self { at: Instant::now(), cpu: ProcessUsage::of(std::process::id())?.cpu })
    }

    /// What was done until `end`, and the processor time that this process spent on it so far.
    fn count(self, end: Instant, packets: u64, bytes: u64) -> Result<Count, LabError> {
        let spent = ProcessUsage::of(std::process::id())?.cpu.saturating_sub(self.cpu);
        let cpu_us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        Ok(Count { packets, bytes, seconds: (end - self.at).as_secs_f64(), cpu_us })
    }
}

fn failed(action: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> LabError {
    LabError::system(action, std::io::Error::other(error))
}

/// As Go writes it.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix("ms").and_then(|number| number.parse().ok());
    number.map(Duration::from_millis).ok_or_else(|| "a time is whole milliseconds, such as 3000ms".to_owned())
}

fn hex(text: &str) -> Result<Vec<u8>, ParseIntError> {
    let digits = |at: usize| text.get(at..at + 2).unwrap_or("odd");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(digits(at), 16)).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        task: Task,
    }

    pub(super) fn order(words: &[&str]) -> Result<Order, clap::Error> {
        let line = Line::try_parse_from(["blast", "send"].iter().chain(words))?;
        match line.task {
            Task::Send(order) => Ok(order),
            other => panic!("{other:?} is not what was asked for"),
        }
    }

    #[test]
    fn an_order_is_read_as_the_others_read_it() {
        let read = order(&[
            "--local=1-ff00:0:110,10.0.0.1:31500",
            "--remote=1-ff00:0:120,10.0.0.2:31000",
            "--connections=3",
            "--duration=1500ms",
            "--rate=20000",
            "--path=00ff10",
            "--next-hop=10.0.0.9:30042",
        ])
        .expect("it is right");
        assert_eq!(read.local(2).to_string(), "1-ff00:0:110,10.0.0.1:31502");
        assert_eq!(read.remote(2).expect("it is there").to_string(), "1-ff00:0:120,10.0.0.2:31002");
        assert_eq!((read.duration, read.payload), (Duration::from_millis(1500), 1200));
        assert_eq!(read.path.as_deref(), Some(&[0, 255, 16][..]));
        assert!(read.paths().is_ok());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let local = "--local=1-ff00:0:110,10.0.0.1:31500";
        for words in
            [&["--local=10.0.0.1:1"][..], &[local, "--duration=3s"], &[local, "--path=0"], &[local, "--path=xy"]]
        {
            assert!(order(words).is_err(), "{words:?}");
        }
        assert!(order(&[local]).expect("a receiver's").remote(0).is_err());
        let no_router = order(&[local, "--remote=1-ff00:0:120,10.0.0.2:31000", "--path=00"]).expect("it is read");
        assert!(no_router.paths().is_err());
    }
}
