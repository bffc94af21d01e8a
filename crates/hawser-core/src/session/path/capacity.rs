//! What a path is believed to carry, and how fast it is sent on.

use crate::congestion::Controller;
use crate::congestion::pacer::{Pacer, initial_rate};
use crate::congestion::sampler::DeliverySampler;
use crate::path::loss_meter::LossMeter;
use crate::policy::{Probing, Tuning, pace_beside};
use crate::session::terms::Offer;
use crate::units::{ByteCount, Rate, Start, Time};
use std::time::Duration;

/// What a path can carry, as its controller learns it. Begins as its controller does, and again once the path was away;
/// its path owns it.
pub(in crate::session) struct Capacity {
    pub controller: Box<dyn Controller>,
    pub sampler: DeliverySampler,
    pub pacer: Pacer,
    pub probing: Probing,
    pub loss: LossMeter,
    /// Where it began, if by what its link carried to another place.
    pub start: Option<Start>,
    /// Since when what is known of its rate counts: since it began, or began again.
    pub known_since: Time,
    /// What it leaves of its link to another session, while it does (`room`).
    pub room: Option<Rate>,
}

impl Capacity {
    /// Of datagrams that have `wire` bytes on the wire.
    pub fn new(controller: Box<dyn Controller>, wire: ByteCount, tuning: &Tuning) -> Self {
        Capacity {
            controller,
            sampler: DeliverySampler::new(),
            pacer: Pacer::new(wire),
            probing: Probing::new(tuning.probing),
            loss: LossMeter::default(),
            start: None,
            known_since: Time::ZERO,
            room: None,
        }
    }

    /// Forgets what was learnt, but for what was delivered.
    pub fn restart(&mut self, now: Time, controller: Box<dyn Controller>, wire: ByteCount) {
        self.controller = controller;
        self.pacer = Pacer::new(wire);
        self.probing.begin();
        (self.start, self.known_since) = (None, now);
        self.loss = LossMeter::default();
    }

    /// What it is believed to be, within what is offered.
    pub fn rate(&self, offer: &Offer) -> Option<Rate> {
        self.controller.bandwidth().map(|rate| offer.within(rate))
    }

    /// Lets the pacer follow the controller, within what is offered.
    pub fn follow_controller(&mut self, round_trip: Duration, offer: &Offer) {
        let rate = self.controller.pacing_rate();
        let first = || initial_rate(self.controller.window(), round_trip);
        let rate = offer.pace(rate.unwrap_or_else(first));
        self.pacer.set_rate(self.room.map_or(rate, |sparse| pace_beside(rate, sparse)));
    }

    /// Lets everything follow a new datagram size.
    pub fn follow_mtu(&mut self, wire: ByteCount) {
        self.controller.on_mtu(wire);
        self.pacer.set_mtu(wire);
    }

    /// Bytes that window and pacer let go now, with this many in flight; `wire`: those of a full datagram.
    pub fn budget(&mut self, now: Time, in_flight: ByteCount, wire: ByteCount) -> ByteCount {
        let room = self.controller.window() - in_flight;
        if self.pacer.is_off() {
            return room;
        }
        let burst = self.pacer.burst();
        if self.paced_at(now, wire) > now { ByteCount::ZERO } else { room.min(burst) }
    }

    /// When the pacer lets go what is worth waking for: half a burst, at least a packet.
    pub fn paced_at(&mut self, now: Time, wire: ByteCount) -> Time {
        self.pacer.ready_at(now, wire.max(ByteCount(self.pacer.burst().0 / 2)))
    }
}
