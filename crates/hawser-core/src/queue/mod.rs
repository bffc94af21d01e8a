//! The ingress queue: fair between flows, and short (FQ-CoDel, RFC 8290). Paths pull.
//!
//! 1. `enqueue` puts a train behind its flow, which has a bucket of its own (`ways`), or an acknowledgement in the place of an older one (`ack_filter` holds
//!    some of those for a moment); too much altogether costs the fattest flow something (`overflow`).
//! 2. `pull` walks the flows in turn, those of a higher priority first (`levels`); the path that pulls takes, skips or
//!    stops at each.
//! 3. CoDel judges what is about to be taken, but what came in an outage (`outage`): one segment is dropped, or marked
//!    where ECN allows. A long queue is shortened in the place of that (`shorten`).
//! 4. What is taken are consecutive segments of one train; the rest of it stays at the head.

mod ack_filter;
mod codel;
mod flows;
mod levels;
mod line;
mod looks;
mod outage;
mod overflow;
mod shorten;
#[cfg(test)]
mod tests;
mod ways;
mod words;

use crate::packet::{FlowBucket, FlowHash, SegmentRef, TrainId, TrainStore};
use crate::units::{ByteCount, Time};
use ack_filter::AckFilter;
use codel::CodelParams;
use flows::{Flow, Flows, Place};
use line::{Item, Line, NONE};
use looks::{Looks, Treatments};
use outage::Outage;
use std::num::NonZeroU32;
use std::time::Duration;

pub use ack_filter::AckSpacing;
pub use codel::{INTERVAL, TARGET};
pub use words::{Choice, DropReason, Dropped, FlowView, LIMIT, Pulled, QUANTUM, QueueParams};

/// Flows that one pull passes by: those of other paths, and those of a treatment of which it asked about enough.
const MAX_PASSED: usize = 512;

/// What waits for a path. Empty at first. One owner; memory is used again.
#[derive(Debug)]
pub struct Queue {
    limit: ByteCount,
    mtu: ByteCount,
    quantum: ByteCount,
    codel: CodelParams,
    /// What a drop leaves of a queue that lasts longer.
    kept: Duration,
    flows: Flows,
    ack_filter: AckFilter,
    line: Line,
    bytes: ByteCount,
    segments: usize,
    backlogged: usize,
    outage: Outage,
    treatments: Treatments,
}

impl Queue {
    /// An empty queue.
    pub fn new(params: QueueParams) -> Queue {
        let mut queue = Queue {
            limit: params.limit,
            mtu: params.mtu.max(ByteCount(1)),
            quantum: params.mtu.max(ByteCount(1)),
            codel: CodelParams::default(),
            kept: Duration::MAX,
            flows: Flows::new(),
            ack_filter: AckFilter::default(),
            line: Line::new(),
            bytes: ByteCount::ZERO,
            segments: 0,
            backlogged: 0,
            outage: Outage::default(),
            treatments: Treatments::default(),
        };
        queue.set_codel(params.target, params.interval);
        queue
    }

    /// Changes CoDel's parameters.
    pub fn set_codel(&mut self, target: Duration, interval: Duration) {
        self.codel = CodelParams { target, interval };
    }

    /// Changes how many bytes may wait.
    pub fn set_limit(&mut self, limit: ByteCount) {
        self.limit = limit;
    }

    /// Changes what a flow may send in its turn; it is at least the largest inner packet.
    pub fn set_quantum(&mut self, quantum: ByteCount) {
        self.quantum = quantum.max(self.mtu);
    }

