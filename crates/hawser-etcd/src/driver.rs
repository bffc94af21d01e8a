//! Follows etcd for a member, one server after the other, for as long as the member runs.
//!
//! 1. Connect to a server, and list what is new, or go on where the last connection ended; then watch.
//! 2. Each third of the lease a round: the lease is renewed, or taken anew, and the watch is asked for a sign of life.
//!    Only a quorum renews, so that a round that is over shows that what was heard is all that there was.
//! 3. What the member wants to have written ([`Own`]) is, as soon as etcd takes it ([`due`]).
//! 4. A call that fails ends the connection. The next server is tried at once, then later and later.
//!
//! Whoever asks reads a [`View`]: what is known, and whether etcd is reached. Nothing here is waited for by packets.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hawser_config::{PeerName, PublicKey};
use hawser_core::units::Time;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use crate::client::{Access, Client, Fault, If, LeaseId, Watch, Write};
use crate::keys::{Key, MemberName, Prefix};
use crate::record::{Load, Member, Record as _};
use crate::roster::{Cache, HubPeer, Roster};
use crate::state::{Begin, Heard, Revision, State, Touched};

mod due;

pub use due::{Own, due};

/// A lease outlives two rounds that are lost.
const ROUNDS: u32 = 3;
/// A watch that was asked for a sign of life gives it within an election and some round trips.
const SILENCE_MOST: Duration = Duration::from_secs(4);
/// How far a watch is behind a transaction that succeeded.
const WATCH_BEHIND: Duration = Duration::from_millis(50);
/// The first pause after a failure, and the longest.
const PAUSE_LEAST: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(3);
/// A member that ends waits this long for etcd to hear of it: its lease ends without.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

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
    /// Whether etcd is reached.
    pub reach: Reach,
    /// All that was written before then is known; none before etcd was reached.
    pub confirmed: Option<Time>,
    /// Why something that the member wants to write is not; none where it is.
    pub unwritten: Option<String>,
    client: Option<Client>,
}

/// The driver as the portal sees it. It runs from the start; the portal owns it.
#[derive(Debug)]
pub struct Handle {
    views: watch::Receiver<View>,
    own: watch::Sender<Own>,
    ended: tokio::task::JoinHandle<()>,
}

impl Handle {
    /// Starts it, inside a runtime.
    pub fn start(settings: Settings) -> Self {
        let now = (settings.clock)();
        let roster = Arc::new(settings.cache.roster.clone());
        let own = Own { revoked: settings.cache.pending.clone(), ..Own::default() };
        let view = View {
            state: Arc::default(),
            roster,
            reach: Reach::Away(now, "it was not reached yet".to_owned()),
            confirmed: None,
            unwritten: None,
            client: None,
        };
        let (views, seen) = watch::channel(view.clone());
        let (own, wanted) = watch::channel(own);
        let driver = Driver { settings, view, state: State::default(), views, wanted, written: Load::default() };
        Self { views: seen, own, ended: tokio::spawn(driver.run()) }
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

    /// The member ends: others need not wait for its lease.
    pub async fn leave(self) {
        drop(self.own);
        // The lease ends by itself.
        let _ = timeout(LEAVE_TIMEOUT, self.ended).await;
    }
}

impl View {
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

