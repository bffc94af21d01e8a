//! Connections opened and closed, this many a second.
//!
//! 1. The server's first thread accepts, the others take turns: each reads a request, answers and closes.
//! 2. The client's threads take turns, too: each connection has its time, asks, and reads to the end.
//! 3. What does not work is counted; the first reason is told.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use hawser_wire::traffic::{Congestion, Reliable, Stack};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use crate::error::LabError;

/// Threads at either end: as many connections may be under way at once.
const THREADS: usize = 48;
/// A request, and its answer: a few kilobytes, as of a small page.
const REQUEST: usize = 200;
const ANSWER: usize = 4_000;
/// How long a connection may take: two lost SYNs (RFC 6298: 1 + 2 seconds), and some.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the thread that accepts looks whether it is over.
const GLANCE: Duration = Duration::from_millis(200);
const STREAM: Reliable = Reliable { stack: Stack::Mptcp, congestion: Congestion::Cubic };

/// Connections to be made. Plain data.
#[derive(Clone, Debug)]
pub struct Churn {
    /// Where they begin.
    pub client: Namespace,
    /// Where they are accepted.
    pub server: Namespace,
    /// The server's address and port.
    pub address: SocketAddr,
    /// How many a second.
    pub per_second: u32,
    /// For how long.
    pub duration: Duration,
}

/// What came of them. Plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Churned {
    /// Begun, answered and closed.
    pub done: u64,
    /// What failed.
    pub failed: u64,
    /// Why the first one did.
    pub reason: Option<String>,
    /// From the first to the last.
    pub seconds: f64,
}

/// What the client's threads share. Starts with no connection begun.
#[derive(Debug)]
struct Turn {
    begun: Instant,
    next: AtomicU64,
    found: Mutex<Churned>,
}

/// The server's threads. Ended on drop.
struct Server {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What is accepted, for whose turn it is. Starts empty; shared by the server's threads.
type Accepted = Arc<Mutex<Receiver<Socket>>>;

impl Churn {
    /// Steps 1 to 3. Connections that fail are a finding.
    pub fn run(&self) -> Result<Churned, LabError> {
        let _server = self.serve()?;
        let turn = Arc::new(Turn { begun: Instant::now(), next: AtomicU64::new(0), found: Mutex::default() });
        let thread = |number: usize| {
            let (plan, turn) = (self.clone(), Arc::clone(&turn));
            self.client.spawn_thread(&format!("churn{number}"), move || plan.take_turns(&turn))
        };
        let threads: Vec<JoinHandle<()>> = (0..THREADS).map(thread).collect::<Result<_, _>>()?;
        for thread in threads {
            if thread.join().is_err() {
                return Err(LabError::system("open connections", io::Error::other("a thread panicked")));
            }
        }
        let found = turn.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        Ok(Churned { seconds: turn.begun.elapsed().as_secs_f64(), ..found })
    }

    /// Step 1.
    fn serve(&self) -> Result<Server, LabError> {
        let listen = || -> io::Result<Socket> {
            let socket = STREAM.listen(self.address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let listener = self.server.run(listen)?.map_err(|error| LabError::system("listen", error))?;
        let mut server = Server { over: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let (give, accepted) = channel();
        let accepted: Accepted = Arc::new(Mutex::new(accepted));
        for number in 0..THREADS {
            let accepted = Arc::clone(&accepted);
            let work = move || {
                while let Some(socket) = next(&accepted) {
                    // The client finds out what went wrong.
                    let _ = answer(socket);
                }
            };
            server.threads.push(self.server.spawn_thread(&format!("answer{number}"), work)?);
        }
        let over = Arc::clone(&server.over);
        server.threads.push(self.server.spawn_thread("accept", move || accept(&listener, &give, &over))?);
        Ok(server)
    }

    /// Step 2.
    fn take_turns(&self, turn: &Turn) {
        let all = u64::from(self.per_second) * self.duration.as_secs();
        loop {
            let number = turn.next.fetch_add(1, Ordering::AcqRel);
            if number >= all {
                return;
            }
            let due = Duration::from_secs_f64(number as f64 / f64::from(self.per_second));
            std::thread::sleep(due.saturating_sub(turn.begun.elapsed()));
            let asked = self.ask();
            let mut found = turn.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match asked {
                Ok(()) => found.done += 1,
                Err(error) => {
                    found.failed += 1;
                    found.reason.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    fn ask(&self) -> io::Result<()> {
        let mut socket = STREAM.connect(self.address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.write_all(&[1; REQUEST])?;
        let mut answer = Vec::with_capacity(ANSWER);
        socket.read_to_end(&mut answer)?;
        match answer.len() {
            ANSWER => Ok(()),
            other => Err(io::Error::other(format!("{other} bytes of the answer came"))),
        }
    }
}

/// Accepts until it is over. A timeout of the socket would not do: MPTCP's accept knows none.
fn accept(listener: &Socket, give: &Sender<Socket>, over: &AtomicBool) {
    let glance = Timespec::try_from(GLANCE).ok();
    while !over.load(Ordering::Acquire) {
        let ready = poll(&mut [PollFd::new(listener, PollFlags::IN)], glance.as_ref());
        while ready.is_ok()
            && let Ok((socket, _)) = listener.accept()
        {
            if give.send(socket).is_err() {
                return;
            }
        }
    }
}

/// The next connection; none when there will be none.
fn next(accepted: &Accepted) -> Option<Socket> {
    accepted.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv().ok()
}

/// One connection at the server.
fn answer(mut socket: Socket) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.read_exact(&mut [0; REQUEST])?;
    socket.write_all(&[2; ANSWER])
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic of one is told by its own message.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_at_their_time_and_failures_are_counted() {
        let host = Namespace::new("churn").expect("this test needs root: it makes a network namespace");
        let address = SocketAddr::from(([127, 0, 0, 1], 5001));
        let duration = Duration::from_secs(1);
        let churn = Churn { client: host.clone(), server: host.clone(), address, per_second: 100, duration };
        let churned = churn.run().expect("it runs");
        assert_eq!((churned.done, churned.failed, churned.reason), (100, 0, None));
        assert!(churned.seconds > 0.9, "{}", churned.seconds);
        // Nobody listens where the client is.
        let elsewhere = Namespace::new("churn-no").expect("a namespace");
        let refused = Churn { client: elsewhere, ..churn }.run().expect("it runs");
        assert_eq!((refused.done, refused.failed), (0, 100));
        assert!(refused.reason.is_some_and(|reason| reason.contains("refused")));
    }
}
