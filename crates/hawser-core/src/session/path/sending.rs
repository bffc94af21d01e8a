//! What leaves by a path: its numbers, what is remembered of it, and what window and pacer let go.
//!
//! 1. `next_number` and `write_header` begin a datagram; `remember` and its sisters note what it carried, until it is
//!    acknowledged or lost.
//! 2. `on_batch_sent` and `note_pause` tell controller and pacer what was sent, or that nothing was there.
//! 3. `budget` says how many bytes may go now, `ready_in` when the next may.

use super::{Content, Path, size_of_datagram};
use crate::congestion::SocketState;
use crate::congestion::sampler::Stamp;
use crate::path::sent::{SentPacket, SentPackets};
use crate::session::hedge::SparseInFlight;
use crate::units::{ByteCount, PacketNumber, Time};
use crate::wire::{DATA_HEADER_LEN, DataHeader, TruncatedNumber};
use std::time::Duration;

/// What left by a path and is not settled. Empty at first; its path owns it, and through it the segments that it
/// answers for.
pub(in crate::session) struct Flight {
    pub sent: SentPackets<Stamp, Content>,
    next_number: PacketNumber,
    /// What of it is of sparse flows.
    pub sparse: SparseInFlight,
    /// The number above the last one reinjected while the fastest path was idle: what lies below is not looked at
    /// again.
    pub reinjected: PacketNumber,
}

impl Flight {
    pub fn new() -> Self {
        Flight {
            sent: SentPackets::new(),
            next_number: PacketNumber::default(),
            sparse: SparseInFlight::default(),
            reinjected: PacketNumber::default(),
        }
    }

    /// The next packet number, used by the caller.
    pub fn next_number(&mut self) -> PacketNumber {
        let number = self.next_number;
        self.next_number = number.next();
        number
    }

    /// The number that `next_number` gives next.
    pub fn peek_number(&self) -> PacketNumber {
        self.next_number
    }

    /// The last `count` datagrams leave as one train.
    pub fn join_train(&mut self, count: u16) {
        self.sent.join_train(PacketNumber(self.next_number.0.saturating_sub(count.into())));
    }
}

/// When a path had room and nothing was there for it. Never at first; its path owns it.
#[derive(Default)]
pub(in crate::session) struct Pauses {
    on: bool,
    /// Since when that is so, pacing apart.
    since: Option<Time>,
    /// How long that was so before.
    before: Duration,
}

impl Pauses {
    /// Whether it is so.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// For how long altogether.
    pub fn total(&self, now: Time) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    fn begin(&mut self, paced_at: impl FnOnce() -> Time) {
        self.on = true;
        self.since.get_or_insert_with(paced_at);
    }

    /// Something is there. Tells how long the pause was.
    fn end(&mut self, now: Time) -> Duration {
        self.on = false;
        let rested = self.since.take().map_or(Duration::ZERO, |since| now.since(since));
        self.before += rested;
        rested
    }

    /// The path begins again: whether it pauses is to be seen anew.
    pub fn forget(&mut self) {
        self.on = false;
    }
}

impl Path {
    /// Writes the header of datagram `number` to the front of `out`.
    pub fn write_header(&self, number: PacketNumber, out: &mut [u8]) {
        let header = DataHeader { label: self.label, number: TruncatedNumber::of(number) };
        out[..DATA_HEADER_LEN].copy_from_slice(&header.encode());
    }

    /// Step 6 out: remembers a datagram with inner bytes. Tells what it weighs on the wire.
    pub fn remember(&mut self, now: Time, number: PacketNumber, size: usize, content: Content) -> ByteCount {
        self.remember_as(now, number, size, true, true, content)
    }

    /// Remembers a datagram of control frames, which counts towards the window only if it is acknowledged.
    pub fn remember_control(
        &mut self,
        now: Time,
        number: PacketNumber,
        size: usize,
        elicits: bool,
        counts: bool,
        content: Content,
    ) {
        // While nothing waits, what these few bytes deliver says nothing of what the path could.
        if self.pauses.is_on() {
            self.capacity.sampler.mark_app_limited(self.flight.sent.bytes_in_flight());
        }
        self.remember_as(now, number, size, elicits, counts, content);
        if !elicits {
            // Who only acknowledges may never be acknowledged.
            self.flight.sent.forget(now, self.way.probe_timeout());
        }
    }

