//! A conversation: constant-rate UDP both ways between one socket of a client and one of a server, as a call is.
//!
//! 1. The server binds its port; the client says hello until that arrives, which also opens what NATs there are.
//! 2. Both ends listen. From the start on, each end that speaks sends on an absolute schedule; each datagram carries
//!    its number and time.
//! 3. The server answers to wherever the client was last heard from, so that a new address of the client's is followed.
//! 4. Both listen until the end and a while after.
//!
//! Its threads ask for a real-time priority: they are instruments.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::listener;
use super::udp::{Arrival, MAX_PAYLOAD, STAMP_BYTES, UdpReport, any, bind_receiver};
use crate::clock::{Moment, keep_time};
use crate::error::WireError;
use crate::namespace::Namespace;

/// How long the client says hello in vain before it gives up, and how often.
const HELLO: Duration = Duration::from_secs(5);
const HELLO_INTERVAL: Duration = Duration::from_millis(50);
/// The number of a hello, which no datagram of the conversation has.
const HELLO_NUMBER: u64 = u64::MAX;
/// A speaker wakes at most this often, and sends what is due: finer costs more processor time than sending.
const GRAIN: Duration = Duration::from_micros(100);

/// A conversation to be held. Plain data.
#[derive(Clone, Debug)]
pub struct Duplex {
    /// Who begins.
    pub client: Namespace,
    /// Who is spoken to.
    pub server: Namespace,
    /// The server's address; port 0 takes a free one.
    pub destination: SocketAddr,
    /// UDP payload of each datagram in bytes, at least 16.
    pub payload: usize,
    /// From one datagram to the next.
    pub interval: Duration,
    /// Whether the client speaks.
    pub up: bool,
    /// Whether the server speaks.
    pub down: bool,
    /// How long both listen after the end.
    pub linger: Duration,
}

/// A conversation whose ends know each other. One owner.
#[derive(Debug)]
pub struct ReadyDuplex {
    plan: Duplex,
    near: UdpSocket,
    far: UdpSocket,
    /// Where the client was last heard from.
    client: SocketAddr,
    server: SocketAddr,
}

/// A conversation under way; it ends by itself. One owner.
#[derive(Debug)]
pub struct RunningDuplex {
    up: Option<JoinHandle<(u64, u64)>>,
    down: Option<JoinHandle<(u64, u64)>>,
    at_client: JoinHandle<io::Result<Vec<Arrival>>>,
    at_server: JoinHandle<io::Result<Vec<Arrival>>>,
    packet_bytes: u64,
}

/// What came of it, each way. Plain data.
#[derive(Clone, Debug, Default)]
pub struct DuplexReport {
    /// From the client; nothing sent where it does not speak.
    pub up: UdpReport,
    /// From the server.
    pub down: UdpReport,
}

impl Duplex {
    /// Step 1.
    ///
    /// # Errors
    /// Where a port cannot be bound, or no hello arrives.
    pub fn prepare(&self) -> Result<ReadyDuplex, WireError> {
        let system = |error| WireError::system(format!("begin a conversation with {}", self.destination), error);
        let far = self.server.run(|| bind_receiver(self.destination))?.map_err(system)?;
        let port = far.local_addr().map_err(system)?.port();
        let server = SocketAddr::new(self.destination.ip(), port);
        let near = self.client.run(|| bind_receiver(SocketAddr::new(any(server), 0)))?.map_err(system)?;
        let client = say_hello(&near, &far, server).map_err(system)?;
        Ok(ReadyDuplex { plan: self.clone(), near, far, client, server })
    }
}

