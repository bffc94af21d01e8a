//! A path of a session: the parts that `path/` and `congestion/` provide, put together.

mod sending;
mod speaking;
mod view;

use super::constants::{BATCH_BYTES, INITIAL_RTT};
use super::hedge::SparseInFlight;
use super::retransmit::SegmentRecord;
use super::{FillerCount, Rank, Route, Settings, Terms};
use crate::congestion::pacer::{Pacer, initial_rate};
use crate::congestion::sampler::{DeliverySampler, Stamp};
use crate::congestion::{self, Controller, Kind};
use crate::path::constants::MAX_ACK_DELAY;
use crate::path::ecn::EcnValidation;
use crate::path::health::{DownReason, Health, HealthState};
use crate::path::loss_meter::{LossEpisode, LossMeter};
use crate::path::oneway::OneWayDelay;
use crate::path::pmtu::Pmtu;
use crate::path::quota::InactiveQuota;
use crate::path::received::{AckPolicy, ReceivedPackets};
use crate::path::rtt::RttEstimator;
use crate::path::sent::{SentPacket, SentPackets};
use crate::path::trains::TrainWatch;
use crate::path::validation::PathValidation;
use crate::policy::{Probing, Tuning, hold};
use crate::rules::RuleId;
use crate::transport::Transport;
use crate::units::{ByteCount, LinkGroup, LinkId, PacketNumber, PathId, Rate, Time};
use crate::wire::{Label, LinkState, SplitId, Token};
use std::net::SocketAddr;
use std::time::Duration;

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
    /// The echo of a challenge, by the way that it came.
    pub response: Option<(Token, Route)>,
    /// A challenge of our own, and where to.
    pub challenge: Option<(Token, Route)>,
}

impl Wants {
    /// Whether anything waits.
    pub fn any(&self) -> bool {
        self.close || self.ping || self.alive || self.response.is_some() || self.challenge.is_some()
    }
}

