//! One direction of a link.
//!
//! 1. `offer`: a parcel joins the queue, or is dropped at its tail.
//! 2. `depart`: the head has been sent; it is lost, or arrives after the delay, perhaps twice.
//! 3. The next in the queue begins to be sent.
//! 4. `change`: the way is another from now on; what is being sent goes on at the new rate.
//!
//! Whoever owns the pipe calls `depart` at each [`Due`] that it is given; one that a change made invalid does nothing.

use super::loss::LossState;
use super::recording::BYTE;
use super::spec::Way;
use crate::random::Seeded;
use hawser_core::units::{ByteCount, Ecn, Time};
use hawser_core::wire::header::DatagramKind;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// IPv4 and UDP headers, bytes.
const HEADERS_V4: usize = 28;
/// IPv6 and UDP headers, bytes.
const HEADERS_V6: usize = 48;

/// What a pipe carries.
pub trait Parcel: Clone {
    /// Bytes of the IP packet.
    fn wire_len(&self) -> usize;
    /// Its bytes, as far as they can be changed on the way.
    fn bytes(&mut self) -> &mut [u8];
}

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
    /// Whether it is one of a session; else it is of a handshake.
    pub fn is_data(&self) -> bool {
        self.bytes.first() == Some(&DatagramKind::Data.first_byte())
    }
}

impl Parcel for Datagram {
    fn wire_len(&self) -> usize {
        self.bytes.len() + if self.to.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// An IP packet, without a tunnel around it.
impl Parcel for Vec<u8> {
    fn wire_len(&self) -> usize {
        self.len()
    }

    fn bytes(&mut self) -> &mut [u8] {
        self
    }
}

/// What became of datagrams so far. Zero at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Counters {
    /// Offered.
    pub offered: u64,
    /// The same, bytes of IP packets.
    pub offered_bytes: u64,
    /// Dropped at the tail of the queue.
    pub dropped: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Vanished in a hole, or for their size.
    pub vanished: u64,
    /// Arrive with a wrong bit.
    pub damaged: u64,
    /// Sent over the link, bytes of IP packets.
    pub sent_bytes: u64,
}

/// When `depart` is to be called next, and for which beginning or change of rate. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// Then.
    pub at: Time,
    /// Later ones make it invalid.
    pub number: u64,
}

/// What `depart` gives: arrivals with their times, and when the next one has been sent.
pub struct Departure<P> {
    /// Arrives then.
    pub arrivals: [Option<(Time, P)>; 2],
    /// The next one departs then.
    pub next: Option<Due>,
    /// It fell into a hole.
    pub vanished: Option<P>,
}

/// One direction of a link. Idle and empty at first; its link owns it.
pub struct Pipe<P = Datagram> {
    /// What it is like now; its rate is changed by `change` only.
    pub way: Way,
    /// What became of datagrams so far.
    pub counters: Counters,
    queue: VecDeque<P>,
    queued: ByteCount,
    /// Of the head: the work left at that moment.
    left: u128,
    since: Time,
    due: Due,
    last_arrival: Time,
    loss: LossState,
    rng: Seeded,
}

impl<P: Parcel> Pipe<P> {
    /// A pipe like `way`.
    pub fn new(way: Way, rng: Seeded) -> Self {
        Pipe {
            way,
            counters: Counters::default(),
            queue: VecDeque::new(),
            queued: ByteCount::ZERO,
            left: 0,
            since: Time::ZERO,
            due: Due { at: Time::NEVER, number: 0 },
            last_arrival: Time::ZERO,
            loss: LossState::default(),
            rng,
        }
    }

