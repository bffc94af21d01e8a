//! How paths did so far, as whoever sends by them measured it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::path::Fingerprint;

/// How long a failure counts against a path. Source: twice the time for which a control service may go on to offer
/// a path that died, with the reference's beacons every 5 s and our look every minute.
pub const FAILURE_MEMORY: Duration = Duration::from_secs(120);

/// Losses closer together than this are taken for equal, in parts of 1,000: less is noise over a few hundred packets.
const LOSS_STEP: u16 = 10;

/// Round trips closer together than this are taken for equal: less is queueing, which changes.
const ROUND_TRIP_STEP: Duration = Duration::from_millis(2);

/// Lost packets of 1,000. 0 by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loss(pub u16);

/// How a path did lately. Unknown by default. Plain data: times are ages, so that no clock is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// How many packets were lost, if any were counted.
    pub loss: Option<Loss>,
    /// The smoothed round trip, if there was one.
    pub round_trip: Option<Duration>,
    /// How long ago it failed last: an error from the way, or silence.
    pub since_failure: Option<Duration>,
}

/// What is known of paths; nothing is known of those that are not in it.
pub type HealthTable = BTreeMap<Fingerprint, Health>;

/// Where a path ranks by its health: less is better. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Those that were measured come first.
    unmeasured: bool,
    loss_steps: u16,
    round_trip_steps: u128,
}

impl Health {
    /// Whether it failed so lately that others are better, whatever else is asked for.
    pub fn failed_lately(&self) -> bool {
        self.since_failure.is_some_and(|age| age < FAILURE_MEMORY)
    }

    /// Its rank: little loss before short round trips.
    pub(super) fn rank(&self) -> Rank {
        Rank {
            unmeasured: self.round_trip.is_none(),
            loss_steps: self.loss.unwrap_or_default().0 / LOSS_STEP,
            round_trip_steps: self.round_trip.unwrap_or_default().as_micros() / ROUND_TRIP_STEP.as_micros(),
        }
    }
}
