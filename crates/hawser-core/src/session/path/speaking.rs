//! What a path may say beside data, when, and where to: its quota while it is not active, and amplification, bound it.

use super::{Path, size_of_datagram};
use crate::path::constants::INACTIVE_RESERVE;
use crate::path::health::HealthState;
use crate::session::{Route, Transmit};
use crate::units::{ByteCount, Ecn, PacketNumber, Time};
use crate::wire::{DATA_HEADER_LEN, DataHeader, PathChallenge, Reader, TAG_LEN, Token};
use std::time::Duration;

/// Bytes of a datagram with a token and nothing else.
const LEAST_CONTROL: usize = DATA_HEADER_LEN + PathChallenge::LEN + TAG_LEN;
/// Bytes of one that is worth waiting for where a path's quota is used up: with response, challenge and a few ranges.
const USUAL_CONTROL: usize = 96;
/// Bytes of a PING frame.
const PING_LEN: usize = 1;

/// Why a path does not say what it has to. Nothing is in its way at first; its path owns it.
#[derive(Default)]
pub(in crate::session) struct Stall {
    /// Its link had no buffer when it last had something to say: only the driver's next call changes that.
    pub blocked: bool,
    /// Bytes that were too few for what is due: no deadline calls for it before there are more.
    pub starved: usize,
    /// When the pacer lets the next of what waits go; `None` when only news can change anything.
    pub paced_until: Option<Time>,
}

impl Path {
    /// Whether this path has something to say for itself, and may.
    pub(in crate::session) fn speaks(&self, now: Time) -> bool {
        if self.health.is_active() && self.mtu_probe_at().is_some_and(|at| at <= now) {
            return true;
        }
        let acknowledges = self.ack_is_due(now) || self.repeats_ack();
        self.wants.any() && self.may_speak_at(now) <= now || acknowledges && self.may_acknowledge_at(now) <= now
    }

    /// Whether it acknowledges what another path has acknowledged for it: only while it is suspect, and only as it can.
    pub(in crate::session) fn repeats_ack(&self) -> bool {
        self.wants.ack && self.health.state() == HealthState::Suspect
    }

    /// When the search for its MTU goes on: not while it is quiet.
    pub(in crate::session) fn mtu_probe_at(&self) -> Option<Time> {
        self.way.pmtu.poll_timeout().filter(|_| !self.activity.quiet)
    }

    /// From when on a small control datagram may go: at once, but for the quota of a path that is not active.
    pub(in crate::session) fn may_speak_at(&self, now: Time) -> Time {
        if self.health.is_active() { now } else { self.quota.ready_at(now, self.on_wire(USUAL_CONTROL)) }
    }

    /// The same of an acknowledgement or a CLAIM, which leave room for the question whether the path lives.
    pub(in crate::session) fn may_acknowledge_at(&self, now: Time) -> Time {
        if self.health.is_active() {
            now
        } else {
            self.quota.ready_at(now, self.on_wire(USUAL_CONTROL) + self.reserve())
        }
    }

    /// Bytes that an ACK frame of this path may take in a datagram of its own.
    pub(in crate::session) fn ack_room(&self, now: Time) -> usize {
        if self.health.is_active() {
            return usize::MAX;
        }
        let taken = self.on_wire(DATA_HEADER_LEN + TAG_LEN) + self.reserve();
        let room = self.quota.room(now).0.saturating_sub(taken.0) as usize;
        if self.is_asked() { room.min(USUAL_CONTROL - DATA_HEADER_LEN - TAG_LEN - PING_LEN) } else { room }
    }

    /// What acknowledgements leave of the quota for the question whether the path lives; its answer takes of that, too.
    fn reserve(&self) -> ByteCount {
        let saves = self.health.state() == HealthState::Suspect && !self.is_asked();
        ByteCount(if saves { INACTIVE_RESERVE } else { 0 })
    }

    /// Whether it is asked if it lives, by the peer or in the next datagram: where both ends suspect it, an
    /// acknowledgement that waited until no question needs the quota would be waited for by both.
    fn is_asked(&self) -> bool {
        self.wants.ping || self.wants.answer
    }

    /// Bytes of an IP packet with a datagram of `size`.
    pub(in crate::session) fn on_wire(&self, size: usize) -> ByteCount {
        ByteCount((size + self.overhead()) as u64)
    }

    /// Where the next control datagram goes: a challenge is echoed the way it came, and asked where it is to be
    /// answered.
    pub(in crate::session) fn next_way(&self, now: Time) -> Route {
        let asked = self.answerable(now, self.wants.response).or(self.answerable(now, self.wants.challenge));
        asked.map_or(self.route, |(_, route)| route)
    }

    /// The same, if it may go now. Else it waits until more came from that address, or until a newer one takes its
    /// place, and the path's other words go before it.
    pub(in crate::session) fn answerable(&self, now: Time, asked: Option<(Token, Route)>) -> Option<(Token, Route)> {
        asked.filter(|(_, route)| self.control_room(now, *route) > 0)
    }

    /// Bytes that a control datagram to `route` may have: the path's MTU, less what its quota and amplification forbid.
    /// None where not even a token would fit.
    pub(in crate::session) fn control_room(&self, now: Time, route: Route) -> usize {
        let quota = if self.health.is_active() { u64::MAX } else { self.quota.room(now).0 };
        let quota = quota.saturating_sub(self.overhead() as u64);
        let room = self.validation.room(route).min(quota).min(self.way.mtu() as u64) as usize;
        if room < LEAST_CONTROL { 0 } else { room }
    }

    /// Whether a small datagram may go back the way that datagrams come.
    pub(in crate::session) fn may_answer(&self, now: Time) -> bool {
        !matches!(self.health.state(), HealthState::Down(_)) && self.control_room(now, self.route) > self.stall.starved
    }

    pub(in crate::session) fn ack_waits(&self) -> bool {
        self.received.ack_due().is_some()
    }

    pub(in crate::session) fn ack_is_due(&self, now: Time) -> bool {
        self.received.ack_due().is_some_and(|due| due <= now)
    }

    /// Whether something came by it within the last `time`, and all that goes by it are words about paths.
    pub(in crate::session) fn is_heard_without_data(&self, now: Time, time: Duration) -> bool {
        now.since(self.activity.heard_at) < time && !self.activity.carried_data_lately(now)
    }

    /// Whether `quoted` begins a datagram of `size` bytes at least that went by this path and was not acknowledged.
    pub(in crate::session) fn sent_quoted(&self, quoted: &[u8], size: u16) -> bool {
        let Ok(DataHeader { label, number }) = DataHeader::decode(&mut Reader::new(quoted)) else { return false };
        let next = self.flight.peek_number().0;
        let back = (next as u32).wrapping_sub(number.0);
        let sent = next.checked_sub(back.into()).map(PacketNumber).filter(|_| label == self.label);
        let bytes = sent.and_then(|number| self.flight.sent.unacked_bytes(number));
        bytes.is_some_and(|bytes| size_of_datagram(bytes, self.overhead()) >= size)
    }

    /// A batch of this many bytes along the path.
    pub(in crate::session) fn transmit(&self, len: usize, segment_size: usize) -> Transmit {
        let marks = self.health.is_active() && !self.transport.is_stream();
        Transmit {
            link: self.route.link,
            remote: self.route.remote,
            source: self.route.source,
            ecn: if marks { self.way.ecn.outgoing() } else { Ecn::NotEct },
            segment_size,
            len,
            apart: self.way.trains.apart(),
        }
    }
}
