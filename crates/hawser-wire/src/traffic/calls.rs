//! Short TCP flows, this many a second: connect, a small request, a small answer, close.
//!
//! 1. The server accepts, reads a request, answers it.
//! 2. The client starts a call whenever one is due, however many are under way: a slow one delays no other.
//! 3. A call's time counts from when it was due to the last byte of its answer. Then it is reset, so that no port is held.
//!
//! Both threads ask for a real-time priority: they are instruments.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::ready::Ready;
use super::sample::Sample;
use super::tcp::Congestion;
use crate::clock::{Moment, keep_time};
use crate::error::WireError;
use crate::namespace::Namespace;

/// Bytes of a request and of an answer: each a packet.
const REQUEST: [u8; 100] = [0; 100];
const ANSWER: [u8; 1000] = [0; 1000];
/// Calls that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// The listener among the server's sockets.
const LISTENER: u64 = u64::MAX;
/// How often the server looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);
/// How long an answer may take after the last call: one lost SYN (RFC 6298) and what follows.
const PATIENCE: Duration = Duration::from_secs(3);

/// Calls to be made. Plain data.
#[derive(Clone, Debug)]
pub struct Calls {
    /// Where the client runs.
    pub from: Namespace,
    /// Where the server runs.
    pub to: Namespace,
    /// The server's address and port.
    pub destination: SocketAddr,
    /// From one call to the next.
    pub interval: Duration,
    /// How long to call.
    pub duration: Duration,
}

/// What came of them. Plain data.
#[derive(Clone, Debug, Default)]
pub struct CallsReport {
    /// Calls that were due.
    pub made: usize,
    /// Until the answer was whole, of those that were answered.
    pub answered: Vec<Duration>,
}

impl CallsReport {
    /// Times until the answer, in milliseconds.
    #[must_use]
    pub fn times(&self) -> Sample {
        self.answered.iter().copied().collect()
    }

    /// Calls without an answer.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.made - self.answered.len()
    }
}

impl Calls {
    /// Makes all of them, and waits for the last answers.
    ///
    /// # Errors
    /// Where a socket cannot be had.
    ///
    /// # Panics
    /// Where one of the threads did.
    pub fn run(&self) -> Result<CallsReport, WireError> {
        let system = |error| WireError::system(format!("call {}", self.destination), error);
        let listener = self.to.run(|| self.listen())?.map_err(system)?;
        let over = Arc::new(AtomicBool::new(false));
        let server: JoinHandle<io::Result<()>> = {
            let over = Arc::clone(&over);
            self.to.spawn_thread("calls-serve", move || {
                keep_time();
                serve(&listener, &over)
            })?
        };
        let calls = self.clone();
        let client = self.from.spawn_thread("calls-make", move || {
            keep_time();
            calls.make()
        })?;
        let made = client.join().expect("the caller runs to its end");
        over.store(true, Ordering::Release);
        let served = server.join().expect("the server runs to its end");
        served.and(made).map_err(system)
    }

    fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.destination), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_congestion(Congestion::Cubic.name().as_bytes())?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    fn listen(&self) -> io::Result<Socket> {
        let socket = self.socket()?;
        socket.set_reuse_address(true)?;
        socket.bind(&self.destination.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    }

    /// Steps 2 and 3.
    fn make(&self) -> io::Result<CallsReport> {
        let mut ready = Ready::new()?;
        let mut open: HashMap<u64, Call> = HashMap::new();
        let mut report = CallsReport::default();
        let start = Moment::now();
        let (mut due, mut next) = (start, 0);
        let end = start + self.duration;
        while due < end || (!open.is_empty() && Moment::now() < end + PATIENCE) {
            while due < end && due <= Moment::now() {
                let call = self.begin(due)?;
                ready.watch_write(&call.stream, next)?;
                open.insert(next, call);
                (due, next) = (due + self.interval, next + 1);
                report.made += 1;
            }
            let until = if due < end { due } else { end + PATIENCE };
            let numbers: Vec<u64> = ready.wait(until - Moment::now())?.collect();
            for number in numbers {
                let Some(call) = open.get_mut(&number) else { continue };
                match call.go_on(number, &ready) {
                    Ok(false) => continue,
                    Ok(true) => report.answered.push(Moment::now() - call.due),
                    // A call that was refused or reset is one without an answer.
                    Err(_) => {}
                }
                open.remove(&number);
            }
        }
        Ok(report)
    }

    fn begin(&self, due: Moment) -> io::Result<Call> {
        let socket = self.socket()?;
        socket.set_linger(Some(Duration::ZERO))?;
        match socket.connect(&self.destination.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        Ok(Call { stream: socket.into(), due, has_asked: false, got: 0 })
    }
}

/// A call under way: connecting, then asked, then answered. Starts connecting; one owner.
struct Call {
    stream: TcpStream,
    due: Moment,
    has_asked: bool,
    got: usize,
}

impl Call {
    /// Does what is possible now. True when the answer is whole.
    fn go_on(&mut self, number: u64, ready: &Ready) -> io::Result<bool> {
        if !self.has_asked {
            if let Some(error) = SockRef::from(&self.stream).take_error()? {
                return Err(error);
            }
            // A new connection has room for a whole request.
            self.stream.write_all(&REQUEST)?;
            self.has_asked = true;
            ready.now_read(&self.stream, number)?;
            return Ok(false);
        }
        self.got += read_some(&mut self.stream)?;
        Ok(self.got >= ANSWER.len())
    }
}

/// Step 1.
fn serve(listener: &Socket, over: &AtomicBool) -> io::Result<()> {
    let mut ready = Ready::new()?;
    ready.watch_read(listener, LISTENER)?;
    let mut open: HashMap<u64, (TcpStream, usize)> = HashMap::new();
    let mut next = 0;
    while !over.load(Ordering::Acquire) {
        let numbers: Vec<u64> = ready.wait(GLANCE)?.collect();
        for number in numbers {
            if number == LISTENER {
                while let Ok((socket, _)) = listener.accept() {
                    socket.set_nonblocking(true)?;
                    ready.watch_read(&socket, next)?;
                    open.insert(next, (socket.into(), 0));
                    next += 1;
                }
            } else if let Some((stream, got)) = open.get_mut(&number) {
                match read_some(stream) {
                    Ok(length) => *got += length,
                    // The client has what it wanted, and has reset.
                    Err(_) => drop(open.remove(&number)),
                }
                if let Some((stream, got)) = open.get_mut(&number)
                    && *got >= REQUEST.len()
                {
                    // A new connection has room for a whole answer; a client that is gone wants none.
                    let _ = stream.write_all(&ANSWER);
                    *got = 0;
                }
            }
        }
    }
    Ok(())
}

/// Bytes read now; an error where the other end has closed.
fn read_some(stream: &mut TcpStream) -> io::Result<usize> {
    match stream.read(&mut [0; ANSWER.len()]) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(length) => Ok(length),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(error) => Err(error),
    }
}
