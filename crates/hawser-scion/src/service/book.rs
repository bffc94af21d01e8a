//! When the paths to each AS are asked for, and what is answered meanwhile. All times are arguments.
//!
//! ```text
//!            somebody asks            answered, or failed
//!  unknown ───────────────► asking ──────────────────────► resting ──► unknown
//!                              ▲                              │   nobody asked for 10 min
//!                              └──────────────────────────────┘
//!                                due: a minute later (2 s where there is no path), ahead of the first expiry, an
//!                                interface died; after a failure 0.5 s, then twice as long, 10 s at most
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use crate::addr::IsdAs;
use crate::conn::DeadPart;
use crate::daemon::Refresh;
use crate::path::Path;

/// Paths are asked for this often: what the daemon knows costs next to nothing (Wagner 2021 looks every minute, too).
pub const EVERY: Duration = Duration::from_secs(60);
/// The same while there is none: a network that starts finds them one by one.
pub(super) const EVERY_WHILE_NONE: Duration = Duration::from_secs(2);
/// So long before the first expiry the daemon is to ask anew: somewhat before connections do, which is 300 s to 375 s
/// ahead.
pub const MARGIN: Duration = Duration::from_secs(400);
/// An AS that nobody asked for in this time is forgotten.
pub const FORGET_AFTER: Duration = Duration::from_secs(600);
/// The daemon is asked for the same AS at most this often, whatever happens.
pub(super) const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// The wait after the first failure, and the longest.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// Both clocks: paths expire by the wall's. Plain data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: SystemTime,
    pub(super) mono: Instant,
}

/// What is known of an AS when somebody asks. Plain data.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// As good as what the daemon would say.
    Fresh(Vec<Path>),
    /// What there is, while the daemon does not answer.
    Old(Vec<Path>),
    /// The daemon is asked.
    Asked,
}

/// What is done about an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Asking,
    Resting { until: Instant, refresh: Refresh },
}

/// An AS in use. Plain data.
#[derive(Debug)]
struct Entry {
    phase: Phase,
    paths: Vec<Path>,
    /// When an answer came last, which was no failure.
    answered: Option<Instant>,
    used: Instant,
    retry: Duration,
}

/// The ASes in use. None at first; its one task owns it.
#[derive(Debug, Default)]
pub(super) struct Book(BTreeMap<IsdAs, Entry>);

impl Now {
    pub(super) fn read() -> Now {
        Now { wall: SystemTime::now(), mono: Instant::now() }
    }
}

impl Book {
    /// Somebody uses the paths to an AS. What is not fresh is asked for, unless the daemon just failed.
    pub(super) fn look_up(&mut self, destination: IsdAs, now: Now) -> Known {
        let first = Phase::Resting { until: now.mono, refresh: Refresh::No };
        let new = || Entry { phase: first, paths: Vec::new(), answered: None, used: now.mono, retry: FIRST_RETRY };
        let entry = self.0.entry(destination).or_insert_with(new);
        entry.used = now.mono;
        if entry.is_fresh(now) {
            return Known::Fresh(entry.known(now));
        }
        let Phase::Resting { until, refresh } = entry.phase else { return Known::Asked };
        if until > now.mono && entry.retry > FIRST_RETRY {
            return Known::Old(entry.known(now));
        }
        let refresh = if entry.expires_soon(now) { Refresh::Yes } else { refresh };
        entry.phase = Phase::Resting { until: until.min(now.mono), refresh };
        Known::Asked
    }

    /// An AS is in use without being asked for.
    pub(super) fn keep(&mut self, destination: IsdAs, now: Now) {
        if let Some(entry) = self.0.get_mut(&destination) {
            entry.used = now.mono;
        }
    }

    /// Whether an AS is in use.
    pub(super) fn has(&self, destination: IsdAs) -> bool {
        self.0.contains_key(&destination)
    }

    /// What is known of an AS, however old, but for what expired.
    pub(super) fn known(&self, destination: IsdAs, now: Now) -> Vec<Path> {
        self.0.get(&destination).map(|entry| entry.known(now)).unwrap_or_default()
    }

    /// What is to be asked for now.
    pub(super) fn due(&mut self, now: Now) -> Vec<(IsdAs, Refresh)> {
        self.0.retain(|_, entry| entry.phase == Phase::Asking || now.mono < entry.used + FORGET_AFTER);
        let mut due = Vec::new();
        for (&destination, entry) in &mut self.0 {
            if let Phase::Resting { until, refresh } = entry.phase
                && until <= now.mono
            {
                entry.phase = Phase::Asking;
                due.push((destination, refresh));
            }
        }
        due
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let until = |entry: &Entry| match entry.phase {
            Phase::Asking => None,
            Phase::Resting { until, .. } => Some(until),
        };
        self.0.values().filter_map(until).min()
    }

    /// What the daemon knows.
    pub(super) fn answered(&mut self, destination: IsdAs, paths: Vec<Path>, now: Now) {
        let Some(entry) = self.0.get_mut(&destination) else { return };
        (entry.paths, entry.answered, entry.retry) = (paths, Some(now.mono), FIRST_RETRY);
        let left = entry.first_expiry().map(|expiry| expiry.duration_since(now.wall).unwrap_or_default());
        let (rest, refresh) = match left.map(|left| left.saturating_sub(MARGIN)) {
            None => (EVERY_WHILE_NONE, Refresh::No),
            // It has nothing that lasts longer yet.
            Some(Duration::ZERO) => (EVERY, Refresh::Yes),
            Some(ahead) if ahead < EVERY => (ahead.max(AT_MOST_EVERY), Refresh::Yes),
            Some(_) => (EVERY, Refresh::No),
        };
        entry.phase = Phase::Resting { until: now.mono + rest, refresh };
    }

    /// The daemon gave no answer.
    pub(super) fn failed(&mut self, destination: IsdAs, now: Now) {
        let Some(entry) = self.0.get_mut(&destination) else { return };
        entry.phase = Phase::Resting { until: now.mono + entry.retry, refresh: Refresh::No };
        entry.retry = (entry.retry * 2).min(LONGEST_RETRY);
    }

    /// Something died: ASes with paths across it are asked for anew.
    pub(super) fn down(&mut self, part: &DeadPart, now: Now) {
        for entry in self.0.values_mut() {
            let crosses = entry.paths.iter().any(|path| part.is_on(&path.interfaces));
            if let (true, Phase::Resting { until, .. }) = (crosses, entry.phase) {
                let earliest = entry.answered.map_or(now.mono, |at| at + AT_MOST_EVERY).max(now.mono);
                entry.phase = Phase::Resting { until: until.min(earliest), refresh: Refresh::Yes };
            }
        }
    }
}

impl Entry {
    /// Whether what is known is as good as what the daemon would say.
    fn is_fresh(&self, now: Now) -> bool {
        let Some(age) = self.answered.map(|at| now.mono.saturating_duration_since(at)) else { return false };
        age < AT_MOST_EVERY || age <= EVERY && !self.expires_soon(now) && !self.paths.is_empty()
    }

    fn first_expiry(&self) -> Option<SystemTime> {
        self.paths.iter().map(|path| path.expiry).min()
    }

    fn expires_soon(&self, now: Now) -> bool {
        self.first_expiry().is_some_and(|expiry| expiry < now.wall + MARGIN)
    }

    fn known(&self, now: Now) -> Vec<Path> {
        self.paths.iter().filter(|path| path.expiry > now.wall).cloned().collect()
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
