//! What is said beside data: acknowledgements, challenges, probes, word about paths.
//!
//! A control datagram goes alone, never in a train. It is written in this order, each part if it is
//! due and fits: the echo of a challenge, our own challenge, a hub's frame, acknowledgements (of this path; of the
//! others too while they cannot speak for themselves), the hold time, what must arrive (GONE,
//! PATH_INFO), a ping.

use super::inbound::FRAMES_MAX;
use super::path::Content;
use super::reliable::RELIABLE_MAX;
use super::{Buffers, Route, Session, Transmit};
use crate::units::{PacketNumber, Time};
use crate::wire::{
    AckHead, Close, CloseReason, DATA_HEADER_LEN, EncodeError, PathChallenge, PathResponse, TAG_LEN, Writer,
};

/// The byte of a PING frame, and of PADDING (docs/wire.md).
const PING: u8 = 0x01;
/// Paths that one datagram acknowledges at most: what is left is due for the next.
const ACKS_MAX: usize = 24;
// Beside them go a response, a challenge, a hub's two frames, HOLD, CLOSE and PING: one frame more than the peer takes,
// and it drops the datagram, and each that says the same again.
const _: () = assert!(ACKS_MAX + RELIABLE_MAX + 7 <= FRAMES_MAX);

/// What one control datagram came to hold, and where it must go for it.
#[derive(Default)]
struct Written {
    route: Option<Route>,
    elicits: bool,
    /// It asks whether anybody is there: its loss is no sign of congestion.
    probes: bool,
    acked: Option<PacketNumber>,
}

