//! Which paths to one endpoint are used: chosen among those that the daemon tells, and exchanged when they fail.
//!
//! 1. [`Choice::on_paths`]: what is used already is renewed in place, under its alias. Other paths than before, or too
//!    few in use: all are chosen anew.
//! 2. [`Choice::on_failure`]: a path that failed gives way to one that is not used, if there is one. Those that work
//!    stay.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_config::ScionPaths;
use hawser_core::units::LinkId;
use hawser_scion::link::{Way, WayError};
use hawser_scion::select::{Health, HealthTable, Loss, choose};
use hawser_scion::{EndpointAddr, Fingerprint, Path};

/// How a path did when it was last looked at. Plain data.
#[derive(Clone, Copy, Debug)]
struct Measured {
    loss: Loss,
    round_trip: Duration,
}

/// The paths of one link to one endpoint. None at first; the control thread owns it.
#[derive(Debug)]
pub struct Choice {
    link: LinkId,
    ipv6: bool,
    endpoint: EndpointAddr,
    settings: ScionPaths,
    /// All that may be used.
    paths: Vec<Path>,
    ways: Vec<Way>,
    failed: BTreeMap<Fingerprint, Instant>,
    measured: BTreeMap<Fingerprint, Measured>,
    /// Paths that could not be used, as the log was told.
    unusable: Vec<Fingerprint>,
}

impl Choice {
    pub fn new(link: LinkId, ipv6: bool, endpoint: EndpointAddr, settings: ScionPaths) -> Self {
        Self {
            link,
            ipv6,
            endpoint,
            settings,
            paths: Vec::new(),
            ways: Vec::new(),
            failed: BTreeMap::new(),
            measured: BTreeMap::new(),
            unusable: Vec::new(),
        }
    }

    /// Where they lead.
    pub fn endpoint(&self) -> EndpointAddr {
        self.endpoint
    }

    /// The paths in use.
    pub fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// How many more there should be.
    pub fn missing(&self) -> usize {
        self.count() - self.ways.len().min(self.count())
    }

    fn count(&self) -> usize {
        usize::from(self.settings.count)
    }

    /// Step 1. Whether anything changed that the link must know. `names` are taken for paths that were not used before.
    pub fn on_paths(&mut self, now: Instant, told: Vec<Path>, names: &mut impl Iterator<Item = u32>) -> bool {
        let before = self.ways.clone();
        let known: Vec<Fingerprint> = self.known();
        self.paths = told.into_iter().filter(|path| self.settings.policy.admits(path)).collect();
        let others = self.known() != known;
        self.ways = std::mem::take(&mut self.ways).into_iter().filter_map(|way| self.renewed(way)).collect();
        if others || self.missing() > 0 {
            let chosen = self.chosen(now);
            self.use_these(&chosen, names);
        }
        self.ways != before
    }

    /// Step 2. Whether anything changed that the link must know.
    pub fn on_failure(&mut self, now: Instant, alias: u32, names: &mut impl Iterator<Item = u32>) -> bool {
        let Some(at) = self.ways.iter().position(|way| way.alias().name() == alias) else { return false };
        let failed = self.ways[at].path().interfaces.clone();
        self.failed.insert(failed.clone(), now);
        let working = |path: &Path| path.interfaces != failed;
        let stay: Vec<Path> = self.ways.iter().map(Way::path).filter(|path| working(path)).cloned().collect();
        let is_new = |path: &Path| !self.ways.iter().any(|way| way.path().interfaces == path.interfaces);
        let spare =
            self.chosen_of(now, usize::MAX).into_iter().find(|path| is_new(path) && !self.has_failed(now, path));
        let Some(spare) = spare else { return false };
        self.use_these(&[stay, vec![spare]].concat(), names);
        true
    }

    /// How the path of this alias does.
    pub fn on_measured(&mut self, alias: u32, loss: Loss, round_trip: Duration) {
        if let Some(way) = self.ways.iter().find(|way| way.alias().name() == alias) {
            self.measured.insert(way.path().interfaces.clone(), Measured { loss, round_trip });
        }
    }

    /// What paths there are, whatever their hop fields.
    fn known(&self) -> Vec<Fingerprint> {
        let mut known: Vec<Fingerprint> = self.paths.iter().map(|path| path.interfaces.clone()).collect();
        known.sort();
        known.dedup();
        known
    }

    /// The same way with hop fields that last longer; none where the path is gone, or other than it was.
    fn renewed(&self, way: Way) -> Option<Way> {
        let same = self.paths.iter().filter(|path| path.interfaces == way.path().interfaces);
        way.renewed(same.max_by_key(|path| path.expiry)?.clone())
    }

    fn chosen(&self, now: Instant) -> Vec<Path> {
        self.chosen_of(now, self.count())
    }

    fn chosen_of(&self, now: Instant, count: usize) -> Vec<Path> {
        let chosen = choose(&self.paths, self.settings.select, count.min(self.paths.len()), &self.health(now));
        chosen.into_iter().map(|at| self.paths[at].clone()).collect()
    }

    fn has_failed(&self, now: Instant, path: &Path) -> bool {
        self.health(now).get(&path.interfaces).is_some_and(Health::failed_lately)
    }

    fn health(&self, now: Instant) -> HealthTable {
        let mut health = HealthTable::new();
        for (path, at) in &self.failed {
            health.entry(path.clone()).or_default().since_failure = Some(now.saturating_duration_since(*at));
        }
        for (path, Measured { loss, round_trip }) in &self.measured {
            let entry = health.entry(path.clone()).or_default();
            (entry.loss, entry.round_trip) = (Some(*loss), Some(*round_trip));
        }
        health
    }

    /// Uses these paths: under their aliases where they are used already.
    fn use_these(&mut self, paths: &[Path], names: &mut impl Iterator<Item = u32>) {
        let old = std::mem::take(&mut self.ways);
        for path in paths {
            let kept = old.iter().find(|way| way.path().interfaces == path.interfaces);
            let way = match kept.and_then(|way| way.renewed(path.clone())) {
                Some(way) => Ok(way),
                None => {
                    let name = names.next().unwrap_or_default();
                    Way::new(self.link, name, self.ipv6, self.endpoint, path.clone())
                }
            };
            match way {
                Ok(way) => self.ways.push(way),
                Err(error) => self.tell(path, &error),
            }
        }
    }

    fn tell(&mut self, path: &Path, error: &WayError) {
        if !self.unusable.contains(&path.interfaces) {
            self.unusable.push(path.interfaces.clone());
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(endpoint = %self.endpoint, path = %path.interfaces, %error, cause, "path not used");
        }
    }
}

#[cfg(test)]
mod tests;
