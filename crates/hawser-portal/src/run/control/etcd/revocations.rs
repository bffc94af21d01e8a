//! `hawser hub revoke`: here at once, at the other members as soon as etcd has it; and that taken back. What another
//! etcd lost of it is written there anew.
//!
//! A revocation is on the disk before anything follows from it: a member that dies in between knows it when it starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use hawser_config::{PeerName, PublicKey};
use hawser_etcd::driver::View;
use serde_json::json;
use tokio::time::timeout;

use super::super::serve::Serving;
use super::Store;
use super::serving::{Answer, WRITTEN_WITHIN};

impl Serving<'_> {
    /// Nobody is served by this key.
    pub(super) async fn revoke(&mut self, name: PeerName, key: PublicKey, answer: Answer) {
        let revoked = self.beside_announcements(async |store: &mut Store| store.revoke(&name, key).await).await;
        let (Some(revoked), Some(store)) = (revoked, &self.store) else { return };
        let unkept = revoked.err();
        tracing::info!(peer = %name, public_key = %key, "peer revoked at this member");
        let mut views = store.handle.views();
        self.serve_roster().await;
        tokio::spawn(async move {
            let seen = timeout(WRITTEN_WITHIN, views.wait_for(|view| view.state.is_revoked(&key))).await;
            let written = matches!(seen, Ok(Ok(_)));
            drop(seen);
            let view = views.borrow().clone();
            let refused = view.unwritten.clone().filter(|_| view.is_connected());
            let why = (!written).then(|| refused.unwrap_or_else(|| view.away()));
            answer.send(Ok(Some(json!({ "written": written, "why": why, "unkept": unkept }))))
        });
    }

    /// A key may be served again: here at once where etcd does not have the revocation, else once it is gone there. One
    /// that etcd was given, and has not told of, waits for it: it may be written still.
    pub(super) async fn take_back(&mut self, who: &str, answer: Answer) {
        let Some(store) = &self.store else { return };
        let (name, key) = match store.whose_revocation(who) {
            Ok((_, key)) if store.view.is_unknown(&key) => return drop(answer.send(Err(store.view.away()))),
            Ok(found) => found,
            Err(why) => return drop(answer.send(Err(why))),
        };
        let told = json!({ "name": name.to_string(), "public_key": key.to_string() });
        let forgotten = self.beside_announcements(async |store: &mut Store| store.forget_pending(&key).await).await;
        if let Some(Err(why)) = forgotten {
            return drop(answer.send(Err(why)));
        }
        tracing::info!(peer = %name, public_key = %key, "revocation taken back at this member");
        let Some(store) = &self.store else { return };
        let view = store.view.clone();
        if !view.roster.revoked.contains_key(&key) {
            self.serve_roster().await;
            // Where etcd is reached, the revocation may be on its way there.
            if !view.is_connected() {
                return drop(answer.send(Ok(Some(told))));
            }
        }
        tokio::spawn(async move { answer.send(view.take_back(key).await.map(|()| Some(told))) });
    }
}

impl Store {
    /// What is known from now on. A copy that was restored has forgotten who was revoked since, and has them as peers:
    /// before these are served that is to be written there. Once alone, so that somebody may take it back.
    pub(super) fn follow(&mut self, view: View) {
        self.view = view;
        let lost = self.view.lost.clone();
        if !Arc::ptr_eq(&lost, &self.lost) {
            if !lost.is_empty() {
                tracing::warn!(revoked = lost.len(), "etcd lost revocations: they are written there anew");
            }
            self.handle.want(|own| {
                let before = own.revoked.len();
                own.revoked.extend(lost.iter().map(|(key, name)| (*key, name.clone())));
                own.revoked.len() != before
            });
            self.lost = lost;
        }
        let state = &self.view.state;
        // Once it is there, somebody may take it back there.
        self.handle.want(|own| {
            let before = own.revoked.len();
            own.revoked.retain(|key, _| !state.is_revoked(key));
            own.revoked.len() != before
        });
    }

    /// Writes a revocation down, and only then acts: whom the member serves follows from what is pending.
    ///
    /// # Errors
    /// Why it is not on the disk. It holds all the same, until the portal ends.
    async fn revoke(&mut self, name: &PeerName, key: PublicKey) -> Result<(), String> {
        if self.view.state.is_revoked(&key) {
            return Ok(());
        }
        let mut pending = self.handle.pending();
        pending.insert(key, name.clone());
        self.remember_with(pending);
        let kept = self.cache.written().await;
        self.handle.want(|own| own.revoked.insert(key, name.clone()).is_none());
        kept
    }

