//! Paths to ASes, and which of them a flow gets.
//!
//! 1. [`ranked`] puts what was found in order, outside of the engine: finding the set that shares least may take a
//!    while.
//! 2. A connection's first flow gets the first living path; each further one the next that its connection does not use.
//! 3. By `sharability` the planned set comes first, then what shares least with the paths in use; by `health` what was
//!    measured.

use std::collections::BTreeSet;

use hawser_core::units::Time;
use hawser_scion::conn::{DeadPart, FIRST_DEATH};
use hawser_scion::select::{Criterion, Health, HealthTable, choose};
use hawser_scion::{Fingerprint, Path};

/// Paths of one AS that are kept; what is further down the order is left out.
pub(super) const MOST_PATHS: usize = 64;

/// Step 1: the paths in the order in which they are to be used, of which this many are planned to be used together.
pub fn ranked(paths: &[Path], select: Criterion, together: usize) -> Vec<Path> {
    let unknown = HealthTable::new();
    let mut order = choose(paths, select, together, &unknown);
    let rest =
        choose(paths, if select == Criterion::Sharability { Criterion::Length } else { select }, usize::MAX, &unknown);
    let planned: BTreeSet<usize> = order.iter().copied().collect();
    order.extend(rest.into_iter().filter(|at| !planned.contains(at)));
    order.truncate(MOST_PATHS);
    order.into_iter().map(|at| paths[at].clone()).collect()
}

/// The paths to one AS. Not known at first. The engine owns it.
#[derive(Debug, Default)]
pub(super) struct AsPaths {
    pub paths: Vec<Known>,
    /// When they were asked for last.
    pub asked: Option<Time>,
    /// Whether an answer has ever come.
    pub is_known: bool,
    /// When a flow wanted one last.
    pub used: Time,
}

/// A path. Alive at first.
#[derive(Debug)]
pub(super) struct Known {
    pub path: Path,
    /// A router said that it is dead, or it could not be opened.
    pub dead_until: Option<Time>,
}

/// What a choice depends on. Lives while one is made.
pub(super) struct Wish<'a> {
    pub now: Time,
    pub select: Criterion,
    /// This many of the first are planned to be used together.
    pub planned: usize,
    /// In use by the connection.
    pub used: &'a [Fingerprint],
    /// Dead to this peer.
    pub dead: &'a [Fingerprint],
    pub health: HealthTable,
}

impl AsPaths {
    /// What was found takes the place of what was known. Says which paths are gone.
    pub fn learn(&mut self, paths: Vec<Path>) -> Vec<Fingerprint> {
        self.is_known = true;
        let old = std::mem::take(&mut self.paths);
        let death = |path: &Path| old.iter().find(|known| known.path.interfaces == path.interfaces)?.dead_until;
        self.paths = paths.into_iter().map(|path| Known { dead_until: death(&path), path }).collect();
        let gone = old.iter().filter(|known| self.find(&known.path.interfaces).is_none());
        gone.map(|known| known.path.interfaces.clone()).collect()
    }

    pub fn find(&self, path: &Fingerprint) -> Option<&Known> {
        self.paths.iter().find(|known| known.path.interfaces == *path)
    }

    /// A path is not to be used for a while.
    pub fn set_aside(&mut self, now: Time, is_meant: impl Fn(&Fingerprint) -> bool) {
        for known in self.paths.iter_mut().filter(|known| is_meant(&known.path.interfaces)) {
            known.dead_until = Some(now + FIRST_DEATH);
        }
    }

    /// A path works.
    pub fn revive(&mut self, path: &Fingerprint) {
        let known = self.paths.iter_mut().find(|known| known.path.interfaces == *path);
        known.into_iter().for_each(|known| known.dead_until = None);
    }

    /// Step 2: paths that live and are not used, with their place in the order.
    pub fn unused<'a>(&'a self, wish: &'a Wish<'_>) -> impl Iterator<Item = (usize, &'a Path)> + 'a {
        let is_free = |known: &Known| {
            let path = &known.path.interfaces;
            !known.is_dead(wish.now) && !wish.dead.contains(path) && !wish.used.contains(path)
        };
        self.paths
            .iter()
            .enumerate()
            .filter(move |(_, known)| is_free(known))
            .map(|(place, known)| (place, &known.path))
    }

    /// Steps 2 and 3.
    pub fn pick(&self, wish: &Wish<'_>) -> Option<Path> {
        let mut unused = self.unused(wish);
        let path = match wish.select {
            Criterion::Sharability => {
                unused
                    .min_by_key(|(place, path)| (*place >= wish.planned, shared(&path.interfaces, wish.used), *place))?
                    .1
            }
            Criterion::Health => {
                let unused: Vec<Path> = unused.map(|(_, path)| path.clone()).collect();
                return choose(&unused, Criterion::Health, 1, &wish.health).first().map(|at| unused[*at].clone());
            }
            _ => unused.next()?.1,
        };
        Some(path.clone())
    }

    /// Where all are dead or in use: the first one.
    pub fn any(&self) -> Option<Path> {
        self.paths.first().map(|known| known.path.clone())
    }
}

impl Known {
    pub fn is_dead(&self, now: Time) -> bool {
        self.dead_until.is_some_and(|until| now < until)
    }
}

/// Interfaces of a path that others have too.
pub(super) fn shared(path: &Fingerprint, others: &[Fingerprint]) -> usize {
    let uses = |interface| others.iter().filter(|other| other.interfaces().contains(interface)).count();
    path.interfaces().iter().map(uses).sum()
}

/// Whether a dead part takes a path away.
pub(super) fn kills(part: DeadPart) -> impl Fn(&Fingerprint) -> bool {
    move |path| part.is_on(path)
}

/// What was measured, as a table.
pub(super) fn table_of(health: impl Iterator<Item = (Fingerprint, Health)>) -> HealthTable {
    health.collect()
}
