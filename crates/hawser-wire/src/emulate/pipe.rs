//! One way of a link, as arithmetic on given times: no clock, no device, no sleep.
//!
//! 1. `offer`: a packet arrives; it finds room in the queue, or is dropped.
//! 2. `advance`: the serialiser sends what its rate allows up to a moment. Its schedule is absolute: a packet
//!    starts when the one before ended, however late anybody looked.
//! 3. A packet that was sent may be lost, or be too long.
//! 4. It flies for its delay and jitter; perhaps as two.
//! 5. `due`: it has arrived.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::counters::Counters;
use super::dice::Dice;
use super::jitter::Wander;
use super::loss::LossState;
use super::slab::{Packet, Slab};
use super::spec::Direction;
use crate::clock::Moment;

/// A packet in the queue.
#[derive(Debug)]
struct Waiting {
    packet: Packet,
    arrived: Moment,
}

/// A packet on its way; ordered by arrival, then by sending.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    lands: Moment,
    number: u64,
    packet: Packet,
}

/// One way of a link. Starts empty and idle. One owner: the link's thread.
#[derive(Debug)]
pub(crate) struct Pipe {
    settings: Direction,
    pub slab: Slab,
    queue: VecDeque<Waiting>,
    /// When the packet at the head ends, once it has started.
    head_ends: Option<Moment>,
    /// When the last packet sent ended.
    idle_since: Moment,
    flight: BinaryHeap<Reverse<Flying>>,
    /// The latest landing so far: without reordering nothing lands before it.
    last_landing: Moment,
    number: u64,
    black_hole: bool,
    wander: Wander,
    loss: LossState,
    dice: Dice,
    counters: Counters,
}

impl Pipe {
    pub(crate) fn new(settings: Direction) -> Self {
        Self {
            dice: Dice::new(settings.seed),
            settings,
            slab: Slab::default(),
            queue: VecDeque::new(),
            head_ends: None,
            idle_since: Moment::default(),
            flight: BinaryHeap::new(),
            last_landing: Moment::default(),
            number: 0,
            black_hole: false,
            wander: Wander::default(),
            loss: LossState::default(),
            counters: Counters::default(),
        }
    }

    /// Step 1: a packet arrives at a moment; moments never go back.
    pub(crate) fn offer(&mut self, packet: Packet, arrived: Moment) {
        self.advance(arrived);
        let length = u64::from(packet.length);
        self.counters.packets_in += 1;
        self.counters.bytes_in += length;
        while !self.has_room(length) {
            self.counters.dropped_by_queue += 1;
            let Some(dropped) = self.victim() else {
                self.slab.take_back(packet);
                return;
            };
            self.counters.queue_bytes -= u64::from(dropped.length);
            self.slab.take_back(dropped);
        }
        self.queue.push_back(Waiting { packet, arrived });
        self.counters.queue_bytes += length;
        let most = &mut self.counters.queue_bytes_most;
        *most = self.counters.queue_bytes.max(*most);
        self.advance(arrived);
    }

    fn has_room(&self, length: u64) -> bool {
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.settings.has_room(waiting, self.counters.queue_bytes, length)
    }

    /// Takes out the packet that makes room; none where that is the one that comes. The head is being sent.
    fn victim(&mut self) -> Option<Packet> {
        if !self.settings.random_drop {
            return None;
        }
        let place = 1 + self.dice.below(self.queue.len());
        self.queue.remove(place).map(|waiting| waiting.packet)
    }

    /// A packet for which there was no buffer.
    pub(crate) fn refuse(&mut self) {
        self.counters.packets_in += 1;
        self.counters.dropped_by_queue += 1;
    }

    /// Step 2: sends what the rate allows up to now.
    pub(crate) fn advance(&mut self, now: Moment) {
        while let Some(head) = self.queue.front() {
            let ends = match self.head_ends {
                Some(ends) => ends,
                None => {
                    let starts = self.idle_since.max(head.arrived);
                    starts + self.time_to_send(head.packet)
                }
            };
            self.head_ends = Some(ends);
            if ends > now {
                return;
            }
            let Waiting { packet, arrived } = self.queue.pop_front().expect("has a front");
            self.head_ends = None;
            self.idle_since = ends;
            self.count_sent(packet, ends - arrived);
            self.launch(packet, ends);
        }
    }

    fn time_to_send(&self, packet: Packet) -> Duration {
        let bytes = u64::from(packet.length) + u64::from(self.settings.overhead);
        Duration::from_nanos(self.settings.rate.map_or(0, |rate| rate.time_of(bytes)))
    }

