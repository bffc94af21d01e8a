//! Steps 4 to 8 out: a path has room, and takes what the scheduler lets it have.
//!
//! 1. Control frames are sent before data (`control`), what is never retransmitted among it; then repairs (`fec`).
//! 2. What is of no use any more is given up, and the far side told.
//! 3. Paths with room are asked in the order of their delay.
//! 4. Each takes first copies of what another lost twice, then what is to be retransmitted, then from the
//!    queue, until its window or its pacing credit ends or the batch is full; one whose rate is to be
//!    found out, and that declines all that, takes redundant copies (`redundant_copies`).
//! 5. Every segment gets its numbers, is remembered, and sealed into the batch (`sealing`), or put there to be sealed
//!    later by another thread (`beside`).
//! 6. Where nothing of all that may go, a speed test's filler does (`filler`).

use super::batch::Batch;
use super::constants::{DATA_OVERHEAD, STRICT_WAIT};
use super::hedge::is_hedged;
use super::reliable;
use super::retransmit::{SegmentRecord, SendOrder};
use super::room::SparseRate;
use super::sealing::fits_in_pieces;
use super::views::Scheduling;
use super::{Buffers, Context, Route, Sealing, Session, Transmit};
use crate::drops::DropReason;
use crate::flows::Look;
use crate::packet::{Class, SegmentRef, TrainStore};
use crate::queue::{Choice, Pulled, Queue};
use crate::scheduler::{Kind, Room, Round, takes_retransmit};
use crate::units::{ByteCount, Time};
use crate::wire::{DataFlags, FlowBucket, FlowSequence, Gone};

/// What waits for its first departure, and the order that it leaves in. Begins with a queue, which may hold packets;
/// the session owns it.
pub(super) struct Outbound {
    pub queue: Queue,
    /// The next sequence of each flow bucket.
    sequences: Box<[u64]>,
    /// The place of the next segment among all that were sent.
    pub next_order: SendOrder,
    /// Bytes of inner packets.
    pub tx_inner: ByteCount,
    /// What sparse flows take, where there is a hub.
    pub sparse_rate: SparseRate,
}

impl Outbound {
    pub fn new(queue: Queue) -> Self {
        Outbound {
            queue,
            sequences: vec![0; FlowBucket::COUNT].into_boxed_slice(),
            next_order: SendOrder::default(),
            tx_inner: ByteCount::ZERO,
            sparse_rate: SparseRate::default(),
        }
    }

    /// Step 5: every segment gets its place in its flow's order.
    fn number(
        &mut self,
        now: Time,
        pulled: Pulled,
        store: &mut TrainStore,
    ) -> impl Iterator<Item = SegmentRecord> + use<> {
        let segment = move |index| SegmentRef { train: pulled.train, segment: index };
        if pulled.marked {
            store.mark_ce(segment(pulled.first));
        }
        let train = store.train(pulled.train);
        let (partial, unordered) = (train.partial(), train.class() == Class::Unordered);
        let treatment = train.treatment();
        let (end, total) = (pulled.first + pulled.count, train.segments());
        let (len, last_len) = (train.segment_len(pulled.first), train.segment_len(end - 1));
        let next = &mut self.sequences[pulled.bucket.index()];
        let base = *next;
        *next += u64::from(pulled.count);
        let order = self.next_order;
        self.next_order = order.after(pulled.count);
        self.tx_inner += pulled.bytes;
        (pulled.first..end).map(move |index| SegmentRecord {
            segment: segment(index),
            bucket: pulled.bucket,
            sequence: FlowSequence::of(base + u64::from(index - pulled.first)),
            flags: DataFlags { partial, continues: index + 1 < total, unordered },
            len: u16::try_from(if index + 1 == end { last_len } else { len }).unwrap_or(u16::MAX),
            tries: 1,
            order: order.after(index - pulled.first),
            first_sent: now,
            treatment,
        })
    }
}

impl Outbound {
    /// The next sequence of a flow bucket, and the next place of all.
    pub fn next_of(&mut self, bucket: FlowBucket) -> (FlowSequence, SendOrder) {
        let next = &mut self.sequences[bucket.index()];
        let sequence = FlowSequence::of(*next);
        *next += 1;
        let order = self.next_order;
        self.next_order = order.after(1);
        (sequence, order)
    }
}

/// Which flows are asked for what waits. A plain value.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Flows {
    All,
    Sparse,
}