    /// Segments that wait.
    pub fn len(&self) -> usize {
        self.segments
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.segments == 0
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// How long the oldest packet has waited; zero when nothing waits.
    pub fn head_wait(&self, now: Time) -> Duration {
        self.line.oldest().map_or(Duration::ZERO, |item| now.since(item.enqueued))
    }

    /// Puts all of a train behind its flow. An acknowledgement of TCP that only waits for its turn gives way to the
    /// next one of its flow (ACK filtering, RFC 3449 section 5.2.1). Above the limit, the fattest flow loses its head;
    /// `dropped` hears of both, and the store has the segments back.
    pub fn enqueue(&mut self, now: Time, id: TrainId, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        let bucket = self.place(now, store.train(id).flow());
        if !self.holds(now, id, bucket, store, dropped) {
            self.admit(now, id, bucket, store, dropped);
        }
    }

    /// The bucket of a flow, which it has from now on.
    pub fn place(&mut self, now: Time, flow: FlowHash) -> FlowBucket {
        self.flows.place(now, flow)
    }

    /// What tells the flow that has a bucket from others.
    pub fn tag(&self, bucket: FlowBucket) -> Option<NonZeroU32> {
        self.flows.get(bucket).tag
    }

    fn admit(
        &mut self,
        now: Time,
        id: TrainId,
        bucket: FlowBucket,
        store: &mut TrainStore,
        dropped: &mut dyn FnMut(Dropped),
    ) {
        let mut item = Item::new(now, id, bucket, store.train(id));
        if self.supersede(&item, store, dropped) {
            return;
        }
        let (bytes, priority) = (item.len_of(item.count()), item.treatment.priority);
        if self.is_empty() {
            self.outage.on_first(now);
        }
        self.treatments.note(self.is_empty(), item.treatment);
        if self.refuses(&item) {
            return item.drop_whole(DropReason::Overflow, store, dropped);
        }
        self.segments += usize::from(item.count());
        self.bytes += bytes;
        let flow = self.flows.get_mut(bucket);
        let was_empty = flow.tail == NONE;
        if was_empty {
            flow.sent = ByteCount::ZERO;
        }
        item.sent_before = flow.sent;
        let index = self.line.push(item);
        if was_empty {
            flow.head = index;
            flow.backlogged_since = now;
            if self.backlogged == 0 {
                flow.codel.emptied();
            }
            self.backlogged += 1;
        } else {
            self.line.get_mut(flow.tail).behind = index;
        }
        flow.tail = index;
        flow.backlog += bytes;
        if was_empty {
            self.flows.awake(bucket, priority, self.mtu);
        }
        while self.bytes > self.limit {
            self.shorten_fattest(store, dropped);
        }
    }

    /// An acknowledgement takes the place of the last one of its flow, if that one is of no use beside it.
    fn supersede(&mut self, newer: &Item, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) -> bool {
        let last = self.flows.get(newer.bucket).tail;
        if last == NONE {
            return false;
        }
        let older = self.line.get_mut(last);
        let useless =
            newer.treatment == older.treatment && store.train(newer.train).supersedes(store.train(older.train));
        if useless {
            let gone = std::mem::replace(&mut older.train, newer.train);
            drop_filtered(gone, newer.bucket, store, dropped);
        }
        useless
    }

    /// Hands a path the next segments. `choose` is asked flow by flow, in turn, at most 16 times for each treatment, those
    /// of other paths apart; `dropped` hears what CoDel dropped on the way.
    pub fn pull(
        &mut self,
        now: Time,
        store: &mut TrainStore,
        choose: &mut dyn FnMut(&FlowView) -> Choice,
        dropped: &mut dyn FnMut(Dropped),
    ) -> Option<Pulled> {
        let (mut looks, mut passed) = (Looks::default(), 0);
        let mut walk = self.flows.walk(self.quantum);
        let mut turn = self.flows.first(&mut walk);
        while let Some(bucket) = turn {
            // Within its level: a flow that has used up its turn does not give way to a lower priority.
            let beside = self.flows.beside(bucket);
            let flow = self.flows.get_mut(bucket);
            if flow.deficit <= 0 {
                flow.deficit += self.quantum.0 as i64;
                flow.sparse = false;
                self.flows.end_turn(bucket, Place::Old);
                turn = beside.or(Some(bucket));
                continue;
            }
            if flow.head == NONE {
                turn = self.retire(bucket, beside).or_else(|| self.flows.first(&mut walk));
                continue;
            }
            // Who is asked again goes before the level that would follow it now.
            let ahead = walk;
            turn = beside.or_else(|| self.flows.first(&mut walk));
            if passed == MAX_PASSED {
                return None;
            }
            let view = self.view(now, bucket);
            if looks.are_enough(view.treatment) {
                if self.treatments.are_one() {
                    return None;
                }
                passed += 1;
                continue;
            }
            match choose(&view) {
                Choice::Stop => return None,
                Choice::Skip => looks.note(view.treatment),
                Choice::Foreign => passed += 1,
                Choice::Discard => {
                    passed += 1;
                    self.drop_head(bucket, DropReason::Discarded, store, dropped);
                    (turn, walk) = (Some(bucket), ahead);
                }
                Choice::Take { max_bytes, max_segments } if max_segments > 0 && view.head_len <= max_bytes => {
                    self.outage.on_served(now, self.codel.interval);
                    let head = self.head(bucket);
                    let marked = self.judge(now, bucket, store, dropped);
                    if self.head(bucket) == head {
                        return Some(self.take(now, bucket, max_bytes, max_segments, marked));
                    }
                    // What is behind a dropped packet was not asked for: it may have another size, or rule.
                    (turn, walk) = (Some(bucket), ahead);
                }
                Choice::Take { .. } => looks.note(view.treatment),
            }
        }
        None
    }

    /// An empty flow's turn: it leaves; a new one by way of the old list, if there is any, so that
    /// it cannot starve the others by coming back at once (RFC 8290 section 4.2).
    fn retire(&mut self, bucket: FlowBucket, after: Option<FlowBucket>) -> Option<FlowBucket> {
        let from_new = self.flows.get(bucket).place == Place::New;
        let place = if from_new && after.is_some() { Place::Old } else { Place::Idle };
        // Where many flows empty at each turn, what waited too long in each still is a queue that stands.
        if place == Place::Idle {
            self.flows.get_mut(bucket).codel.emptied();
        }
        self.flows.end_turn(bucket, place);
        after
    }

    fn view(&self, now: Time, bucket: FlowBucket) -> FlowView {
        let flow = self.flows.get(bucket);
        let head = self.line.get(flow.head);
        FlowView {
            bucket,
            tag: flow.tag,
            backlog: flow.backlog,
            queue_backlog: self.bytes,
            sparse: flow.place == Place::New,
            head_wait: now.since(head.enqueued),
            head_len: head.head_len(),
            backlogged_for: now.since(flow.backlogged_since),
            sent_in_burst: flow.sent,
            flows: self.backlogged,
            treatment: head.treatment,
        }
    }

    /// The first that waits in a flow.
    fn head(&self, bucket: FlowBucket) -> Option<SegmentRef> {
        let head = self.flows.get(bucket).head;
        (head != NONE).then(|| self.line.get(head).head())
    }

    /// CoDel's turn: drops what it must from the head; true when it marked the new head instead.
    fn judge(
        &mut self,
        now: Time,
        bucket: FlowBucket,
        store: &mut TrainStore,
        dropped: &mut dyn FnMut(Dropped),
    ) -> bool {
        loop {
            let few = self.bytes <= self.mtu;
            let flow = self.flows.get_mut(bucket);
            if flow.head == NONE {
                return false;
            }
            let head = self.line.get(flow.head);
            let wait = self.outage.wait(now, head.enqueued);
            if !flow.codel.must_act(now, wait, few, self.codel) {
                return false;
            }
            if head.ect {
                store.mark_ce(head.head());
                return true;
            }
            if self.shorten(bucket, wait, store, dropped) {
                return false;
            }
            self.drop_head(bucket, DropReason::Codel, store, dropped);
        }
    }

    /// The head of a flow, which fits, and what of its train fits behind it.
    fn take(&mut self, now: Time, bucket: FlowBucket, max_bytes: ByteCount, max_segments: u16, marked: bool) -> Pulled {
        let flow = self.flows.get_mut(bucket);
        let head = *self.line.get(flow.head);
        let count = head.fitting(max_bytes).min(max_segments);
        let bytes = head.len_of(count);
        let sparse = flow.on_pulled(now, bytes);
        self.flows.note_served(bucket, bytes);
        self.advance(bucket, count, bytes);
        Pulled { train: head.train, first: head.first, count, bucket, bytes, marked, sparse }
    }

    /// Drops what has waited for longer than `limit`, whoever pulls or does not.
    pub fn drop_old(&mut self, now: Time, limit: Duration, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        // The oldest of all is the head of its flow.
        while let Some(item) = self.line.oldest().filter(|item| now.since(item.enqueued) > limit) {
            self.drop_head(item.bucket, DropReason::Old, store, dropped);
        }
    }

    fn drop_head(
        &mut self,
        bucket: FlowBucket,
        reason: DropReason,
        store: &mut TrainStore,
        dropped: &mut dyn FnMut(Dropped),
    ) {
        let head = *self.line.get(self.flows.get(bucket).head);
        let bytes = head.head_len();
        self.advance(bucket, 1, bytes);
        store.release(head.head());
        dropped(Dropped { segment: head.head(), bucket, bytes, reason });
    }

    /// `count` segments have left the head of a flow.
    fn advance(&mut self, bucket: FlowBucket, count: u16, bytes: ByteCount) {
        self.bytes -= bytes;
        self.segments -= usize::from(count);
        let flow: &mut Flow = self.flows.get_mut(bucket);
        flow.backlog -= bytes;
        let index = flow.head;
        let head = self.line.get_mut(index);
        head.first += count;
        if head.count() > 0 {
            return;
        }
        flow.head = head.behind;
        if flow.head == NONE {
            flow.tail = NONE;
            self.backlogged -= 1;
        }
        self.line.remove(index);
    }
}

/// An acknowledgement beside which a newer one says all.
fn drop_filtered(id: TrainId, bucket: FlowBucket, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
    let bytes = ByteCount(store.train(id).segment_len(0) as u64);
    let segment = SegmentRef { train: id, segment: 0 };
    store.release(segment);
    dropped(Dropped { segment, bucket, bytes, reason: DropReason::AckFiltered });
}
