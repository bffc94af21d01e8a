//! What follows where another member of a hub owns a peer, and how a member ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_config::{Peer, PublicKey};
use hawser_core::units::PeerId;
use hawser_hub::claim::Announcement;
use hawser_hub::gate::Announced;
use hawser_hub::metric::metric;
use hawser_hub::units::Epoch;

use super::Serving;
use crate::api::{EventKind, Status};
use crate::run::messages::{Command, Drain, News, Standing, State};

/// A member that ends waits so long for its peers to go to their other one: what a planned move takes (hawser-hub,
/// LINGER_MOST) and a few round trips. Peers that have no other one are left after it.
const DRAIN_MOST: Duration = Duration::from_secs(5);

/// Who is asked to go. Nobody at first; the control thread owns it.
#[derive(Default)]
pub(super) struct Drains {
    all: bool,
    peers: BTreeSet<String>,
}

impl Drains {
    /// Of this peer, or of all: what was said of single ones before does not count then.
    fn note(&mut self, peer: Option<&str>, begins: bool) {
        match (peer, begins) {
            (None, _) => (self.all, self.peers) = (begins, BTreeSet::new()),
            (Some(peer), true) => drop(self.peers.insert(peer.to_owned())),
            (Some(peer), false) => drop(self.peers.remove(peer)),
        }
    }
}

impl Serving<'_> {
    pub(super) fn on_hub(&mut self, news: News) {
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
            // Who reads reports has told those apart.
            News::Announced(_) => {}
        }
    }

    /// This member is something else to peers; gives those that it owns, with their epochs.
    pub(in crate::run::control) async fn announce(&mut self, announced: Vec<Announced>) -> Vec<(PublicKey, Epoch)> {
        let known = |one: &Announced| Some((self.places.keyed(&one.key)?.clone(), metric(one.announcement, one.epoch)));
        let told: Vec<(Peer, Option<u32>)> = announced.iter().filter_map(known).collect();
        // The routes first: packets wait for them.
        self.system.announce(&self.config, &told).await;
        let known = |one: &Announced| Some((*one, self.places.keyed(&one.key)?));
        let all: Vec<(Announced, &Peer)> = announced.iter().filter_map(known).collect();
        all.iter().for_each(|(announced, peer)| self.tell_announced(*announced, peer));
        let owned = all.into_iter().filter(|(announced, _)| announced.announcement == Announcement::Owner);
        owned.filter_map(|(announced, peer)| Some((peer.public_key, announced.epoch?))).collect()
    }

    fn tell_announced(&self, Announced { announcement, epoch, .. }: Announced, peer: &Peer) {
        let role = match announcement {
            Announcement::Withdrawn => "withdrawn",
            Announcement::Standby => "standby",
            Announcement::Owner => "owner",
        };
        let metric = metric(announcement, epoch);
        let epoch = epoch.map(|epoch| epoch.get());
        tracing::info!(peer = %peer.name, role, epoch, metric, "owner changed: announced so");
        let cause = epoch.map_or_else(|| role.to_owned(), |epoch| format!("{role}, epoch {epoch}"));
        self.told.note(EventKind::OwnerChanged, peer.name.as_str(), "", &cause);
    }

    pub(super) fn tell_hub(&mut self, status: &mut Status, state: &State) {
        status.draining = self.drained_by.is_some() || self.drains.all;
        if state.standings.is_empty() {
            return;
        }
        let standings: BTreeMap<PeerId, Standing> = state.standings.iter().copied().collect();
        let now = Instant::now();
        for (peer, told) in self.peers.iter().zip(&mut status.peers) {
            let standing = self.places.of(peer).and_then(|place| standings.get(&place));
            told.hub = standing.map(|standing| self.seen.status(now, peer, *standing));
            let drains = status.draining || self.drains.peers.contains(peer.name.as_str());
            told.hub.iter_mut().for_each(|hub| hub.draining = drains);
        }
    }

    /// `hawser hub drain`: peers of this member are asked to go to their other one, or no longer.
    pub(super) fn drain(&mut self, peer: Option<&str>, begins: bool) -> Result<(), String> {
        if self.config.hub.is_none() {
            return Err("this portal is no member of a hub: its configuration has no [hub]".to_owned());
        }
        let place = match peer {
            Some(name) => Some(self.places.named(name).ok_or_else(|| format!("there is no peer {name}"))?),
            None => None,
        };
        self.drains.note(peer, begins);
        tracing::info!(peer = peer.unwrap_or("all"), begins, "draining: whether peers are asked to go");
        self.command([Command::Drain(Drain { peer: place, begins })]);
        Ok(())
    }

    /// A member asks its peers to go before it ends. False where it is none, or was told to end already.
    pub(super) fn begins_to_drain(&mut self) -> bool {
        if self.drained_by.is_some() || self.drain(None, true).is_err() {
            return false;
        }
        self.drained_by = Some(Instant::now() + DRAIN_MOST);
        true
    }

    /// Whether a member that drains may end; `drained`: nobody would miss it.
    pub(super) fn is_done(&self, drained: bool) -> bool {
        self.drained_by.is_some_and(|by| drained || Instant::now() >= by)
    }
}
