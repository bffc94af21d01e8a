//! The driver as the portal sees it: what it begins with, what it tells, what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hawser_config::{PeerName, PublicKey};
use hawser_core::units::Time;
use tokio::sync::watch;
use tokio::time::timeout;

use super::due::Own;
use super::{Driver, LEAVE_TIMEOUT};
use crate::client::{Access, Client, If, Write};
use crate::keys::{Key, MemberName, Prefix};
use crate::namesake::Namesake;
use crate::record::{Member, Record as _};
use crate::roster::{Cache, HubPeer, Roster};
use crate::state::{History, Revision, State};

/// What a member begins with. Owned data.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How etcd is reached.
    pub access: Access,
    /// Where the hub's keys are.
    pub prefix: Prefix,
    /// How long the member counts as there.
    pub lease: Duration,
    /// Its name.
    pub name: MemberName,
    /// What it says of itself.
    pub member: Member,
    /// What it remembers.
    pub cache: Cache,
    /// CLOCK_BOOTTIME: it counts while the machine sleeps.
    pub clock: fn() -> Time,
}

/// Whether etcd is reached. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nobody knows: it was asked for the first time then.
    Asked(Time),
    /// It answers, since then.
    Reached(Time),
    /// It does not, since then; why.
    Away(Time, String),
}

/// What is known. Owned data; cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    /// Everything; as it was when etcd was reached last.
    pub state: Arc<State>,
    /// Whom members serve: from etcd, or remembered until it was reached.
    pub roster: Arc<Roster>,
    /// The cluster that it is from.
    pub cluster: Option<u64>,
    /// Up to which revision of it all is known.
    pub revision: Revision,
    /// Of which history; none where etcd has no mark.
    pub history: Option<History>,
    /// Who was revoked in another etcd, or in what this one is a copy of, and is not here; nobody at first. Another
    /// `Arc` each time that such an etcd is taken.
    pub lost: Arc<BTreeMap<PublicKey, PeerName>>,
    /// Whether etcd is reached.
    pub reach: Reach,
    /// All that was written before then is known; none before etcd was reached.
    pub confirmed: Option<Time>,
    /// Why something that the member wants to write is not; none where it is.
    pub unwritten: Option<String>,
    /// Whose revocations etcd was asked to write since the start, and does not tell of: a server whose disk hangs may do
    /// so whenever that goes on.
    pub given: Arc<BTreeSet<PublicKey>>,
    /// Who has the member's name in etcd, where it is another portal: this one is in nobody's list then.
    pub namesake: Option<Namesake>,
    pub(super) client: Option<Client>,
}

/// The driver as the portal sees it. It runs from the start; the portal owns it.
#[derive(Debug)]
pub struct Handle {
    views: watch::Receiver<View>,
    own: watch::Sender<Own>,
    ended: Option<tokio::task::JoinHandle<()>>,
}

impl Handle {
    /// Starts it, inside a runtime.
    pub fn start(settings: Settings) -> Self {
        let (driver, seen, own) = Driver::new(settings);
        Self { views: seen, own, ended: Some(tokio::spawn(driver.run())) }
    }

    /// The next view; never, once the driver is gone.
    pub async fn next(&mut self) -> View {
        if self.views.changed().await.is_err() {
            pending::<()>().await;
        }
        self.views.borrow_and_update().clone()
    }

    /// The view of the moment.
    pub fn view(&self) -> View {
        self.views.borrow().clone()
    }

    /// For whoever waits for a change beside.
    pub fn views(&self) -> watch::Receiver<View> {
        self.views.clone()
    }

    /// What the member wants to have written from now on; `change` says whether it changed anything. So does this.
    pub fn want(&self, change: impl FnOnce(&mut Own) -> bool) -> bool {
        self.own.send_if_modified(change)
    }

    /// Who was revoked here, and is not in etcd yet.
    pub fn pending(&self) -> BTreeMap<PublicKey, PeerName> {
        self.own.borrow().revoked.clone()
    }

    /// For whoever waits for the end of it all: others are to hear of it before their lease does.
    pub fn leaving(&mut self) -> Option<Leaving> {
        self.ended.take().map(Leaving)
    }
}

/// The driver's end, once its handle was dropped.
#[derive(Debug)]
pub struct Leaving(tokio::task::JoinHandle<()>);

impl Leaving {
    /// Waits for it, and not for long.
    pub async fn wait(self) {
        // The lease ends by itself.
        let _ = timeout(LEAVE_TIMEOUT, self.0).await;
    }
}

impl View {
    /// Before etcd was asked for the first time.
    pub(super) fn remembered(settings: &Settings) -> Self {
        Self {
            state: Arc::default(),
            roster: Arc::new(settings.cache.roster.clone()),
            cluster: settings.cache.cluster,
            revision: settings.cache.revision,
            history: settings.cache.history.clone(),
            lost: Arc::default(),
            reach: Reach::Asked((settings.clock)()),
            confirmed: None,
            unwritten: None,
            given: Arc::default(),
            namesake: None,
            client: None,
        }
    }

    /// Writes a new peer.
    ///
    /// # Errors
    /// Why it is none, or cannot be one now.
    pub async fn add(&self, peer: &HubPeer) -> Result<(), String> {
        let client = self.client.as_ref().ok_or_else(|| self.away())?;
        if let Some(why) = self.state.objection(peer) {
            return Err(why);
        }
        let record = crate::record::Peer { key: peer.key, allowed_ips: peer.allowed_ips.clone() };
        let (new, revoked) = (Key::Peer(peer.name.clone()), Key::Revoked(peer.key));
        let holds = vec![If::Absent(new.clone()), If::Absent(revoked)];
        match client.commit("write peer", holds, vec![Write::Put(new, record.encode())]).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("the name is taken, or its key is revoked".to_owned()),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// Deletes a revocation, and waits until etcd has done so.
    ///
    /// # Errors
    /// Why it is there still.
    pub async fn take_back(&self, key: PublicKey) -> Result<(), String> {
        let client = self.client.as_ref().ok_or_else(|| self.away())?;
        let gone = client.commit("take back revocation", Vec::new(), vec![Write::Delete(Key::Revoked(key))]).await;
        gone.map(drop).map_err(|fault| fault.to_string())
    }

    /// Whether something can be written, or is being written.
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Whether etcd may have a revocation, or come to have it, of which it cannot be asked now.
    pub fn is_unknown(&self, key: &PublicKey) -> bool {
        self.given.contains(key) && !self.is_connected()
    }

    /// Why nothing can be written.
    pub fn away(&self) -> String {
        match &self.reach {
            Reach::Asked(_) => "etcd is not reached: it has not answered yet".to_owned(),
            Reach::Away(_, why) => format!("etcd is not reached: {why}"),
            Reach::Reached(_) if self.is_connected() => "etcd has not answered yet".to_owned(),
            Reach::Reached(_) => "etcd is not reached: the connection ended".to_owned(),
        }
    }
}
