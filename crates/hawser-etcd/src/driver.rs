//! Follows etcd for a member, one server after the other, for as long as the member runs.
//!
//! 1. Connect to a server, and list what is new, or go on where the last connection ended; then watch. Another history
//!    than before is told by its mark, which the first member writes.
//! 2. Each third of the lease a round (`round`): the lease is renewed, or taken anew where no other portal has the
//!    member's name, and the watch is asked for a sign of life. A read that a quorum answers is part of it, so that a
//!    round that is over shows that what was heard is all that there was.
//! 3. What the member wants to have written ([`Own`]) is, as soon as etcd takes it ([`due()`]); a revocation waits for
//!    nothing else that is being written.
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
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use crate::client::{Client, Fault, If, LeaseId, Listed, Watch, Write};
use crate::keys::Key;
use crate::record::{Load, Record as _};
use crate::state::{Begin, Heard, History, Revision, State, Touched, Watched};

mod due;
mod handle;
mod round;

pub use due::Own;
use due::due;
pub use handle::{Handle, Leaving, Reach, Settings, View};
use round::{Outcome, Registration, Round, round};

/// A lease outlives two rounds that are lost.
const ROUNDS: u32 = 3;
/// A watch that was asked for a sign of life gives it within an election and some round trips.
const SILENCE_MOST: Duration = Duration::from_secs(4);
/// How far a watch is behind a transaction that succeeded.
const WATCH_BEHIND: Duration = Duration::from_millis(50);
/// The first pause after a failure, and the longest.
const PAUSE_LEAST: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(3);
/// The longest pause after a write that failed.
const WRITE_PAUSE_MOST: Duration = Duration::from_secs(1);
/// Why a list is not taken, and what people do then.
const MADE_ANEW: &str =
    "this is another etcd than before, and has no peers: restore a copy, or delete *.hub.json in state_dir and start";
/// A member that ends waits this long for etcd to hear of it: its lease ends without.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// It lives as long as the portal.
struct Driver {
    settings: Settings,
    view: View,
    state: State,
    views: watch::Sender<View>,
    wanted: watch::Receiver<Own>,
    /// The load that etcd knows; none where it knows none for sure.
    written: Option<Load>,
}

type Pending<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

/// One connection. Begins with a watch, and without a lease; the driver owns it.
struct Session {
    client: Client,
    watch: Watch,
    lease: Option<LeaseId>,
    /// The last round wrote the member: the watch may not have told yet.
    is_new: bool,
    /// A round, and when the one began that the watch was asked about.
    round: Pending<Result<Round, Fault>>,
    asked: Option<(Time, Instant)>,
    /// What is being written, and whether it is a revocation.
    writing: Pending<Result<(), Fault>>,
    revoking: bool,
    /// Something changed of what is wanted, or there; nothing is written before then, after a failure.
    news: bool,
    pause: Instant,
}

/// Whether a connection goes on.
#[derive(PartialEq)]
enum Next {
    GoOn,
    ListAgain,
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
    /// Nothing is asked yet. With where it tells what is known, and what it is told to write.
    fn new(settings: Settings) -> (Self, watch::Receiver<View>, watch::Sender<Own>) {
        let view = View::remembered(&settings);
        let (views, seen) = watch::channel(view.clone());
        let (own, wanted) = watch::channel(Own { revoked: settings.cache.pending.clone(), ..Own::default() });
        (Self { settings, view, state: State::default(), views, wanted, written: None }, seen, own)
    }

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

    /// Step 1 with one server.
    async fn begin(&mut self, client: Client) -> Result<Session, Fault> {
        let (cluster, revision, history) = client.now().await?;
        let (from, is_copy) = match self.state.begin(cluster, revision, history.as_ref()) {
            Begin::From(revision) => (revision, false),
            Begin::List => {
                let listed = client.list().await?;
                let from = Revision(listed.revision.0 + 1);
                (from, self.take(listed)?)
            }
        };
        if is_copy || self.state.history().is_none() {
            self.mark(&client).await;
        }
        let watch = client.watch(from).await?;
        self.view.client = Some(client.clone());
        let pause = Instant::now();
        let (round, asked, writing, revoking) = (None, None, None, false);
        let (lease, is_new) = (None, false);
        Ok(Session { client, watch, lease, is_new, round, asked, writing, revoking, news: true, pause })
    }

