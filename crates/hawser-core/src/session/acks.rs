//! What arrived and what was lost.
//!
//! 1. An ACK frame settles packets of one path: their segments are released, their control frames done.
//! 2. Round trip, one-way delay and delivery rate are sampled.
//! 3. What later packets have overtaken is lost, and waits to be retransmitted.
//! 4. The path's controller hears of loss first, then of the acknowledgement.
//! 5. A path that acknowledges what it was sent since it was suspected is alive.

use super::path::{Content, size_of_datagram};
use super::retransmit::SegmentRecord;
use super::split::{Fate, Splits};
use super::{Context, Event, Route, Session};
use crate::congestion::sampler::Stamp;
use crate::congestion::{AckEvent, LossEvent};
use crate::path::received::AckPolicy;
use crate::path::sent::{AckError, AckOutcome, Arrival};
use crate::path::trains::Turn;
use crate::units::{ByteCount, Time};
use crate::wire::AckFrame;
use std::time::Duration;

impl Session {
    /// Takes in an ACK frame that came `by` a path; an error is a lie.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        by: usize,
        frame: &AckFrame<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), AckError> {
        let Some(index) = self.index_of(frame.path) else { return Ok(()) };
        let path = &mut self.paths[index];
        let (splits, reliable, lost, retransmit) =
            (&mut self.splits, &mut self.reliable, &mut self.lost, &mut self.retransmit);
        let (id, overhead, moved_at, store) = (path.id, path.overhead(), path.way.moved_at, &mut *cx.store);
        let (sampler, loss, pmtu, received) =
            (&mut path.capacity.sampler, &mut path.capacity.loss, &mut path.way.pmtu, &mut path.received);
        let (trains, filler) = (&mut path.way.trains, &mut path.counts.filler);
        let (spread, mut ages, mut aged) = (path.way.rtt.snapshot().spread, Duration::ZERO, 0);
        let settled = if spread.is_zero() { Duration::ZERO } else { path.way.rtt.snapshot().base() };
        let mut grown = false;
        let outcome = path.flight.sent.on_ack(now, frame.ranges(), |number, packet, arrival| {
            let here = arrival == Arrival::Outstanding;
            if packet.in_flight && here {
                sampler.on_packet_acked(packet.stamp, packet.sent_at, ByteCount(u64::from(packet.bytes)), now, settled);
                ages += now.since(packet.sent_at);
                aged += 1;
                loss.on_acked();
            }
            let this_way = packet.sent_at >= moved_at;
            if packet.in_train {
                trains.on_acked(packet.sent_at, packet.bytes);
            } else {
                trains.on_single();
            }
            if packet.in_flight && this_way {
                pmtu.on_acked(size_of_datagram(packet.bytes, overhead));
            }
            match packet.content {
                Content::MtuProbe(_) if !this_way => {}
                Content::MtuProbe(size) => {
                    pmtu.on_probe_acked(size);
                    grown = true;
                }
                Content::Control { acked } => {
                    reliable.on_acked(id, number);
                    if let Some(largest) = acked {
                        received.on_ack_acked(largest);
                    }
                }
                // What was declared lost was handed on then: it still waits, or is answered for elsewhere.
                Content::Segment(record) if !here => {
                    if let Some(record) = retransmit.cancel(&record) {
                        store.release(record.segment);
                    }
                }
                Content::Filler => filler.delivered += ByteCount(u64::from(packet.bytes)),
                Content::Duplicate => {}
                Content::Piece(_) if !here => {}
                Content::Segment(record) => store.release(record.segment),
                Content::Piece(split) => match splits.settle(split, false) {
                    Fate::Open => {}
                    Fate::Arrived(record) => store.release(record.segment),
                    Fate::Lost(record) => lost.push(record),
                },
            }
        })?;
        path.flight.sparse.prune(&path.flight.sent);
        if grown {
            path.follow_mtu();
            self.events.push(Event::MtuChanged);
        }
        if outcome.is_news() {
            self.unanswered_since = None;
            if by == index && aged > 0 {
                self.paths[index].way.rtt.on_ages(now, ages / aged);
            }
            self.on_news(now, index, by == index, frame, &outcome);
            self.mind_trains(now, index);
        }
        self.requeue_lost();
        Ok(())
    }

    /// Steps 2 to 5: the path is alive, and tells how it does.
    fn on_news(&mut self, now: Time, index: usize, own_way: bool, frame: &AckFrame<'_>, outcome: &AckOutcome<Stamp>) {
        let Some(newest) = outcome.newest else { return };
        let path = &mut self.paths[index];
        if newest.sent_at < path.way.moved_at {
            return;
        }
        // What came back by a faster path would pass for this path's least round trip, and hold
        // its window down until that is forgotten. What came while this portal did not run waited for it, not on the path.
        let awake = newest.sent_at >= self.woke_at;
        let round_trip = outcome.rtt_sample.filter(|_| own_way && awake);
        if let Some(sample) = outcome.rtt_sample.filter(|_| awake) {
            if own_way {
                path.way.rtt.on_sample(now, sample, Duration::from_micros(frame.delay_us));
            } else {
                path.way.rtt.on_detour(sample);
            }
            path.way.oneway.on_sample(now, newest.sent_at.as_micros(), frame.received_at_us);
            path.received.set_policy(AckPolicy::for_rtt(path.way.rtt.snapshot().smoothed));
        }
        if path.health.on_ack(newest.sent_at) {
            self.policy.reconsider();
            if path.way.pmtu.on_life() {
                path.follow_mtu();
                self.events.push(Event::MtuChanged);
            }
            // Its link may have fallen back meanwhile.
            let id = path.id;
            self.close_rivals(now, id);
        }
        self.declare_losses(now, index);
        self.refresh_siblings(now, index);
        let path = &mut self.paths[index];
        let rtt = path.way.rtt.snapshot();
        // What waits on the way back says nothing of the way there: a full uplink would pass for a queue of the download's.
        let round_trip = round_trip.map(|sample| sample.min(rtt.min + path.way.oneway.waited(now)));
        let rate = path.capacity.sampler.take_sample(now, rtt.base()).filter(|_| awake);
        let event = AckEvent {
            now,
            acked: outcome.bytes,
            largest_sent_at: newest.sent_at,
            prior_in_flight: outcome.prior_in_flight,
            in_flight: path.flight.sent.bytes_in_flight(),
            delivered: path.capacity.sampler.delivered(),
            rtt,
            round_trip,
            received_at: Time::ZERO + Duration::from_micros(frame.received_at_us),
            rate,
            app_limited: newest.stamp.app_limited(),
        };
        if path.way.episode.on_spurious(outcome.spurious) {
            path.capacity.controller.on_spurious_loss(now);
        }
        if let Some(marked) = path.way.ecn.on_counts(frame.ecn, u64::from(outcome.packets)) {
            path.capacity.controller.on_ecn(now, marked, newest.sent_at);
        }
        path.capacity.controller.on_ack(&event, &self.siblings);
        path.capacity.probing.on_ack(
            &event,
            path.capacity.controller.bandwidth(),
            path.capacity.controller.is_ramping(),
        );
        path.follow_controller();
    }

    /// Where trains alone are lost, their datagrams leave one by one.
    fn mind_trains(&mut self, now: Time, index: usize) {
        let Some(turn) = self.paths[index].way.trains.poll(now) else { return };
        match turn {
            Turn::Try => {
                // What was lost before says nothing of sizes and rates. Trains that are still under way are lost, too: the new
                // controller must not hear of them.
                self.drain(now, index);
                let path = &mut self.paths[index];
                path.way.pmtu.search_anew();
                path.restart(now, &self.settings);
                self.policy.reconsider();
            }
            Turn::Confirmed => {
                let Route { link, remote, .. } = self.paths[index].route;
                self.events.push(Event::TrainsLost(link, remote));
            }
            Turn::GivenUp => {}
        }
    }

    /// What a coupled controller is to know: the paths of its tier that carry inner packets.
    fn refresh_siblings(&mut self, now: Time, index: usize) {
        let path = &self.paths[index];
        if !path.capacity.controller.is_coupled() {
            return;
        }
        let tier = path.offer.tier();
        let beside = self.paths.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, path)| path);
        let carrying =
            beside.filter(|path| path.works() && path.offer.tier() == tier && path.activity.carried_data_lately(now));
        self.siblings.clear();
        self.siblings.extend(carrying.filter_map(|path| path.capacity.controller.coupling()));
    }

    /// Step 3: what is lost by now waits to be retransmitted; the controller hears of it.
    pub(super) fn declare_losses(&mut self, now: Time, index: usize) {
        let path = &mut self.paths[index];
        let (splits, reliable, lost) = (&mut self.splits, &mut self.reliable, &mut self.lost);
        let overhead = path.overhead();
        let (id, sampler, loss, pmtu) =
            (path.id, &mut path.capacity.sampler, &mut path.capacity.loss, &mut path.way.pmtu);
        let trains = &mut path.way.trains;
        let probing = &path.capacity.probing;
        let mut shrunk = false;
        let outcome = path.flight.sent.detect_losses(now, &path.way.rtt, |number, packet| {
            if packet.in_flight {
                sampler.on_lost(ByteCount(u64::from(packet.bytes)));
                loss.on_lost(probing.was_over(packet.sent_at));
            }
            if packet.in_train {
                trains.on_lost(packet.sent_at, packet.bytes);
            }
            match packet.content {
                Content::MtuProbe(size) => pmtu.on_probe_lost(size),
                Content::Control { .. } => reliable.on_lost(id, number),
                _ => {
                    shrunk |= pmtu.on_lost(size_of_datagram(packet.bytes, overhead));
                    hand_back(packet.content, splits, lost);
                }
            }
        });
        if shrunk {
            path.follow_mtu();
            self.events.push(Event::MtuChanged);
        }
        if outcome.bytes > ByteCount::ZERO {
            path.way.episode.on_lost(now, outcome.packets, path.way.rtt.snapshot().smoothed);
            path.capacity.controller.on_loss(&LossEvent {
                now,
                lost: outcome.bytes,
                largest_sent_at: outcome.newest.map_or(now, |newest| newest.sent_at),
                in_flight: path.flight.sent.bytes_in_flight(),
                tx_in_flight: outcome.newest.map_or(ByteCount::ZERO, |newest| newest.stamp.tx_in_flight()),
                total_lost: path.capacity.sampler.lost(),
                persistent: outcome.persistent,
            });
            path.follow_controller();
        }
        self.requeue_lost();
    }

    /// A path is suspect or down: all that it has in flight goes to the others at once.
    pub(super) fn reinject(&mut self, now: Time, index: usize) {
        self.drain(now, index);
        self.policy.reconsider();
    }

    /// Nothing is in flight on a path any more.
    pub(super) fn drain(&mut self, now: Time, index: usize) {
        let path = &mut self.paths[index];
        let (splits, reliable, lost, id) = (&mut self.splits, &mut self.reliable, &mut self.lost, path.id);
        let trains = &mut path.way.trains;
        path.flight.sent.drain(now, |number, packet| {
            if packet.in_train {
                trains.on_lost(packet.sent_at, packet.bytes);
            }
            reliable.on_lost(id, number);
            hand_back(packet.content, splits, lost);
        });
        path.way.pmtu.abandon_probe();
        self.requeue_lost();
    }

    fn requeue_lost(&mut self) {
        let allowed = &self.allowed;
        self.retransmit.extend(&mut self.lost, |rule| allowed.is_bound(rule));
    }
}

/// What a packet that did not arrive leaves to be retransmitted.
pub(super) fn hand_back(content: Content, splits: &mut Splits, lost: &mut Vec<SegmentRecord>) {
    match content {
        Content::Segment(record) => lost.push(record),
        Content::Piece(split) => {
            if let Fate::Lost(record) = splits.settle(split, true) {
                lost.push(record);
            }
        }
        Content::Duplicate | Content::Control { .. } | Content::MtuProbe(_) | Content::Filler => {}
    }
}
