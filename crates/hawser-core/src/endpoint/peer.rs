//! A configured peer: its session if there is one, and the handshakes that may bring one.

use super::handshakes::OwnHandshake;
use super::labels::Labels;
use super::pending::{Pending, PendingTable};
use super::{Link, Refusal};
use crate::alias::Alias;
use crate::drops::{DropReason, Drops};
use crate::handshake::{Memory, OpenKey, Psk, PublicKey};
use crate::packet::{SegmentRef, TrainId, TrainStore};
use crate::queue::{Choice, FlowView, Queue};
use crate::session::constants::{
    ASK_LEAST, DATA_OVERHEAD, EAGER, EAGER_PARTS, HELD_FOR, QUEUED_FOR, TUN_MTU_MIN, TUN_MTU_RAISE,
};
use crate::session::timeout::earlier;
use crate::session::{Context, KeySet, Rank, Reason, Rekey, Route, Session, Settings, first_ids, ingress_queue};
use crate::units::{KeyId, Owner, PathId, PeerId, Time};
use crate::wire::{DataHeader, InstanceId};
use ipnet::IpNet;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// An initiation is repeated this often at first (docs/wire.md).
pub(super) const INITIATE_EVERY: Duration = Duration::from_millis(500);
/// And at least this often for ever, where nobody has anything to send: 8 MB a month on each link.
const ASK_IDLE: Duration = Duration::from_secs(60);
/// The search for a new path's MTU takes no longer than this, a lost probe or two included.
const MTU_SEARCH: Duration = Duration::from_secs(5);
/// Trains kept for a peer whose session is still being made, the newest: a few first packets of connections, and of a
/// stream what its sender still waits for.
const WAITING_TRAINS: usize = 64;
/// What comes for a peer of a hub's, and is held, stops coming where nothing came for so long: TCP's first
/// retransmission (RFC 6298 section 2).
const PAUSE: Duration = Duration::from_secs(1);

/// Without an answer for this long a handshake is tried on links that are not preferred, too: twice as long as the
/// round trip that is assumed before one is known (RFC 9002 section 6.2.2), and the second repetition.
const FALL_BACK: Duration = Duration::from_millis(700);

/// How the preferred links of a group stand. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Preferred {
    /// A path on them works, or may soon.
    MayWork,
    /// They were tried in vain.
    Failed,
}

/// What a portal is told of a peer. No default; moved into the endpoint.
pub struct PeerConfig {
    /// Its public key.
    pub public_key: PublicKey,
    /// A key shared beforehand; zero where none is.
    pub psk: Psk,
    /// Where it listens; empty for a peer that comes to us.
    pub endpoints: Vec<SocketAddr>,
    /// How little each of them is preferred; one without is as good as the best.
    pub ranks: Vec<u8>,
    /// The inner addresses that are its own.
    pub allowed_ips: Vec<IpNet>,
}

/// A peer. Begins without a session; the endpoint owns it.
pub(super) struct Peer {
    pub config: PeerConfig,
    /// It was removed: its place waits for another.
    pub gone: bool,
    /// The lowest bit of the path ids that we give.
    pub side: u32,
    pub session: Option<Session>,
    /// The start of the peer's portal that the session is with.
    pub instance: Option<InstanceId>,
    /// The instance that we tell it: another one whenever it is added, for it may remember us.
    pub told: InstanceId,
    pub handshake: Option<OwnHandshake>,
    pub initiate_at: Option<Time>,
    /// What the next handshake is to know of those before.
    pub remembered: Memory,
    pub pending: PendingTable,
    /// Why it has no session with us although it answers, and its cookies for initiations that had one.
    pub refused: Option<Refusal>,
    pub cookies_in_vain: u32,
    /// First packets for a session that is still being made, and since when.
    waiting: VecDeque<(Time, TrainId)>,
    /// Packets to it that may be forwarded in a moment, and since when they wait.
    held: VecDeque<(Time, TrainId)>,
    /// When the first and the last of them came, without a pause of [`PAUSE`].
    brought: Option<(Time, Time)>,
    /// Since when initiations go unanswered, and when the last one went.
    pub asking_since: Option<Time>,
    pub asked_at: Time,
    /// Something is to be sent to it.
    pub wanted: bool,
    /// What inner packets to it may have, bytes, and when that was raised last.
    mtu: u16,
    pub mtu_raised: Option<Time>,
}

