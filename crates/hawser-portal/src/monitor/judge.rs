//! How a path does: a pure function over what is seen of it, report by report.
//!
//! 1. What is seen is one of: it carries packets, it is silent, or what it needs is missing.
//! 2. While it carries packets, what it does is held against what is usual of it (`usual.rs`).
//! 3. Each change is told once. A change for the better has to last before it is believed, so that a path that flickers
//!    makes no storm of events.

use std::time::Duration;

use super::usual::Usual;
use crate::api::{Condition, EventKind, NOTHING_COMES_BACK, PEER_SAYS_DOWN, PathState};

/// Packets that a path carries for so long are no accident: three reports.
const CARRIES_FOR: Duration = Duration::from_millis(400);
/// A path that owes an acknowledgement for so long is cut, also where it is the only one and not given up.
const SUSPECT_FOR: Duration = Duration::from_millis(600);
/// A path that never worked and lacks something for so long is down: sockets take a moment to open.
const LACKS_FOR: Duration = Duration::from_secs(1);
/// A path that begins anew for so long is no longer what it was.
const NEW_FOR: Duration = Duration::from_secs(1);
/// Less than half of the usual rate counts from here: four reports.
const FADES_FOR: Duration = Duration::from_millis(600);
/// Loss counts from here, delay from there: a queue of one's own making comes and goes.
const LOSES_FOR: Duration = Duration::from_secs(1);
const WAITS_FOR: Duration = Duration::from_secs(3);
/// What got better has to stay so for this long.
const BETTER_FOR: Duration = Duration::from_secs(5);

/// A path in one report. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// When, since the portal started.
    pub at: Duration,
    /// What it is.
    pub state: PathState,
    /// Why it carries nothing.
    pub reason: Option<&'a str>,
    /// What it carries, both ways, in Mbit/s.
    pub mbps: f64,
    /// What it is believed to carry, in Mbit/s; zero where nobody knows.
    pub capacity_mbps: f64,
    /// Its round trip, what of it is spent waiting, and the least one, in milliseconds.
    pub rtt_ms: f64,
    pub queue_ms: f64,
    pub rtt_min_ms: f64,
    /// What it loses, in per cent.
    pub loss_pct: f64,
    /// Something was acknowledged since the last report: the round trip is of now.
    pub fresh: bool,
}

/// A change. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub kind: EventKind,
    /// Why, in a few words.
    pub cause: String,
}

/// Since when something is so without a break; not at all at first. Plain value.
#[derive(Clone, Copy, Debug, Default)]
struct Spell(Option<Duration>);

impl Spell {
    /// Whether it `is` so, and has been for this long.
    fn lasts(&mut self, at: Duration, is: bool, long: Duration) -> bool {
        self.0 = is.then(|| self.0.unwrap_or(at));
        self.0.is_some_and(|since| at.saturating_sub(since) >= long)
    }
}

/// What is held against a path.
#[derive(Clone, Copy, Debug, Default)]
struct Spells {
    carries: Spell,
    suspect: Spell,
    lacks: Spell,
    new: Spell,
    fades: Spell,
    loses: Spell,
    waits: Spell,
    better: Spell,
}

/// How a path does.
///
/// ```text
///  UNKNOWN --carries--> WELL <--better for 5 s-- DEGRADED   (loses 2 % for 1 s, or waits for 3 s)
///     |                  |  ^--better for 5 s-- FADING      (half of the usual rate and a queue, for 0.6 s)
///     |                  v
///     |     CUT (silent) or DOWN (interface, address or route missing), from each but UNKNOWN
///     |                  |                     |
///     |                  +------ carries ------+--> WELL
///     +--lacks something for 1 s--> DOWN
/// ```
///
/// Unknown at first; one path's watcher owns it.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    condition: Condition,
    since: Duration,
    spells: Spells,
    usual: Usual,
}

impl Judge {
    /// How it does, and since when.
    pub fn condition(&self) -> (Condition, Duration) {
        (self.condition, self.since)
    }

    /// Takes in a report; says what changed by it.
    pub fn look(&mut self, sight: &Sight<'_>) -> Option<Change> {
        let at = sight.at;
        let silent = matches!(sight.reason, Some(NOTHING_COMES_BACK | PEER_SAYS_DOWN));
        let carries = self.spells.carries.lasts(at, sight.state == PathState::Active, CARRIES_FOR);
        let suspect = self.spells.suspect.lasts(at, sight.state == PathState::Suspect, SUSPECT_FOR);
        let lacking = sight.state == PathState::NoRoute || sight.state == PathState::Down && !silent;
        let lacks = self.spells.lacks.lasts(at, lacking, LACKS_FOR);
        let begins = matches!(sight.state, PathState::New | PathState::Validating);
        let new = self.spells.new.lasts(at, begins, NEW_FOR);
        match self.condition {
            Condition::Unknown if lacks => self.turn(at, Condition::Down, EventKind::LinkDown, why(sight)),
            Condition::Unknown if carries => {
                self.usual = Usual::default();
                self.turn(at, Condition::Well, EventKind::LinkUp, format!("round trip {:.0} ms", sight.rtt_ms))
            }
            Condition::Cut | Condition::Down if carries => {
                self.usual = Usual::default();
                let away = at.saturating_sub(self.since).as_secs_f64();
                self.turn(at, Condition::Well, EventKind::Comeback, format!("after {away:.1} s"))
            }
            Condition::Cut if lacking => self.turn(at, Condition::Down, EventKind::LinkDown, why(sight)),
            Condition::Unknown | Condition::Cut | Condition::Down => None,
            _ if lacking => self.turn(at, Condition::Down, EventKind::LinkDown, why(sight)),
            _ if suspect || sight.state == PathState::Down => self.turn(at, Condition::Cut, EventKind::Cut, why(sight)),
            _ if new => {
                (self.condition, self.since) = (Condition::Unknown, at);
                None
            }
            _ if sight.state == PathState::Active => self.weigh(sight),
            _ => None,
        }
    }

    /// Step 2.
    fn weigh(&mut self, sight: &Sight<'_>) -> Option<Change> {
        let at = sight.at;
        let symptoms = self.usual.symptoms(sight);
        let fades = self.spells.fades.lasts(at, symptoms.fades, FADES_FOR);
        let loses = self.spells.loses.lasts(at, symptoms.loses, LOSES_FOR);
        let waits = self.spells.waits.lasts(at, symptoms.waits, WAITS_FOR);
        let better = self.spells.better.lasts(at, symptoms.none, BETTER_FOR);
        let cause = self.usual.cause(sight, fades, loses);
        self.usual.learn(sight, self.condition);
        match self.condition {
            Condition::Fading if better => self.turn(at, Condition::Well, EventKind::FadeOver, cause),
            Condition::Fading => None,
            _ if fades => self.turn(at, Condition::Fading, EventKind::Fade, cause),
            Condition::Degraded if better => self.turn(at, Condition::Well, EventKind::Recovered, cause),
            Condition::Well if loses || waits => self.turn(at, Condition::Degraded, EventKind::Degraded, cause),
            _ => None,
        }
    }

    fn turn(&mut self, at: Duration, to: Condition, kind: EventKind, cause: String) -> Option<Change> {
        (self.condition, self.since) = (to, at);
        self.spells.better = Spell::default();
        Some(Change { kind, cause })
    }
}

fn why(sight: &Sight<'_>) -> String {
    sight.reason.unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