impl Session {
    /// The next batch, for whichever path is to speak next; `None` when nothing may go now.
    pub fn poll_transmit(&mut self, now: Time, buffers: &mut dyn Buffers, cx: &mut Context<'_>) -> Option<Transmit> {
        while let Some(record) = self.recovery.retransmit.pop_refused() {
            self.give_up(record, cx);
        }
        if let Err(end) = self.keyring.permit(now) {
            self.tell_over(end);
            self.give_up_useless(now, cx);
            return None;
        }
        if let Some(transmit) = self.transmit_control(now, buffers) {
            return Some(transmit);
        }
        if let Some(transmit) = self.transmit_repair(now, buffers) {
            return Some(transmit);
        }
        self.give_up_useless(now, cx);
        if self.nothing_waits() && !self.hedge_is_due(now) && !self.reinject_while_idle(now) {
            if !self.filler.is_on() {
                self.note_pause(now);
                return None;
            }
            self.refresh_views(now);
            return self.transmit_filler(now, buffers);
        }
        self.refresh_views(now);
        self.hedge(now);
        self.transmit_data(now, buffers, cx).or_else(|| self.transmit_filler(now, buffers))
    }

    /// Whether the queues are empty.
    pub(super) fn nothing_waits(&self) -> bool {
        self.outbound.queue.is_empty() && self.recovery.retransmit.is_empty() && !self.copies.reinjections_wait()
    }

    /// Asks the paths that have room, least delay first.
    fn transmit_data(&mut self, now: Time, buffers: &mut dyn Buffers, cx: &mut Context<'_>) -> Option<Transmit> {
        let mut asked = 0u64;
        while let Some(index) = self.scheduling.next_to_ask(asked) {
            asked |= 1 << index;
            let Route { link, remote, .. } = self.paths[index].route;
            let spare = buffers.spare(link, remote);
            self.paths[index].stall.blocked = spare.is_none();
            let Some(buffer) = spare else { continue };
            if let Some(transmit) = self.fill_data(now, index, buffer, cx) {
                return Some(transmit);
            }
            if !self.is_filled(index) {
                self.paths[index].note_pause(now);
            }
        }
        None
    }

    /// Step 4: fills a batch for one path; `None` if it declines all that waits.
    fn fill_data(&mut self, now: Time, index: usize, buffer: &mut [u8], cx: &mut Context<'_>) -> Option<Transmit> {
        let mut budget = self.paths[index].budget(now);
        let seals_later = matches!(cx.sealing, Sealing::Later(_));
        let mut batch = Batch::new(buffer, self.paths[index].room_before()).sealed_later(seals_later);
        self.fill_reinjections(now, index, &mut batch, &mut budget, cx.store);
        let mut free = false;
        if !self.recovery.retransmit.is_empty() {
            let most = budget.scale(self.scheduling.policy.decisions().reinjection.sparse_part);
            let mut left = most;
            free |= self.fill_new(now, index, &mut batch, &mut left, Flows::Sparse, cx);
            budget -= most - left;
            free |= self.fill_retransmits(now, index, &mut batch, &mut budget, cx);
        }
        free |= self.fill_new(now, index, &mut batch, &mut budget, Flows::All, cx);
        if batch.is_empty() && self.scheduling.policy.decisions().probes.by_copies.contains(index) {
            self.fill_copies(now, index, &mut batch, budget, cx.store);
        }
        if let Sealing::Later(unsealed) = cx.sealing {
            *unsealed = batch.unsealed(self.keyring.sealer(), self.paths[index].id);
        }
        self.finish(now, index, &batch, free)
    }

    /// What goes for the first time. Whether any of it may go by any link.
    fn fill_new(
        &mut self,
        now: Time,
        index: usize,
        batch: &mut Batch<'_>,
        budget: &mut ByteCount,
        which: Flows,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut free = false;
        while *budget > ByteCount::ZERO && !batch.is_closed() {
            let Some(pulled) = self.pull(now, index, batch, *budget, which, cx) else { break };
            if cx.flows.is_next(Look::Sent) {
                let inner = cx.store.train(pulled.train).inner();
                cx.flows.note_sent(now, self.peer.id, inner, self.paths[index].route.into(), pulled.bytes);
            }
            let treatment = cx.store.train(pulled.train).treatment();
            free |= !self.scheduling.allowed.is_bound(treatment.rule);
            let (sparse, wire) = (pulled.sparse, self.send_pulled(now, index, batch, pulled, cx));
            *budget -= wire;
            if treatment.fec {
                // For the next ones: room was asked for as these are.
                self.fec.on_loss(now, self.paths[index].capacity.loss.to_expect());
            }
            if sparse && self.knows_hub() {
                self.outbound.sparse_rate.note(now, wire);
            }
        }
        free
    }

