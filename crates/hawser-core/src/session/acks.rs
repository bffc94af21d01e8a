//! What arrived and what was lost.
//!
//! 1. An ACK frame settles packets of one path: their segments are released, their control frames done.
//! 2. Round trip, one-way delay and delivery rate are sampled.
//! 3. What later packets have overtaken is lost, and waits to be retransmitted.
//! 4. The path's controller hears of loss first, then of the acknowledgement.
//! 5. A path that acknowledges what it was sent since it was suspected is alive.

use super::path::{Content, Path, Way, size_of_datagram};
use super::recovery::Recovery;
use super::{Context, Event, Route, Session};
use crate::congestion::sampler::Stamp;
use crate::congestion::{AckEvent, LossEvent};
use crate::packet::TrainStore;
use crate::path::quota::InactiveQuota;
use crate::path::received::AckPolicy;
use crate::path::sent::{AckError, AckOutcome, Arrival, LossOutcome, SentPacket};
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
        let Some(index) = self.paths.index_of(frame.path) else { return Ok(()) };
        let path = &mut self.paths[index];
        let Settled { outcome, grown, mean_age } = path.settle(now, frame, &mut self.recovery, cx.store)?;
        if grown {
            path.follow_mtu();
            self.events.push(Event::MtuChanged);
        }
        if outcome.is_news() {
            self.liveness.note_answered(now);
            if let Some(age) = mean_age.filter(|_| by == index) {
                path.way.rtt.on_ages(now, age);
            }
            self.on_news(now, index, by == index, frame, &outcome);
            self.mind_trains(now, index);
        }
        self.recovery.requeue(&self.scheduling.allowed);
        Ok(())
    }

    /// Steps 2 to 5: the path is alive, and tells how it does.
    fn on_news(&mut self, now: Time, index: usize, own_way: bool, frame: &AckFrame<'_>, outcome: &AckOutcome<Stamp>) {
        let Some(newest) = outcome.newest else { return };
        let path = &mut self.paths[index];
        if newest.sent_at < path.way.moved_at {
            return;
        }
        // What came back by a faster path would pass for this path's least round trip, and hold its window down until
        // that is forgotten. What came while this portal did not run waited for it, not on the path.
        let awake = self.liveness.is_awake_since(newest.sent_at);
        let round_trip = outcome.rtt_sample.filter(|_| own_way && awake);
        if let Some(sample) = outcome.rtt_sample.filter(|_| awake) {
            if own_way {
                path.way.rtt.on_sample(now, sample, Duration::from_micros(frame.delay_us));
            } else {
                path.way.rtt.on_detour(now, sample);
            }
            path.way.oneway.on_sample(now, newest.sent_at.as_micros(), frame.received_at_us);
            path.received.set_policy(AckPolicy::for_rtt(path.way.rtt.snapshot().smoothed));
        }
        if path.health.on_ack(newest.sent_at) {
            // It lives: what it said while it was suspect counts no more. With nothing left of its quota the next
            // acknowledgements would go by other paths alone, the peer would suspect it for that, and so on.
            path.quota = InactiveQuota::default();
            self.scheduling.policy.reconsider();
            if path.way.pmtu.on_life() {
                path.follow_mtu();
                self.events.push(Event::MtuChanged);
            }
            // Its link may have fallen back meanwhile.
            let id = path.id;
            self.close_rivals(now, id);
        }
        self.declare_losses(now, index);
        let (path, siblings) = self.paths.with_siblings(now, index);
        let rtt = path.way.rtt.snapshot();
        // What waits on the way back says nothing of the way there: a full uplink would pass for a queue of the
        // download's.
        let round_trip = round_trip.map(|sample| sample.min(rtt.min + path.way.oneway.waited(now)));
        let received_at = Time::ZERO + Duration::from_micros(frame.received_at_us);
        let arrivals = path.tuning.bbr.arrivals.then_some(received_at);
        let rate = path.capacity.sampler.take_sample(now, arrivals, rtt.base()).filter(|_| awake);
        let event = AckEvent {
            now,
            acked: outcome.bytes,
            largest_sent_at: newest.sent_at,
            prior_in_flight: outcome.prior_in_flight,
            in_flight: path.flight.sent.bytes_in_flight(),
            delivered: path.capacity.sampler.delivered(),
            rtt,
            round_trip,
            received_at,
            rate,
            app_limited: newest.stamp.app_limited(),
        };
        if path.way.episode.on_spurious(outcome.spurious) {
            path.capacity.controller.on_spurious_loss(now);
        }
        // Only an active path sends with marks.
        let bore_marks = if path.health.is_active() { u64::from(outcome.packets) } else { 0 };
        if let Some(marked) = path.way.ecn.on_counts(frame.ecn, bore_marks) {
            path.capacity.controller.on_ecn(now, marked, newest.sent_at);
        }
        path.capacity.controller.on_ack(&event, siblings);
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
                // What was lost before says nothing of sizes and rates. Trains that are still under way are lost, too:
                // the new controller must not hear of them.
                self.drain(now, index);
                let path = &mut self.paths[index];
                path.way.pmtu.search_anew();
                path.restart(now, &self.settings);
                self.scheduling.policy.reconsider();
            }
            Turn::Confirmed => {
                let Route { link, remote, .. } = self.paths[index].route;
                self.events.push(Event::TrainsLost(link, remote));
            }
            Turn::GivenUp => {}
        }
    }

    /// Step 3: what is lost by now waits to be retransmitted; the controller hears of it.
    pub(super) fn declare_losses(&mut self, now: Time, index: usize) {
        if self.paths[index].declare_losses(now, &mut self.recovery) {
            self.events.push(Event::MtuChanged);
        }
        self.recovery.requeue(&self.scheduling.allowed);
    }

    /// A path is suspect or down: all that it has in flight goes to the others at once.
    pub(super) fn reinject(&mut self, now: Time, index: usize) {
        self.drain(now, index);
        self.scheduling.policy.reconsider();
    }

    /// Nothing is in flight on a path any more.
    pub(super) fn drain(&mut self, now: Time, index: usize) {
        self.paths[index].drain(now, &mut self.recovery);
        self.recovery.requeue(&self.scheduling.allowed);
    }
}

