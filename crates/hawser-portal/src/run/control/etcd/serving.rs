//! What the control thread does by etcd, and says there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_config::{Config, Peer, PeerName, PresharedKey, PublicKey};
use hawser_etcd::driver::View;
use hawser_etcd::record::Load;
use hawser_etcd::roster::HubPeer;
use hawser_hub::claim::{Claim, Role};
use hawser_hub::units::Epoch;
use tokio::sync::oneshot;

use super::super::serve::Serving;
use super::{Heard, LOAD_EVERY, Store, list};
use crate::api::{Deed, Status};
use crate::run::messages::{Command, Standing, State};

/// A revocation is in etcd within some round trips: who asked is told whether it is. Below what `hawser` waits for an
/// answer.
pub(super) const WRITTEN_WITHIN: Duration = Duration::from_secs(3);

pub(super) type Answer = oneshot::Sender<Result<Option<serde_json::Value>, String>>;

impl Serving<'_> {
    /// The configuration was read again: its peers, and etcd's beside them.
    pub(in crate::run::control) fn rebase(
        &mut self,
        file: Config,
        preshared: BTreeMap<PeerName, PresharedKey>,
    ) -> (Config, BTreeMap<PeerName, PresharedKey>) {
        let Some(store) = &mut self.store else { return (file, preshared) };
        (store.file, store.preshared) = (file, preshared);
        (store.joined(), std::mem::take(&mut store.preshared))
    }

    /// They were used.
    pub(in crate::run::control) fn keep(&mut self, preshared: BTreeMap<PeerName, PresharedKey>) {
        if let Some(store) = &mut self.store {
            store.preshared = preshared;
        }
    }

    /// What [`super::next`] gave.
    pub(in crate::run::control) async fn on_etcd(&mut self, heard: Heard) {
        match heard {
            Heard::View(view) => self.on_view(view).await,
            Heard::Admitted(admitted) => self.on_admitted(admitted).await,
            Heard::Sight(sight) => {
                let Some(store) = &mut self.store else { return };
                store.detector.note(sight);
                self.tell_missed();
            }
        }
    }

    /// etcd says something else, or is reached no more.
    pub(super) async fn on_view(&mut self, view: View) {
        let Some(store) = &mut self.store else { return };
        store.follow(view);
        if let Some(news) = store.reach.news(&store.view.reach) {
            let (kind, cause) = news.tell();
            self.told.note(kind, "", "", &cause);
        }
        store.tell_namesake();
        let state = store.view.state.clone();
        store.detector.follow(&state, &store.own);
        self.tell_missed();
        self.hear_of_claims();
        let Some(store) = &mut self.store else { return };
        if !std::sync::Arc::ptr_eq(&store.served, &store.view.roster) {
            store.remember();
            self.serve_roster().await;
        }
        self.check_etcd().await;
    }

    /// What etcd may not have said for too long ends by time.
    pub(in crate::run::control) async fn check_etcd(&mut self) {
        let Some(store) = &mut self.store else { return };
        let serves = store.serves_now();
        if std::mem::replace(&mut store.serves, serves) != serves {
            match serves {
                true => tracing::info!("etcd reached: its peers are served"),
                false => tracing::warn!("etcd not reached for its lease: its peers are not served (etcd_strict)"),
            }
            self.serve_roster().await;
        }
    }

    /// Peers come, change and go as with a reload.
    pub(super) async fn serve_roster(&mut self) {
        let Some(store) = &mut self.store else { return };
        let (joined, preshared) = (store.joined(), std::mem::take(&mut store.preshared));
        let before = self.config.peers.clone();
        self.carry_over(&joined, &preshared).await;
        self.keep(preshared);
        let (came, gone) = (beyond(&self.config.peers, &before), beyond(&before, &self.config.peers));
        if !came.is_empty() || !gone.is_empty() {
            tracing::info!(came = came.join(", "), gone = gone.join(", "), "peers of the hub changed");
        }
    }

    /// Peers with these keys went; whoever came, by one of them too, may have been claimed elsewhere.
    pub(in crate::run::control) fn hear_of_claims_anew(&mut self, gone: &[PublicKey]) {
        let Some(store) = &mut self.store else { return };
        for key in gone {
            store.heard.remove(key);
        }
        self.hear_of_claims();
    }

    /// Epochs that other members owned fence this one, if it missed them.
    fn hear_of_claims(&mut self) {
        let Some(store) = &mut self.store else { return };
        let mut claims = Vec::new();
        for (key, place) in self.places.keys() {
            let Some((_, seen)) = store.view.state.seen(&key) else { continue };
            let is_news = store.heard.get(&key) != Some(&seen) && !list::is_own(&store.own, seen.owner);
            if is_news {
                store.heard.insert(key, seen);
                claims.push((place, Claim { epoch: seen.epoch, owner: seen.owner }));
            }
        }
        if !claims.is_empty() {
            self.command([Command::Hearsay(claims)]);
        }
    }

    /// etcd is told whom this member misses, and no longer of who left the hub; peers that it stands by for, whose owner no
    /// longer answers.
    fn tell_missed(&mut self) {
        let Some(store) = &mut self.store else { return };
        let misses = store.detector.own();
        store.handle.want(|own| {
            let is_news = own.load.misses != *misses;
            own.load.misses.clone_from(misses);
            is_news
        });
        let missed = store.detector.news(&store.view.state, &store.own);
        self.command(missed.into_iter().map(Command::Missed));
    }

    /// This member owns these peers.
    pub(in crate::run::control) fn note_owned(&mut self, owned: Vec<(PublicKey, Epoch)>) {
        let Some(store) = &self.store else { return };
        store.handle.want(|own| {
            let mut is_news = false;
            for (key, epoch) in owned {
                is_news |= own.owned.insert(key, epoch) != Some(epoch);
            }
            is_news
        });
    }

    /// Does what waits for the disk. What this member announces goes on meanwhile: packets wait for it.
    pub(super) async fn beside_announcements<T>(&mut self, work: impl AsyncFnOnce(&mut Store) -> T) -> Option<T> {
        let (mut store, mut owned) = (self.store.take()?, Vec::new());
        let done = {
            let mut work = std::pin::pin!(work(&mut store));
            loop {
                tokio::select! {
                    done = &mut work => break done,
                    announced = self.inbox.announced() => owned.extend(self.announce(announced).await),
                }
            }
        };
        self.store = Some(store);
        self.note_owned(owned);
        Some(done)
    }

    /// Whether etcd is reached; and what this member has to do, for the others.
    pub(in crate::run::control) fn tell_etcd(&mut self, status: &mut Status, state: &State) {
        let Some(store) = &mut self.store else { return };
        status.etcd = Some(store.status());
        let elapsed = store.meter.at.elapsed();
        if elapsed < LOAD_EVERY {
            return;
        }
        let bytes: u64 = status.peers.iter().map(|peer| peer.rx_bytes + peer.tx_bytes).sum();
        let rate_bps = (bytes.saturating_sub(store.meter.bytes) as f64 * 8.0 / elapsed.as_secs_f64()) as u64;
        let roles = state.standings.iter().filter_map(|(_, standing)| match standing {
            Standing::Member { role, .. } => Some(*role),
            _ => None,
        });
        let roles: Vec<Role> = roles.collect();
        let count = |wanted: &[Role]| {
            u32::try_from(roles.iter().filter(|role| wanted.contains(role)).count()).unwrap_or(u32::MAX)
        };
        let (active, standby) = (count(&[Role::Owner, Role::Lapsed]), count(&[Role::Standby]));
        (store.meter.bytes, store.meter.at) = (bytes, Instant::now());
        store.handle.want(|own| {
            let load = Load { active, standby, rate_bps, misses: own.load.misses.clone() };
            std::mem::replace(&mut own.load, load.clone()) != load
        });
    }

    /// `hawser hub members`, `peers`, `add`, `revoke`.
    pub(in crate::run::control) async fn ask_etcd(&mut self, deed: Deed, answer: Answer) {
        let Some(store) = &self.store else {
            let _ = answer.send(Err("the peers of this portal are not in etcd: its [hub] has no `etcd`".to_owned()));
            return;
        };
        match deed {
            Deed::HubAdd { name, public_key, allowed_ips } => match store.new_peer(&name, &public_key, &allowed_ips) {
                Ok(peer) => {
                    let view = store.view.clone();
                    tokio::spawn(async move { answer.send(view.add(&peer).await.map(|()| None)) });
                }
                Err(why) => drop(answer.send(Err(why))),
            },
            Deed::HubRevoke { name: who, undo: true, .. } => self.take_back(&who, answer).await,
            Deed::HubRevoke { name, public_key, .. } => match store.whom_to_revoke(&name, public_key.as_deref()) {
                Ok((name, key)) => self.revoke(name, key, answer).await,
                Err(why) => drop(answer.send(Err(why))),
            },
            _ => {
                let (view, refused) = (store.view.clone(), store.refused.clone());
                let list = move || serde_json::to_value(list::list(&view, &refused)).map(Some);
                tokio::task::spawn_blocking(move || answer.send(list().map_err(|error| error.to_string())));
            }
        }
    }
}

