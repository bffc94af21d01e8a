//! Redundant copies of what another path answers for. The far resequencer drops the later one as a duplicate.
//!
//! - A path whose rate is to be found out, and whose delay would cost a bulk flow much, carries
//!   copies of what goes by the others.
//! - What was lost twice goes by a second path too: the third loss would hold its flow up.
//! - What a `redundant` flow sends by one of the two best paths goes by the other too, its *twin*.

use super::retransmit::SegmentRecord;
use crate::policy::hedge::Credit;
use crate::policy::tuning::Hedge;
use crate::units::PathId;
use std::collections::VecDeque;

/// Segments remembered to be copied: a batch or two.
const REMEMBERED: usize = 128;

/// What was sent last on the other paths, oldest first. Empty at first; one session owns it. It owns
/// no part of any train: a train may be gone by the time that its copy is due.
pub(super) struct RedundantCopies {
    recent: VecDeque<SegmentRecord>,
    wanted: bool,
    /// What is in doubt, and the path that carries it.
    reinjections: VecDeque<(SegmentRecord, PathId)>,
    /// What is to go by this path too.
    twins: VecDeque<(SegmentRecord, PathId)>,
    /// What copies of sparse packets may cost.
    pub credit: Credit,
}

impl RedundantCopies {
    /// None of them.
    pub fn new(tuning: &Hedge) -> Self {
        let (recent, reinjections, twins) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        RedundantCopies { recent, wanted: false, reinjections, twins, credit: Credit::new(tuning) }
    }

    /// Nothing that was sent is to be copied.
    pub fn forget(&mut self) {
        self.recent.clear();
        self.reinjections.clear();
        self.twins.clear();
    }

    /// Whether any path wants redundant copies now.
    pub fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            self.recent.clear();
        }
    }

    /// A segment was sent.
    pub fn note(&mut self, record: &SegmentRecord) {
        if !self.wanted {
            return;
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(*record);
    }

    /// The next segment to copy, if it fits; each is copied once.
    pub fn next(&mut self, fits: impl Fn(&SegmentRecord) -> bool) -> Option<SegmentRecord> {
        self.recent.front().filter(|record| fits(record))?;
        self.recent.pop_front()
    }

    /// A segment that was lost goes by `path` again, and is to go by another one too.
    pub fn note_retransmitted(&mut self, record: &SegmentRecord, path: PathId) {
        if self.reinjections.len() < REMEMBERED {
            self.reinjections.push_back((*record, path));
        }
    }

    /// A segment went by a path, and is to go by `twin` too. A path that cannot keep up carries what is new.
    pub fn note_twin(&mut self, record: &SegmentRecord, twin: PathId) {
        if self.twins.len() == REMEMBERED {
            self.twins.pop_front();
        }
        self.twins.push_back((*record, twin));
    }

    /// Only what may still go by its other path, or by any but the one that carries it, is to be copied.
    pub fn keep(
        &mut self,
        by: impl Fn(&SegmentRecord, PathId) -> bool,
        beside: impl Fn(&SegmentRecord, PathId) -> bool,
    ) {
        self.twins.retain(|(record, twin)| by(record, *twin));
        self.reinjections.retain(|(record, path)| beside(record, *path));
    }

    /// The next segment that `path` is to reinject, or to carry as a twin, and that fits.
    pub fn next_reinjection(&mut self, path: PathId, fits: impl Fn(&SegmentRecord) -> bool) -> Option<SegmentRecord> {
        if let Some(at) = self.twins.iter().position(|(record, twin)| *twin == path && fits(record)) {
            return self.twins.remove(at).map(|(record, _)| record);
        }
        let at = self.reinjections.iter().position(|(record, by)| *by != path && fits(record))?;
        self.reinjections.remove(at).map(|(record, _)| record)
    }

    /// Whether any path has something to reinject.
    pub fn reinjections_wait(&self) -> bool {
        !self.reinjections.is_empty() || !self.twins.is_empty()
    }
}

#[cfg(test)]
mod tests;