/// Until a hello arrives: where it came from.
fn say_hello(near: &UdpSocket, far: &UdpSocket, server: SocketAddr) -> io::Result<SocketAddr> {
    let (hello, mut got) = (stamped(STAMP_BYTES, HELLO_NUMBER), [0; STAMP_BYTES]);
    let late = Moment::now() + HELLO;
    while Moment::now() < late {
        // One that is refused now is tried again.
        let _ = near.send_to(&hello, server);
        let next = Moment::now() + HELLO_INTERVAL;
        while Moment::now() < next {
            match far.recv_from(&mut got) {
                Ok((_, client)) => return Ok(client),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "no hello arrived"))
}

impl ReadyDuplex {
    /// Steps 2 to 4.
    ///
    /// # Errors
    /// Where a thread cannot start.
    pub fn start(self, start: Moment, duration: Duration) -> Result<RunningDuplex, WireError> {
        let Self { plan, near, far, client, server } = self;
        let (end, over) = (start + duration, start + duration + plan.linger);
        let system = |error| WireError::system("share a conversation's socket", error);
        let heard = Arc::new(Mutex::new(client));
        let listen = |at: &Namespace, socket: &UdpSocket, heard: Arc<Mutex<SocketAddr>>| {
            let socket = socket.try_clone().map_err(system)?;
            listener::start(at, "duplex-listen", move || listen(&socket, &heard, over))
        };
        let at_client = listen(&plan.client, &near, Arc::new(Mutex::new(server)))?;
        let at_server = listen(&plan.server, &far, Arc::clone(&heard))?;
        let speak = |from: &Namespace, socket: UdpSocket, to: Arc<Mutex<SocketAddr>>, name: &str| {
            let plan = plan.clone();
            from.spawn_thread(name, move || {
                keep_time();
                speak(&plan, &socket, &to, start, end)
            })
        };
        let up = plan.up.then(|| speak(&plan.client, near, Arc::new(Mutex::new(server)), "duplex-up")).transpose()?;
        let down = plan.down.then(|| speak(&plan.server, far, heard, "duplex-down")).transpose()?;
        Ok(RunningDuplex { up, down, at_client, at_server, packet_bytes: plan.packet_bytes() })
    }
}

impl Duplex {
    /// IP bytes of a datagram. Sources: RFC 791, RFC 8200, RFC 768.
    #[must_use]
    pub fn packet_bytes(&self) -> u64 {
        let headers = if self.destination.is_ipv4() { 20 + 8 } else { 40 + 8 };
        self.payload.clamp(STAMP_BYTES, MAX_PAYLOAD) as u64 + headers
    }
}

impl RunningDuplex {
    /// Waits for the end.
    ///
    /// # Errors
    /// Where a socket failed.
    ///
    /// # Panics
    /// Where one of its threads did.
    pub fn finish(self) -> Result<DuplexReport, WireError> {
        let join = |speaker: Option<JoinHandle<(u64, u64)>>, listener: JoinHandle<io::Result<Vec<Arrival>>>| {
            let said = speaker.map(|thread| thread.join().expect("a speaker runs to its end"));
            let (sent, refused) = said.unwrap_or_default();
            let arrivals = listener.join().expect("a listener runs to its end");
            let arrivals = arrivals.map_err(|error| WireError::system("listen to a conversation", error))?;
            Ok(UdpReport { sent, refused, packet_bytes: self.packet_bytes, arrivals })
        };
        Ok(DuplexReport { up: join(self.up, self.at_server)?, down: join(self.down, self.at_client)? })
    }
}

/// Step 2: how many were sent, and how many of them the kernel refused.
fn speak(plan: &Duplex, socket: &UdpSocket, to: &Mutex<SocketAddr>, start: Moment, end: Moment) -> (u64, u64) {
    let payload = plan.payload.clamp(STAMP_BYTES, MAX_PAYLOAD);
    let interval = u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX).max(1);
    let (mut number, mut refused) = (0_u64, 0);
    let mut bytes = stamped(payload, 0);
    loop {
        let due = start + Duration::from_nanos(interval.saturating_mul(number));
        if due >= end {
            return (number, refused);
        }
        let now = Moment::now();
        if due > now {
            due.max(now + GRAIN).sleep_until();
        }
        stamp(&mut bytes, number);
        let to = *to.lock().unwrap_or_else(PoisonError::into_inner);
        refused += u64::from(socket.send_to(&bytes, to).is_err());
        number += 1;
    }
}

/// Steps 3 and 4.
fn listen(socket: &UdpSocket, heard: &Mutex<SocketAddr>, over: Moment) -> io::Result<Vec<Arrival>> {
    let mut arrivals = Vec::new();
    let mut payload = vec![0; MAX_PAYLOAD];
    while Moment::now() < over {
        match socket.recv_from(&mut payload) {
            Ok((length, from)) if length >= STAMP_BYTES => {
                let received = Moment::now();
                let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| payload[at + i]));
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = from;
                if word(0) != HELLO_NUMBER {
                    arrivals.push(Arrival { number: word(0), sent: Moment::from_nanos(word(8)), received });
                }
            }
            Ok(_) => {}
            Err(error) if is_wait(&error) => {}
            // The other end's kernel said that nobody listens, or a router that there is no way: lost like any other.
            Err(error) if is_news(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(arrivals)
}

fn stamped(length: usize, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stamp(&mut bytes, number);
    bytes
}

fn stamp(bytes: &mut [u8], number: u64) {
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..STAMP_BYTES].copy_from_slice(&Moment::now().as_nanos().to_ne_bytes());
}

/// Whether a call only ran into its timeout, or into a signal.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn is_news(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkDown | NetworkUnreachable)
}
