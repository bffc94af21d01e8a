//! How many flows one pull asks a path about, so that its cost is bounded when the path wants none of them.
//!
//! Flows that are treated alike are mostly answered alike: a path whose share of a rule is used up declines all of that
//! rule's. So those of each treatment are counted alone, and hide no others.

use crate::treatment::Treatment;

/// Flows of one treatment that one pull asks about.
pub(super) const MAX_LOOKS: u8 = 16;
/// Treatments that are counted alone; of further ones no flow is asked about in this pull.
const TREATMENTS: usize = 8;

/// The flows of each treatment that were declined in one pull. None at first; a plain value.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Looks([Option<(Treatment, u8)>; TREATMENTS]);

impl Looks {
    /// No more of these are asked about.
    pub(super) fn are_enough(&self, treatment: Treatment) -> bool {
        let mut counts = self.0.iter();
        let own = counts.find(|count| count.is_none_or(|(of, _)| of == treatment));
        own.is_none_or(|count| count.is_some_and(|(_, count)| count >= MAX_LOOKS))
    }

    /// One was declined.
    pub(super) fn note(&mut self, treatment: Treatment) {
        let own = self.0.iter_mut().find(|count| count.is_none_or(|(of, _)| of == treatment));
        if let Some(own) = own {
            *own = Some((treatment, own.map_or(0, |(_, count)| count) + 1));
        }
    }
}

/// Whether all that waits is treated alike, as where there are no rules. So at first. One owner, the queue.
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