    /// Why nothing can be written.
    pub fn away(&self) -> String {
        match &self.reach {
            Reach::Away(_, why) => format!("etcd is not reached: {why}"),
            Reach::Reached(_) => "etcd is not reached: the connection ended".to_owned(),
        }
    }
}

/// It lives as long as the portal.
struct Driver {
    settings: Settings,
    view: View,
    state: State,
    views: watch::Sender<View>,
    wanted: watch::Receiver<Own>,
    /// The load that etcd knows.
    written: Load,
}

type Pending<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

/// One connection. Begins with a watch, and without a lease; the driver owns it.
struct Session {
    client: Client,
    watch: Watch,
    lease: Option<LeaseId>,
    /// A round, and when the one began that the watch was asked about.
    round: Pending<Result<Round, Fault>>,
    asked: Option<(Time, Instant)>,
    /// What is being written.
    writing: Pending<Result<(), Fault>>,
    /// Something changed of what is wanted, or there; nothing is written before then, after a failure.
    news: bool,
    pause: Instant,
}

/// A round that succeeded.
struct Round {
    begun: Time,
    lease: Option<LeaseId>,
    /// Why there is none.
    unwritten: Option<Fault>,
}

/// How a connection ended.
enum End {
    Failed(Fault),
    /// Changes were missed: a list is needed, of the same server.
    ListAgain,
    /// The portal ends.
    Left,
}

impl Driver {
    /// All steps, until the portal ends.
    async fn run(mut self) {
        let (urls, mut pause) = (self.settings.access.urls.clone(), PAUSE_LEAST);
        // Members begin with different servers.
        let mut at = self.settings.member.key.as_bytes()[0] as usize % urls.len().max(1);
        while self.wanted.has_changed().is_ok() {
            let confirmed = self.view.confirmed;
            let Settings { access, prefix, .. } = &self.settings;
            let connected = Client::connect(&urls[at], access.tls.as_ref(), prefix.clone()).await;
            let end = match connected {
                Ok(client) => self.serve(client).await.unwrap_or_else(End::Failed),
                Err(fault) => End::Failed(fault),
            };
            match end {
                End::Left => return,
                End::ListAgain => self.state = State::default(),
                End::Failed(fault) => {
                    self.note_away(&fault);
                    at = (at + 1) % urls.len();
                    pause = if self.view.confirmed == confirmed { (2 * pause).min(PAUSE_MOST) } else { PAUSE_LEAST };
                    sleep(pause).await;
                }
            }
        }
    }

    /// Steps 1 to 3 with one server.
    async fn serve(&mut self, client: Client) -> Result<End, Fault> {
        let (cluster, revision) = client.now().await?;
        let from = match self.state.begin(cluster, revision) {
            Begin::From(revision) => revision,
            Begin::List => {
                let listed = client.list().await?;
                let revision = listed.revision;
                self.state.replace(&self.settings.prefix, listed.cluster, revision, listed.entries);
                self.tell_all();
                Revision(revision.0 + 1)
            }
        };
        let watch = client.watch(from).await?;
        self.view.client = Some(client.clone());
        let pause = Instant::now();
        let mut session =
            Session { client, watch, lease: None, round: None, asked: None, writing: None, news: true, pause };
        let every = self.settings.lease / ROUNDS;
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.begin_to_write(&mut session);
            tokio::select! {
                watched = session.watch.next() => {
                    let watched = watched?;
                    if let Some((begun, _)) = session.asked.take_if(|_| watched.answered) {
                        self.confirm(begun);
                    }
                    match self.state.hear(&self.settings.prefix, watched) {
                        Heard::Changed(touched) => {
                            session.news |= touched != Touched::default();
                            self.tell(&touched);
                        }
                        Heard::ListAgain => return Ok(End::ListAgain),
                        Heard::Lost(reason) => return Err(Fault::new("watch members and peers", reason)),
                    }
                }
                _ = ticks.tick() => {
                    session.news = true;
                    self.begin_round(&mut session)?;
                }
                done = finished(&mut session.round) => {
                    let Round { begun, lease, unwritten } = done?;
                    session.lease = lease;
                    self.note_unwritten(unwritten.as_ref());
                    session.asked.get_or_insert((begun, Instant::now()));
                    session.watch.ask();
                }
                written = finished(&mut session.writing) => {
                    session.news = true;
                    if let Err(fault) = written {
                        self.note_unwritten(Some(&fault));
                        session.pause = Instant::now() + every;
                    }
                }
                () = sleep_until(session.pause), if session.news && session.writing.is_none() => {}
                wanted = self.wanted.changed() => {
                    session.news = true;
                    if wanted.is_ok() {
                        continue;
                    }
                    if let Some(lease) = session.lease {
                        // It ends by itself.
                        let _ = session.client.leave(lease).await;
                    }
                    return Ok(End::Left);
                }
            }
        }
    }

