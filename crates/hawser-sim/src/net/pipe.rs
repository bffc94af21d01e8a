//! One direction of a link.
//!
//! 1. `offer`: a datagram joins the queue, or is dropped at its tail.
//! 2. `depart`: the head has been sent; it is lost, or arrives after the delay, perhaps twice.
//! 3. The next in the queue begins to be sent.

use super::loss::LossState;
use super::spec::Way;
use crate::random::Seeded;
use hawser_core::units::{ByteCount, Ecn, Time};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// IPv4 and UDP headers, bytes.
const HEADERS_V4: usize = 28;
/// IPv6 and UDP headers, bytes.
const HEADERS_V6: usize = 48;

/// A datagram under way. A plain value with its bytes.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Where it comes from, as its receiver sees it.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// The outer codepoint.
    pub ecn: Ecn,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}

impl Datagram {
    /// Bytes of the IP packet.
    pub fn wire_len(&self) -> usize {
        self.bytes.len() + if self.to.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 }
    }
}

/// What became of datagrams so far. Zero at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Counters {
    /// Offered.
    pub offered: u64,
    /// Dropped at the tail of the queue.
    pub dropped: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Vanished in a hole, or for their size.
    pub vanished: u64,
    /// Sent over the link, bytes of IP packets.
    pub sent_bytes: u64,
}

/// What `depart` gives: arrivals with their times, and when the next datagram has been sent.
pub struct Departure {
    /// Arrives then.
    pub arrivals: [Option<(Time, Datagram)>; 2],
    /// The next one departs then.
    pub next: Option<Time>,
    /// It fell into a hole.
    pub vanished: Option<Datagram>,
}

/// One direction of a link. Idle and empty at first; its link owns it.
pub struct Pipe {
    /// What it is like now.
    pub way: Way,
    /// What became of datagrams so far.
    pub counters: Counters,
    queue: VecDeque<Datagram>,
    queued: ByteCount,
    last_arrival: Time,
    loss: LossState,
    rng: Seeded,
}

impl Pipe {
    /// An idle one.
    pub fn new(way: Way, rng: Seeded) -> Self {
        Pipe {
            way,
            counters: Counters::default(),
            queue: VecDeque::new(),
            queued: ByteCount::ZERO,
            last_arrival: Time::ZERO,
            loss: LossState::default(),
            rng,
        }
    }

    /// Step 1. Tells when the datagram will have been sent, if it is the only one.
    pub fn offer(&mut self, now: Time, datagram: Datagram) -> Option<Time> {
        self.counters.offered += 1;
        let len = ByteCount(datagram.wire_len() as u64);
        if datagram.wire_len() > self.way.mtu {
            self.counters.vanished += 1;
            return None;
        }
        // The one that is being sent lies in the queue too, but no longer in its buffer.
        let waiting = self.queue.front().map_or(self.queued, |head| self.queued - ByteCount(head.wire_len() as u64));
        if waiting + len > self.way.queue {
            self.counters.dropped += 1;
            return None;
        }
        self.queued += len;
        self.queue.push_back(datagram);
        (self.queue.len() == 1).then(|| now + self.way.rate.time_for(len))
    }

    /// Steps 2 and 3.
    pub fn depart(&mut self, now: Time) -> Departure {
        let mut departure = Departure { arrivals: [None, None], next: None, vanished: None };
        let Some(datagram) = self.queue.pop_front() else { return departure };
        let len = ByteCount(datagram.wire_len() as u64);
        self.queued -= len;
        self.counters.sent_bytes += len.0;
        if let Some(next) = self.queue.front() {
            departure.next = Some(now + self.way.rate.time_for(ByteCount(next.wire_len() as u64)));
        }
        if self.way.hole {
            self.counters.vanished += 1;
            departure.vanished = Some(datagram);
        } else if self.loss.loses(self.way.loss, &mut self.rng) {
            self.counters.lost += 1;
        } else {
            if self.rng.chance(self.way.duplicates) {
                departure.arrivals[1] = Some((self.arrival(now), datagram.clone()));
            }
            departure.arrivals[0] = Some((self.arrival(now), datagram));
        }
        departure
    }

    fn arrival(&mut self, now: Time) -> Time {
        let at = now + self.way.delay + self.rng.up_to(self.way.jitter);
        if self.way.reorders {
            return at;
        }
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }

    /// Bytes that wait.
    pub fn queued(&self) -> ByteCount {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link;
    use std::time::Duration;

    fn datagram(len: usize) -> Datagram {
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        Datagram { from: address, to: address, ecn: Ecn::NotEct, bytes: vec![0; len] }
    }

    /// Offers datagrams at time zero, and gives the times of arrival, ms.
    fn arrivals(pipe: &mut Pipe, count: usize) -> Vec<f64> {
        let mut next = None;
        for _ in 0..count {
            next = pipe.offer(Time::ZERO, datagram(1_222)).or(next);
        }
        let mut times = Vec::new();
        while let Some(at) = next {
            let departure = pipe.depart(at);
            times.extend(departure.arrivals.iter().flatten().map(|(at, _)| at.as_nanos() as f64 / 1e6));
            next = departure.next;
        }
        times
    }

    #[test]
    fn rate_delay_and_queue_are_as_said() {
        // 1,250 bytes at 10 Mbit/s take 1 ms.
        let spec = link(10.0, 40.0).queue_ms(3.0);
        let mut pipe = Pipe::new(spec.up, Seeded::new(1));
        assert_eq!(arrivals(&mut pipe, 10), [21.0, 22.0, 23.0, 24.0], "one under way, three in the queue");
        assert_eq!(pipe.counters.dropped, 6);
    }

    #[test]
    fn jitter_keeps_the_order_unless_told_otherwise() {
        let sorted = |spec: crate::net::LinkSpec| arrivals(&mut Pipe::new(spec.up, Seeded::new(1)), 200).is_sorted();
        assert!(sorted(link(10.0, 20.0).queue_ms(1e4).jitter(20.0)));
        assert!(!sorted(link(10.0, 20.0).queue_ms(1e4).reordering(20.0)));
    }

    #[test]
    fn holes_and_small_links_swallow() {
        let mut hole = Pipe::new(link(10.0, 20.0).both(|way| way.hole = true).up, Seeded::new(1));
        assert_eq!(arrivals(&mut hole, 5).len(), 0);
        let mut small = Pipe::new(link(10.0, 20.0).mtu(1_249).up, Seeded::new(1));
        assert_eq!(small.offer(Time::ZERO, datagram(1_222)), None);
        assert_eq!((hole.counters.vanished, small.counters.vanished), (5, 1));
        assert!(
            small.offer(Time::ZERO, datagram(1_221)).is_some_and(|at| at > Time::ZERO + Duration::from_micros(900))
        );
    }

    #[test]
    fn duplicates_arrive_twice() {
        let mut pipe = Pipe::new(link(10.0, 20.0).duplicates(1.0).up, Seeded::new(1));
        assert_eq!(arrivals(&mut pipe, 3).len(), 6);
    }
}