/// Who is not among the others.
fn beyond(peers: &[Peer], others: &[Peer]) -> Vec<String> {
    let others: BTreeSet<&PublicKey> = others.iter().map(|peer| &peer.public_key).collect();
    peers.iter().filter(|peer| !others.contains(&peer.public_key)).map(|peer| peer.name.to_string()).collect()
}

impl Store {
    fn new_peer(&self, name: &str, key: &str, allowed_ips: &[ipnet::IpNet]) -> Result<HubPeer, String> {
        let name = PeerName::parse(name).map_err(|error| error.to_string())?;
        let key = PublicKey::parse(key).map_err(|error| error.to_string())?;
        let peer = HubPeer { name, key, allowed_ips: allowed_ips.to_vec() };
        if let Some(net) = peer.allowed_ips.iter().find(|net| net.trunc() != **net) {
            return Err(format!("{net} is an address inside the network {}", net.trunc()));
        }
        if peer.allowed_ips.is_empty() {
            return Err("it has no network".to_owned());
        }
        let here = hawser_etcd::roster::Roster { peers: vec![peer.clone()], ..Default::default() };
        match here.join(&self.file.peers, &self.own).1.into_values().next() {
            Some(why) => Err(why),
            None => Ok(peer),
        }
    }

    /// By its name in etcd or in the file; or by its key alone. Where the two have different keys by that name one is
    /// served here and the other elsewhere.
    pub(super) fn whom_to_revoke(&self, name: &str, key: Option<&str>) -> Result<(PeerName, PublicKey), String> {
        let name = PeerName::parse(name).map_err(|error| error.to_string())?;
        if let Some(key) = key {
            return Ok((name, PublicKey::parse(key).map_err(|error| error.to_string())?));
        }
        let remembered = self.view.roster.peers.iter().find(|peer| peer.name == name).map(|peer| peer.key);
        let in_file = self.file.peers.iter().find(|peer| peer.name == name).map(|peer| peer.public_key);
        let in_etcd = self.view.state.key_of(&name).or(remembered);
        if let (Some(etcd), Some(file)) = (in_etcd, in_file)
            && etcd != file
        {
            let keys = format!("the key {file} in this member's file, and {etcd} in etcd");
            return Err(format!("{name} has {keys}: name the one with --key"));
        }
        in_etcd.or(in_file).map(|key| (name.clone(), key)).ok_or_else(|| format!("there is no peer {name}"))
    }
}

#[cfg(test)]
mod tests;