impl Peer {
    pub fn new(config: PeerConfig, ours: &PublicKey, told: InstanceId) -> Self {
        let side = u32::from(ours.0 > config.public_key.0);
        Peer {
            config,
            gone: false,
            side,
            session: None,
            instance: None,
            told,
            handshake: None,
            initiate_at: None,
            remembered: Memory::default(),
            pending: PendingTable::default(),
            refused: None,
            cookies_in_vain: 0,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            brought: None,
            asking_since: None,
            asked_at: Time::ZERO,
            wanted: false,
            mtu: TUN_MTU_MIN,
            mtu_raised: None,
        }
    }

    /// What fits to it, if that is news: lowered at once, raised at most once a minute (the first time when it is
    /// known).
    pub fn follow_mtu(&mut self, now: Time) -> Option<u16> {
        let session = self.session.as_ref()?;
        let fits = session.least_mtu()?.saturating_sub(DATA_OVERHEAD as u16).max(TUN_MTU_MIN);
        // While a young session still finds out what its paths carry, the MTU may follow.
        let young = now.since(session.started()) < MTU_SEARCH;
        let may_raise = young || self.mtu_raised.is_none_or(|at| now.since(at) >= TUN_MTU_RAISE);
        if fits == self.mtu || fits > self.mtu && !may_raise {
            return None;
        }
        if fits > self.mtu {
            self.mtu_raised = Some(now);
        }
        self.mtu = fits;
        Some(fits)
    }

