//! Copies of what the other paths carry, for a path whose rate is to be found out and whose delay
//! would cost a bulk flow much. The far resequencer drops them as duplicates; nobody waits for them.

use super::resend::Unsent;
use std::collections::VecDeque;

/// Segments remembered to be copied: a batch or two.
const REMEMBERED: usize = 128;

/// What was sent last on the other paths, oldest first. Empty at first; one session owns it. It owns
/// no part of any train: a train may be gone by the time that its copy is due.
#[derive(Default)]
pub(super) struct Copies {
    recent: VecDeque<Unsent>,
    wanted: bool,
}

impl Copies {
    /// Whether any path wants copies now.
    pub fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            self.recent.clear();
        }
    }

    /// A segment was sent.
    pub fn note(&mut self, unsent: &Unsent) {
        if !self.wanted {
            return;
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(*unsent);
    }

    /// The next segment to copy; each is copied once.
    pub fn next(&mut self) -> Option<Unsent> {
        self.recent.pop_front()
    }
}