    /// Step 1. Tells when it departs if the pipe was idle.
    pub fn offer(&mut self, now: Time, parcel: P) -> Option<Due> {
        self.counters.offered += 1;
        let len = ByteCount(parcel.wire_len() as u64);
        self.counters.offered_bytes += len.0;
        if parcel.wire_len() > self.way.mtu {
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
        self.queue.push_back(parcel);
        if self.queue.len() == 1 { self.begin(now) } else { None }
    }

    /// Steps 2 and 3.
    pub fn depart(&mut self, now: Time, due: Due) -> Departure<P> {
        let mut departure = Departure { arrivals: [None, None], next: None, vanished: None };
        let Some(mut parcel) = self.queue.pop_front_if(|_| due == self.due) else { return departure };
        let len = ByteCount(parcel.wire_len() as u64);
        self.queued -= len;
        self.counters.sent_bytes += len.0;
        departure.next = self.begin(now);
        if self.way.hole {
            self.counters.vanished += 1;
            departure.vanished = Some(parcel);
        } else if self.loss.loses(self.way.loss, &mut self.rng) {
            self.counters.lost += 1;
        } else {
            if self.rng.chance(self.way.bit_errors) {
                self.damage(parcel.bytes());
            }
            if self.rng.chance(self.way.duplicates) {
                departure.arrivals[1] = Some((self.arrival(now), parcel.clone()));
            }
            departure.arrivals[0] = Some((self.arrival(now), parcel));
        }
        departure
    }

    /// One bit is another.
    fn damage(&mut self, bytes: &mut [u8]) {
        let bit = self.rng.below(8 * bytes.len() as u64);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        self.counters.damaged += 1;
    }

    /// Step 3. Tells when the head departs.
    fn begin(&mut self, now: Time) -> Option<Due> {
        let head = self.queue.front()?;
        (self.left, self.since) = (head.wire_len() as u128 * BYTE, now);
        self.renew()
    }

    fn renew(&mut self) -> Option<Due> {
        self.due = Due { at: self.way.finish(self.since, self.left), number: self.due.number + 1 };
        Some(self.due).filter(|due| due.at < Time::NEVER)
    }

    /// Step 4. Tells when the head departs now, in the place of what was said before.
    pub fn change(&mut self, now: Time, change: impl FnOnce(&mut Way)) -> Option<Due> {
        let done = self.way.work(self.since, now);
        change(&mut self.way);
        if self.queue.is_empty() {
            return None;
        }
        (self.left, self.since) = (self.left - done.min(self.left), now);
        self.renew()
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
    use crate::net::spec::mbit_rate;
    use crate::net::{Recording, link};
    use hawser_core::units::Rate;
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
            let departure = pipe.depart(at.at, at);
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
    fn what_is_being_sent_goes_on_at_another_rate_and_waits_while_it_is_stalled() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut pipe = Pipe::new(link(1.0, 0.0).up, Seeded::new(1));
        let slow = pipe.offer(at(0), datagram(1_222)).expect("it begins to be sent");
        assert_eq!(slow.at, at(10));
        let fast = pipe.change(at(5), |way| way.set_rate(10.0)).expect("it goes on");
        assert_eq!(fast.at, at(5) + Duration::from_micros(500), "half of it at ten times the rate");
        assert!(pipe.depart(slow.at, slow).arrivals[0].is_none(), "what was due before does nothing");
        assert_eq!(pipe.change(at(5), |way| way.stalled = true), None);
        let on = pipe.change(at(9), |way| way.stalled = false).expect("it goes on");
        assert_eq!(on.at, at(9) + Duration::from_micros(500));
        assert!(pipe.depart(on.at, on).arrivals[0].is_some());
    }

    #[test]
    fn a_recorded_rate_is_followed_and_what_it_keeps_is_released() {
        let ms = Duration::from_millis;
        let steps = [(ms(10), mbit_rate(10.0)), (ms(30), Rate::ZERO), (ms(10), mbit_rate(5.0))];
        let recording = Recording::new(steps).expect("steps");
        let spec = link(1.0, 0.0).down(|way| way.follow(recording, 1e4));
        let times = arrivals(&mut Pipe::new(spec.down, Seeded::new(1)), 13);
        assert_eq!(times[8..], [9.0, 10.0, 42.0, 44.0, 46.0]);
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
            small
                .offer(Time::ZERO, datagram(1_221))
                .is_some_and(|due| due.at > Time::ZERO + Duration::from_micros(900))
        );
    }

    #[test]
    fn a_bit_error_changes_one_bit() {
        let mut pipe = Pipe::new(link(10.0, 20.0).both(|way| way.bit_errors = 1.0).up, Seeded::new(1));
        let due = pipe.offer(Time::ZERO, datagram(1_222)).expect("it begins to be sent");
        let (_, came) = pipe.depart(due.at, due).arrivals[0].take().expect("it arrives");
        assert_eq!(came.bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        assert_eq!(pipe.counters.damaged, 1);
    }

    #[test]
    fn duplicates_arrive_twice() {
        let mut pipe = Pipe::new(link(10.0, 20.0).duplicates(1.0).up, Seeded::new(1));
        assert_eq!(arrivals(&mut pipe, 3).len(), 6);
    }
}