    /// A train for this peer; kept for a moment if there is no session yet.
    pub fn enqueue(&mut self, now: Time, train: TrainId, cx: &mut Context<'_>) {
        if self.handshake.is_some() {
            self.want();
        }
        if let Some(session) = &mut self.session {
            return session.enqueue(now, train, cx);
        }
        if self.waiting.len() == WAITING_TRAINS
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            cx.store.release_all(oldest);
            cx.drops.count(DropReason::NoSession);
        }
        self.waiting.push_back((now, train));
    }

    /// A train for this peer, which may be another member's; kept for a moment. `is_brought`: by routers, and not by
    /// this host or another peer of this portal. Whether it is the first.
    pub fn hold(&mut self, now: Time, train: TrainId, is_brought: bool, cx: &mut Context<'_>) -> bool {
        if self.held.len() == WAITING_TRAINS
            && let Some((_, oldest)) = self.held.pop_front()
        {
            cx.store.release_all(oldest);
            cx.drops.count(DropReason::NotOwner);
        }
        let is_first = self.held.is_empty();
        self.held.push_back((now, train));
        if !is_brought {
            return is_first;
        }
        let before = self.brought(now);
        self.brought = Some((before.map_or(now, |(first, _)| first), now));
        before.is_none()
    }

    /// Since when packets to it come that are held, and when the last one did.
    pub fn brought(&self, now: Time) -> Option<(Time, Time)> {
        self.brought.filter(|(_, last)| now.since(*last) < PAUSE)
    }

    /// What is held, and whether that is not for too long.
    pub fn take_held(&mut self, now: Time) -> impl Iterator<Item = (TrainId, bool)> + use<> {
        self.brought = None;
        let held = std::mem::take(&mut self.held);
        held.into_iter().map(move |(since, train)| (train, now.since(since) <= HELD_FOR))
    }

    /// What waits for a session.
    pub fn take_waiting(&mut self) -> impl Iterator<Item = TrainId> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, train)| train)
    }

    /// Begins a session under `keys`, which takes over what waits to be sent.
    pub fn begin_session(
        &mut self,
        now: Time,
        id: PeerId,
        keys: KeySet,
        settings: Settings,
        labels: &mut Labels,
        cx: &mut Context<'_>,
    ) {
        let queue = self.session.take().map(|old| {
            old.key_ids().for_each(|key| labels.remove_key(key));
            old.dismantle(now, cx.store, cx.drops)
        });
        self.session = Some(Session::new(now, id, self.side, keys, settings, queue.unwrap_or_else(ingress_queue)));
        for (_, train) in std::mem::take(&mut self.waiting) {
            self.enqueue(now, train, cx);
        }
    }

    /// Ends the session: its keys, labels and trains go.
    pub fn end_session(&mut self, now: Time, labels: &mut Labels, store: &mut TrainStore, drops: &mut Drops) {
        let Some(session) = self.session.take() else { return };
        session.key_ids().for_each(|key| labels.remove_key(key));
        empty(now, session.dismantle(now, store, drops), store, drops);
        self.instance = None;
        self.initiate_at = Some(now);
    }

    /// Ends the session with a peer that closed it, or was silent for too long: the peer may have kept its own, or may
    /// hold answers that go on with it. `told` says from now on that ours is another; handshakes of before are given
    /// up.
    pub fn end_alone(
        &mut self,
        now: Time,
        told: InstanceId,
        labels: &mut Labels,
        store: &mut TrainStore,
        drops: &mut Drops,
    ) {
        self.end_session(now, labels, store, drops);
        self.pending.forget(|_| true, |key| labels.remove_key(key));
        (self.told, self.handshake) = (told, None);
    }

    /// Lets go of what waited for too long, and of buffers that were idle.
    pub fn trim(&mut self, now: Time, labels: &mut Labels, store: &mut TrainStore, drops: &mut Drops) {
        self.waiting.retain(|(since, train)| {
            let fresh = now.since(*since) <= QUEUED_FOR;
            if !fresh {
                store.release_all(*train);
                drops.count(DropReason::TooOld);
            }
            fresh
        });
        while let Some((_, train)) = self.held.pop_front_if(|(since, _)| now.since(*since) > HELD_FOR) {
            store.release_all(train);
            drops.count(DropReason::NotOwner);
        }
        self.pending.forget(|pending| pending.keys.is_too_old(now), |key| labels.remove_key(key));
        if let Some(session) = &mut self.session {
            session.trim(now, drops);
        }
    }

    /// Nothing is left of it but its place.
    pub fn retire(&mut self, now: Time, labels: &mut Labels, store: &mut TrainStore, drops: &mut Drops) {
        self.end_session(now, labels, store, drops);
        self.pending.iter().for_each(|pending| labels.remove_key(pending.keys.id));
        self.pending = PendingTable::default();
        for (_, train) in self.waiting.drain(..).chain(self.held.drain(..)) {
            drops.count(DropReason::SessionEnded);
            store.release_all(train);
        }
        (self.config.endpoints, self.config.allowed_ips) = (Vec::new(), Vec::new());
        (self.handshake, self.initiate_at, self.remembered, self.gone) = (None, None, Memory::default(), true);
    }

    /// Whether anything may become due, or sent.
    pub fn is_active(&self) -> bool {
        self.session.is_some() || !self.config.endpoints.is_empty()
    }

    /// Whether it has this key.
    pub fn is(&self, key: &PublicKey) -> bool {
        !self.gone && self.config.public_key == *key
    }

    /// Opens a path on `link` to every endpoint that it can reach: on one that is not preferred only where the others
    /// fail, and beside a path that works only those that are better.
    pub fn open_paths(&mut self, now: Time, link: &Link, others: Preferred) {
        let Some(session) = &mut self.session else { return };
        let best = session.best_rank(link.group).filter(|_| !link.transport.has_aliases());
        let waits = link.preference > 0 && others == Preferred::MayWork && session.hopes_for(link.group, true);
        for (at, endpoint) in self.config.endpoints.iter().enumerate().filter(|(_, endpoint)| link.reaches(endpoint)) {
            let (remote, of_endpoint) = (link.address_of(endpoint), self.config.ranks.get(at).copied().unwrap_or(0));
            let rank = Rank::new(link.preference, of_endpoint);
            if best.map_or(!waits, |best| rank < best) {
                session.open_path(now, Route { link: link.id, remote, source: None }, (link.group, rank), link.metric);
            }
        }
    }

    /// Whether those links on which handshakes are tried first have not been answered for so long that all are tried.
    pub fn tries_all(&self) -> Preferred {
        let unanswered = self.asking_since.map_or(Duration::ZERO, |since| self.asked_at.since(since));
        if unanswered >= FALL_BACK { Preferred::Failed } else { Preferred::MayWork }
    }

    /// Whether these keys are the session's.
    pub fn has_live_key(&self, key: KeyId) -> bool {
        self.session.as_ref().is_some_and(|session| session.open_key(key).is_some())
    }

    /// Whether the keys of `owner` open these bytes, which stay as they are.
    pub fn opens(&self, owner: &Owner, header: &DataHeader, bytes: &[u8], scratch: &mut Vec<u8>) -> bool {
        let live = self.session.as_ref().and_then(|session| session.open_key(owner.key));
        let pending = || self.pending.iter().find(|pending| pending.keys.id == owner.key).map(|p| &*p.keys.keys.recv);
        let Some(open) = live.or_else(pending) else { return false };
        let largest = self.session.as_ref().and_then(|session| session.largest_received(owner.path));
        scratch.resize(bytes.len(), 0);
        let same_session = open.open_into(owner.path, header.number.expand(largest), bytes, scratch);
        same_session.or_else(|_| open.open_into(owner.path, header.number.expand(None), bytes, scratch)).is_ok()
    }

    /// Makes the labels known of all paths whose datagrams may come, and forgets those of paths that were skipped for
    /// good.
    pub fn follow_paths(&self, id: PeerId, labels: &mut Labels) {
        let Some(session) = &self.session else { return };
        for (key, open) in self.session_keys(session) {
            labels.remove_below(key, session.floor(), |path| !session.is_open(path));
            label_paths(labels, id, key, open, session.ids_to_come());
        }
    }

    /// A path was closed: its labels are of no use any more.
    pub fn forget_path(&self, path: PathId, labels: &mut Labels) {
        let Some(session) = &self.session else { return };
        self.session_keys(session).for_each(|(key, _)| labels.remove_path(key, path));
    }

    /// The receive keys of the session, and those that wait to be.
    fn session_keys<'a>(&'a self, session: &'a Session) -> impl Iterator<Item = (KeyId, &'a OpenKey)> {
        let live = session.key_ids().filter_map(|key| Some((key, session.open_key(key)?)));
        let ours = |pending: &&Pending| Some(pending.offer.instance) == self.instance;
        live.chain(self.pending.iter().filter(ours).map(|pending| (pending.keys.id, &*pending.keys.keys.recv)))
    }

    /// Makes the labels of keys known that wait for their first datagram: of paths of the session that they go on with,
    /// or of those that a new one begins with.
    pub fn label_pending(&self, id: PeerId, pending: &Pending, labels: &mut Labels) {
        let (key, open) = (pending.keys.id, &pending.keys.keys.recv);
        match self.session.as_ref().filter(|_| self.instance == Some(pending.offer.instance)) {
            Some(session) => label_paths(labels, id, key, open, session.ids_to_come()),
            None => label_paths(labels, id, key, open, first_ids(self.side)),
        }
    }

    /// The next deadline of this peer.
    pub fn poll_timeout(&mut self, now: Time) -> Option<(Time, Reason)> {
        let initiates = self.next_initiation().map(|at| (at, Reason::Handshake));
        earlier(initiates, self.session.as_mut().and_then(|session| session.poll_timeout(now)))
    }

    /// When the peer is to be sent an initiation: by whom it called, only for new keys of a session.
    pub fn next_initiation(&self) -> Option<Time> {
        let leads = !self.config.endpoints.is_empty();
        let Some(session) = &self.session else { return self.initiate_at.filter(|_| leads) };
        if self.handshake.is_some() {
            return self.initiate_at;
        }
        let due = if leads {
            let rekey = session.rekey_at(Rekey::Lead);
            session.silence_deadline().map_or(rekey, |silence| silence.min(rekey))
        } else {
            session.rekey_at(Rekey::Follow)
        };
        Some(due.max(self.initiate_at.unwrap_or(Time::ZERO)))
    }

    /// An initiation goes out: the next one follows soon at first, and ever more seldom while there is no answer.
    pub fn note_asked(&mut self, now: Time) {
        let unanswered = now.since(*self.asking_since.get_or_insert(now));
        let silence = self.session.as_ref().map_or(Duration::ZERO, |session| session.silence(now)).max(unanswered);
        let most = if std::mem::take(&mut self.wanted) { ASK_LEAST } else { ASK_IDLE };
        let every = if silence < EAGER { INITIATE_EVERY } else { (silence / EAGER_PARTS).clamp(INITIATE_EVERY, most) };
        (self.asked_at, self.initiate_at) = (now, Some(now + every));
    }

    /// Something waits for it: the next initiation is not put off for long.
    fn want(&mut self) {
        self.wanted = true;
        self.initiate_at = self.initiate_at.map(|at| at.min(self.asked_at + ASK_LEAST));
    }

    /// Something speaks for an answer: initiations go as often as at first, and one at once.
    pub fn ask_anew(&mut self, now: Time) {
        self.asking_since = None;
        if self.session.is_none() || self.handshake.is_some() {
            self.initiate_at = Some(now);
        }
    }
}

