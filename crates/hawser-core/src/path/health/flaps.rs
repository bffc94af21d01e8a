//! What it costs a path to drop again and again.

use crate::path::constants::{FLAP_DROPS, FLAP_WINDOW, HOLD_DECAY, HOLD_DOUBLINGS};
use crate::units::Time;
use std::time::Duration;

/// What it costs. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlapHold {
    /// How long a flapping path is held back at first; doubles with each drop. Zero: never.
    pub first: Duration,
}

impl Default for FlapHold {
    fn default() -> FlapHold {
        FlapHold { first: Duration::from_millis(500) }
    }
}

/// The drops of late, and what they cost. None at first. A part of `Health`.
#[derive(Clone, Debug)]
pub(super) struct Flaps {
    hold: FlapHold,
    /// When it last dropped, newest first.
    drops: [Option<Time>; FLAP_DROPS],
    /// Holds in a row, less what time has taken back: zero is innocence.
    level: u32,
    held_until: Option<Time>,
}

impl Flaps {
    pub(super) fn new(hold: FlapHold) -> Flaps {
        Flaps { hold, drops: [None; FLAP_DROPS], level: 0, held_until: None }
    }

    /// Nothing happened.
    pub(super) fn forgive(&mut self) {
        *self = Flaps::new(self.hold);
    }

    /// Until when the path is held back; long past for most.
    pub(super) fn held_until(&self) -> Option<Time> {
        self.held_until
    }

    /// A path active since `active_at` dropped.
    pub(super) fn on_drop(&mut self, now: Time, active_at: Time) {
        let good_spells = now.since(active_at).as_nanos() / HOLD_DECAY.as_nanos();
        let good_spells = u32::try_from(good_spells).unwrap_or(u32::MAX);
        self.level = self.level.saturating_sub(good_spells);
        self.drops.rotate_right(1);
        self.drops[0] = Some(now);
        let oldest = self.drops[FLAP_DROPS - 1];
        let often = oldest.is_some_and(|oldest| now.since(oldest) <= FLAP_WINDOW);
        // Once held back, the drops come further apart, so that the window alone would forgive them: the spell counts.
        if often || self.level > 0 && now.since(active_at) <= FLAP_WINDOW {
            self.held_until = Some(now + self.hold.first * (1 << self.level.min(HOLD_DOUBLINGS)));
            self.level = (self.level + 1).min(HOLD_DOUBLINGS + 1);
        }
    }
}