    /// Remembers a probe of the MTU, whose loss says nothing of congestion (RFC 9000 section 14.4).
    pub fn remember_probe(&mut self, now: Time, number: PacketNumber, size: u16) {
        self.remember_as(now, number, usize::from(size), true, false, Content::MtuProbe(size));
    }

    fn remember_as(
        &mut self,
        now: Time,
        number: PacketNumber,
        size: usize,
        ack_eliciting: bool,
        in_flight: bool,
        content: Content,
    ) -> ByteCount {
        let wire = ByteCount((size + self.overhead()) as u64);
        let stamp = self.capacity.sampler.on_sent(now, wire, self.flight.sent.bytes_in_flight(), false);
        let bytes = u32::try_from(wire.0).unwrap_or(u32::MAX);
        let in_train = false;
        let packet = SentPacket { sent_at: now, bytes, ack_eliciting, in_flight, in_train, stamp, content };
        self.flight.sent.on_sent(number, packet);
        self.activity.note_sent(now, ack_eliciting);
        self.counts.tx_bytes += ByteCount(size as u64);
        self.counts.carried += wire;
        wire
    }

    /// A batch of inner packets, `wire` bytes of it, went out; `idle`: nothing more waits.
    pub fn on_batch_sent(&mut self, now: Time, wire: ByteCount, idle: bool) {
        let rested = self.pauses.end(now);
        // What is in flight after a rest of a probe timeout is a ping, and no data: the sender was idle all the same.
        let in_flight = if rested > self.way.probe_timeout() { wire } else { self.flight.sent.bytes_in_flight() };
        self.capacity.controller.on_sent(now, wire, in_flight, idle);
        self.capacity.pacer.on_sent(now, wire);
        self.activity.last_data = now;
    }

    /// It has room and nothing is there for it: what it delivers from now on says nothing of what it could.
    pub fn note_pause(&mut self, now: Time) {
        let in_flight = self.flight.sent.bytes_in_flight();
        if in_flight < self.capacity.controller.window() {
            self.capacity.sampler.mark_app_limited(in_flight);
            let wire = self.wire_mtu();
            self.pauses.begin(|| self.capacity.pacer.ready_at(now, wire));
        }
    }

    /// The path fell silent, and what is under way is retransmitted elsewhere: it may have been too large.
    pub fn note_black_holed(&mut self) {
        let overhead = self.overhead();
        let traffic = self.flight.sent.outstanding().map(|(_, packet)| packet);
        for packet in traffic.filter(|packet| packet.in_flight) {
            self.way.pmtu.on_black_holed(size_of_datagram(packet.bytes, overhead));
        }
    }

    /// Bytes that window and pacer let go now.
    pub fn budget(&mut self, now: Time) -> ByteCount {
        self.capacity.budget(now, self.flight.sent.bytes_in_flight(), self.wire_mtu())
    }

    /// The driver looked at the socket below, where that has a congestion control of its own.
    pub fn on_socket(&mut self, state: &SocketState) {
        self.capacity.controller.on_socket(self.flight.sent.bytes_in_flight(), state);
    }

    /// How long until there is room for a packet: pacing, or a window that acknowledgements open.
    pub fn ready_in(&mut self, now: Time) -> Duration {
        let (window, in_flight) = (self.capacity.controller.window(), self.flight.sent.bytes_in_flight());
        if in_flight >= window {
            let over = in_flight - window + self.wire_mtu();
            let by_rate = self.rate().map_or(self.way.rtt.snapshot().smoothed, |rate| rate.time_for(over));
            return by_rate.min(self.way.rtt.snapshot().smoothed).max(Duration::from_micros(1));
        }
        self.capacity.paced_at(now, self.wire_mtu()).since(now)
    }

    /// Notes when the pacer lets the next packet go: not while the window is full, and not when it
    /// may go now, for then the path declines what waits.
    pub fn note_pacing(&mut self, now: Time) {
        let open = self.flight.sent.bytes_in_flight() < self.capacity.controller.window();
        let ready = open.then(|| self.capacity.paced_at(now, self.wire_mtu()));
        self.stall.paced_until = ready.filter(|at| *at > now);
    }
}