    /// Step 1: etcd gets a mark, or a copy another one, before this member writes anything else there. Whoever comes
    /// later knows it by that, though its revision may have passed the old one's by then.
    async fn mark(&mut self, client: &Client) {
        let mut random = [0; 16];
        getrandom::fill(&mut random).expect("the system gives random bytes");
        let History(new) = History::new(u128::from_le_bytes(random));
        // Another member may do the same at this moment: one mark stays.
        let hold = match self.state.history() {
            Some((written, _)) => If::Unchanged(Key::History, written),
            None => If::Absent(Key::History),
        };
        let write = vec![Write::Put(Key::History, new.into_bytes())];
        // It may be full, or refuse this user: what it tells is good all the same.
        let marked = client.commit("mark history", vec![hold], write).await.map(drop);
        self.note_written(&marked);
    }

    /// Steps 1 to 3 with one server.
    async fn serve(&mut self, client: Client) -> Result<End, Fault> {
        let mut session = self.begin(client).await?;
        let every = self.settings.lease / ROUNDS;
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.begin_to_write(&mut session);
            tokio::select! {
                watched = session.watch.next() => {
                    if self.hear(&mut session, watched?)? == Next::ListAgain {
                        return Ok(End::ListAgain);
                    }
                }
                _ = ticks.tick() => {
                    session.news = true;
                    self.begin_round(&mut session)?;
                }
                done = finished(&mut session.round) => {
                    let Round { begun, lease, outcome } = done?;
                    (session.lease, session.is_new) = (lease, matches!(outcome, Outcome::Written));
                    self.note_round(outcome);
                    session.asked.get_or_insert((begun, Instant::now()));
                    session.watch.ask();
                }
                written = finished(&mut session.writing) => {
                    session.news = true;
                    self.note_written(&written);
                    if written.is_err() {
                        session.pause = Instant::now() + every.min(WRITE_PAUSE_MOST);
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

    /// What the watch says.
    fn hear(&mut self, session: &mut Session, watched: Watched) -> Result<Next, Fault> {
        if let Some((begun, _)) = session.asked.take_if(|_| watched.answered) {
            self.confirm(begun);
        }
        match self.state.hear(&self.settings.prefix, watched) {
            Heard::Changed(touched) => {
                session.news |= touched != Touched::default();
                self.tell(&touched);
                Ok(Next::GoOn)
            }
            Heard::ListAgain => Ok(Next::ListAgain),
            Heard::Lost(reason) => Err(Fault::new("watch members and peers", reason)),
        }
    }

    /// Step 2.
    fn begin_round(&self, session: &mut Session) -> Result<(), Fault> {
        if session.asked.is_some_and(|(_, at)| at.elapsed() > SILENCE_MOST) {
            return Err(Fault::new("watch members and peers", "it gives no sign of life"));
        }
        if session.round.is_none() {
            let Settings { name, member, lease, clock, .. } = &self.settings;
            let load = self.wanted.borrow().load.clone();
            let writes = vec![
                Write::Put(Key::Member(name.clone()), member.encode()),
                Write::Put(Key::Load(name.clone()), load.encode()),
            ];
            let is_own = self.state.member(name).map_or(session.is_new, |there| there.key == member.key);
            let registration = Registration { name: name.clone(), key: member.key, lease: *lease, writes };
            let round = round(session.client.clone(), session.lease, is_own, registration, clock());
            session.round = Some(Box::pin(round));
        }
        Ok(())
    }

    /// Step 3.
    fn begin_to_write(&mut self, session: &mut Session) {
        let revokes = self.wanted.borrow().revokes(&self.state);
        let is_urgent = revokes && !session.revoking;
        let waits = session.writing.is_some() || Instant::now() < session.pause;
        if !session.news || waits && !is_urgent {
            return;
        }
        // Given up: that it was written is seen by the watch, else it is written anew.
        if session.writing.take().is_some() {
            self.written = None;
        }
        (session.news, session.revoking) = (false, revokes);
        let own = self.wanted.borrow().clone();
        let client = session.client.clone();
        let batch = due(&self.state, &own, &self.settings.member.key);
        if let Some(batch) = batch {
            self.note_given(&own);
            // What comes of it is seen by the watch: only then is it known what is still due.
            session.pause = Instant::now() + WATCH_BEHIND;
            session.writing = Some(Box::pin(async move { batch.write(&client).await }));
        } else if let Some(lease) = session.lease.filter(|_| Some(&own.load) != self.written.as_ref()) {
            let put = vec![Write::Put(Key::Load(self.settings.name.clone()), own.load.encode())];
            self.written = Some(own.load);
            session.writing = Some(Box::pin(async move { client.put_leased("write load", lease, put).await }));
        }
    }

    /// Whoever gives up waiting for a write does not know that it is not done later.
    fn note_given(&mut self, own: &Own) {
        let is_new = |key: &PublicKey| !self.state.is_revoked(key) && !self.view.given.contains(key);
        let new: Vec<PublicKey> = own.revoked.keys().copied().filter(is_new).collect();
        if !new.is_empty() {
            Arc::make_mut(&mut self.view.given).extend(new);
            self.send();
        }
    }

    fn confirm(&mut self, begun: Time) {
        if !matches!(self.view.reach, Reach::Reached(_)) {
            self.view.reach = Reach::Reached((self.settings.clock)());
        }
        self.view.confirmed = Some(begun);
        self.send();
    }

    /// Step 4.
    fn note_away(&mut self, fault: &Fault) {
        self.view.client = None;
        let since = match &self.view.reach {
            Reach::Asked(since) | Reach::Away(since, _) => *since,
            Reach::Reached(_) => (self.settings.clock)(),
        };
        self.view.reach = Reach::Away(since, fault.to_string());
        self.send();
    }

    /// Step 2.
    fn note_round(&mut self, outcome: Outcome) {
        let namesake = match outcome {
            Outcome::Refused(fault) => return self.note_written(&Err(fault)),
            Outcome::Taken(namesake) => Some(namesake),
            Outcome::Written => {
                self.note_written(&Ok(()));
                None
            }
            Outcome::Renewed => None,
        };
        if self.view.namesake != namesake {
            self.view.namesake = namesake;
            self.send();
        }
    }

    fn note_written(&mut self, written: &Result<(), Fault>) {
        let why = written.as_ref().err().map(ToString::to_string);
        if why.is_some() {
            self.written = None;
        }
        if self.view.unwritten != why {
            if let Some(why) = &why {
                tracing::warn!(error = why, "etcd takes nothing from this member");
            }
            self.view.unwritten = why;
            self.send();
        }
    }

    fn tell(&mut self, touched: &Touched) {
        self.view.revision = self.state.revision();
        if *touched == Touched::default() {
            return;
        }
        if touched.roster {
            self.view.roster = Arc::new(self.state.roster());
            self.view.history = self.state.history().map(|(_, history)| history.clone());
            Arc::make_mut(&mut self.view.given).retain(|key| !self.state.is_revoked(key));
        }
        self.view.state = Arc::new(self.state.clone());
        self.send();
    }

    /// Step 1; whether it is a copy, and has the mark of what it was made of. A cluster that was made anew knows nobody
    /// yet: peers are not sent away for that. Where its servers were started as before it has the same id, and its
    /// revisions begin anew. One that knows no more who was revoked is told.
    fn take(&mut self, Listed { cluster, revision, entries }: Listed) -> Result<bool, Fault> {
        let mut state = State::default();
        state.replace(&self.settings.prefix, cluster, revision, entries);
        let went_back = self.view.cluster.is_some_and(|known| known != cluster) || revision < self.view.revision;
        let mark = state.history().map(|(_, history)| history);
        let is_marked_otherwise = self.view.history.is_some() && self.view.history.as_ref() != mark;
        let is_another = went_back || is_marked_otherwise;
        if is_another && state.roster().is_empty() && !self.view.roster.is_empty() {
            return Err(Fault::new("list members and peers", MADE_ANEW));
        }
        let is_copy = went_back && self.view.history.as_ref() == mark;
        if is_another {
            self.view.lost = Arc::new(self.lost(&state, is_marked_otherwise));
        }
        (self.state, self.view.cluster) = (state, Some(cluster));
        self.tell(&Touched { roster: true, members: true, ..Touched::default() });
        Ok(is_copy)
    }

    /// Step 1: who is revoked as far as is known, and not in another history. Whom somebody added there since, knowing
    /// of that, is no loss.
    fn lost(&self, state: &State, is_marked_otherwise: bool) -> BTreeMap<PublicKey, PeerName> {
        let known = self.view.revision;
        let marked = state.history().filter(|_| is_marked_otherwise).map_or(known, |(written, _)| written);
        let is_lost = |key: &PublicKey| match state.came(key) {
            _ if state.is_revoked(key) => false,
            Some(created) => created <= marked.min(known),
            // What was marked after all that is known here had that, too.
            None => marked <= known,
        };
        let revoked = self.view.roster.revoked.iter().chain(self.view.lost.iter());
        revoked.filter(|(key, _)| is_lost(key)).map(|(key, name)| (*key, name.clone())).collect()
    }

    fn send(&self) {
        self.views.send_replace(self.view.clone());
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

#[cfg(test)]
mod tests;
