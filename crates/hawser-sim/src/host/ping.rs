//! Asks a host far away whether it is there, and how long that takes.

use super::packets;
use super::{Host, Ingress};
use hawser_core::packet::{Offload, checksum};
use hawser_core::units::Time;
use std::net::Ipv4Addr;
use std::time::Duration;

/// An echo request: IPv4, ICMP (RFC 792), no payload, bytes.
const PING: usize = 28;
/// ICMP types (RFC 792).
const ECHO: u8 = 8;
const REPLY: u8 = 0;

/// Sends echo requests. None is out at first; its world owns it.
pub struct Ping {
    from: Ipv4Addr,
    to: Ipv4Addr,
    every: Duration,
    until: Time,
    next: Time,
    sent: Vec<Time>,
    /// The round trips of those that were answered, by number; `None` for the others.
    pub round_trips: Vec<Option<Duration>>,
}

impl Ping {
    /// A ping `every` this often.
    pub fn new(from: Ipv4Addr, to: Ipv4Addr, every: Duration, start: Time, until: Time) -> Self {
        Ping { from, to, every, until, next: start, sent: Vec::new(), round_trips: Vec::new() }
    }

    /// How many were not answered, of those sent until `before`.
    pub fn lost(&self, before: Time) -> usize {
        self.sent.iter().zip(&self.round_trips).filter(|(at, trip)| **at < before && trip.is_none()).count()
    }

    /// The longest time from `from` to `to` in which no answer came.
    pub fn longest_gap(&self, from: Time, to: Time) -> Duration {
        let came = self.sent.iter().zip(&self.round_trips).filter_map(|(at, trip)| trip.map(|trip| *at + trip));
        let mut came: Vec<Time> = came.filter(|at| (from..to).contains(at)).chain([from, to]).collect();
        came.sort_unstable();
        came.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
    }

    /// The round trip that `share` (0 to 1) of those sent from `from` to `to` stayed below.
    pub fn quantile(&self, from: Time, to: Time, share: f64) -> Duration {
        let sent = self.sent.iter().zip(&self.round_trips).filter(|(at, _)| (from..to).contains(*at));
        let mut trips: Vec<Duration> = sent.filter_map(|(_, trip)| *trip).collect();
        trips.sort_unstable();
        let at = (trips.len() as f64 * share) as usize;
        trips.get(at.min(trips.len().saturating_sub(1))).copied().unwrap_or(Duration::MAX)
    }
}

impl Host for Ping {
    fn receive(&mut self, now: Time, packet: &[u8], _: bool) {
        let reply = packet.len() >= PING && packet[9] == packets::ICMP && packet[20] == REPLY;
        let number = usize::from(u16::from_be_bytes([packet[26], packet[27]]));
        if reply && number < self.sent.len() {
            self.round_trips[number].get_or_insert(now.since(self.sent[number]));
        }
    }

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        while self.next <= now && self.next < self.until {
            let number = self.sent.len() as u16;
            let (from, to) = (self.from, self.to);
            ingress.send(Offload::default(), |out| {
                packets::ipv4(out, from, to, packets::ICMP, 8);
                out[20..PING].fill(0);
                out[20] = ECHO;
                out[26..28].copy_from_slice(&number.to_be_bytes());
                let sum = !checksum::sum(&out[20..PING]);
                out[22..24].copy_from_slice(&sum.to_be_bytes());
                PING
            });
            self.sent.push(now);
            self.round_trips.push(None);
            self.next = self.next + self.every;
        }
    }

    fn deadline(&self) -> Option<Time> {
        (self.next < self.until).then_some(self.next)
    }
}

/// Answers echo requests. Nothing is due at first; its world owns it.
#[derive(Default)]
pub struct Echo {
    replies: Vec<Vec<u8>>,
}

impl Host for Echo {
    fn receive(&mut self, _: Time, packet: &[u8], _: bool) {
        if packet.len() < PING || packet[9] != packets::ICMP || packet[20] != ECHO {
            return;
        }
        let mut reply = packet.to_vec();
        let (from, to) = (&packet[16..20], &packet[12..16]);
        reply[12..16].copy_from_slice(from);
        reply[16..20].copy_from_slice(to);
        reply[20] = REPLY;
        reply[22..24].fill(0);
        let sum = !checksum::sum(&reply[20..]);
        reply[22..24].copy_from_slice(&sum.to_be_bytes());
        self.replies.push(reply);
    }

    fn poll(&mut self, _: Time, ingress: &mut Ingress<'_>) {
        for reply in self.replies.drain(..) {
            ingress.send(Offload::default(), |out| {
                out[..reply.len()].copy_from_slice(&reply);
                reply.len()
            });
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}
