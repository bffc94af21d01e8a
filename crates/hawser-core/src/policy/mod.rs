//! What the bond decides: one room, one function.
//!
//! 1. The session refreshes what is known: a [`PathView`] of each path, a [`FlowsView`] of what waits
//!    (`session::views`).
//! 2. [`Policy::update`] decides: at once the fastest path, what may be reinjected and which paths are probed with
//!    copies; ten times a second the active set, overflow, retries, the ingress queue and the ACK filter.
//! 3. The session applies the [`Decisions`] and decides nothing itself; the scheduler reads them for each packet.
//!
//! Each law has a file with its principle and source, and its constants in [`Tuning`], where one value switches it off:
//!
//! ```text
//!   fastest      the path of sparse flows          overflow      when slower paths take
//!   active_set   the paths of bulk flows           reinjection   what goes by two paths; who retransmits
//!   delay        what a path costs them            aqm           the ingress queue
//!   probing      whether a rate is known           ack_filter    gaps between acknowledgements
//!   retry        when a path is probed anew        hold          how long gaps are waited for
//!   tier         which paths carry at all          hedge         what of sparse flows goes twice
//! ```
//!
//! Nothing here knows a socket, a clock or a packet: the same views in the same order give the same decisions.

pub mod ack_filter;
pub mod active_set;
pub mod aqm;
pub mod careful_start;
mod decisions;
pub mod delay;
pub mod fastest;
pub mod hedge;
pub mod hold;
mod law;
pub mod overflow;
mod path_set;
pub mod probing;
pub mod reinjection;
pub mod retry;
#[cfg(test)]
pub(crate) mod tests;
pub mod tier;
pub mod tuning;
mod view;

pub use careful_start::{AHEAD, BESIDE, careful_start, fills, pace_beside};
pub use decisions::{Decisions, Probes};
pub use law::Law;
pub use path_set::{MAX_PATHS, PathSet};
pub use probing::Probing;
pub use tuning::Tuning;
pub use view::{FlowsView, PathView, Weight};

use crate::units::{PathId, Rate, Time};
use reinjection::Reinjection;
use retry::Retry;
use std::time::Duration;

/// What is remembered of a path from one decision to the next.
#[derive(Copy, Clone, Debug)]
struct Memory {
    id: PathId,
    known_since: Time,
    retry: Retry,
    /// How long it had been idle when that was last judged.
    idle_judged: Duration,
}

/// All that is decided, and what must be remembered for it. Every path is active at first; one session owns it.
#[derive(Debug)]
pub struct Policy {
    tuning: Tuning,
    decisions: Decisions,
    /// The active set, where any flow may be `adaptive`.
    worthwhile: PathSet,
    due: Time,
    anew: bool,
    memories: Vec<Memory>,
    /// What the active paths carry, and carried lately.
    peak: aqm::Peak,
    overflows_judged: u64,
    idle_judged_at: Time,
}

impl Policy {
    /// Nothing is known of any path.
    pub fn new(now: Time, tuning: Tuning) -> Policy {
        Policy {
            tuning,
            decisions: Decisions::new(&tuning),
            worthwhile: PathSet::ALL,
            due: Time::ZERO,
            anew: false,
            memories: Vec::new(),
            peak: aqm::Peak::default(),
            overflows_judged: 0,
            idle_judged_at: now,
        }
    }

    /// The constants.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// What was decided last.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// A path came, went or changed: whatever was decided on it is decided anew with the next update.
    pub fn reconsider(&mut self) {
        self.due = Time::ZERO;
        self.worthwhile = PathSet::ALL;
        self.decisions.active_set = PathSet::ALL;
        self.anew = true;
    }

    /// Decides, given what is known. To be called before each round of packets.
    pub fn update(&mut self, now: Time, paths: &[PathView], flows: &FlowsView) -> Decisions {
        let fastest = fastest::choose(&self.tuning.fastest, self.decisions.fastest, paths);
        let due = now >= self.due;
        if due {
            self.worthwhile = active_set::choose(&self.tuning, paths, fastest);
            self.due = now + self.tuning.interval;
        }
        let active = if flows.adaptive { self.worthwhile } else { PathSet::ALL };
        let decisions = &mut self.decisions;
        decisions.fastest = fastest;
        decisions.active_set = active;
        decisions.anew = std::mem::take(&mut self.anew);
        decisions.reinjection = Reinjection::decide(&self.tuning.reinjection, paths);
        decisions.probes.restart = PathSet::NONE;
        decisions.probes.by_copies = probed_by_copies(paths, active);
        if due {
            self.renew(now, paths, flows);
        }
        self.decisions
    }

