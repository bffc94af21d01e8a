//! Bulk transfers from or to a client, as many at once as told, that may break without ending the measurement.
//!
//! 1. The client connects to the server, one flow after the other, and says a byte: either end may be the sender, as
//!    behind a NAT, and MPTCP adds no subflow before its client has spoken.
//! 2. From the start on, a thread at the sending end writes to whichever takes bytes until time is up.
//! 3. A thread at the receiving end keeps a timeline for each flow, and one for all.
//! 4. What breaks is left, and said: a cut link is something to be found out.
//! 5. At the end both ends' kernels are asked; the receivers close, for MPTCP's end (DATA_FIN) to be seen, then the
//!    senders reset.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use socket2::{SockRef, Socket};

use super::ready::Ready;
use super::reliable::{Reliable, Stack};
use super::stream_info::StreamInfo;
use super::timeline::Timeline;
use crate::clock::Moment;
use crate::error::WireError;
use crate::namespace::Namespace;

/// Bytes a write or read moves at most: some for everyone in turn.
const CHUNK: usize = 128 << 10;
/// How often a thread that waits looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);
/// How long senders leave the receivers' close on the way.
const LINGER: Duration = Duration::from_millis(200);
/// How long connecting may take: three lost SYNs (RFC 6298: 1 + 2 + 4 seconds).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Which end sends. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// The client sends.
    Server,
    /// The server sends.
    Client,
}

/// Flows to be made, all alike. Plain data.
#[derive(Clone, Debug)]
pub struct Flows {
    /// Who connects.
    pub client: Namespace,
    /// Who is connected to.
    pub server: Namespace,
    /// The server's address; port 0 takes a free one.
    pub destination: SocketAddr,
    /// What they are made of.
    pub kind: Reliable,
    /// Which end sends.
    pub towards: Towards,
    /// How many.
    pub count: usize,
}

/// Flows that stand, without a byte sent yet. Closed on drop. One owner.
#[derive(Debug)]
pub struct ConnectedFlows {
    senders: Vec<TcpStream>,
    receivers: Vec<TcpStream>,
    listener: Socket,
    port: u16,
    plan: Flows,
}

/// Flows under way; they end by themselves. One owner.
#[derive(Debug)]
pub struct RunningFlows {
    /// Held to the end: a further subflow of MPTCP begins at a listening socket (RFC 8684, section 3.2).
    _listener: Socket,
    sender: JoinHandle<io::Result<Ended>>,
    receiver: JoinHandle<io::Result<Received>>,
}

/// What came of all flows. Plain data.
#[derive(Clone, Debug)]
pub struct FlowsReport {
    /// What the receiver got of all.
    pub all: Timeline,
    /// Each of them.
    pub flows: Vec<FlowReport>,
}

/// What came of a flow. Plain data.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// What the receiver got.
    pub timeline: Timeline,
    /// What the sender's kernel knew at the end; none where it knew nothing any more.
    pub sender: Option<StreamInfo>,
    /// What the receiver's kernel knew at the end.
    pub receiver: Option<StreamInfo>,
    /// Why it ended before its time, where it did.
    pub broken: Option<String>,
}

/// What one end knows of its flows, in their order.
#[derive(Debug)]
struct Ended {
    infos: Vec<Option<StreamInfo>>,
    broken: Vec<Option<String>>,
}

#[derive(Debug)]
struct Received {
    all: Timeline,
    each: Vec<Timeline>,
    ended: Ended,
}