    /// Step 5 for what was pulled of one train. Tells the bytes on the wire.
    fn send_pulled(
        &mut self,
        now: Time,
        index: usize,
        batch: &mut Batch<'_>,
        pulled: Pulled,
        cx: &mut Context<'_>,
    ) -> ByteCount {
        let (hedged, mut wire) = (is_hedged(&pulled, cx.store), ByteCount::ZERO);
        self.recovery.kept.number(pulled.bucket, pulled.count, cx.store);
        for record in self.outbound.number(now, pulled, cx.store) {
            if let Some(twin) = self.twin_for(now, index, &record, hedged) {
                self.copies.note_twin(&record, twin);
            }
            let number = self.paths[index].flight.peek_number();
            wire += self.send(now, index, record, batch, cx.store);
            if hedged {
                self.paths[index].note_sparse(now, number, record);
            }
        }
        wire
    }

    /// A path that declines everything, and whose rate is to be found out, gets redundant copies.
    fn fill_copies(
        &mut self,
        now: Time,
        index: usize,
        batch: &mut Batch<'_>,
        mut budget: ByteCount,
        store: &TrainStore,
    ) {
        while budget > ByteCount::ZERO && !batch.is_closed() {
            let mtu = self.paths[index].way.mtu();
            let Some(record) = self.copies.next(|record| has_room(batch, mtu, record)) else { break };
            budget -= self.send_copy(now, index, &record, batch, store);
        }
    }

    /// What is in doubt on another path goes by this one too.
    fn fill_reinjections(
        &mut self,
        now: Time,
        index: usize,
        batch: &mut Batch<'_>,
        budget: &mut ByteCount,
        store: &TrainStore,
    ) {
        while *budget > ByteCount::ZERO {
            let (id, mtu) = (self.paths[index].id, self.paths[index].way.mtu());
            let allowed = &self.scheduling.allowed;
            let fits =
                |record: &SegmentRecord| allowed.of(record.rule()).contains(index) && has_room(batch, mtu, record);
            let Some(record) = self.copies.next_reinjection(id, fits) else { break };
            let sent = self.send_copy(now, index, &record, batch, store);
            self.paths[index].counts.reinjected_copies += sent;
            *budget -= sent;
        }
    }

    /// What was lost goes before what is new, if this path brings it home soonest. Whether any of it may go by any
    /// link.
    fn fill_retransmits(
        &mut self,
        now: Time,
        index: usize,
        batch: &mut Batch<'_>,
        budget: &mut ByteCount,
        cx: &mut Context<'_>,
    ) -> bool {
        let (mut at, mut free) = (0, false);
        while let Some(rule) = self.recovery.retransmit.rule(at) {
            let set = self.scheduling.allowed.of(rule);
            while set.contains(index) && *budget > ByteCount::ZERO {
                let queue = self.recovery.retransmit.queue(at);
                let (Some(next), ahead) = (queue.peek(), queue.bytes()) else { break };
                let (len, mtu) = (usize::from(next.len), self.paths[index].way.mtu());
                // What another session gave leaves by this one for the first time, and may be protected.
                let size = self.fec.overhead(next.treatment.fec && next.tries == 0, len, mtu) + len;
                let alone = || batch.is_empty() && fits_in_pieces(len, mtu);
                let fits = if size > mtu { alone() } else { batch.room_for(size) > 0 };
                if !fits || !takes_retransmit(&self.scheduling.round(now), index, set, ahead) {
                    break;
                }
                let Some(mut record) = self.recovery.retransmit.queue(at).pop() else { break };
                record.tries += 1;
                self.paths[index].counts.retransmitted += ByteCount(u64::from(record.len));
                if set.len() > 1 && self.scheduling.policy.decisions().reinjection.duplicates(record.tries) {
                    self.copies.note_retransmitted(&record, self.paths[index].id);
                }
                free |= at == 0;
                *budget -= self.send(now, index, record, batch, cx.store);
            }
            at += 1;
        }
        free
    }