impl Session {
    /// The next control datagram of any path that has something to say.
    pub(super) fn transmit_control(&mut self, now: Time, buffers: &mut dyn Buffers) -> Option<Transmit> {
        for index in 0..self.paths.len() {
            if !self.speaks(now, index) {
                continue;
            }
            let Route { link, remote, .. } = self.paths[index].next_way(now);
            let spare = buffers.spare(link, remote);
            self.paths[index].stall.blocked = spare.is_none();
            let Some(buffer) = spare else { continue };
            let sent = self.write_control(now, index, buffer).or_else(|| self.write_mtu_probe(now, index, buffer));
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// Whether this path has something to say that is not data.
    fn speaks(&self, now: Time, index: usize) -> bool {
        let path = &self.paths[index];
        path.speaks(now)
            || (self.is_spokesman(index)
                && (self.recovery.reliable.waits()
                    || self.hold.is_due(now, &self.paths, &self.settings.tuning)
                    || self.others_ack(now, index)))
    }

    /// The path that says what concerns the whole session.
    pub(super) fn is_spokesman(&self, index: usize) -> bool {
        self.scheduling.is_spokesman(&self.paths, index)
    }

    /// Whether a path that cannot speak for itself has acknowledgements due.
    fn others_ack(&self, now: Time, index: usize) -> bool {
        self.paths
            .iter()
            .enumerate()
            .any(|(other, path)| other != index && !path.health.is_active() && path.ack_is_due(now))
    }

    fn write_control(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let path = &mut self.paths[index];
        let number = path.flight.peek_number();
        let room = path.control_room(now, path.next_way(now));
        if room == 0 {
            return None;
        }
        let mut written = Written::default();
        let mut out = Writer::new(&mut buffer[DATA_HEADER_LEN..room - TAG_LEN]);
        // What does not fit stays due, and goes with the next datagram.
        let _ = self.write_frames(now, index, number, &mut out, &mut written);
        let route = written.route.unwrap_or(self.paths[index].route);
        let len = out.len();
        // Who had nothing to say, as only its MTU is searched, is not short of room.
        let starves = len == 0 && self.paths[index].ack_is_due(now);
        self.paths[index].stall.starved = if starves { room } else { 0 };
        if len == 0 {
            return None;
        }
        let size = DATA_HEADER_LEN + len + TAG_LEN;
        Some(self.seal_control(now, index, route, &mut buffer[..size], &written))
    }

    fn seal_control(
        &mut self,
        now: Time,
        index: usize,
        route: Route,
        datagram: &mut [u8],
        written: &Written,
    ) -> Transmit {
        let path = &mut self.paths[index];
        let (id, number, size) = (path.id, path.flight.next_number(), datagram.len());
        let seal = &self.keyring.seal().send;
        path.write_header(number, datagram);
        let sealed = seal.seal(id, number, datagram);
        debug_assert_eq!(sealed, Ok(()), "a control datagram has header and tag");
        let counts = written.elicits && !written.probes && path.health.is_active();
        path.remember_control(now, number, size, written.elicits, counts, Content::Control { acked: written.acked });
        path.validation.on_sent(route, u32::try_from(size).unwrap_or(u32::MAX));
        if !path.health.is_active() {
            path.quota.spend(now, path.on_wire(size));
        }
        // That a path which is down does not answer says nothing of a peer that others may reach.
        let works = self.paths[index].health.is_active() || !self.paths.iter().any(|path| path.health.is_active());
        if written.elicits && works {
            self.liveness.note_asked(now);
        }
        let path = &self.paths[index];
        Transmit { source: route.source, remote: route.remote, link: route.link, ..path.transmit(size, size) }
    }

    fn write_frames(
        &mut self,
        now: Time,
        index: usize,
        number: PacketNumber,
        out: &mut Writer<'_>,
        written: &mut Written,
    ) -> Result<(), EncodeError> {
        let path = &mut self.paths[index];
        let response = path.answerable(now, path.wants.response);
        if let Some((token, came_by)) = response {
            path.wants.response = None;
            PathResponse { token }.encode(out)?;
            (written.elicits, written.route) = (true, Some(came_by));
        }
        // One datagram goes one way: a challenge for another address waits for the next.
        let same_way = |to: Route| written.route.is_none_or(|route| route == to);
        let challenge = path.answerable(now, path.wants.challenge).filter(|(_, to)| same_way(*to));
        if let Some((token, to)) = challenge {
            path.wants.challenge = None;
            PathChallenge { token }.encode(out)?;
            (written.elicits, written.probes, written.route) = (true, true, Some(to));
        }
        if self.paths[index].wants.hub
            && let Some(frame) = self.hub.says()
        {
            frame.encode(out)?;
            written.elicits |= frame.is_acked();
            self.paths[index].wants.hub = false;
            self.hub.says_of(self.paths[index].route.link).map_or(Ok(()), |carried| carried.encode(out))?;
        }
        self.write_acks(now, index, out, written)?;
        if self.is_spokesman(index) {
            self.hold.write(now, &self.paths, &self.settings.tuning, out)?;
            let id = self.paths[index].id;
            written.elicits |= self.recovery.reliable.write(id, number, out)? > 0;
        }
        if std::mem::take(&mut self.paths[index].wants.close) {
            Close { reason: CloseReason::Shutdown }.encode(out)?;
        }
        let path = &mut self.paths[index];
        if path.wants.ping && !written.elicits {
            out.put_u8(PING)?;
            written.elicits = true;
        }
        path.wants.ping &= !written.elicits;
        if std::mem::take(&mut path.wants.alive) && out.is_empty() {
            self.hold.repeat(now, &self.paths, &self.settings.tuning, self.liveness.is_idle(), out)?;
        }
        Ok(())
    }

    /// Acknowledges what came on this path, and on those that cannot speak for themselves. One that is suspect says it
    /// too, as far as its quota goes: were all said by a slow path alone, the peer would suspect the fast one in turn,
    /// and so on for ever.
    fn write_acks(
        &mut self,
        now: Time,
        index: usize,
        out: &mut Writer<'_>,
        written: &mut Written,
    ) -> Result<(), EncodeError> {
        let speaks_for_all = self.is_spokesman(index);
        let mut acks = 0;
        for other in 0..self.paths.len() {
            if acks == ACKS_MAX {
                break;
            }
            let path = &mut self.paths[other];
            let mine = other == index;
            let by_itself = mine && (path.ack_waits() || path.repeats_ack()) && path.may_acknowledge_at(now) <= now;
            if !(by_itself || speaks_for_all && !path.health.is_active() && path.ack_is_due(now)) {
                continue;
            }
            let budget = if mine { path.ack_room(now) } else { usize::MAX };
            let (Some(largest), Some(at)) = (path.received.largest(), path.received.largest_received_at()) else {
                continue;
            };
            let head = AckHead {
                path: path.id,
                delay_us: u64::try_from(now.since(at).as_micros()).unwrap_or(0),
                received_at_us: at.as_micros(),
                ecn: path.received.ecn_counts(),
            };
            head.encode(path.received.ack_ranges(), budget, out)?;
            acks += 1;
            path.received.on_ack_sent();
            path.wants.ack = !mine && path.health.suspect_since().is_some();
            path.wants.answer = false;
            if mine {
                written.acked = Some(largest);
            }
        }
        Ok(())
    }

    /// A datagram of the size that the path's MTU search asks for.
    fn write_mtu_probe(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let path = &mut self.paths[index];
        if !path.health.is_active() || path.activity.quiet {
            return None;
        }
        let size = path.way.pmtu.poll_probe(now)?;
        let datagram = &mut buffer[..usize::from(size)];
        datagram.fill(0);
        datagram[DATA_HEADER_LEN] = PING;
        let (id, number) = (path.id, path.flight.next_number());
        let seal = &self.keyring.seal().send;
        path.write_header(number, datagram);
        let sealed = seal.seal(id, number, datagram);
        debug_assert_eq!(sealed, Ok(()), "a probe has header and tag");
        path.remember_probe(now, number, size);
        // Lost alone, it would pass for a path that fell silent: what follows it is answered.
        path.wants.ping = true;
        Some(path.transmit(usize::from(size), usize::from(size)))
    }
}
