//! One way of a link, as arithmetic on given times: no clock, no device, no sleep.
//!
//! 1. `offer`: a packet arrives; it finds room in the queue, or is dropped.
//! 2. `advance`: the serialiser sends what its rate or trace allows up to a moment. Its schedule is absolute: a packet
//!    starts when the one before ended, however late anybody looked. CoDel looks at whoever starts. On a medium the
//!    turns are given from outside: `take_turn`, `end_turn`.
//! 3. In `flight`: a packet that was sent may be lost, be too long, or have a bit flipped.
//! 4. It flies for its delay and jitter; perhaps as two, perhaps held back.
//! 5. `due`: it has arrived.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::air::Contender;
use super::codel::CodelState;
use super::counters::Counters;
use super::dice::Dice;
use super::jitter::Wander;
use super::loss::LossState;
use super::slab::{Packet, Slab};
use super::spec::Direction;
use super::trace::Replay;
use crate::clock::Moment;

mod flight;

/// A packet in the queue.
#[derive(Debug)]
struct Waiting {
    packet: Packet,
    arrived: Moment,
    /// It flies no sooner, though it had its turn: it may have come later than it is taken for.
    leaves: Moment,
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
    /// When the packet at the head ends, once it has started; never on a medium.
    head_ends: Option<Moment>,
    /// Packets at the head that are being sent.
    sending: usize,
    /// Its part in the contention for a medium.
    pub contender: Contender,
    replay: Replay,
    codel: CodelState,
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
    /// A way that begins at a moment.
    pub(crate) fn new(settings: Direction, now: Moment) -> Self {
        Self {
            dice: Dice::new(settings.seed),
            settings,
            slab: Slab::default(),
            queue: VecDeque::new(),
            head_ends: None,
            sending: 0,
            contender: Contender::default(),
            replay: Replay::new(now),
            codel: CodelState::default(),
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

    /// Step 1: a packet arrives at a moment, and leaves at another at the soonest; moments never go back.
    pub(crate) fn offer(&mut self, packet: Packet, arrived: Moment, leaves: Moment) {
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
        self.queue.push_back(Waiting { packet, arrived, leaves });
        self.counters.queue_bytes += length;
        let most = &mut self.counters.queue_bytes_most;
        *most = self.counters.queue_bytes.max(*most);
        self.advance(arrived);
    }

    fn has_room(&self, length: u64) -> bool {
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.settings.has_room(waiting, self.counters.queue_bytes, length)
    }

    /// Takes out the packet that makes room; none where that is the one that comes. What is being sent stays.
    fn victim(&mut self) -> Option<Packet> {
        if !self.settings.random_drop {
            return None;
        }
        let place = self.sending + self.dice.below(self.queue.len() + 1 - self.sending);
        self.queue.remove(place).map(|waiting| waiting.packet)
    }

    /// A packet for which there was no buffer.
    pub(crate) fn refuse(&mut self) {
        self.counters.packets_in += 1;
        self.counters.dropped_by_queue += 1;
    }

    /// Step 2: sends what the rate or the trace allows up to now; nothing on a medium.
    pub(crate) fn advance(&mut self, now: Moment) {
        while let Some(ends) = self.head_ends.or_else(|| self.start_head(now)) {
            self.head_ends = Some(ends);
            if ends > now {
                return;
            }
            self.head_ends = None;
            self.send(ends);
        }
    }

    /// When the packet at the head will have gone; None where there is none, or it may not start yet.
    fn start_head(&mut self, now: Moment) -> Option<Moment> {
        let starts = self.head_starts().filter(|&starts| starts <= now)?;
        self.drop_stale(starts);
        let head = self.queue.front()?;
        self.sending = 1;
        let (packet, waits) = (head.packet, self.idle_since.max(head.arrived));
        Some(match &self.settings.trace {
            Some(trace) => self.replay.serve(trace, self.wire_bytes(packet), waits),
            None => waits + self.time_to_send(packet),
        })
    }

    /// When the packet at the head may start; None where there is none, and on a medium, which says when.
    fn head_starts(&self) -> Option<Moment> {
        let head = self.queue.front().filter(|_| !self.is_on_air())?;
        let waits = self.idle_since.max(head.arrived);
        Some(self.settings.trace.as_ref().map_or(waits, |trace| self.replay.next(trace, waits)))
    }

    /// Drops from the head what CoDel finds there at a moment; it leaves one packet at least.
    fn drop_stale(&mut self, now: Moment) {
        let Some(codel) = &self.settings.codel else { return };
        let queue = &self.queue;
        let stale = self.codel.drops(codel, now, |place| queue.get(place).map(|waiting| waiting.arrived));
        for Waiting { packet, .. } in self.queue.drain(..stale) {
            self.counters.dropped_by_codel += 1;
            self.counters.queue_bytes -= u64::from(packet.length);
            self.slab.take_back(packet);
        }
    }

    /// The packet at the head has gone.
    fn send(&mut self, ends: Moment) {
        let Some(Waiting { packet, arrived, leaves }) = self.queue.pop_front() else { return };
        self.sending = self.sending.saturating_sub(1);
        self.idle_since = ends;
        self.count_sent(packet, ends - arrived);
        self.launch(packet, ends.max(leaves));
    }

    /// Whether it shares a medium.
    pub(crate) fn is_on_air(&self) -> bool {
        self.settings.medium.is_some()
    }

    /// Since when it waits for a turn; None where nothing waits.
    pub(crate) fn waits_since(&self) -> Option<Moment> {
        self.queue.front().filter(|_| self.sending == 0).map(|head| head.arrived)
    }

    /// A turn begins: how long this many packets at most take.
    pub(crate) fn take_turn(&mut self, starts: Moment, burst: u32) -> Duration {
        self.drop_stale(starts);
        self.sending = self.queue.len().min(burst.max(1) as usize);
        self.queue.iter().take(self.sending).map(|waiting| self.time_to_send(waiting.packet)).sum()
    }

    /// The turn has ended, with the packets gone or in vain.
    pub(crate) fn end_turn(&mut self, ends: Moment, in_vain: bool) {
        if in_vain {
            self.counters.collisions += 1;
            self.sending = 0;
        }
        while self.sending > 0 {
            self.send(ends);
        }
    }

    fn wire_bytes(&self, packet: Packet) -> u32 {
        packet.length.saturating_add(self.settings.overhead)
    }

    fn time_to_send(&self, packet: Packet) -> Duration {
        let bytes = self.wire_bytes(packet).into();
        Duration::from_nanos(self.settings.rate.map_or(0, |rate| rate.time_of(bytes)))
    }

    fn count_sent(&mut self, packet: Packet, queued: Duration) {
        let counters = &mut self.counters;
        counters.queue_bytes -= u64::from(packet.length);
        counters.packets_sent += 1;
        counters.queue_delay_sum += queued;
        counters.queue_delay_most = counters.queue_delay_most.max(queued);
    }

    /// When `advance` or `due` will next have something to do, if they have been called for now.
    pub(crate) fn next_event(&self) -> Option<Moment> {
        let lands = self.flight.peek().map(|next| next.0.lands);
        let head = self.head_ends.or_else(|| self.head_starts());
        [lands, head].into_iter().flatten().min()
    }

    /// Changes the settings; what a started packet has still to send goes on at the new rate, or by the new trace.
    pub(crate) fn change(&mut self, settings: Direction, now: Moment) {
        self.advance(now);
        let old_rate = self.settings.rate.filter(|_| self.settings.trace.is_none());
        let new_trace = settings.trace != self.settings.trace;
        if settings.seed != self.settings.seed {
            self.dice = Dice::new(settings.seed);
        }
        self.settings = settings;
        if new_trace {
            self.replay = Replay::new(now);
            self.idle_since = self.idle_since.max(now);
        }
        if let (Some(ends), Some(head)) = (self.head_ends, self.queue.front()) {
            self.head_ends = Some(match (&self.settings.trace, old_rate) {
                (Some(_), _) if !new_trace => ends,
                (Some(trace), _) => self.replay.serve(trace, self.wire_bytes(head.packet), now),
                (None, Some(old)) => self.goes_on(old.bytes_in(ends - now), now),
                (None, None) => self.goes_on(self.wire_bytes(head.packet).into(), now),
            });
        }
        self.advance(now);
    }

    /// When this many bytes have gone at the rate.
    fn goes_on(&self, bytes: u64, now: Moment) -> Moment {
        now + Duration::from_nanos(self.settings.rate.map_or(0, |rate| rate.time_of(bytes)))
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
        (self.head_ends, self.sending) = (None, 0);
    }

    /// What was counted, and what waits at this moment.
    pub(crate) fn counters(&self, now: Moment) -> Counters {
        // Of a packet that has started it is known when it ends.
        let started = usize::from(self.head_ends.is_some());
        let head = self.queue.front().filter(|_| started > 0).map_or(0, |head| u64::from(head.packet.length));
        let waiting = (self.queue.len() - started) as u64;
        let bytes = self.counters.queue_bytes - head + waiting * u64::from(self.settings.overhead);
        let rest = self.settings.mean_rate().map_or(0, |rate| rate.time_of(bytes));
        Counters {
            queue_packets: self.queue.len() as u64,
            queue_delay: self.head_ends.map_or(Duration::ZERO, |ends| ends - now) + Duration::from_nanos(rest),
            ..self.counters
        }
    }
}

#[cfg(test)]
mod tests;
