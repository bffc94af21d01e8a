//! A member of a hub whose peers are in etcd (`hawser-etcd`): what it has of etcd, and what follows for the portal.
//!
//! 1. [`Seed::of`] reads what is remembered of etcd, so that a member starts without it: [`Seed::join`] adds those
//!    peers to the file's. 2. [`Store`] runs the driver, and says whom to serve ([`Store::joined`]).
//! 3. `serving` has the control thread do so: as a reload does it, but that no file is read.
//! 4. `list` is what `hawser hub members` and `peers` show, `reach` tells when etcd is lost and when it is back.
//!    `cache` writes down what is to be remembered, `enrolling` makes peers of who has a token, `revocations` ends them,
//!    `failure_detector` notices members that die.

mod cache;
mod enrolling;
mod failure_detector;
mod list;
mod reach;
mod revocations;
mod serving;

use std::collections::BTreeMap;
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_config::{Config, Etcd, PeerName, PresharedKey, PublicKey};
pub use hawser_etcd::driver::Leaving;
use hawser_etcd::driver::{Handle, Settings, View};
use hawser_etcd::keys::{MemberName, Prefix};
use hawser_etcd::namesake::Namesake;
use hawser_etcd::record::{Member, Seen};
use hawser_etcd::roster::{Cache, Roster};
use hawser_etcd::{Access, TlsFiles};

use crate::api::{EtcdStatus, NAMESAKE_HINT};
use crate::keys::Keys;
use crate::run::clock::Clock;

/// Others are told what a member has to do this often: it is for people, and changes with every flow.
const LOAD_EVERY: Duration = Duration::from_secs(10);

/// What a member starts with. No default; whoever starts it owns it.
pub struct Seed {
    settings: Settings,
    cache: cache::File,
    strict: bool,
    own: PublicKey,
    file: Config,
}

impl Seed {
    /// Step 1. None for a portal whose peers are in its files alone.
    pub fn of(config: &Config, keys: &Keys) -> Option<Self> {
        let etcd = config.hub.as_ref()?.etcd.as_ref()?;
        let cache = cache::File::new(&config.portal.state_dir, config.tun.name.as_str(), &etcd.prefix);
        let own = keys.private.public();
        let settings = settings(etcd, own, &keys.invitations.folder, cache.read());
        Some(Self { settings, cache, strict: etcd.strict, own, file: config.clone() })
    }

    /// The configuration with the peers that are remembered.
    pub fn join(&self) -> Config {
        let Cache { roster, pending, .. } = self.settings.cache.clone();
        let roster = if self.strict { nobody(&roster) } else { roster };
        let (peers, _) = roster.without(&pending).join(&self.file.peers, &self.own);
        Config { peers, ..self.file.clone() }
    }

    /// Step 2, inside a runtime. The preshared keys are those of the file's peers: one that was revoked may come back.
    pub fn start(self, preshared: BTreeMap<PeerName, PresharedKey>) -> Store {
        let Self { settings, cache, strict, own, file } = self;
        let (lease, handle) = (settings.lease, Handle::start(settings));
        let view = handle.view();
        Store {
            cache: cache.start(),
            serves: !strict,
            served: view.roster.clone(),
            view,
            handle,
            strict: strict.then_some(lease),
            own,
            file,
            preshared,
            refused: BTreeMap::new(),
            reach: reach::Told::default(),
            namesake: None,
            enrolling: enrolling::Desk::default(),
            heard: BTreeMap::new(),
            lost: Arc::default(),
            detector: failure_detector::FailureDetector::default(),
            meter: Meter { bytes: 0, at: Instant::now() },
        }
    }
}