    /// etcd is not told of a revocation that it does not have.
    async fn forget_pending(&mut self, key: &PublicKey) -> Result<(), String> {
        let mut pending = self.handle.pending();
        if pending.remove(key).is_none() {
            return Ok(());
        }
        self.remember_with(pending);
        if let Err(why) = self.cache.written().await {
            // It may be written later: what holds is.
            self.remember();
            return Err(why);
        }
        self.handle.want(|own| own.revoked.remove(key).is_some());
        Ok(())
    }

    /// By the key, or by how the peer was called.
    fn whose_revocation(&self, who: &str) -> Result<(PeerName, PublicKey), String> {
        let mut revoked: BTreeMap<PublicKey, PeerName> = self.view.roster.revoked.clone();
        revoked.extend(self.handle.pending());
        let by_key = PublicKey::parse(who).ok();
        revoked.retain(|key, name| by_key.as_ref().map_or(name.as_str() == who, |wanted| wanted == key));
        let keys: Vec<String> = revoked.keys().map(ToString::to_string).collect();
        match revoked.pop_first() {
            None => Err(format!("no key of {who} is revoked")),
            Some(_) if !revoked.is_empty() => Err(format!("several keys of {who} are revoked: {}", keys.join(", "))),
            Some((key, name)) => Ok((name, key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Mutex, mpsc};
    use std::time::Duration;

    use hawser_config::Config;
    use hawser_etcd::roster::{Cache, HubPeer, Roster};

    use super::super::{Seed, cache, settings};
    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey::new([number; 32]).expect("not zero")
    }

    fn home() -> PeerName {
        PeerName::parse("home").expect("a name")
    }

    /// A member whose etcd is nowhere, and whose disk writes by this.
    fn store(folder: &Path, write: impl Fn(&Path, &str) -> Result<(), String> + Clone + Send + 'static) -> Store {
        let text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\n\
                    addresses = [\"10.77.0.1/24\"]\n[hub]\nname = \"zurich\"\netcd = [\"http://127.0.0.1:1\"]\n";
        let file = Config::parse(text, "test.toml").expect("a right configuration");
        let etcd = file.hub.as_ref().and_then(|hub| hub.etcd.as_ref()).expect("it has etcd");
        let settings = settings(etcd, key(9), folder, Cache::default());
        let cache = cache::File::new(folder, "hawser0", &etcd.prefix);
        let seed = Seed { settings, cache: cache.clone(), strict: false, own: key(9), file };
        Store { cache: cache.start_by(write), ..seed.start(BTreeMap::new()) }
    }

    #[tokio::test]
    async fn a_revocation_is_on_the_disk_before_anything_follows_from_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (go_on, wait) = mpsc::channel();
        let (disk, wait) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(wait)));
        let seen = disk.clone();
        let mut store = store(folder.path(), move |_, text| {
            wait.lock().expect("nobody panicked").recv().expect("the test goes on");
            *disk.lock().expect("nobody panicked") = text.to_owned();
            Ok(())
        });
        let (name, one) = (home(), key(1));
        let early = timeout(Duration::from_millis(50), store.revoke(&name, one)).await;
        assert!(early.is_err() && store.handle.pending().is_empty(), "it acted before it wrote");
        go_on.send(()).expect("it waits");
        assert_eq!(store.revoke(&name, one).await, Ok(()));
        assert!(seen.lock().expect("nobody panicked").contains(&one.to_string()));
        assert_eq!(store.handle.pending(), BTreeMap::from([(one, name)]));
    }

