//! A fault: of which kind, where, how bad, and from when to when.

use super::kind::{Kind, Row, Scope};
use super::lines::{DSL, LINES, LTE, STARLINK};
use crate::random::Seeded;
use crate::world::{LOCAL, REMOTE};
use hawser_core::units::Time;
use std::time::Duration;

/// A fault. Drawn; the year keeps it while it lasts.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Which of all.
    pub number: u64,
    /// Its kind.
    pub row: &'static Row,
    /// The line that it strikes, where it strikes one alone.
    pub line: Option<usize>,
    /// How bad, from 0 to 1.
    pub severity: f64,
    /// Whether a link that flaps is gone just now.
    pub phase: bool,
    /// When it begins, and when it ends.
    pub from: Time,
    /// See `from`.
    pub until: Time,
}

impl Fault {
    /// One of this kind, which begins at `from`.
    pub fn draw(number: u64, row: &'static Row, from: Time, rng: &mut Seeded) -> Self {
        let line = match row.scope {
            Scope::Line => Some(LINES[rng.below(LINES.len() as u64) as usize]),
            Scope::Nat => Some([LTE, STARLINK][rng.below(2) as usize]),
            Scope::Dsl => Some(DSL),
            Scope::Lte => Some(LTE),
            Scope::Nothing | Scope::All | Scope::Portal => None,
        };
        let until = from + row.length(rng);
        Fault { number, row, line, severity: rng.unit(), phase: false, from, until }
    }

    /// The side that does not run meanwhile.
    pub fn stops(&self) -> Option<usize> {
        match self.row.kind {
            Kind::LocalKilled | Kind::LocalClosed | Kind::Sleep => Some(LOCAL),
            Kind::RemoteKilled | Kind::RemoteClosed | Kind::Freeze => Some(REMOTE),
            _ => None,
        }
    }

    /// How often something happens while it lasts.
    pub fn tick(&self) -> Option<Duration> {
        match self.row.kind {
            Kind::Flapping => Some(Duration::from_secs_f64(0.2 * 10_f64.powf(self.severity))),
            Kind::Forged | Kind::Replayed | Kind::ForgedIcmp => Some(Duration::from_millis(100)),
            Kind::Bufferbloat => Some(Duration::from_secs(1)),
            _ => None,
        }
    }

    /// Whether it may touch every path at once.
    pub fn is_general(&self) -> bool {
        matches!(self.row.scope, Scope::All | Scope::Portal)
    }
}
