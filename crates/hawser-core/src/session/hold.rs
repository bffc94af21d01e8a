//! How long a gap in a flow is waited for, on either side (HOLD, docs/wire.md). The laws are `policy::hold`'s.

use super::path::Path;
use crate::policy::{Tuning, hold};
use crate::units::Time;
use crate::wire::{self, EncodeError, Writer};
use std::time::Duration;

/// How long gaps may last, both ways. Zero at first: nothing was said; the session owns it.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Hold {
    /// What the peer was last told.
    told: Duration,
    /// When.
    told_at: Time,
    /// What the peer told us.
    heard: Duration,
}

/// How long the far resequencer may wait: for the slowest of the paths that carry data.
fn time(now: Time, paths: &[Path], tuning: &Tuning) -> Duration {
    let busy = paths.iter().filter(|path| path.activity.carried_data_lately(now));
    hold::time(&tuning.hold, busy.map(Path::repair_time))
}

impl Hold {
    /// Whether the peer is to be told anew.
    pub fn is_due(&self, now: Time, paths: &[Path], tuning: &Tuning) -> bool {
        if !paths.iter().any(|path| path.activity.carried_data_lately(now)) {
            return false;
        }
        hold::is_due(&tuning.hold, now, (self.told, self.told_at), time(now, paths, tuning))
    }

    /// Tells it, if that is due.
    pub fn write(
        &mut self,
        now: Time,
        paths: &[Path],
        tuning: &Tuning,
        out: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        if !self.is_due(now, paths, tuning) {
            return Ok(());
        }
        let hold = time(now, paths, tuning);
        write(hold, out)?;
        (self.told, self.told_at) = (hold, now);
        Ok(())
    }

    /// Tells it as the shortest thing to say. Of an `idle` session nothing that was sent can be repaired any more.
    pub fn repeat(
        &self,
        now: Time,
        paths: &[Path],
        tuning: &Tuning,
        idle: bool,
        out: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        write(if idle { Duration::ZERO } else { self.told.max(time(now, paths, tuning)) }, out)
    }

    /// For how long a lost packet is worth sending again.
    pub fn useful_for(&self, tuning: &Tuning) -> Duration {
        hold::useful_for(&tuning.hold, self.told)
    }

    /// The peer said it. Tells how long our resequencer waits from now on.
    pub fn hear(&mut self, frame: wire::Hold, tuning: &Tuning) -> Duration {
        self.heard = Duration::from_micros(frame.hold_us).min(tuning.hold.max);
        self.heard
    }

    /// How long our own resequencer waits for a gap: as the peer said; before its first word, as
    /// long as we would need ourselves.
    pub fn patience(&self, paths: &[Path], tuning: &Tuning) -> Duration {
        if self.heard > Duration::ZERO {
            return self.heard;
        }
        let working = paths.iter().filter(|path| path.works());
        hold::time(&tuning.hold, working.map(Path::repair_time))
    }
}

fn write(hold: Duration, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    wire::Hold { hold_us: u64::try_from(hold.as_micros()).unwrap_or(u64::MAX) }.encode(out)
}