/// One path. Begins new and unvalidated; its session owns it.
pub(super) struct Path {
    pub id: PathId,
    pub route: Route,
    /// How its link carries datagrams.
    pub transport: Transport,
    /// The configured link that we opened it on; none where the peer opened it.
    pub group: Option<LinkGroup>,
    /// How little it is preferred among those of that link.
    pub rank: Rank,
    /// The tier that this side configured.
    pub metric: u16,
    /// What the peer said of it, with the revision that said it.
    pub peer: Option<(LinkState, u16, u64)>,
    /// On what terms it is offered, by whoever opened it.
    pub terms: Terms,
    /// The revision that the peer said them by.
    pub terms_revision: Option<u64>,
    pub health: Health,
    /// What the peer tells our datagrams on this path by.
    pub label: Label,
    pub validation: PathValidation<Route>,
    pub rtt: RttEstimator,
    pub oneway: OneWayDelay,
    pub sent: SentPackets<Stamp, Content>,
    /// What of that is of sparse flows.
    pub sparse: SparseInFlight,
    /// The number above the last one reinjected while the fastest path was idle: what lies below is not looked at again.
    pub reinjected: PacketNumber,
    pub received: ReceivedPackets,
    pub controller: Box<dyn Controller>,
    pub sampler: DeliverySampler,
    pub pacer: Pacer,
    pub pmtu: Pmtu,
    /// Whether datagrams arrive that leave as one train.
    pub trains: TrainWatch,
    pub ecn: EcnValidation,
    pub loss: LossMeter,
    pub episode: LossEpisode,
    pub probing: Probing,
    pub tuning: Tuning,
    /// What it may send while it is not active.
    pub quota: InactiveQuota,
    pub wants: Wants,
    next_number: PacketNumber,
    /// When it last began to lead another way: what was sent before says nothing of this one.
    pub moved_at: Time,
    /// When an acknowledged datagram was last sent on it.
    pub last_sent: Time,
    /// When any datagram was last sent on it, and when one last came.
    pub spoke_at: Time,
    pub heard_at: Time,
    /// Nothing is sent on it but keepalives.
    pub quiet: bool,
    /// When it last carried inner packets.
    pub last_data: Time,
    /// When it last carried what another scheduler than `adaptive` gave it.
    pub last_given: Time,
    /// It had room and nothing was there for it.
    pub paused: bool,
    /// Since when that is so, pacing apart.
    idle_since: Option<Time>,
    /// How long that was so before.
    idle: Duration,
    /// Since when what is known of its rate counts.
    known_since: Time,
    /// Its link had no buffer when it last had something to say: only the driver's next call changes that.
    pub blocked: bool,
    /// Bytes that were too few for what is due: no deadline calls for it before there are more.
    pub starved: usize,
    /// When the pacer lets the next of what waits go; `None` when only news can change anything.
    pub paced_until: Option<Time>,
    pub tx_bytes: ByteCount,
    pub rx_bytes: ByteCount,
    /// Bytes of IP packets, both ways.
    pub carried: ByteCount,
    /// Those sent with inner packets, by the rules' numbers.
    by_rule: Vec<(RuleId, ByteCount)>,
    /// Bytes of inner packets that were lost on whatever path and retransmitted on this one.
    pub retransmitted: ByteCount,
    /// Bytes on the wire of copies of what was in doubt on another path.
    pub reinjected_copies: ByteCount,
    /// What it carried of speed tests.
    pub filler: FillerCount,
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
        let overhead = transport.overhead(&route.remote);
        let pmtu = untried_mtu(transport, &route.remote, settings);
        let wire = ByteCount((usize::from(pmtu.current()) + overhead) as u64);
        Path {
            id,
            route,
            transport,
            group: None,
            rank: Rank::default(),
            metric,
            peer: None,
            terms: Terms::default(),
            terms_revision: None,
            health: Health::new(settings.tuning.flaps),
            label,
            validation,
            rtt: RttEstimator::new(INITIAL_RTT),
            oneway: OneWayDelay::new(),
            sent: SentPackets::new(),
            sparse: SparseInFlight::default(),
            reinjected: PacketNumber::default(),
            received: ReceivedPackets::new(AckPolicy::default()),
            controller: build_controller(id, transport, wire, settings),
            sampler: DeliverySampler::new(),
            pacer: Pacer::new(wire),
            pmtu,
            trains: TrainWatch::default(),
            ecn: EcnValidation::default(),
            loss: LossMeter::default(),
            episode: LossEpisode::default(),
            probing: Probing::new(settings.tuning.probing),
            tuning: settings.tuning,
            quota: InactiveQuota::default(),
            wants: Wants::default(),
            next_number: PacketNumber::default(),
            moved_at: Time::ZERO,
            last_sent: Time::ZERO,
            spoke_at: Time::ZERO,
            heard_at: Time::ZERO,
            quiet: false,
            last_data: Time::ZERO,
            last_given: Time::ZERO,
            paused: false,
            idle_since: None,
            idle: Duration::ZERO,
            known_since: Time::ZERO,
            blocked: false,
            starved: 0,
            paced_until: None,
            tx_bytes: ByteCount::ZERO,
            rx_bytes: ByteCount::ZERO,
            carried: ByteCount::ZERO,
            by_rule: Vec::new(),
            retransmitted: ByteCount::ZERO,
            reinjected_copies: ByteCount::ZERO,
            filler: FillerCount::default(),
        }
    }

    /// Counts by these rules from now on; what it counted of those that stay, stays.
    pub fn follow_rules(&mut self, rules: &[RuleId]) {
        let known = |rule: &RuleId| {
            let known = self.by_rule.binary_search_by_key(rule, |(known, _)| *known);
            (*rule, known.map_or(ByteCount::ZERO, |at| self.by_rule[at].1))
        };
        self.by_rule = rules.iter().map(known).collect();
    }

    /// An IP packet of this many bytes carried an inner packet of this rule.
    pub fn count(&mut self, rule: RuleId, bytes: ByteCount) {
        // As a rule the numbers are those from zero on.
        let place = usize::from(rule.0);
        let direct = self.by_rule.get(place).is_some_and(|(at, _)| *at == rule);
        let found = if direct { Ok(place) } else { self.by_rule.binary_search_by_key(&rule, |(known, _)| *known) };
        if let Ok(place) = found {
            self.by_rule[place].1 += bytes;
        }
    }

    /// Bytes of IP packets sent with inner packets, by rule.
    pub fn by_rule(&self) -> &[(RuleId, ByteCount)] {
        &self.by_rule
    }

    /// Forgets what the congestion control had learnt: the path was away.
    pub fn restart(&mut self, now: Time, settings: &Settings) {
        self.controller = build_controller(self.id, self.transport, self.wire_mtu(), settings);
        self.pacer = Pacer::new(self.wire_mtu());
        self.probing.begin();
        self.known_since = now;
        self.loss = LossMeter::default();
        self.paused = false;
        self.note_pause(now);
        self.follow_controller();
    }

    /// It leads another way, of which nothing is known but perhaps a round trip (RFC 9000 section 9.4). Nothing may
    /// be in flight.
    pub fn relocate(&mut self, now: Time, round_trip: Duration, settings: &Settings) {
        self.rtt = RttEstimator::new(round_trip);
        self.oneway = OneWayDelay::new();
        self.pmtu = untried_mtu(self.transport, &self.route.remote, settings);
        self.trains = TrainWatch::default();
        self.ecn.restart();
        self.episode = LossEpisode::default();
        self.moved_at = now;
        self.restart(now, settings);
    }

    /// Since when what is known of its rate counts: since it began, or began again.
    pub fn known_since(&self) -> Time {
        self.known_since
    }

    /// Bytes of a datagram that this path carries.
    pub fn mtu(&self) -> usize {
        usize::from(self.pmtu.current())
    }

    fn wire_mtu(&self) -> ByteCount {
        ByteCount((self.mtu() + self.overhead()) as u64)
    }

    /// How long without word before something is wrong.
    pub fn probe_timeout(&self) -> Duration {
        self.rtt.pto(MAX_ACK_DELAY)
    }

    /// How long the repair of a loss on this path may take.
    pub fn repair_time(&self) -> Duration {
        let noticed = self.sent.loss_delay(&self.rtt);
        hold::repair_time(&self.tuning.hold, self.probe_timeout(), noticed)
    }

    /// What the path is believed to carry.
    pub fn rate(&self) -> Option<Rate> {
        self.controller.bandwidth().map(|rate| self.within_terms(rate))
    }

    /// Lets the pacer follow the controller.
    pub fn follow_controller(&mut self) {
        let rate = self.controller.pacing_rate();
        let first = || initial_rate(self.controller.window(), self.rtt.snapshot().smoothed);
        self.pacer.set_rate(self.within_terms(rate.unwrap_or_else(first)));
    }

    /// Lets everything follow a new datagram size.
    pub fn follow_mtu(&mut self) {
        let wire = self.wire_mtu();
        self.controller.on_mtu(wire);
        self.pacer.set_mtu(wire);
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

    /// The tier: the higher of what the two sides say.
    pub fn tier(&self) -> u16 {
        self.peer.map_or(self.metric, |(_, metric, _)| metric.max(self.metric))
    }

    /// Whether it may carry inner packets, as far as it knows itself.
    pub fn works(&self) -> bool {
        self.health.is_active() && self.is_offered()
    }

    /// Neither side says that it may not.
    pub fn is_offered(&self) -> bool {
        self.peer.is_none_or(|(state, ..)| state == LinkState::Usable) && !self.terms.barred
    }
}

/// The MTU search of a way that nothing was sent on. A datagram larger than a batch would wait for ever.
fn untried_mtu(transport: Transport, remote: &SocketAddr, settings: &Settings) -> Pmtu {
    let link_mtu = settings.max_link_mtu.min(BATCH_BYTES as u16);
    let overhead = transport.overhead(remote) as u16;
    match (transport.fixed_size(), transport.said_size(remote)) {
        (Some(size), _) => Pmtu::fixed(size),
        (None, Some(size)) => Pmtu::believed(link_mtu.min(size.saturating_add(overhead)), overhead),
        (None, None) => Pmtu::new(link_mtu, overhead),
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

const _: () = assert!(BATCH_BYTES <= 65_507 && BATCH_BYTES <= u16::MAX as usize);