/// What an ACK frame settled.
struct Settled {
    outcome: AckOutcome<Stamp>,
    /// A larger datagram than was known arrived.
    grown: bool,
    /// How long what it acknowledged had been under way, in the mean; none if it was nothing that was outstanding.
    mean_age: Option<Duration>,
}

impl Path {
    /// Step 1, and the delivery rate of step 2.
    fn settle(
        &mut self,
        now: Time,
        frame: &AckFrame<'_>,
        recovery: &mut Recovery,
        store: &mut TrainStore,
    ) -> Result<Settled, AckError> {
        let (id, overhead) = (self.id, self.overhead());
        let Path { way, capacity, flight, received, counts, .. } = self;
        let spread = way.rtt.snapshot().spread;
        let settled = if spread.is_zero() { Duration::ZERO } else { way.rtt.snapshot().base() };
        let (mut ages, mut aged, mut grown) = (Duration::ZERO, 0, false);
        let outcome = flight.sent.on_ack(now, frame.ranges(), |number, packet, arrival| {
            let here = arrival == Arrival::Outstanding;
            if packet.in_flight && here {
                let bytes = ByteCount(u64::from(packet.bytes));
                capacity.sampler.on_packet_acked(packet.stamp, packet.sent_at, bytes, now, settled);
                ages += now.since(packet.sent_at);
                aged += 1;
                capacity.loss.on_acked();
            }
            grown |= way.on_acked(packet, overhead);
            match packet.content {
                Content::Control { acked: Some(largest) } => received.on_ack_acked(largest),
                Content::Filler => counts.filler.delivered += ByteCount(u64::from(packet.bytes)),
                _ => {}
            }
            recovery.on_acked((id, number), packet.content, here, store);
        })?;
        flight.sparse.prune(&flight.sent);
        Ok(Settled { outcome, grown, mean_age: (aged > 0).then(|| ages / aged) })
    }

    /// Step 3. Tells whether its datagrams may be no longer as large as they were.
    fn declare_losses(&mut self, now: Time, recovery: &mut Recovery) -> bool {
        let (id, overhead) = (self.id, self.overhead());
        let Path { way, capacity, flight, .. } = self;
        let Way { rtt, pmtu, trains, .. } = way;
        let mut shrunk = false;
        let outcome = flight.sent.detect_losses(now, rtt, |number, packet| {
            if packet.in_flight {
                capacity.sampler.on_lost(ByteCount(u64::from(packet.bytes)));
                capacity.loss.on_lost(capacity.probing.was_over(packet.sent_at));
            }
            if packet.in_train {
                trains.on_lost(packet.sent_at, packet.bytes);
            }
            match packet.content {
                Content::MtuProbe(size) => pmtu.on_probe_lost(size),
                Content::Control { .. } => {}
                // What is not in flight does not count as delivered either, and would only accuse: a repair is longer than
                // what it covers.
                _ if !packet.in_flight => {}
                _ => shrunk |= pmtu.on_lost(size_of_datagram(packet.bytes, overhead)),
            }
            recovery.on_lost((id, number), packet.content);
        });
        if shrunk {
            self.follow_mtu();
        }
        self.answer_losses(now, &outcome);
        shrunk
    }

    /// Step 4, of what is lost.
    fn answer_losses(&mut self, now: Time, outcome: &LossOutcome<Stamp>) {
        if outcome.bytes == ByteCount::ZERO {
            return;
        }
        self.way.episode.on_lost(now, outcome.packets, self.way.rtt.snapshot().smoothed);
        self.capacity.controller.on_loss(&LossEvent {
            now,
            lost: outcome.bytes,
            largest_sent_at: outcome.newest.map_or(now, |newest| newest.sent_at),
            in_flight: self.flight.sent.bytes_in_flight(),
            tx_in_flight: outcome.newest.map_or(ByteCount::ZERO, |newest| newest.stamp.tx_in_flight()),
            total_lost: self.capacity.sampler.lost(),
            persistent: outcome.persistent,
        });
        self.follow_controller();
    }

    /// Nothing is in flight on it any more.
    fn drain(&mut self, now: Time, recovery: &mut Recovery) {
        let (id, trains) = (self.id, &mut self.way.trains);
        self.flight.sent.drain(now, |number, packet| {
            if packet.in_train {
                trains.on_lost(packet.sent_at, packet.bytes);
            }
            recovery.on_lost((id, number), packet.content);
        });
        self.way.pmtu.abandon_probe();
    }
}

impl Way {
    /// A datagram arrived, perhaps by another way that was its path's before. Tells whether larger ones do than was
    /// known.
    fn on_acked(&mut self, packet: &SentPacket<Stamp, Content>, overhead: usize) -> bool {
        let this_way = packet.sent_at >= self.moved_at;
        if packet.in_train {
            self.trains.on_acked(packet.sent_at, packet.bytes);
        } else {
            self.trains.on_single();
        }
        if packet.in_flight && this_way {
            self.pmtu.on_acked(size_of_datagram(packet.bytes, overhead));
        }
        match packet.content {
            Content::MtuProbe(size) if this_way => {
                self.pmtu.on_probe_acked(size);
                true
            }
            _ => false,
        }
    }
}