/// Registers the labels of these paths under one set of receive keys.
fn label_paths(labels: &mut Labels, peer: PeerId, key: KeyId, open: &OpenKey, ids: impl Iterator<Item = PathId>) {
    for path in ids {
        labels.insert(Owner { peer, key, path }, || open.label(path));
    }
}

/// Gives back every train of a queue that nobody will pull from, and counts its packets.
fn empty(now: Time, mut queue: Queue, store: &mut TrainStore, drops: &mut Drops) {
    let mut all = |flow: &FlowView| Choice::Take { max_bytes: flow.backlog, max_segments: u16::MAX };
    loop {
        let pulled = queue.pull(now, store, &mut all, &mut |dropped| drops.count(dropped.reason.into()));
        let Some(pulled) = pulled else { return };
        drops.add(DropReason::SessionEnded, u64::from(pulled.count));
        for segment in pulled.first..pulled.first + pulled.count {
            store.release(SegmentRef { train: pulled.train, segment });
        }
    }
}

impl Link {
    /// Whether paths to `remote` may be opened on it.
    pub(super) fn reaches(&self, remote: &SocketAddr) -> bool {
        let alias = Alias::of(remote);
        let suits = match alias {
            _ if self.transport.has_aliases() => alias.is_some_and(|alias| alias.link() == self.id),
            Some(_) => false,
            None => {
                if remote.is_ipv4() {
                    self.ipv4
                } else {
                    self.ipv6
                }
            }
        };
        self.opens && self.up && suits
    }

    /// The address that this endpoint has on it.
    pub(super) fn address_of(&self, endpoint: &SocketAddr) -> SocketAddr {
        let port = if self.transport.has_ports() { endpoint.port() } else { 0 };
        SocketAddr::new(endpoint.ip(), port)
    }
}
