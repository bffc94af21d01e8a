//! What goes on while a revocation waits for the disk.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use hawser_core::handshake::PublicKey as CoreKey;
use hawser_etcd::roster::Cache;
use hawser_hub::claim::Announcement;
use hawser_hub::gate::Announced;
use hawser_net::netcfg::{InstanceName, NetConfig, event_channel};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

use super::super::{Seed, cache, settings};
use super::*;
use crate::api::{Answers, Document, EventKind, Events};
use crate::pairing::Invitations;
use crate::run::control::enrolments::Enrolments;
use crate::run::control::system::System;
use crate::run::control::told::Told;
use crate::run::control::usage::Usage;
use crate::run::messages::{News, Report};
use crate::run::plan;

/// A member with a peer in its file, whose etcd is nowhere.
const MEMBER: &str = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\n\
                      addresses = [\"10.77.0.1/24\"]\n[hub]\nname = \"zurich\"\netcd = [\"http://127.0.0.1:1\"]\n\
                      [[peer]]\nname = \"home\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
                      allowed_ips = [\"10.1.0.0/16\"]\n";

/// Its store, whose disk writes once it is told to.
fn store(config: &Config, folder: &Path, goes_on: mpsc::Receiver<()>) -> Store {
    let etcd = config.hub.as_ref().and_then(|hub| hub.etcd.as_ref()).expect("it has etcd");
    let own = PublicKey::new([9; 32]).expect("not zero");
    let cache = cache::File::new(folder, "hawser0", &etcd.prefix);
    let settings = settings(etcd, own, folder, Cache::default());
    let seed = Seed { settings, cache: cache.clone(), strict: false, own, file: config.clone() };
    let goes_on = Arc::new(Mutex::new(goes_on));
    let write = move |_: &Path, _: &str| {
        // The test may be over.
        let _ = goes_on.lock().expect("nobody panicked").recv();
        Ok(())
    };
    Store { cache: cache.start_by(write), ..seed.start(BTreeMap::new()) }
}

fn is_announced(told: &Told) -> bool {
    let events = told.get(&Document::Events { since: 0 }).expect("they are told");
    let events: Events = serde_json::from_slice(&events).expect("events");
    events.events.iter().any(|event| event.kind == EventKind::OwnerChanged)
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_announced_does_not_wait_for_the_disk_of_a_revocation() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config::parse(MEMBER, "test.toml").expect("a right configuration");
    let instance = InstanceName::new("none").expect("a name");
    let mut system = System::new(NetConfig::new(folder.path(), &instance).expect("a journal"), false);
    let (commands, _inbox) = event_channel::<Command>().expect("a channel");
    let (packets, mut reports) = unbounded_channel();
    let (go_on, wait) = mpsc::channel();
    let (usage, enrolments) = (Usage::load(folder.path(), "hawser0"), Enrolments::new(Invitations::default()));
    let plans = plan::sockets(&config);
    let serving = Serving::new(&config, plans, &mut system, usage, &commands, None, enrolments);
    let mut serving = serving.with_reports(&mut reports).with_store(Some(store(&config, folder.path(), wait)));
    let (told, home) = (serving.told.clone(), config.peers[0].public_key);
    let epoch = Epoch::new(7);
    let announced = Announced { key: CoreKey(*home.as_bytes()), announcement: Announcement::Owner, epoch };
    packets.send(Report::Hub(News::Announced(announced))).expect("it is heard");
    let (name, other) = (PeerName::parse("branch").expect("a name"), PublicKey::new([7; 32]).expect("not zero"));
    let (answer, _answered) = oneshot::channel();
    let revoking = serving.revoke(name, other, answer);
    let watching = async {
        while !is_announced(&told) {
            sleep(Duration::from_millis(2)).await;
        }
        go_on.send(()).expect("the disk waits");
    };
    let both = async { tokio::join!(revoking, watching) };
    timeout(Duration::from_secs(10), both).await.expect("it is announced while the disk waits");
    let store = serving.store.as_ref().expect("it is back");
    assert!(store.handle.pending().contains_key(&other), "the key is revoked");
    let mut owned = None;
    store.handle.want(|own| {
        owned = own.owned.get(&home).copied();
        false
    });
    assert_eq!(owned, epoch, "etcd is to know of the owner");
}
