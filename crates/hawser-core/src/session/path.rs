//! A path of a session: the parts that `path/` and `congestion/` provide, put together.

mod capacity;
mod counts;
mod sending;
mod speaking;
mod view;
mod way;

use super::idle::Activity;
use super::retransmit::SegmentRecord;
use super::terms::Offer;
use super::{Route, Settings};
use crate::congestion::sampler::Stamp;
use crate::congestion::{self, Controller, Kind};
use crate::path::health::{DownReason, Health, HealthState};
use crate::path::quota::InactiveQuota;
use crate::path::received::{AckPolicy, ReceivedPackets};
use crate::path::sent::SentPacket;
use crate::path::validation::PathValidation;
use crate::policy::{Tuning, hold};
use crate::transport::Transport;
use crate::units::{ByteCount, LinkId, PacketNumber, PathId, Rate, Time};
use crate::wire::{Label, SplitId, Token};
use capacity::Capacity;
use counts::Counts;
use sending::{Flight, Pauses};
use speaking::Stall;
use std::net::SocketAddr;
use std::time::Duration;
pub(super) use way::Way;
use way::untried_mtu;

/// What a datagram carried, remembered until it is acknowledged or lost.
#[derive(Copy, Clone, Debug)]
pub(super) enum Content {
    /// A segment of an inner train.
    Segment(SegmentRecord),
    /// A redundant copy of a segment that another path answers for.
    Duplicate,
    /// A piece of one.
    Piece(SplitId),
    /// Control frames: reliable ones are found by the packet number, and the largest number that
    /// was acknowledged of this path stands here.
    Control { acked: Option<PacketNumber> },
    /// A probe of the path's MTU, of that many bytes.
    MtuProbe(u16),
    /// What a speed test sends: nobody misses it.
    Filler,
}

const _: () = assert!(size_of::<SentPacket<Stamp, Content>>() <= 112);

/// What waits to be said on a path in its next control datagram.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    /// A CLOSE frame.
    pub close: bool,
    /// Any datagram that is acknowledged.
    pub ping: bool,
    /// Any datagram.
    pub alive: bool,
    /// What is to be said of a hub.
    pub hub: bool,
    /// Acknowledgements of what came by this path while it is suspect, that another has carried already: that one may
    /// be far slower, and the peer would suspect this one for it.
    pub ack: bool,
    /// The acknowledgement of a ping: the peer may have asked whether the path lives.
    pub answer: bool,
    /// The echo of a challenge, by the way that it came.
    pub response: Option<(Token, Route)>,
    /// A challenge of our own, and where to.
    pub challenge: Option<(Token, Route)>,
}

impl Wants {
    /// Whether anything waits.
    pub fn any(&self) -> bool {
        self.close || self.ping || self.alive || self.hub || self.response.is_some() || self.challenge.is_some()
    }
}

/// One path. Begins new and unvalidated; its session owns it.
pub(super) struct Path {
    pub id: PathId,
    pub route: Route,
    /// How its link carries datagrams.
    pub transport: Transport,
    /// What the peer tells our datagrams on this path by.
    pub label: Label,
    /// What both portals say of it.
    pub offer: Offer,
    pub health: Health,
    pub validation: PathValidation<Route>,
    pub way: Way,
    pub capacity: Capacity,
    /// What is under way.
    pub flight: Flight,
    pub received: ReceivedPackets,
    pub pauses: Pauses,
    pub activity: Activity,
    pub wants: Wants,
    /// What it may send while it is not active.
    pub quota: InactiveQuota,
    pub stall: Stall,
    pub counts: Counts,
    pub tuning: Tuning,
}

impl Path {
    pub fn new(
        id: PathId,
        (route, transport): (Route, Transport),
        metric: u16,
        settings: &Settings,
        validation: PathValidation<Route>,
        label: Label,
    ) -> Self {
        let way = Way::new(transport, &route.remote, settings);
        let wire = ByteCount((way.mtu() + transport.overhead(&route.remote)) as u64);
        let controller = build_controller(id, transport, wire, settings);
        Path {
            id,
            route,
            transport,
            label,
            offer: Offer::new(metric),
            health: Health::new(settings.tuning.flaps),
            validation,
            way,
            capacity: Capacity::new(controller, wire, &settings.tuning),
            flight: Flight::new(),
            received: ReceivedPackets::new(AckPolicy::default()),
            pauses: Pauses::default(),
            activity: Activity::default(),
            wants: Wants::default(),
            quota: InactiveQuota::default(),
            stall: Stall::default(),
            counts: Counts::default(),
            tuning: settings.tuning,
        }
    }

    /// Forgets what the congestion control had learnt: the path was away.
    pub fn restart(&mut self, now: Time, settings: &Settings) {
        let wire = self.wire_mtu();
        self.capacity.restart(now, build_controller(self.id, self.transport, wire, settings), wire);
        self.pauses.forget();
        self.note_pause(now);
        self.follow_controller();
    }

    /// It leads another way. Nothing may be in flight.
    pub fn relocate(&mut self, now: Time, round_trip: Duration, settings: &Settings) {
        self.way.restart(now, round_trip, untried_mtu(self.transport, &self.route.remote, settings));
        self.flight.sent.forget_reordering();
        self.restart(now, settings);
    }

    /// Bytes on the wire of a full datagram.
    fn wire_mtu(&self) -> ByteCount {
        self.on_wire(self.way.mtu())
    }

    /// How long the repair of a loss on this path may take.
    pub fn repair_time(&self) -> Duration {
        let noticed = self.flight.sent.loss_delay(&self.way.rtt);
        hold::repair_time(&self.tuning.hold, self.way.probe_timeout(), noticed)
    }

    /// What the path is believed to carry.
    pub fn rate(&self) -> Option<Rate> {
        self.capacity.rate(&self.offer)
    }

    /// Lets the pacer follow the controller.
    pub fn follow_controller(&mut self) {
        self.capacity.follow_controller(self.way.rtt.snapshot().smoothed, &self.offer);
    }

    /// Lets everything follow a new datagram size.
    pub fn follow_mtu(&mut self) {
        self.capacity.follow_mtu(self.wire_mtu());
    }

    /// Whether it leads along this link to that address.
    pub fn goes_by(&self, link: LinkId, remote: SocketAddr) -> bool {
        self.route.link == link && self.route.remote == remote
    }

    /// Whether it is closed for good.
    pub fn is_closed(&self) -> bool {
        self.health.state() == HealthState::Down(DownReason::Closed)
    }

    /// Bytes beside each datagram: outer headers on the wire.
    pub fn overhead(&self) -> usize {
        self.transport.overhead(&self.route.remote)
    }

    /// Bytes that its link needs before each datagram.
    pub fn room_before(&self) -> usize {
        self.transport.room_before(&self.route.remote)
    }

    /// Whether it may carry inner packets, as far as it knows itself.
    pub fn works(&self) -> bool {
        self.health.is_active() && self.offer.is_open()
    }
}

/// The configured controller, but where the kernel has its own below.
fn build_controller(id: PathId, transport: Transport, wire: ByteCount, settings: &Settings) -> Box<dyn Controller> {
    let kind = if transport.is_stream() { Kind::Kernel } else { settings.congestion };
    congestion::build(kind, wire, u64::from(id.0), settings.tuning.bbr)
}

/// Bytes of a datagram without its outer headers.
pub(super) fn size_of_datagram(wire: u32, overhead: usize) -> u16 {
    u16::try_from((wire as usize).saturating_sub(overhead)).unwrap_or(u16::MAX)
}
