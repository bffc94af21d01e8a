//! What one session was to bring to a member of a hub, another is to bring to the other member: the first one is
//! silent, or drains.
//!
//! 1. `surrender`: what is under way and not acknowledged is lost to its paths, and leaves the session with all that
//!    waits, and what was acknowledged behind it (`kept`). Its far side learns by GONE that what is missing does not
//!    come.
//! 2. `adopt`: it goes by the new session before all else, numbered anew: once. What the first member has and could not
//!    acknowledge comes to both: at most what was under way.
//! 3. What the links carried is where the new session's paths begin, at once or carefully (`careful_start`).

use super::path::{Content, Path};
use super::retransmit::SegmentRecord;
use super::{Context, Session, reliable};
use crate::packet::TrainStore;
use crate::policy::{AHEAD, careful_start, fills};
use crate::queue::Queue;
use crate::units::{LinkId, Rate, Start, Time};
use crate::wire::{DataFlags, FlowBucket, Gone};
use std::collections::BTreeMap;
use std::time::Duration;

/// What of a session's packets goes to another. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// What waits to be sent for the first time.
    Queue,
    /// What was sent and not acknowledged.
    InFlight,
    /// Both.
    All,
}

/// What a session gives to another of the same store. Whoever has it owns the segments.
pub(crate) struct HandedOver {
    records: Vec<SegmentRecord>,
    /// None where the other session carries packets already.
    queue: Option<Queue>,
    links: Vec<Carried>,
    start: Start,
}

/// What a link carried, and its least round trip.
#[derive(Copy, Clone, Debug)]
pub(super) struct Carried {
    pub link: LinkId,
    pub rate: Rate,
    /// Whether that is known to be all that it can.
    pub filled: bool,
    pub round_trip: Duration,
}

impl Session {
    /// Steps 1 and 3: of what waits and what is under way, what is asked for. The session goes on.
    pub fn surrender(&mut self, now: Time, part: Part, cx: &mut Context<'_>) -> HandedOver {
        let links = self.carried();
        let queue =
            (part != Part::InFlight).then(|| std::mem::replace(&mut self.outbound.queue, super::ingress_queue()));
        let records = if part == Part::Queue { Vec::new() } else { self.surrender_in_flight(now, cx) };
        // What is under way comes to its end where the other member hands over.
        let start = if part == Part::Queue { Start::Known } else { Start::Careful };
        HandedOver { records, queue, links, start }
    }

    fn surrender_in_flight(&mut self, now: Time, cx: &mut Context<'_>) -> Vec<SegmentRecord> {
        for index in 0..self.paths.len() {
            self.reinject(now, index);
        }
        self.copies.forget();
        while let Some(record) = self.recovery.retransmit.pop_refused() {
            self.give_up(record, cx);
        }
        let mut records: Vec<SegmentRecord> = std::iter::from_fn(|| self.recovery.retransmit.pop_any()).collect();
        records.extend(self.recovery.kept.surrender(cx.store));
        // The flow with the least goes first: a call's few packets do not wait for a download's window.
        let mut bytes: BTreeMap<FlowBucket, u64> = BTreeMap::new();
        records.iter().for_each(|record| *bytes.entry(record.bucket).or_default() += u64::from(record.len));
        let size = |record: &SegmentRecord| bytes.get(&record.bucket);
        records.sort_by(|one, other| size(one).cmp(&size(other)).then(one.order.compare(other.order)));
        let last: BTreeMap<_, _> = records.iter().map(|record| (record.bucket, record.sequence)).collect();
        for (bucket, upto) in last {
            self.recovery.reliable.push(reliable::Frame::Gone(Gone { bucket, upto }));
        }
        records
    }

    /// Whether anything that was sent is not acknowledged, or waits to be retransmitted.
    pub fn has_in_flight(&self) -> bool {
        let carries = |content: Content| matches!(content, Content::Segment(_) | Content::Piece(_));
        let under_way = |path: &Path| path.flight.sent.outstanding().any(|(_, packet)| carries(packet.content));
        !self.recovery.retransmit.is_empty() || self.paths.iter().any(under_way)
    }

    /// Steps 2 and 3.
    pub fn adopt(&mut self, now: Time, from: HandedOver, store: &mut TrainStore) {
        self.note_busy(now);
        self.begin_as_carried(now, from.start, &from.links);
        if let Some(queue) = from.queue {
            debug_assert!(self.outbound.queue.is_empty(), "only the carrier is given packets");
            self.outbound.queue = queue;
        }
        let mut records = from.records;
        for record in &mut records {
            self.outbound.number_anew(now, record, store);
            self.recovery.kept.number(record.bucket, 1, store);
        }
        let allowed = &self.scheduling.allowed;
        self.recovery.retransmit.extend(&mut records, |rule| allowed.is_bound(rule));
        self.scheduling.policy.reconsider();
    }

    /// What each link is known to carry: what the controller knows, and no more than what it did.
    fn carried(&self) -> Vec<Carried> {
        let known = self.paths.iter().filter(|path| !path.capacity.probing.is_on() && !path.is_closed());
        let of = |path: &Path| {
            let (link, round_trip) = (path.route.link, path.way.rtt.snapshot().min);
            let taken = self.taken(link).unwrap_or(Rate(u64::MAX));
            path.rate().map(|rate| Carried { link, rate: rate.min(taken), filled: fills(taken, rate), round_trip })
        };
        known.filter_map(of).collect()
    }

    /// Of paths by the same links.
    fn begin_as_carried(&mut self, now: Time, start: Start, links: &[Carried]) {
        for path in self.paths.iter_mut() {
            path.capacity.controller.on_takeover(now);
            let carried = links.iter().find(|carried| carried.link == path.route.link);
            carried.iter().for_each(|carried| path.begin_at(now, start, carried));
        }
    }
}

impl Path {
    /// Its link carries, or carried, this much to another member, at this round trip: it begins there. Where that member
    /// is silent, only if its own rate is not known.
    pub(super) fn begin_at(&mut self, now: Time, start: Start, carried: &Carried) {
        let smoothed = self.way.rtt.snapshot().smoothed;
        let unknown = start != Start::Careful || self.capacity.probing.is_on();
        let begins = self.health.is_active() && unknown && self.capacity.start != Some(start);
        let Some(rate) = careful_start(start, carried.rate, carried.round_trip, smoothed).filter(|_| begins) else {
            return;
        };
        self.capacity.start = Some(start);
        if start == Start::Careful {
            self.capacity.controller.start_at(rate, smoothed);
        } else {
            self.way.rtt.expect_ahead(now, AHEAD);
            if self.capacity.controller.resume(now, rate, smoothed, carried.filled) {
                self.capacity.probing.skip(now);
            }
        }
        self.follow_controller();
    }
}

impl super::outbound::Outbound {
    /// A segment of another session's gets its place in this one's order.
    fn number_anew(&mut self, now: Time, record: &mut SegmentRecord, store: &TrainStore) {
        debug_assert!(store.get(record.segment.train).is_some(), "whoever answers for a segment owns it");
        let (sequence, order) = self.next_of(record.bucket);
        // Those between that arrived are not numbered: the next number may be of another train.
        let flags = DataFlags { continues: false, ..record.flags };
        *record = SegmentRecord { sequence, order, flags, tries: 0, first_sent: now, ..*record };
    }
}
