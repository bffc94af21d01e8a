//! A constant-rate UDP flow with sequence numbers, one way.
//!
//! 1. A thread in the receiver's namespace binds the destination's port.
//! 2. A thread in the sender's namespace sends on an absolute schedule; each datagram carries its number and time.
//! 3. The receiver goes on until the sender has ended and nothing has come for a while.
//!
//! Both threads ask for a real-time priority: they are instruments.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::{Sample, listener};
use crate::clock::{Moment, SECOND_NS, keep_time};
use crate::emulate::Rate;
use crate::error::WireError;
use crate::namespace::Namespace;

/// Number and time at the head of each payload.
pub(super) const STAMP_BYTES: usize = size_of::<u64>() * 2;
/// A sender wakes at most this often, and sends what is due: finer costs more processor time than sending.
const SENDER_GRAIN: Duration = Duration::from_micros(100);
/// How often the receiver looks whether the sender has ended.
const RECEIVER_GLANCE: Duration = Duration::from_millis(20);
/// Bytes the receiver's socket holds, so that a late receiver loses nothing: 64 ms of 500 Mbit/s.
const RECEIVER_BUFFER: usize = 4 << 20;
/// The largest UDP payload over IPv4. Source: RFC 768, RFC 791.
pub(super) const MAX_PAYLOAD: usize = 65_507;

/// A flow to be sent. Plain data.
#[derive(Clone, Debug)]
pub struct UdpFlow {
    /// Where the sender runs.
    pub from: Namespace,
    /// Where the receiver runs.
    pub to: Namespace,
    /// The receiver's address and port.
    pub destination: SocketAddr,
    /// UDP payload in bytes, at least 16.
    pub payload: usize,
    /// Rate of the IP packets, headers included.
    pub rate: Rate,
    /// How long to send.
    pub duration: Duration,
    /// How long the receiver waits for stragglers after the sender has ended and nothing comes.
    pub linger: Duration,
}

/// A datagram that arrived. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// From 0, in the order of sending.
    pub number: u64,
    /// When it was sent.
    pub sent: Moment,
    /// When it was received.
    pub received: Moment,
}

/// What came of a flow. Plain data.
#[derive(Clone, Debug, Default)]
pub struct UdpReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that the sender's kernel refused (no route, interface down); they count as sent.
    pub refused: u64,
    /// IP bytes of each.
    pub packet_bytes: u64,
    /// What arrived, in the order of arrival.
    pub arrivals: Vec<Arrival>,
}

/// A flow under way; [`RunningUdp::finish`] waits for its end. Dropped, it ends by itself.
/// One owner.
#[derive(Debug)]
pub struct RunningUdp {
    sender: JoinHandle<(u64, u64)>,
    receiver: JoinHandle<io::Result<Vec<Arrival>>>,
    packet_bytes: u64,
}

impl UdpFlow {
    /// Starts the flow.
    ///
    /// # Errors
    /// Where the port cannot be bound, or a namespace not entered.
    pub fn start(&self) -> Result<RunningUdp, WireError> {
        let system = |error| WireError::system(format!("start udp to {}", self.destination), error);
        let inbound = self.to.run(|| bind_receiver(self.destination))?.map_err(system)?;
        let outbound = self.from.run(|| UdpSocket::bind((any(self.destination), 0)))?.map_err(system)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (flow, end) = (self.clone(), Arc::clone(&ended));
        let linger = self.linger;
        let receiver = listener::start(&self.to, "udp-receive", move || receive(&inbound, &ended, linger))?;
        let sender = self.from.spawn_thread("udp-send", move || {
            keep_time();
            let counted = flow.send(&outbound);
            end.store(true, Ordering::Release);
            counted
        })?;
        Ok(RunningUdp { sender, receiver, packet_bytes: self.packet_bytes() })
    }

    /// Runs the flow to its end.
    ///
    /// # Errors
    /// As [`UdpFlow::start`].
    pub fn run(&self) -> Result<UdpReport, WireError> {
        self.start()?.finish()
    }

    /// IP bytes of a datagram. Sources: RFC 791, RFC 8200, RFC 768.
    fn packet_bytes(&self) -> u64 {
        let headers = if self.destination.is_ipv4() { 20 + 8 } else { 40 + 8 };
        self.payload.clamp(STAMP_BYTES, MAX_PAYLOAD) as u64 + headers
    }

    /// Step 2: how many were sent, and how many of them refused.
    fn send(&self, socket: &UdpSocket) -> (u64, u64) {
        let mut payload = vec![0; self.payload.clamp(STAMP_BYTES, MAX_PAYLOAD)];
        let interval = self.rate.time_of(self.packet_bytes());
        let start = Moment::now();
        let end = start + self.duration;
        let (mut number, mut refused) = (0_u64, 0);
        loop {
            let due = start + Duration::from_nanos(interval.saturating_mul(number));
            if due >= end {
                return (number, refused);
            }
            let mut now = Moment::now();
            if due > now {
                due.max(now + SENDER_GRAIN).sleep_until();
                now = Moment::now();
            }
            payload[..8].copy_from_slice(&number.to_ne_bytes());
            payload[8..STAMP_BYTES].copy_from_slice(&now.as_nanos().to_ne_bytes());
            refused += u64::from(socket.send_to(&payload, self.destination).is_err());
            number += 1;
        }
    }
}