    /// What is decided ten times a second.
    fn renew(&mut self, now: Time, paths: &[PathView], flows: &FlowsView) {
        self.follow(paths);
        self.decisions.probes.restart = self.retry(now, paths);
        self.decisions.probes.copies_kept = !self.decisions.probes.by_copies.is_empty();
        self.judge_overflow(now, paths, flows);
        self.manage_queue(now, paths);
        let (fastest, second_path) = (paths.get(self.decisions.fastest), self.decisions.reinjection.second_path);
        self.decisions.ack_filter = ack_filter::decide(&self.tuning.ack_filter, fastest, second_path);
    }

    /// Remembers something of each path that there is, and of no other.
    fn follow(&mut self, paths: &[PathView]) {
        self.memories.retain(|memory| paths.iter().any(|view| view.id == memory.id));
        for view in paths {
            let (id, known_since) = (view.id, view.known_since);
            match self.memories.iter_mut().find(|memory| memory.id == id) {
                Some(memory) if memory.known_since == known_since => {}
                Some(memory) => (memory.known_since, memory.retry) = (known_since, memory.retry.anew()),
                None => {
                    self.memories.push(Memory { id, known_since, retry: Retry::default(), idle_judged: Duration::ZERO })
                }
            }
        }
    }

    /// The paths that bulk left out for long.
    fn retry(&mut self, now: Time, paths: &[PathView]) -> PathSet {
        let (tuning, active) = (&self.tuning.retry, self.decisions.active_set);
        let mut restart = PathSet::NONE;
        for (index, view) in paths.iter().enumerate().filter(|(_, view)| view.usable) {
            let Some(memory) = self.memories.iter_mut().find(|memory| memory.id == view.id) else { continue };
            let used = active.contains(index) || now.since(view.last_given) < tuning.lately;
            let (retry, due) = memory.retry.after(tuning, now, used, view.probing);
            memory.retry = retry;
            if due {
                restart = restart.with(index);
            }
        }
        restart
    }

    /// Whether what slower paths took of late left the fastest one idle.
    fn judge_overflow(&mut self, now: Time, paths: &[PathView], flows: &FlowsView) {
        let elapsed = now.since(std::mem::replace(&mut self.idle_judged_at, now));
        let mut idle = None;
        // Of all, so that one that becomes the fastest is not judged by what it idled before.
        for (index, view) in paths.iter().enumerate() {
            let Some(memory) = self.memories.iter_mut().find(|memory| memory.id == view.id) else { continue };
            let since = view.idle_for.saturating_sub(std::mem::replace(&mut memory.idle_judged, view.idle_for));
            if index == self.decisions.fastest {
                idle = Some(since);
            }
        }
        let Some(idle) = idle else { return };
        let overflowed = std::mem::replace(&mut self.overflows_judged, flows.overflows) != flows.overflows;
        let share = idle.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        self.decisions.overflow = self.decisions.overflow.after(&self.tuning.overflow, share, overflowed);
    }

    /// While nothing is known of the rate the ingress queue stays as it is.
    fn manage_queue(&mut self, now: Time, paths: &[PathView]) {
        let active = self.decisions.active_set;
        let Some(fastest) = paths.get(self.decisions.fastest) else { return };
        let rate = aqm::carried(paths, active);
        if rate == 0 {
            return;
        }
        let peak = self.peak.after(&self.tuning.aqm, now, Rate(rate));
        self.peak = peak;
        self.decisions.aqm = Some(aqm::decide(&self.tuning, paths, fastest, peak));
    }
}

/// The paths whose rate is to be found out, and whose delay would cost a bulk flow much.
fn probed_by_copies(paths: &[PathView], active: PathSet) -> PathSet {
    let probed = |(index, view): &(usize, &PathView)| view.usable && view.probing && !active.contains(*index);
    paths.iter().enumerate().filter(probed).map(|(index, _)| index).collect()
}
