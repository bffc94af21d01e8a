//! A TCP transfer from one namespace to another, as long as told.
//!
//! 1. The receiver listens in its namespace, the sender connects from its own.
//! 2. Both ends' congestion control is set on the socket, and read back.
//! 3. The sender writes as fast as TCP takes it until time is up or it is told to stop, then resets the connection.
//! 4. The receiver logs what it gets in a timeline that may be looked at meanwhile.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::timeline::Timeline;
use crate::clock::Moment;
use crate::error::WireError;
use crate::namespace::Namespace;

/// Bytes a write or read moves at most: large, so that the measuring costs little beside the measured.
const CHUNK: usize = 256 << 10;
/// How often a thread that waits looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the receiver waits for the reset after the sender has ended, at most.
const LINGER: Duration = Duration::from_millis(500);
/// How long connecting may take: three lost SYNs (RFC 6298: 1 + 2 + 4 seconds).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// A congestion control of the kernel, by its name. Plain data.
/// Always named: the kernel's default differs from machine to machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// NewReno, RFC 6582.
    Reno,
    /// BBR of the kernel, version 1.
    Bbr,
}

impl Congestion {
    /// The kernel's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }
}

/// A transfer to be made. Plain data.
#[derive(Clone, Debug)]
pub struct TcpTransfer {
    /// Where the sender runs.
    pub from: Namespace,
    /// Where the receiver runs.
    pub to: Namespace,
    /// The receiver's address and port; port 0 takes a free one.
    pub destination: SocketAddr,
    /// The sender's address, where it matters.
    pub source: Option<IpAddr>,
    /// Of both ends.
    pub congestion: Congestion,
    /// How long to send.
    pub duration: Duration,
}

/// A transfer under way. Dropped, it stops. One owner; `progress` and `stop` may be called at any time.
#[derive(Debug)]
pub struct RunningTcp {
    stop: Arc<AtomicBool>,
    timeline: Arc<Mutex<Timeline>>,
    sender: Option<JoinHandle<io::Result<()>>>,
    receiver: Option<JoinHandle<io::Result<()>>>,
}

impl TcpTransfer {
    /// One stream of CUBIC, from an address in a namespace to an address and port in another.
    pub fn cubic(from: (&Namespace, IpAddr), to: (&Namespace, SocketAddr), duration: Duration) -> TcpTransfer {
        TcpTransfer {
            from: from.0.clone(),
            to: to.0.clone(),
            destination: to.1,
            source: Some(from.1),
            congestion: Congestion::Cubic,
            duration,
        }
    }

    /// Steps 1 and 2: returns when the connection stands.
    ///
    /// # Errors
    /// Where the connection or its congestion control cannot be had.
    pub fn start(&self) -> Result<RunningTcp, WireError> {
        let starting = |error| {
            let (from, to) = (self.from.name(), self.to.name());
            let name = self.congestion.name();
            let what = format!("start tcp ({name}) from {from} to {} in {to}", self.destination);
            WireError::system(what, error)
        };
        let listener = self.to.run(|| self.listen())?.map_err(starting)?;
        let (outbound, inbound) = self.from.run(|| self.connect_to(&listener))?.map_err(starting)?;
        let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let timeline = Arc::new(Mutex::new(Timeline::new(Moment::now())));
        let receiver = {
            let (over, timeline) = (Arc::clone(&over), Arc::clone(&timeline));
            let work = move || receive(inbound, &over, &timeline);
            self.to.spawn_thread("tcp-receive", work)?
        };
        let sender = {
            let (stop, end) = (Arc::clone(&stop), Moment::now() + self.duration);
            let work = move || {
                let sent = send(outbound, &stop, end);
                over.store(true, Ordering::Release);
                sent
            };
            self.from.spawn_thread("tcp-send", work)?
        };
        Ok(RunningTcp { stop, timeline, sender: Some(sender), receiver: Some(receiver) })
    }

    /// Makes the transfer to its end.
    ///
    /// # Errors
    /// As [`TcpTransfer::start`] and [`RunningTcp::finish`].
    pub fn run(&self) -> Result<Timeline, WireError> {
        self.start()?.finish()
    }

    fn socket(&self) -> io::Result<Socket> {
        let domain = Domain::for_address(self.destination);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_congestion(self.congestion.name().as_bytes())?;
        Ok(socket)
    }

    pub(super) fn listen(&self) -> io::Result<Socket> {
        let socket = self.socket()?;
        socket.set_reuse_address(true)?;
        socket.bind(&self.destination.into())?;
        socket.listen(1)?;
        Ok(socket)
    }

    /// Both ends of a connection: the sender's, the receiver's. In the sender's namespace.
    pub(super) fn connect_to(&self, listener: &Socket) -> io::Result<(TcpStream, TcpStream)> {
        let outbound = self.connect(listener)?;
        let (inbound, _) = listener.accept()?;
        Ok((outbound, self.checked(inbound)?))
    }

    fn connect(&self, listener: &Socket) -> io::Result<TcpStream> {
        let socket = self.socket()?;
        if let Some(source) = self.source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        socket.connect_timeout(&listener.local_addr()?, CONNECT_TIMEOUT)?;
        self.checked(socket)
    }

    /// Step 2: a stream whose congestion control is what was asked for.
    fn checked(&self, socket: Socket) -> io::Result<TcpStream> {
        let stream: TcpStream = socket.into();
        let name = SockRef::from(&stream).tcp_congestion()?;
        let name = String::from_utf8_lossy(&name);
        if name.trim_end_matches('\0') != self.congestion.name() {
            return Err(io::Error::other(format!("the socket's congestion control is {name}")));
        }
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(GLANCE))?;
        Ok(stream)
    }
}

impl RunningTcp {
    /// What the receiver has got so far.
    #[must_use]
    pub fn progress(&self) -> Timeline {
        self.timeline.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Bytes received so far; cheaper than [`RunningTcp::progress`].
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.timeline.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).total_bytes()
    }

    /// Tells the sender to stop before its time is up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for the end, and returns what the receiver got.
    ///
    /// # Errors
    /// Where the connection broke before time was up.
    pub fn finish(mut self) -> Result<Timeline, WireError> {
        self.join().map_err(|error| WireError::system("transfer by tcp", error))?;
        Ok(self.progress())
    }

    fn join(&mut self) -> io::Result<()> {
        let panicked = |_| Err(io::Error::other("a thread of the transfer panicked"));
        let sent = self.sender.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked));
        let got = self.receiver.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked));
        sent.and(got)
    }
}

impl Drop for RunningTcp {
    fn drop(&mut self) {
        self.stop();
        // Who drops it has no use for its end.
        let _ = self.join();
    }
}

/// Step 3.
fn send(mut stream: TcpStream, stop: &AtomicBool, end: Moment) -> io::Result<()> {
    let chunk = vec![0; CHUNK];
    while Moment::now() < end && !stop.load(Ordering::Acquire) {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
    }
    // With no time to linger, closing resets: what is still on the way is of no use.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))
}

/// Step 4.
fn receive(mut stream: TcpStream, over: &AtomicBool, timeline: &Mutex<Timeline>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut since_over = None;
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                timeline.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).add(Moment::now(), length as u64)
            }
            Err(error) if is_wait(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
        if over.load(Ordering::Acquire) {
            let now = Moment::now();
            if now - *since_over.get_or_insert(now) >= LINGER {
                return Ok(());
            }
        }
    }
}

/// Whether a call only ran into its timeout, or into a signal.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