    /// Takes the next segments of one train from the queue, as many as the batch and the budget hold.
    fn pull(
        &mut self,
        now: Time,
        index: usize,
        batch: &Batch<'_>,
        budget: ByteCount,
        which: Flows,
        cx: &mut Context<'_>,
    ) -> Option<Pulled> {
        let Scheduling { views, policy, allowed, scheduler, .. } = &mut self.scheduling;
        let (paths, allowed) = (&*views, &*allowed);
        let round = Round { now, paths, allowed, decisions: policy.decisions(), tuning: policy.tuning() };
        let fec = &self.fec;
        let (widths, mtu) = (&self.paths, self.paths[index].way.mtu());
        let drops = &mut *cx.drops;
        let bulk_waits = which == Flows::Sparse || self.hub.bulk_waits_until(now).is_some();
        let choose = &mut |flow: &crate::queue::FlowView| {
            // Others are passed, and no end: so those that emptied leave the old flows, and are sparse again (RFC 8290,
            // section 4.2).
            if bulk_waits && !flow.sparse {
                return Choice::Skip;
            }
            if flow.head_wait > STRICT_WAIT && allowed.is_hopeless(flow.treatment.rule) {
                return Choice::Discard;
            }
            if !allowed.of(flow.treatment.rule).contains(index) {
                return Choice::Foreign;
            }
            let len = flow.head_len.0 as usize;
            let size = fec.overhead(flow.treatment.fec, len, mtu) + len;
            if size > mtu && !fits_in_pieces(len, mtu) {
                let set = allowed.of(flow.treatment.rule);
                let another = |at: usize| set.contains(at) && fits_in_pieces(len, widths[at].way.mtu());
                return if (0..widths.len()).any(another) { Choice::Foreign } else { Choice::Discard };
            }
            // A packet too large for the path goes alone, in pieces.
            let segments = if size > mtu { u16::from(batch.is_empty()) } else { batch.room_for(size) };
            if segments == 0 {
                return Choice::Stop;
            }
            // Window and credit may be overdrawn by one packet, else a small rest would block.
            let bytes = budget.max(flow.head_len);
            scheduler.choose(&round, index, flow, Room { bytes, segments })
        };
        let pulled =
            self.outbound.queue.pull(now, cx.store, choose, &mut |dropped| drops.count(dropped.reason.into()))?;
        let treatment = cx.store.train(pulled.train).treatment();
        self.scheduling.scheduler.on_taken(now, index, treatment, pulled.bucket, pulled.bytes);
        if treatment.scheduler != Kind::Adaptive || self.scheduling.allowed.is_bound(treatment.rule) {
            self.paths[index].activity.last_given = now;
        }
        Some(pulled)
    }

    /// Step 8: the batch as the driver sends it; the controller hears of it. `free`: some of it might have gone by
    /// another path.
    fn finish(&mut self, now: Time, index: usize, batch: &Batch<'_>, free: bool) -> Option<Transmit> {
        if batch.is_empty() {
            return None;
        }
        let idle = self.nothing_waits() && !self.is_filled(index);
        self.liveness.note_asked(now);
        if free {
            self.scheduling.note_free_batch(index);
        }
        let path = &mut self.paths[index];
        if !idle {
            path.capacity.probing.on_fed(now);
        }
        let wire = batch.wire_bytes(path.overhead());
        self.copies.credit.earn(&path.tuning.hedge, wire);
        path.on_batch_sent(now, wire, idle);
        if batch.segments() > 1 {
            path.flight.join_train(batch.segments());
        }
        Some(path.transmit(batch.len(), batch.segment_size()))
    }

    /// Step 2: what the far resequencer cannot use any more is let go, and it is told.
    fn give_up_useless(&mut self, now: Time, cx: &mut Context<'_>) {
        let useful = self.hold.useful_for(&self.settings.tuning);
        loop {
            // Where its rule is strict and no link of it works, nothing is to be waited for.
            let hopeless = |rule| self.scheduling.allowed.is_hopeless(rule);
            let useful = |rule| if hopeless(rule) { useful.min(STRICT_WAIT) } else { useful };
            let Some(record) = self.recovery.retransmit.pop_useless(now, useful) else { break };
            self.give_up(record, cx);
        }
    }

    pub(super) fn give_up(&mut self, record: SegmentRecord, cx: &mut Context<'_>) {
        self.recovery.kept.forget(&record, cx.store);
        cx.store.release(record.segment);
        cx.drops.count(DropReason::GaveUp);
        self.recovery.reliable.push(reliable::Frame::Gone(Gone { bucket: record.bucket, upto: record.sequence }));
    }

    /// Nothing waits: what paths deliver from now on says nothing of what they could.
    fn note_pause(&mut self, now: Time) {
        for path in self.paths.iter_mut().filter(|path| !path.pauses.is_on()) {
            path.note_pause(now);
        }
    }
}

/// Whether a copy may be tried now: what the path cannot carry whole never fits, and is not waited for.
fn has_room(batch: &Batch<'_>, mtu: usize, record: &SegmentRecord) -> bool {
    let size = DATA_OVERHEAD + usize::from(record.len);
    size > mtu || batch.room_for(size) > 0
}