impl RunningUdp {
    /// Waits for the flow's end.
    ///
    /// # Errors
    /// Where the receiver's socket failed.
    ///
    /// # Panics
    /// Where one of the flow's threads did.
    pub fn finish(self) -> Result<UdpReport, WireError> {
        let (sent, refused) = self.sender.join().expect("the udp sender runs to its end");
        let arrivals = self.receiver.join().expect("the udp receiver runs to its end");
        Ok(UdpReport {
            sent,
            refused,
            packet_bytes: self.packet_bytes,
            arrivals: arrivals.map_err(|error| WireError::system("receive udp", error))?,
        })
    }
}

impl UdpReport {
    /// Datagrams sent that never arrived.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let arrived: HashSet<u64> = self.arrivals.iter().map(|arrival| arrival.number).collect();
        self.sent - arrived.len() as u64
    }

    /// Arrivals of a datagram that had arrived before.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.arrivals.len() as u64 + self.lost() - self.sent
    }

    /// Arrivals after one that was sent later.
    #[must_use]
    pub fn overtaken(&self) -> usize {
        let mut latest = 0;
        let mut is_late = |arrival: &&Arrival| {
            latest = latest.max(arrival.number);
            arrival.number < latest
        };
        self.arrivals.iter().filter(|arrival| is_late(arrival)).count()
    }

    /// One-way times, in milliseconds.
    #[must_use]
    pub fn delays(&self) -> Sample {
        self.arrivals.iter().map(|arrival| arrival.received - arrival.sent).collect()
    }

    /// Rate of IP packets from the first arrival to the last, in bit/s; None with fewer than two.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes and nanoseconds of one run")]
    pub fn received_rate(&self) -> Option<f64> {
        let (first, last) = (self.arrivals.first()?, self.arrivals.last()?);
        let bits = (self.arrivals.len() as u64 - 1) * self.packet_bytes * 8;
        let time = (last.received - first.received).as_nanos();
        (time > 0).then(|| bits as f64 * SECOND_NS as f64 / time as f64)
    }

    /// The same where the rate is one all the time: the slope of the line of least squares through all arrivals. The
    /// first and the last alone would measure how late each of them was read.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes and packets of one run")]
    pub fn steady_rate(&self) -> Option<f64> {
        let first = self.arrivals.first()?.received;
        let middle = (self.arrivals.len() - 1) as f64 / 2.0;
        let (mut late, mut square) = (0.0, 0.0);
        for (place, arrival) in self.arrivals.iter().enumerate() {
            let off = place as f64 - middle;
            late += off * (arrival.received - first).as_secs_f64();
            square += off * off;
        }
        (late > 0.0).then(|| (self.packet_bytes * 8) as f64 * square / late)
    }

    /// The longest time between two arrivals; zero with fewer than two.
    #[must_use]
    pub fn longest_gap(&self) -> Duration {
        let gaps = self.arrivals.windows(2).map(|pair| pair[1].received - pair[0].received);
        gaps.max().unwrap_or_default()
    }
}

/// Step 1.
pub(super) fn bind_receiver(destination: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((any(destination), destination.port()))?;
    set_socket_recv_buffer_size_force(&socket, RECEIVER_BUFFER)?;
    socket.set_read_timeout(Some(RECEIVER_GLANCE))?;
    Ok(socket)
}

/// Any address of the destination's family: sockets so bound outlast an interface that goes down.
pub(super) fn any(destination: SocketAddr) -> IpAddr {
    match destination {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Step 3.
fn receive(socket: &UdpSocket, ended: &AtomicBool, linger: Duration) -> io::Result<Vec<Arrival>> {
    let mut arrivals = Vec::new();
    let mut payload = vec![0; MAX_PAYLOAD];
    let mut last = Moment::now();
    loop {
        match socket.recv(&mut payload) {
            Ok(length) if length >= STAMP_BYTES => {
                last = Moment::now();
                let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| payload[at + i]));
                arrivals.push(Arrival { number: word(0), sent: Moment::from_nanos(word(8)), received: last });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !ended.load(Ordering::Acquire) {
                    last = Moment::now();
                } else if Moment::now() - last >= linger {
                    return Ok(arrivals);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate of a packet of 1000 bytes each millisecond for a second, each read at a millisecond, over what it is.
    fn share(read: fn(u64) -> u64) -> Option<f64> {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let arrival = |number: u64| Arrival { number, sent: at(number), received: at(read(number)) };
        let arrivals = (0..1000).map(arrival).collect();
        let report = UdpReport { sent: 1000, refused: 0, packet_bytes: 1000, arrivals };
        Some(report.steady_rate()? / 8e6)
    }

    #[test]
    fn a_rate_is_hardly_another_where_some_are_read_late() {
        type Read = fn(u64) -> u64;
        let table: [(Read, f64); 4] = [
            (|number| number, 1e-9),
            (|number| number.max(30), 0.003),
            (|number| if (500..530).contains(&number) { 530 } else { number }, 0.003),
            (|number| if number < 970 { number } else { 1000 }, 0.003),
        ];
        for (read, most) in table {
            let share = share(read).expect("a thousand arrived");
            assert!((share - 1.0).abs() < most, "{share}");
        }
        assert_eq!(share(|_| 7), None);
        assert_eq!(UdpReport::default().steady_rate(), None);
    }
}