    #[tokio::test]
    async fn a_peer_is_revoked_by_its_name_unless_the_file_and_etcd_have_different_keys_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = store(folder.path(), |_, _| Ok(()));
        let peer = |number: u8| HubPeer {
            name: home(),
            key: key(number),
            allowed_ips: vec!["10.1.0.0/16".parse().expect("a network")],
        };
        let roster = |number| Roster { peers: vec![peer(number)], ..Roster::default() };
        let file = |number| Roster::join(&roster(number), &[], &key(9)).0;
        let both = format!(
            "home has the key {} in this member's file, and {} in etcd: name the one with --key",
            key(1),
            key(2)
        );
        for (in_file, in_etcd, whom) in [
            (None, None, Err("there is no peer home".to_owned())),
            (Some(1), None, Ok(1)),
            (None, Some(2), Ok(2)),
            (Some(1), Some(1), Ok(1)),
            (Some(1), Some(2), Err(both)),
        ] {
            store.file.peers = in_file.map(file).unwrap_or_default();
            store.view.roster = Arc::new(in_etcd.map(roster).unwrap_or_default());
            assert_eq!(store.whom_to_revoke("home", None), whom.map(|number| (home(), key(number))));
            assert_eq!(store.whom_to_revoke("home", Some(&key(3).to_string())), Ok((home(), key(3))));
        }
    }

    #[tokio::test]
    async fn whom_a_restored_copy_revokes_no_more_is_not_served_until_that_is_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = store(folder.path(), |_, _| Ok(()));
        let served = |store: &mut Store| store.joined().peers.iter().map(|peer| peer.name.clone()).collect::<Vec<_>>();
        let allowed_ips = vec!["10.1.0.0/16".parse().expect("a network")];
        let mut copy = store.view.clone();
        copy.roster =
            Arc::new(Roster { peers: vec![HubPeer { name: home(), key: key(1), allowed_ips }], ..Roster::default() });
        copy.lost = Arc::new(BTreeMap::from([(key(1), home())]));
        for again in [false, true] {
            store.follow(copy.clone());
            assert_eq!((served(&mut store), store.handle.pending().len()), (Vec::new(), 1), "again: {again}");
        }
        store.forget_pending(&key(1)).await.expect("it is forgotten");
        store.follow(copy);
        assert_eq!(served(&mut store), [home()]);
    }

    #[tokio::test]
    async fn a_disk_that_does_not_answer_keeps_nobody_in_and_is_waited_for_no_longer_than_a_second() {
        let folder = tempfile::tempdir().expect("a folder");
        let (go_on, wait) = mpsc::channel::<()>();
        let (disk, wait) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(wait)));
        let seen = disk.clone();
        let mut store = store(folder.path(), move |_, text| {
            let _ = wait.lock().expect("nobody panicked").recv();
            *disk.lock().expect("nobody panicked") = text.to_owned();
            Ok(())
        });
        let told = timeout(Duration::from_secs(10), store.revoke(&home(), key(1))).await;
        assert_eq!(told, Ok(Err("the disk does not answer".to_owned())));
        assert!(store.handle.pending().contains_key(&key(1)));
        assert_eq!(store.forget_pending(&key(1)).await, Err("the disk does not answer".to_owned()));
        // Once it answers, it has what holds.
        drop(go_on);
        assert_eq!(store.cache.written().await, Ok(()));
        let last = seen.lock().expect("nobody panicked").clone();
        assert!(last.contains(&key(1).to_string()), "{last}");
    }

    #[tokio::test]
    async fn a_full_disk_keeps_nobody_in_and_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = store(folder.path(), |_, _| Err("write it: no space".to_owned()));
        assert_eq!(store.revoke(&home(), key(1)).await, Err("write it: no space".to_owned()));
        assert!(store.handle.pending().contains_key(&key(1)));
        assert!(store.forget_pending(&key(1)).await.is_err());
        assert!(store.handle.pending().contains_key(&key(1)), "what is on the disk is not known: it stays revoked");
    }

    #[tokio::test]
    async fn a_revocation_is_found_by_its_name_or_its_key_and_not_by_what_stands_for_two() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = store(folder.path(), |_, _| Ok(()));
        for (name, number) in [("home", 1), ("home", 2), ("branch", 3)] {
            let name = PeerName::parse(name).expect("a name");
            store.revoke(&name, key(number)).await.expect("it is kept");
        }
        let branch = PeerName::parse("branch").expect("a name");
        assert_eq!(store.whose_revocation("branch"), Ok((branch, key(3))));
        assert_eq!(store.whose_revocation(&key(2).to_string()), Ok((home(), key(2))));
        let why = store.whose_revocation("home").expect_err("there are two");
        assert_eq!(why, format!("several keys of home are revoked: {}, {}", key(1), key(2)));
        assert_eq!(store.whose_revocation("shop"), Err("no key of shop is revoked".to_owned()));
        store.forget_pending(&key(1)).await.expect("it is forgotten");
        assert_eq!(store.whose_revocation("home"), Ok((home(), key(2))));
    }
}