    fn count_sent(&mut self, packet: Packet, queued: Duration) {
        let counters = &mut self.counters;
        counters.queue_bytes -= u64::from(packet.length);
        counters.packets_sent += 1;
        counters.queue_delay_sum += queued;
        counters.queue_delay_most = counters.queue_delay_most.max(queued);
    }

    /// Steps 3 and 4: what becomes of a packet whose last bit was sent.
    fn launch(&mut self, packet: Packet, sent: Moment) {
        if self.settings.longest.is_some_and(|longest| packet.length > longest) {
            self.counters.too_long += 1;
            self.slab.take_back(packet);
            return;
        }
        if self.loss.loses(self.settings.loss, &mut self.dice) {
            self.counters.lost += 1;
            self.slab.take_back(packet);
            return;
        }
        let copy = self.dice.happens(self.settings.duplicate);
        let copy = copy.then(|| self.slab.copy(packet)).flatten();
        self.fly(packet, sent);
        if let Some(copy) = copy {
            self.counters.duplicated += 1;
            self.fly(copy, sent);
        }
    }

    fn fly(&mut self, packet: Packet, sent: Moment) {
        let mut lands = sent + self.settings.delay;
        let mut ordered = true;
        if let Some(jitter) = &self.settings.jitter {
            let extra = self.wander.extra(jitter, sent, &mut self.dice);
            lands = lands.moved(extra).max(sent);
            ordered = !jitter.reorder;
        }
        if ordered {
            lands = lands.max(self.last_landing);
        }
        self.last_landing = self.last_landing.max(lands);
        self.number += 1;
        let number = self.number;
        self.flight.push(Reverse(Flying { lands, number, packet }));
    }

    /// Step 5: the next packet that has arrived by now; the caller gives its buffer back.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Packet> {
        while self.flight.peek().is_some_and(|next| next.0.lands <= now) {
            let Reverse(Flying { packet, .. }) = self.flight.pop()?;
            if !self.black_hole {
                return Some(packet);
            }
            self.counters.vanished += 1;
            self.slab.take_back(packet);
        }
        None
    }

    /// Counts a packet that `due` returned.
    pub(crate) fn delivered(&mut self, packet: Packet, taken: bool) {
        if taken {
            self.counters.packets_out += 1;
            self.counters.bytes_out += u64::from(packet.length);
        } else {
            self.counters.cut += 1;
        }
        self.slab.take_back(packet);
    }

    /// When `advance` or `due` will next have something to do, if they have been called for now.
    pub(crate) fn next_event(&self) -> Option<Moment> {
        let lands = self.flight.peek().map(|next| next.0.lands);
        [lands, self.head_ends].into_iter().flatten().min()
    }

    /// Changes the settings; what a started packet has still to send goes on at the new rate.
    pub(crate) fn change(&mut self, settings: Direction, now: Moment) {
        self.advance(now);
        let old_rate = self.settings.rate;
        if settings.seed != self.settings.seed {
            self.dice = Dice::new(settings.seed);
        }
        self.settings = settings;
        if let (Some(ends), Some(old)) = (self.head_ends, old_rate) {
            let rest = old.bytes_in(ends - now);
            let time = self.settings.rate.map_or(0, |rate| rate.time_of(rest));
            self.head_ends = Some(now + Duration::from_nanos(time));
        }
        self.advance(now);
    }

    /// Whether what arrives vanishes.
    pub(crate) fn set_black_hole(&mut self, on: bool) {
        self.black_hole = on;
    }

    /// Loses everything on the way: the line was cut.
    pub(crate) fn cut(&mut self) {
        let waiting = self.queue.drain(..).map(|waiting| waiting.packet);
        let flying = self.flight.drain().map(|Reverse(flying)| flying.packet);
        for packet in waiting.chain(flying) {
            self.counters.cut += 1;
            self.slab.take_back(packet);
        }
        self.counters.queue_bytes = 0;
        self.head_ends = None;
    }

    /// What was counted, and what waits at this moment.
    pub(crate) fn counters(&self, now: Moment) -> Counters {
        let overhead = u64::from(self.settings.overhead);
        let behind_head = self.queue.iter().skip(1).len() as u64;
        let head = self.queue.front().map_or(0, |head| u64::from(head.packet.length));
        let bytes = self.counters.queue_bytes - head + behind_head * overhead;
        let rest = self.settings.rate.map_or(0, |rate| rate.time_of(bytes));
        Counters {
            queue_packets: self.queue.len() as u64,
            queue_delay: self.head_ends.map_or(Duration::ZERO, |ends| ends - now) + Duration::from_nanos(rest),
            ..self.counters
        }
    }
}

#[cfg(test)]
mod tests;
