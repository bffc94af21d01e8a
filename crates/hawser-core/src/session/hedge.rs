//! Sparse flows are hedged: what is overdue of theirs on one path goes by another too.
//!
//! 1. What a path takes of a sparse flow is noted with its packet number and with when its answer is due, until it is
//!    settled.
//! 2. Once the first of that is overdue (`policy::hedge`) the path is in doubt: all that is noted goes by the best
//!    other path as well, as far as there is credit, and is forgotten here. So does what is given to the path while its
//!    answers stay away.
//! 3. Where nothing waits and the fastest path is nearly idle, what slower ones have under way of `adaptive` flows goes
//!    by it too, if it brings that home sooner (`policy::reinjection`), as far as there is credit, and once.
//! 4. While packets move here from a session with another member of a hub, what is ahead of them on each link is not
//!    known: each of a sparse flow goes by a second path at once, as far as there is credit.
//! 5. What comes second is a duplicate to the far resequencer.

use super::Session;
use super::constants::DATA_OVERHEAD;
use super::path::{Content, Path};
use super::retransmit::SegmentRecord;
use crate::packet::TrainStore;
use crate::path::sent::SentPackets;
use crate::policy::{hedge, reinjection};
use crate::queue::Pulled;
use crate::rules::Treatment;
use crate::scheduler::Kind;
use crate::units::{ByteCount, PacketNumber, PathId, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// Packets noted for each path: what 40 calls of 50 packets a second have under way in an eighth of a second.
const NOTED: usize = 256;

/// A packet of a sparse flow under way.
struct Noted {
    number: PacketNumber,
    due: Time,
    record: SegmentRecord,
}

/// What a path has under way of sparse flows, oldest first. Empty at first; its path owns it, and no part of any train.
#[derive(Default)]
pub(super) struct SparseInFlight(VecDeque<Noted>);

impl SparseInFlight {
    /// Forgets what is settled at the front; what is settled among the rest is found when it is its turn.
    pub fn prune<S: Copy, T: Copy>(&mut self, sent: &SentPackets<S, T>) {
        while self.0.front().is_some_and(|noted| !sent.is_outstanding(noted.number)) {
            self.0.pop_front();
        }
    }
}

impl Path {
    /// How long its answers may take.
    fn answer_time(&self) -> Duration {
        let rtt = self.way.rtt.snapshot();
        hedge::answer_time(&self.tuning.hedge, rtt.smoothed, rtt.latest, rtt.variance)
    }

    /// Step 1: packet `number` carries `record`.
    pub(super) fn note_sparse(&mut self, now: Time, number: PacketNumber, record: SegmentRecord) {
        if self.flight.sparse.0.len() == NOTED {
            self.flight.sparse.0.pop_front();
        }
        self.flight.sparse.0.push_back(Noted { number, due: now + self.answer_time(), record });
    }

    /// Whether it has something under way that was not reinjected.
    fn holds_more(&self) -> bool {
        self.works()
            && self.flight.sent.bytes_in_flight() > ByteCount::ZERO
            && self.flight.peek_number() > self.flight.reinjected
    }

    /// Whether it has next to nothing under way, for what it may have.
    fn is_nearly_idle(&self) -> bool {
        let part = u64::from(self.tuning.reinjection.idle_part);
        part > 0 && self.flight.sent.bytes_in_flight() <= ByteCount(self.capacity.controller.window().0 / part)
    }

    /// When what it holds of sparse flows is to go by another path too, if no answer comes.
    pub(super) fn hedge_at(&self) -> Option<Time> {
        let first = self.flight.sparse.0.front().filter(|_| self.works())?;
        let overdue = self.flight.sent.next_awaited_sent_at().map(|at| at + self.answer_time());
        Some(overdue.map_or(first.due, |at| first.due.min(at)))
    }
}

impl Session {
    /// Whether anything is to be hedged by now.
    pub(super) fn hedge_is_due(&self, now: Time) -> bool {
        self.paths.iter().any(|path| path.hedge_at().is_some_and(|at| at <= now))
    }

    /// Step 2. The views are fresh.
    pub(super) fn hedge(&mut self, now: Time) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.hedge_at().is_none_or(|at| at > now) {
                continue;
            }
            let held = std::mem::take(&mut path.flight.sparse.0);
            for Noted { number, record, .. } in held {
                let set = self.scheduling.allowed.of(record.rule());
                let Some(other) = hedge::copies_by(&self.scheduling.views, set, index) else { continue };
                let size = size_of(&record);
                if self.paths[index].flight.sent.is_outstanding(number) && self.copies.credit.pay(size) {
                    self.copies.note_twin(&record, self.scheduling.views[other].id);
                }
            }
        }
    }

    /// By which path a segment goes, too, that path `index` takes: a redundant flow's, and step 4.
    pub(super) fn twin_for(&mut self, now: Time, index: usize, record: &SegmentRecord, sparse: bool) -> Option<PathId> {
        let redundant = record.treatment.scheduler == Kind::Redundant;
        if !(redundant || sparse && self.hub.is_moving(now)) {
            return None;
        }
        let twin = self.scheduling.twin_of(index, record.rule())?;
        (redundant || self.copies.credit.pay(size_of(record))).then_some(twin)
    }

    /// Step 3, where nothing waits. Says whether anything is to go.
    pub(super) fn reinject_while_idle(&mut self, now: Time) -> bool {
        let decisions = self.scheduling.policy.decisions();
        let idle = self.paths.get(decisions.fastest).is_some_and(Path::is_nearly_idle);
        let held =
            || self.paths.iter().enumerate().any(|(index, path)| index != decisions.fastest && path.holds_more());
        if !decisions.reinjection.second_path || !idle || !held() {
            return false;
        }
        self.refresh_views(now);
        let fastest = self.scheduling.fastest();
        for index in (0..self.paths.len()).filter(|index| *index != fastest) {
            self.reinject_by(now, index, fastest);
        }
        self.copies.reinjections_wait()
    }

    /// What path `index` has under way, oldest first, as far as `fastest` brings it home sooner.
    fn reinject_by(&mut self, now: Time, index: usize, fastest: usize) {
        let path = &mut self.paths[index];
        if !path.holds_more() {
            return;
        }
        let (tuning, from) = (path.tuning.reinjection, path.flight.reinjected);
        let (there, here) = (&self.scheduling.views[index], &self.scheduling.views[fastest]);
        for (number, packet) in path.flight.sent.outstanding_from(from) {
            let Content::Segment(record) = packet.content else { continue };
            let size = size_of(&record);
            let sooner = reinjection::is_sooner(&tuning, now.since(packet.sent_at), there, here);
            let may = may_be_copied(record.treatment) && self.scheduling.allowed.of(record.rule()).contains(fastest);
            if may && sooner && self.copies.credit.pay(size) {
                self.copies.note_twin(&record, here.id);
                path.flight.reinjected = number.next();
            }
        }
    }
}

/// What a copy takes.
fn size_of(record: &SegmentRecord) -> ByteCount {
    ByteCount((DATA_OVERHEAD + usize::from(record.len)) as u64)
}

/// Whether a copy of what was pulled is worth its bytes where its path is silent: a packet of a sparse flow that no
/// later one makes useless.
pub(super) fn is_hedged(pulled: &Pulled, store: &TrainStore) -> bool {
    let train = store.train(pulled.train);
    pulled.sparse && pulled.count == 1 && may_be_copied(train.treatment()) && !train.is_bare_ack()
}

/// Whether a copy may go by another path than the scheduler chose: other schedulers than `adaptive` give each path its
/// own.
fn may_be_copied(treatment: Treatment) -> bool {
    treatment.resend && treatment.scheduler == Kind::Adaptive
}