fn settings(etcd: &Etcd, own: PublicKey, folder: &Path, cache: Cache) -> Settings {
    let tls = etcd.tls.as_ref().map(|tls| TlsFiles {
        ca: folder.join(&tls.ca),
        certificate: folder.join(&tls.certificate),
        key: folder.join(&tls.key),
    });
    Settings {
        access: Access { urls: etcd.urls.iter().map(ToString::to_string).collect(), tls },
        prefix: Prefix::new(&etcd.prefix),
        lease: etcd.lease,
        name: MemberName(etcd.name.clone()),
        member: Member {
            key: own,
            endpoints: etcd.endpoints.clone(),
            weight: etcd.weight,
            rack: etcd.rack,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        cache,
        clock: || Clock.now(),
    }
}

/// The same without anybody: who is revoked stays so.
fn nobody(roster: &Roster) -> Roster {
    Roster { revoked: roster.revoked.clone(), ..Roster::default() }
}

/// What the member has of etcd. Runs from the start; the control thread owns it.
pub struct Store {
    handle: Handle,
    cache: cache::Writer,
    view: View,
    /// The configuration as its files have it.
    file: Config,
    preshared: BTreeMap<PeerName, PresharedKey>,
    own: PublicKey,
    /// Peers from etcd are served while this long has not passed since all was known; none: always.
    strict: Option<Duration>,
    serves: bool,
    /// Whom etcd had when that was carried out last.
    served: Arc<Roster>,
    /// Who of etcd is not served here, and why.
    refused: BTreeMap<PeerName, String>,
    /// What people know of whether etcd is reached.
    reach: reach::Told,
    /// Who has this member's name in etcd, as the log was told.
    namesake: Option<Namesake>,
    /// Who is to become a peer by a token.
    enrolling: enrolling::Desk,
    /// What of claims was passed on.
    heard: BTreeMap<PublicKey, Seen>,
    /// Revocations that etcd had lost, which were passed on last.
    lost: Arc<BTreeMap<PublicKey, PeerName>>,
    /// Who of the other members answers.
    detector: failure_detector::FailureDetector,
    meter: Meter,
}

/// What others know of this member's load.
struct Meter {
    /// Bytes of inner packets until then.
    bytes: u64,
    at: Instant,
}

impl Store {
    /// Whom the member is to serve.
    fn joined(&mut self) -> Config {
        let roster = if self.serves { (*self.view.roster).clone() } else { nobody(&self.view.roster) };
        let (peers, refused) = roster.without(&self.handle.pending()).join(&self.file.peers, &self.own);
        (self.served, self.refused) = (self.view.roster.clone(), refused);
        Config { peers, ..self.file.clone() }
    }

    /// Whether peers from etcd are served: where they are not, once it was away, that changes by time alone.
    fn serves_now(&self) -> bool {
        let known = |lease: Duration| {
            let confirmed = self.view.confirmed;
            confirmed.is_some_and(|confirmed| Clock.now().since(confirmed) <= lease)
        };
        self.strict.is_none_or(known)
    }

    /// What is to be remembered from now on.
    fn remember(&self) {
        self.remember_with(self.handle.pending());
    }

    fn remember_with(&self, pending: BTreeMap<PublicKey, PeerName>) {
        let View { roster, cluster, revision, history, .. } = &self.view;
        let (roster, history) = ((**roster).clone(), history.clone());
        self.cache.write(&Cache { roster, pending, cluster: *cluster, revision: *revision, history });
    }

    /// The log is told that another portal has this member's name, and that none has any more.
    fn tell_namesake(&mut self) {
        if self.namesake == self.view.namesake {
            return;
        }
        self.namesake.clone_from(&self.view.namesake);
        match &self.namesake {
            Some(other) => tracing::warn!(error = %other, hint = NAMESAKE_HINT, "not among the hub's members in etcd"),
            None => tracing::info!("among the hub's members in etcd"),
        }
    }

    fn status(&self) -> EtcdStatus {
        let View { state, reach, confirmed, unwritten, namesake, .. } = &self.view;
        let (reached, since, why) = reach::parts(reach);
        let now = Clock.now();
        EtcdStatus {
            reached,
            since_s: now.since(since).as_secs_f64(),
            in_step_age_s: confirmed.map(|confirmed| now.since(confirmed).as_secs_f64()),
            why,
            unwritten: unwritten.clone(),
            namesake: namesake.as_ref().map(ToString::to_string),
            serving: self.serves,
            members: state.members().count(),
            peers: self.view.roster.peers.len(),
            revoked: self.view.roster.revoked.len(),
        }
    }

    /// For whoever waits for its end: others hear of it at once, if etcd does.
    pub fn leaving(&mut self) -> Option<Leaving> {
        self.handle.leaving()
    }
}

/// What is heard of etcd. Owned data.
pub enum Heard {
    /// It has something else, or is reached no more.
    View(View),
    /// What came of a token.
    Admitted(enrolling::Admitted),
    /// Another member no longer answers, or does again.
    Sight(failure_detector::Sight),
}

/// What is heard next; nothing, where there is none.
pub async fn next(store: &mut Option<Store>) -> Heard {
    let Some(store) = store else { return pending().await };
    tokio::select! {
        view = store.handle.next() => Heard::View(view),
        admitted = store.enrolling.next() => Heard::Admitted(admitted),
        sight = store.detector.next() => Heard::Sight(sight),
    }
}
