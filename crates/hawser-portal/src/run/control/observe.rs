//! What changed between two status documents, for the log.

use std::collections::BTreeMap;

use crate::api::{PathState, PathStatus, Status};

/// The log tells round trips to this part of a millisecond.
const LOG_PARTS: f64 = 100.0;

/// The last state of each path. At first nothing is known; the control thread owns it.
#[derive(Debug, Default)]
pub struct Observer(BTreeMap<(String, String, usize), PathState>);

impl Observer {
    /// Tells the log which paths came, changed their state, or went.
    pub fn look_at(&mut self, status: &Status) {
        let mut seen = BTreeMap::new();
        for peer in &status.peers {
            for (place, path) in peer.paths.iter().enumerate() {
                seen.insert((peer.name.clone(), path.name.clone(), place), path.state);
                let key = (peer.name.clone(), path.name.clone(), place);
                let before = self.0.get(&key).copied();
                if before != Some(path.state) {
                    tell(&peer.name, path, before);
                }
            }
        }
        for (peer, link, _) in self.0.keys().filter(|key| !seen.contains_key(*key)) {
            tracing::info!(peer, link, "path closed");
        }
        self.0 = seen;
    }
}

fn tell(peer: &str, path: &PathStatus, before: Option<PathState>) {
    let before = before.unwrap_or_default();
    let rtt_ms = path.rtt_ms.map(|ms| (ms * LOG_PARTS).round() / LOG_PARTS);
    tracing::info!(peer, link = path.name, state = %path.state, %before, rtt_ms, "path");
}
