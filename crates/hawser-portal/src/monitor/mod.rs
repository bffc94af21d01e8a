//! What a portal remembers of its paths, outside the packet thread: events and history (docs/monitoring.md).
//!
//! 1. Each report's status comes to [`Monitor::look_at`], which writes the figures of the last second into it.
//! 2. What a path does is judged report by report (`judge`); each change is an event (`log`), and a line of the log.
//! 3. At the end of each second every path's figures go into its history (`history`).
//! 4. [`Monitor::note`] takes events that others know of.
//!
//! Memory is fixed: history is one block, events are a bounded number, and a path that is gone for a minute is
//! forgotten.

mod compact;
mod history;
mod judge;
mod log;
mod usual;
mod watched;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::api::{self, EventKind, Events, HistoryQuestion, PathStatus, PeerStatus, Status};
use history::{History, Key};
use log::EventLog;
use watched::Watched;

/// A path that was not seen for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;

/// A moment by both clocks. Plain value.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since the portal started.
    pub uptime: Duration,
    /// What a calendar shows.
    pub wall: SystemTime,
}

impl Moment {
    fn unix_ms(&self) -> u64 {
        let since = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// What is remembered. Empty at first; the control thread feeds it, and who answers questions reads it.
#[derive(Debug)]
pub struct Monitor {
    started_unix_ms: u64,
    now: Moment,
    paths: BTreeMap<Key, (Watched, Duration)>,
    history: History,
    log: EventLog,
}

impl Monitor {
    /// Begins to watch; `cause` says how the portal came to start, where there is something to say.
    pub fn new(now: Moment, cause: &str) -> Self {
        let mut monitor = Self {
            started_unix_ms: now.unix_ms(),
            now,
            paths: BTreeMap::new(),
            history: History::default(),
            log: EventLog::default(),
        };
        monitor.log.note(now.unix_ms(), EventKind::PortalStarted, "", "", cause);
        monitor
    }

    /// Steps 1 to 3.
    pub fn look_at(&mut self, now: Moment, status: &mut Status) {
        let over = now.uptime.as_secs() > self.now.uptime.as_secs();
        self.now = now;
        for peer in &mut status.peers {
            let keys = self.keys(peer);
            for (key, path) in keys.iter().zip(&mut peer.paths) {
                let (watched, seen) = self.paths.entry(key.clone()).or_default();
                *seen = now.uptime;
                path.live.place = key.place;
                for change in watched.look(now.uptime, path) {
                    tell(key, path, &change);
                    self.log.note(now.unix_ms(), change.kind, &key.peer, &key.path, &change.cause);
                }
            }
            share(peer);
            if over {
                self.end_second(now, &keys, peer);
            }
        }
        self.paths.retain(|_, (_, seen)| now.uptime.saturating_sub(*seen) < FORGOTTEN_AFTER);
    }

    /// Which of the watched each path of a peer is: that of its number, else the first of its link that is free.
    fn keys(&self, peer: &PeerStatus) -> Vec<Key> {
        let mut keys: Vec<Option<Key>> = vec![None; peer.paths.len()];
        let key = |path: &PathStatus, place| Key { peer: peer.name.clone(), path: path.name.clone(), place };
        for by_id in [true, false] {
            for at in 0..keys.len() {
                if keys[at].is_some() {
                    continue;
                }
                let path = &peer.paths[at];
                let is_its_own = |key: &Key| self.paths.get(key).is_some_and(|(watched, _)| watched.id == path.live.id);
                let mut places = (0..=peer.paths.len()).map(|place| key(path, place));
                let free = |key: &Key| !keys.iter().flatten().any(|taken| taken == key);
                keys[at] = places.find(|key| free(key) && (!by_id || path.live.id.is_some() && is_its_own(key)));
            }
        }
        keys.into_iter().flatten().collect()
    }

    fn end_second(&mut self, now: Moment, keys: &[Key], peer: &PeerStatus) {
        let second = now.uptime.as_secs() - 1;
        for (key, path) in keys.iter().zip(&peer.paths) {
            if let Some((watched, _)) = self.paths.get_mut(key) {
                self.history.write(second, key, &watched.row(path));
            }
        }
    }

    /// Step 4.
    pub fn note(&mut self, now: Moment, kind: EventKind, peer: &str, path: &str, cause: &str) {
        self.log.note(now.unix_ms(), kind, peer, path, cause);
    }

    /// The events with a larger number than `since`.
    pub fn events(&self, since: u64) -> Events {
        self.log.since(since, self.started_unix_ms)
    }

    /// The largest number of an event.
    pub fn latest(&self) -> u64 {
        self.log.latest()
    }

    /// What paths did.
    pub fn history(&self, question: &HistoryQuestion) -> api::History {
        let uptime = self.now.uptime;
        let part = u64::from(uptime.subsec_millis());
        self.history.read(question, uptime.as_secs().saturating_sub(1), self.now.unix_ms().saturating_sub(part))
    }
}

/// Each path's part of what all carry.
fn share(peer: &mut PeerStatus) {
    let all: f64 = peer.paths.iter().map(|path| path.live.rx_mbps + path.live.tx_mbps).sum();
    for path in &mut peer.paths {
        let carries = path.live.rx_mbps + path.live.tx_mbps;
        path.live.share_pct = if all > 0.0 { carries / all * PER_CENT } else { 0.0 };
    }
}

fn tell(key: &Key, path: &PathStatus, change: &judge::Change) {
    let (Key { peer, path: link, .. }, judge::Change { kind, cause }) = (key, change);
    let rtt_ms = path.rtt_ms.map(f64::round);
    match kind {
        EventKind::Roaming | EventKind::Degraded | EventKind::Recovered | EventKind::Fade | EventKind::FadeOver => {
            tracing::info!(peer, link, cause, rtt_ms, "{kind}");
        }
        // Those of the path's state are told by whoever sees it (`observe`).
        _ => tracing::debug!(peer, link, cause, "{kind}"),
    }
}

#[cfg(test)]
mod tests;
