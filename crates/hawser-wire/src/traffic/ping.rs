//! A constant-rate ping: ICMP echo over a raw socket, which the kernel at the other end answers.
//!
//! 1. A thread in the namespace reads what comes back, and keeps the answers to its own requests.
//! 2. A second thread sends requests on an absolute schedule, each with a number and its time.
//! 3. It ends when all are answered, or some time after the last request.
//!
//! Both threads ask for a real-time priority: they are instruments.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::{Sample, listener};
use crate::clock::{Moment, keep_time};
use crate::error::WireError;
use crate::namespace::Namespace;

/// Types of ICMP messages. Sources: RFC 792, RFC 4443.
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST_6: u8 = 128;
const ECHO_REPLY_6: u8 = 129;
/// Type, code, checksum, identifier, sequence number. Source: RFC 792.
const ICMP_BYTES: usize = 8;
/// Our payload: whose request it is, its number, its time.
const PAYLOAD_BYTES: usize = 3 * size_of::<u64>();
/// As `ping` sends by default: 56 bytes after the ICMP header.
const REQUEST_BYTES: usize = ICMP_BYTES + 56;
/// The longest an IPv4 header gets. Source: RFC 791.
const MAX_IP_HEADER: usize = 60;
/// How often the reader looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);
/// How long an answer may take after the last request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells the pings of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A ping to be made. Plain data.
#[derive(Clone, Debug)]
pub struct Ping {
    /// Where it runs.
    pub from: Namespace,
    /// Who is asked.
    pub destination: IpAddr,
    /// From one request to the next.
    pub interval: Duration,
    /// How long to ask.
    pub duration: Duration,
}

/// An answered request. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// From 0, in the order of sending.
    pub number: u64,
    /// When it was asked.
    pub sent: Moment,
    /// Until it was answered.
    pub round_trip: Duration,
}

/// What came of a ping. Plain data.
#[derive(Clone, Debug, Default)]
pub struct PingReport {
    /// When each request was sent, by its number.
    pub sent: Vec<Moment>,
    /// The answers, in the order in which they came; a duplicate counts once.
    pub echoes: Vec<Echo>,
}

/// A ping under way. Dropped, it stops. One owner; `stop` may be called at any time.
#[derive(Debug)]
pub struct RunningPing {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<Vec<Moment>>,
    reader: JoinHandle<io::Result<Vec<Echo>>>,
}

impl Ping {
    /// Starts asking.
    ///
    /// # Errors
    /// Where a raw socket cannot be had (it needs root), or the namespace not entered.
    pub fn start(&self) -> Result<RunningPing, WireError> {
        let system = |error| WireError::system(format!("ping {}", self.destination), error);
        let socket = self.from.run(|| self.socket())?.map_err(system)?;
        let reading = socket.try_clone().map_err(system)?;
        let (whose, ping) = (NEXT.fetch_add(1, Ordering::Relaxed), self.clone());
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(u64::MAX)));
        let (is_ipv4, answers) = (self.destination.is_ipv4(), Arc::clone(&asked));
        let reader = listener::start(&self.from, "ping-read", move || read(reading, is_ipv4, whose, &answers))?;
        let sender = {
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            self.from.spawn_thread("ping-send", move || {
                keep_time();
                let sent = ping.send(&socket, whose, &stop);
                asked.store(sent.len() as u64, Ordering::Release);
                sent
            })
        };
        // Where nobody asks, the reader ends.
        let sender = sender.inspect_err(|_| asked.store(0, Ordering::Release))?;
        Ok(RunningPing { stop, sender, reader })
    }

    /// Asks to the end.
    ///
    /// # Errors
    /// As [`Ping::start`].
    pub fn run(&self) -> Result<PingReport, WireError> {
        self.start()?.finish()
    }

    fn socket(&self) -> io::Result<Socket> {
        let protocol = match self.destination {
            IpAddr::V4(_) => Protocol::ICMPV4,
            IpAddr::V6(_) => Protocol::ICMPV6,
        };
        let domain = Domain::for_address(SocketAddr::new(self.destination, 0));
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_read_timeout(Some(GLANCE))?;
        Ok(socket)
    }

    /// Step 2: when each was sent. A request that the kernel refuses counts as sent: nobody answers it.
    fn send(&self, socket: &Socket, whose: u64, stop: &AtomicBool) -> Vec<Moment> {
        let address = SocketAddr::new(self.destination, 0).into();
        let start = Moment::now();
        let mut sent = Vec::new();
        let mut due = start;
        while due < start + self.duration && !stop.load(Ordering::Acquire) {
            due.sleep_until();
            let (number, now) = (sent.len() as u64, Moment::now());
            let request = request(self.destination.is_ipv4(), whose, number, now);
            // A refused request is one that nobody answers: the report shows it as lost.
            let _ = socket.send_to(&request, &address);
            sent.push(now);
            due = due + self.interval;
        }
        sent
    }
}

impl RunningPing {
    /// Tells it to stop before its time is up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for the end and the last answers.
    ///
    /// # Errors
    /// Where the socket failed.
    ///
    /// # Panics
    /// Where one of its threads did.
    pub fn finish(self) -> Result<PingReport, WireError> {
        let sent = self.sender.join().expect("the ping's sender runs to its end");
        let echoes = self.reader.join().expect("the ping's reader runs to its end");
        let echoes = echoes.map_err(|error| WireError::system("read echoes", error))?;
        Ok(PingReport { sent, echoes })
    }
}

