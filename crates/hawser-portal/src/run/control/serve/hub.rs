//! What follows where another member of a hub owns a peer, and how a member ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_core::units::PeerId;
use hawser_hub::claim::Announcement;
use hawser_hub::gate::Announced;
use hawser_hub::metric::metric;

use super::Serving;
use crate::api::{EventKind, Status};
use crate::run::messages::{Command, News, Standing, State};

/// A member that ends waits so long for its peers to go to their other one: what a planned move takes (hawser-hub,
/// LINGER_MOST) and a few round trips. Peers that have no other one are left after it.
const DRAIN_MOST: Duration = Duration::from_secs(5);

impl Serving<'_> {
    pub(super) async fn on_hub(&mut self, news: News) {
        match news {
            News::Claimed(epoch) => {
                if let Some(Err(error)) = self.epochs.as_mut().map(|epochs| epochs.follow(epoch)) {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(%error, cause, hint = error.hint(), "epochs not reserved: this portal must not restart");
                }
            }
            News::Moved(moved) => {
                let (peer, epoch, planned) = (self.name(moved.to.peer), moved.epoch.get(), moved.planned);
                tracing::info!(peer, epoch, planned, "owner changed: packets go to this member of the hub");
                let how = if planned { "as planned" } else { "the other one was silent, or left" };
                self.told.note(EventKind::OwnerChanged, peer, "", &format!("active, epoch {epoch}: {how}"));
            }
            News::Announced(announced) => self.on_announced(announced).await,
        }
    }

    /// A member is something else to a peer.
    async fn on_announced(&mut self, Announced { peer, announcement, epoch }: Announced) {
        let Some(peer) = self.places.peer(peer).cloned() else { return };
        let metric = metric(announcement, epoch);
        // The routes first: packets wait for them.
        self.system.announce(&self.config, &peer, metric).await;
        let role = match announcement {
            Announcement::Withdrawn => "withdrawn",
            Announcement::Standby => "standby",
            Announcement::Owner => "owner",
        };
        let epoch = epoch.map(|epoch| epoch.get());
        tracing::info!(peer = %peer.name, role, epoch, metric, "owner changed: announced so");
        let cause = epoch.map_or_else(|| role.to_owned(), |epoch| format!("{role}, epoch {epoch}"));
        self.told.note(EventKind::OwnerChanged, peer.name.as_str(), "", &cause);
    }

    pub(super) fn tell_hub(&mut self, status: &mut Status, state: &State) {
        status.draining = self.drained_by.is_some();
        if state.standings.is_empty() {
            return;
        }
        let standings: BTreeMap<PeerId, Standing> = state.standings.iter().copied().collect();
        let now = Instant::now();
        for (peer, told) in self.peers.iter().zip(&mut status.peers) {
            let standing = self.places.of(peer).and_then(|place| standings.get(&place));
            told.hub = standing.map(|standing| self.seen.status(now, peer, *standing));
        }
    }

    /// A member asks its peers to go before it ends. False where it is none, or was told to end already.
    pub(super) fn begins_to_drain(&mut self) -> bool {
        if self.config.hub.is_none() || self.drained_by.is_some() {
            return false;
        }
        tracing::info!("draining: peers are asked to go to their other member");
        self.drained_by = Some(Instant::now() + DRAIN_MOST);
        self.command([Command::Drain]);
        true
    }

    /// Whether a member that drains may end; `drained`: nobody would miss it.
    pub(super) fn is_done(&self, drained: bool) -> bool {
        self.drained_by.is_some_and(|by| drained || Instant::now() >= by)
    }
}