impl Flows {
    /// Step 1.
    ///
    /// # Errors
    /// Where a connection or its congestion control cannot be had.
    pub fn connect(&self) -> Result<ConnectedFlows, WireError> {
        let connecting = |error| {
            let what = format!("connect {} flows to {}", self.count, self.destination);
            WireError::system(what, error)
        };
        let listener = self.server.run(|| self.kind.listen(self.destination))?.map_err(connecting)?;
        let port = listener.local_addr().map_err(connecting)?.as_socket().map_or(0, |address| address.port());
        let at = SocketAddr::new(self.destination.ip(), port);
        let pairs = self.client.run(|| (0..self.count).map(|_| self.pair(&listener, at)).collect::<io::Result<_>>());
        let pairs: Vec<(TcpStream, TcpStream)> = pairs?.map_err(connecting)?;
        let (near, far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let (senders, receivers) = match self.towards {
            Towards::Server => (near, far),
            Towards::Client => (far, near),
        };
        Ok(ConnectedFlows { senders, receivers, listener, port, plan: self.clone() })
    }

    fn pair(&self, listener: &Socket, at: SocketAddr) -> io::Result<(TcpStream, TcpStream)> {
        let near = self.kind.connect(at, CONNECT_TIMEOUT)?;
        let (far, _) = listener.accept()?;
        self.kind.accepted(&far)?;
        say_hello(&near, &far)?;
        for socket in [&near, &far] {
            socket.set_nonblocking(true)?;
        }
        Ok((near.into(), far.into()))
    }
}

/// The client's first byte, which counts for nothing.
fn say_hello(mut near: &Socket, mut far: &Socket) -> io::Result<()> {
    near.write_all(&[0])?;
    far.set_read_timeout(Some(CONNECT_TIMEOUT))?;
    far.read_exact(&mut [0])
}

impl ConnectedFlows {
    /// The server's port, by which others tell the flows.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Lets them run from a moment on.
    ///
    /// # Errors
    /// Where a thread cannot start.
    pub fn start(self, start: Moment, duration: Duration) -> Result<RunningFlows, WireError> {
        let Self { senders, receivers, listener, plan, .. } = self;
        let (from, to) = match plan.towards {
            Towards::Server => (&plan.client, &plan.server),
            Towards::Client => (&plan.server, &plan.client),
        };
        let (end, stack) = (start + duration, plan.kind.stack);
        let receiver = to.spawn_thread("flows-receive", move || receive(receivers, stack, start, end))?;
        let sender = from.spawn_thread("flows-send", move || send(&senders, stack, start, end))?;
        Ok(RunningFlows { _listener: listener, sender, receiver })
    }
}

impl RunningFlows {
    /// Waits for the end.
    ///
    /// # Errors
    /// Where the system refused to wait for sockets; a flow that breaks is no error.
    ///
    /// # Panics
    /// Where one of its threads did.
    pub fn finish(self) -> Result<FlowsReport, WireError> {
        let sent = self.sender.join().expect("the sender of the flows runs to its end");
        let got = self.receiver.join().expect("the receiver of the flows runs to its end");
        let failed = |error| WireError::system("transfer by flows", error);
        let (sent, got) = (sent.map_err(failed)?, got.map_err(failed)?);
        let senders = sent.infos.into_iter().zip(sent.broken);
        let receivers = got.ended.infos.into_iter().zip(got.ended.broken);
        let each = got.each.into_iter().zip(senders.zip(receivers));
        let flow = |(timeline, ((sender, stopped), (receiver, broken)))| {
            let broken: Option<String> = Option::or(stopped, broken);
            FlowReport { timeline, sender, receiver, broken }
        };
        Ok(FlowsReport { all: got.all, flows: each.map(flow).collect() })
    }
}

/// Step 2.
fn send(streams: &[TcpStream], stack: Stack, start: Moment, end: Moment) -> io::Result<Ended> {
    let mut ready = Ready::new()?;
    for (number, stream) in (0..).zip(streams) {
        // With no time to linger, closing resets: what is still on the way is of no use.
        SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
        ready.watch_write(stream, number)?;
    }
    let chunk = vec![0; CHUNK];
    let mut broken = vec![None; streams.len()];
    start.sleep_until();
    while Moment::now() < end {
        let numbers: Vec<u64> = ready.wait(GLANCE.min(end - Moment::now()))?.collect();
        for index in numbers.into_iter().map(index) {
            let mut stream = &streams[index];
            if let Some(why) = fault(stream.write(&chunk)) {
                ready.forget(stream)?;
                broken[index] = Some(why);
            }
        }
    }
    let infos = streams.iter().map(|stream| StreamInfo::of(stream, stack).ok()).collect();
    sleep(LINGER);
    Ok(Ended { infos, broken })
}

/// Steps 3 to 5.
fn receive(streams: Vec<TcpStream>, stack: Stack, start: Moment, end: Moment) -> io::Result<Received> {
    let mut ready = Ready::new()?;
    for (number, stream) in (0..).zip(&streams) {
        ready.watch_read(stream, number)?;
    }
    let mut all = Timeline::new(start);
    let mut each = vec![all.clone(); streams.len()];
    let mut broken = vec![None; streams.len()];
    let mut chunk = vec![0; CHUNK];
    while Moment::now() < end {
        let numbers: Vec<u64> = ready.wait(GLANCE.min(end - Moment::now()))?.collect();
        for index in numbers.into_iter().map(index) {
            let mut stream = &streams[index];
            match stream.read(&mut chunk) {
                Ok(0) => broken[index] = Some("the sender closed".to_owned()),
                Ok(length) => {
                    let now = Moment::now();
                    all.add(now, length as u64);
                    each[index].add(now, length as u64);
                }
                failed => broken[index] = fault(failed),
            }
            if broken[index].is_some() {
                ready.forget(stream)?;
            }
        }
    }
    let infos = streams.iter().map(|stream| StreamInfo::of(stream, stack).ok()).collect();
    for stream in &streams {
        // Fails only where it has ended already.
        let _ = stream.shutdown(Shutdown::Write);
    }
    Ok(Received { all, each, ended: Ended { infos, broken } })
}

/// Why a stream is broken; none where it moved bytes or would only have waited.
fn fault(done: io::Result<usize>) -> Option<String> {
    let error = done.err()?;
    let is_wait = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
    (!is_wait).then(|| error.to_string())
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a flow's number is an index")
}
