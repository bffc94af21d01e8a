//! How many flows one pull asks a path about, so that its cost is bounded when the path wants none of them.
//!
//! Flows that are treated alike are mostly answered alike: a path whose share of a rule is used up declines all of that
//! rule's. So those of each treatment are counted alone, and hide no others.

use crate::treatment::Treatment;

/// Flows of one treatment that one pull asks about.
pub(super) const MAX_LOOKS: u8 = 16;
/// Counts; treatments beyond them share the last one.
const COUNTS: usize = 8;

/// The flows of each treatment that were declined in one pull. None at first; a plain value.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Looks([Option<(Treatment, u8)>; COUNTS]);

impl Looks {
    /// No more of these are asked about.
    pub(super) fn are_enough(&self, treatment: Treatment) -> bool {
        self.0[self.place(treatment)].is_some_and(|(_, count)| count >= MAX_LOOKS)
    }

    /// One was declined.
    pub(super) fn note(&mut self, treatment: Treatment) {
        let count = &mut self.0[self.place(treatment)];
        let (first, before) = count.unwrap_or((treatment, 0));
        *count = Some((first, before + 1));
    }

    fn place(&self, treatment: Treatment) -> usize {
        let own = self.0.iter().position(|count| count.is_none_or(|(of, _)| of == treatment));
        own.unwrap_or(COUNTS - 1)
    }
}

/// Whether all that came since the queue was empty is treated alike, as where there are no rules. So at first. One
/// owner, the queue.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Treatments {
    one: Treatment,
    several: bool,
}

impl Treatments {
    /// Something comes that is treated so; `first`: nothing else waits.
    pub(super) fn note(&mut self, first: bool, treatment: Treatment) {
        match first {
            true => *self = Treatments { one: treatment, several: false },
            false => self.several |= treatment != self.one,
        }
    }

    pub(super) fn are_one(&self) -> bool {
        !self.several
    }
}