    /// Step 2.
    fn begin_round(&self, session: &mut Session) -> Result<(), Fault> {
        if session.asked.is_some_and(|(_, at)| at.elapsed() > SILENCE_MOST) {
            return Err(Fault::new("watch members and peers", "it gives no sign of life"));
        }
        if session.round.is_none() {
            let Settings { name, member, lease, clock, .. } = &self.settings;
            let load = self.wanted.borrow().load;
            let writes = vec![
                Write::Put(Key::Member(name.clone()), member.encode()),
                Write::Put(Key::Load(name.clone()), load.encode()),
            ];
            session.round = Some(Box::pin(round(session.client.clone(), session.lease, *lease, writes, clock())));
        }
        Ok(())
    }

    /// Step 3.
    fn begin_to_write(&mut self, session: &mut Session) {
        if !session.news || session.writing.is_some() || Instant::now() < session.pause {
            return;
        }
        session.news = false;
        let own = self.wanted.borrow().clone();
        let client = session.client.clone();
        let batch = due(&self.state, &own, &self.settings.member.key);
        if let Some(batch) = batch {
            // What comes of it is seen by the watch: only then is it known what is still due.
            session.pause = Instant::now() + WATCH_BEHIND;
            session.writing = Some(Box::pin(async move { batch.write(&client).await }));
        } else if let Some(lease) = session.lease.filter(|_| own.load != self.written) {
            self.written = own.load;
            let put = vec![Write::Put(Key::Load(self.settings.name.clone()), own.load.encode())];
            session.writing = Some(Box::pin(async move { client.put_leased("write load", lease, put).await }));
        }
    }

    fn confirm(&mut self, begun: Time) {
        if let Reach::Away(..) = self.view.reach {
            tracing::info!(members = self.state.members().count(), "etcd reached");
            self.view.reach = Reach::Reached((self.settings.clock)());
        }
        self.view.confirmed = Some(begun);
        self.send();
    }

    /// Step 4.
    fn note_away(&mut self, fault: &Fault) {
        self.view.client = None;
        let since = match &self.view.reach {
            Reach::Away(since, _) => *since,
            Reach::Reached(_) => {
                tracing::warn!(error = %fault, "etcd not reached: peers are served as before");
                (self.settings.clock)()
            }
        };
        self.view.reach = Reach::Away(since, fault.to_string());
        self.send();
    }

    fn note_unwritten(&mut self, fault: Option<&Fault>) {
        let why = fault.map(ToString::to_string);
        if self.view.unwritten != why {
            if let Some(why) = &why {
                tracing::warn!(error = why, "etcd takes nothing from this member");
            }
            self.view.unwritten = why;
            self.send();
        }
    }

    fn tell(&mut self, touched: &Touched) {
        if *touched == Touched::default() {
            return;
        }
        if touched.roster {
            self.view.roster = Arc::new(self.state.roster());
        }
        self.view.state = Arc::new(self.state.clone());
        self.send();
    }

    fn tell_all(&mut self) {
        self.tell(&Touched { roster: true, members: true, ..Touched::default() });
    }

    fn send(&self) {
        self.views.send_replace(self.view.clone());
    }
}

/// The lease lasts on, or a new one is taken; at the least etcd has answered.
async fn round(
    client: Client,
    lease: Option<LeaseId>,
    length: Duration,
    writes: Vec<Write>,
    begun: Time,
) -> Result<Round, Fault> {
    if let Some(lease) = lease
        && !client.keep_alive(lease).await?.is_zero()
    {
        return Ok(Round { begun, lease: Some(lease), unwritten: None });
    }
    match client.register(length, writes).await {
        Ok(lease) => Ok(Round { begun, lease: Some(lease), unwritten: None }),
        Err(fault) => {
            // It may be full, or refuse this user: what it tells is good all the same.
            client.now().await?;
            Ok(Round { begun, lease: None, unwritten: Some(fault) })
        }
    }
}

/// What came of it; never, where there is nothing.
async fn finished<T>(slot: &mut Pending<T>) -> T {
    let result = match slot {
        Some(running) => running.await,
        None => pending().await,
    };
    *slot = None;
    result
}