impl PingReport {
    /// Requests without an answer.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.sent.len() - self.echoes.len()
    }

    /// Requests without an answer that were sent from one moment to another.
    #[must_use]
    pub fn lost_between(&self, from: Moment, to: Moment) -> usize {
        let within = |sent: Moment| sent >= from && sent < to;
        let asked = self.sent.iter().filter(|&&sent| within(sent)).count();
        let answered = self.echoes.iter().filter(|echo| within(echo.sent)).count();
        asked - answered
    }

    /// Round trips, in milliseconds.
    #[must_use]
    pub fn round_trips(&self) -> Sample {
        self.echoes.iter().map(|echo| echo.round_trip).collect()
    }

    /// Round trips of requests sent from one moment to another, in milliseconds.
    #[must_use]
    pub fn round_trips_between(&self, from: Moment, to: Moment) -> Sample {
        let within = self.echoes.iter().filter(|echo| echo.sent >= from && echo.sent < to);
        within.map(|echo| echo.round_trip).collect()
    }
}

/// An echo request. Over IPv6 the kernel fills in the checksum.
fn request(is_ipv4: bool, whose: u64, number: u64, now: Moment) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0] = if is_ipv4 { ECHO_REQUEST } else { ECHO_REQUEST_6 };
    // Identifier and sequence number: for whoever looks at the wire, ours are in the payload.
    bytes[4..6].copy_from_slice(&whose.to_be_bytes()[6..]);
    bytes[6..8].copy_from_slice(&number.to_be_bytes()[6..]);
    let words = [tag(whose), number, now.as_nanos()];
    let payload = &mut bytes[ICMP_BYTES..ICMP_BYTES + PAYLOAD_BYTES];
    for (slot, word) in payload.chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_ne_bytes());
    }
    if is_ipv4 {
        let checksum = internet_checksum(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes
}

/// What marks a request as this process's and this ping's.
fn tag(whose: u64) -> u64 {
    u64::from(std::process::id()) << 32 | whose
}

/// The Internet checksum of an even number of bytes. Source: RFC 1071.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1]));
    let sum = words.sum::<u64>() % u64::from(u16::MAX);
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

/// Steps 1 and 3; `asked` is the number of requests once that is known.
fn read(mut socket: Socket, is_ipv4: bool, whose: u64, asked: &AtomicU64) -> io::Result<Vec<Echo>> {
    let mut bytes = [0; MAX_IP_HEADER + REQUEST_BYTES];
    let mut echoes: Vec<Echo> = Vec::new();
    let mut last = None;
    loop {
        match socket.read(&mut bytes) {
            Ok(length) => {
                let echo = echo(&bytes[..length], is_ipv4, whose, Moment::now());
                let is_new = |echo: &Echo| echoes.iter().rev().all(|old| old.number != echo.number);
                echoes.extend(echo.filter(is_new));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let asked = asked.load(Ordering::Acquire);
        if asked != u64::MAX {
            let now = Moment::now();
            let waited = now - *last.get_or_insert(now);
            if echoes.len() as u64 == asked || waited >= PATIENCE {
                return Ok(echoes);
            }
        }
    }
}

/// The answer in a packet, if it is one to us. Over IPv4 a raw socket gets the IP header too (raw(7)).
fn echo(packet: &[u8], is_ipv4: bool, whose: u64, now: Moment) -> Option<Echo> {
    let header = if is_ipv4 { usize::from(packet.first()? & 0xf) * 4 } else { 0 };
    let icmp = packet.get(header..)?;
    let reply = if is_ipv4 { ECHO_REPLY } else { ECHO_REPLY_6 };
    if *icmp.first()? != reply {
        return None;
    }
    let payload = icmp.get(ICMP_BYTES..ICMP_BYTES + PAYLOAD_BYTES)?;
    let word = |index: usize| u64::from_ne_bytes(std::array::from_fn(|i| payload[index * 8 + i]));
    let sent = Moment::from_nanos(word(2));
    (word(0) == tag(whose)).then(|| Echo { number: word(1), sent, round_trip: now - sent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The example of RFC 1071 section 3: the sum is ddf2.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&example), !0xddf2);
        let whole = request(true, 1, 2, Moment::from_nanos(3));
        assert_eq!(internet_checksum(&whole), 0xffff, "a right checksum sums to nothing");
    }

    #[test]
    fn only_an_answer_to_this_ping_counts() {
        let now = Moment::from_nanos(5_000);
        let mut packet = request(false, 7, 3, Moment::from_nanos(1_000));
        assert_eq!(echo(&packet, false, 7, now), None, "a request is no answer");
        packet[0] = ECHO_REPLY_6;
        assert_eq!(echo(&packet, false, 8, now), None, "another ping's");
        let found = echo(&packet, false, 7, now).expect("an answer");
        assert_eq!((found.number, found.round_trip), (3, Duration::from_nanos(4_000)));
        assert_eq!(echo(&packet[..20], false, 7, now), None, "cut short");
        assert_eq!(echo(&[], true, 7, now), None, "empty");
    }
}
