//! Routes that tell routers of a hub's peers. All that changed goes at once: packets wait for it, and where another
//! member died, for thousands of peers.

use std::collections::{BTreeMap, HashSet};

use hawser_config::{Config, Peer, PublicKey};
use hawser_net::netcfg::Change;

use super::{System, hub, tell_left};

impl System {
    /// A member of a hub tells routers of these peers by routes of these metrics from now on; none: by none. Of several
    /// of one peer the last counts. Takes time in proportion to them, and not to all peers.
    pub async fn announce(&mut self, config: &Config, told: &[(Peer, Option<u32>)]) {
        let last: BTreeMap<PublicKey, &(Peer, Option<u32>)> = told.iter().map(|one| (one.0.public_key, one)).collect();
        let (mut come, mut go) = (Vec::new(), Vec::new());
        for (peer, metric) in last.into_values() {
            let (old, new) = self.turn(config, peer, *metric);
            come.extend(new.iter().filter(|change| !old.contains(change)).cloned());
            go.extend(old.into_iter().filter(|change| !new.contains(change)));
        }
        // A route with another metric is another route: there is one all the while.
        for (change, outcome) in come.iter().zip(self.net.apply_all(&come).await) {
            if let Err(error) = outcome {
                tracing::warn!(%change, %error, "not set, it is tried again");
                self.missing.push(change.clone());
            }
        }
        tell_left(&go, self.net.undo_each(&go).await);
        let gone: HashSet<&Change> = go.iter().collect();
        self.missing.retain(|change| !gone.contains(change));
    }

    /// The routes that tell of a peer until now, and from now on.
    fn turn(&mut self, config: &Config, peer: &Peer, metric: Option<u32>) -> (Vec<Change>, Vec<Change>) {
        let Some(tun) = self.tun else { return (Vec::new(), Vec::new()) };
        let key = peer.public_key;
        let _ = match metric {
            Some(metric) => self.announcements.insert(key, metric),
            None => self.announcements.remove(&key),
        };
        let fit = self.mtus.beside(self.device, config);
        let new = hub::announced(config, peer, tun, &self.announcements, &fit);
        let old = if new.is_empty() { self.announced.remove(&key) } else { self.announced.insert(key, new.clone()) };
        (old.unwrap_or_default(), new)
    }

    /// Peers with these keys go, and are announced no more: whoever comes by one of them comes as nobody. Its routes go
    /// with the next [`Self::reconfigure`].
    pub fn forget(&mut self, gone: &[PublicKey]) {
        for key in gone {
            self.announcements.remove(key);
        }
    }
}
