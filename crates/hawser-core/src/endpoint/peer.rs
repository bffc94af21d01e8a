//! A configured peer: its session if there is one, and the handshakes that may bring one.

use super::handshakes::Greeting;
use super::labels::{KeyId, Labels, Owner};
use super::pending::PendingTable;
use super::{FIRST_LABELS, Link, label_paths};
use crate::alias::Alias;
use crate::drops::DropReason;
use crate::handshake::{Memory, Psk, PublicKey};
use crate::packet::{SegmentRef, TrainId, TrainStore};
use crate::queue::{Choice, FlowView, Queue};
use crate::session::timeout::earlier;
use crate::session::{Context, KeySet, Reason, Route, Session, Settings, ingress_queue};
use crate::units::{PathId, PeerId, Time};
use crate::wire::{DataHeader, InstanceId};
use ipnet::IpNet;
use std::net::SocketAddr;

/// Trains kept for a peer whose session is still being made: a few first packets of connections.
const WAITING_TRAINS: usize = 64;

/// What a portal is told of a peer. No default; moved into the endpoint.
pub struct PeerConfig {
    /// Its public key.
    pub public_key: PublicKey,
    /// A key shared beforehand; zero where none is.
    pub psk: Psk,
    /// Where it listens; empty for a peer that comes to us.
    pub endpoints: Vec<SocketAddr>,
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
    pub greeting: Option<Greeting>,
    pub greet_at: Option<Time>,
    /// What the next greeting is to know of those before.
    pub greeted: Memory,
    pub pending: PendingTable,
    waiting: Vec<TrainId>,
    /// Labels are known of paths up to these, of either side.
    labelled: [u32; 2],
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
            greeting: None,
            greet_at: None,
            greeted: Memory::default(),
            pending: PendingTable::default(),
            waiting: Vec::new(),
            labelled: [FIRST_LABELS; 2],
        }
    }

    /// A train for this peer; kept for a moment if there is no session yet.
    pub fn enqueue(&mut self, now: Time, train: TrainId, cx: &mut Context<'_>) {
        if let Some(session) = &mut self.session {
            session.enqueue(now, train, cx);
        } else if self.waiting.len() < WAITING_TRAINS {
            self.waiting.push(train);
        } else {
            cx.store.release_all(train);
            cx.drops.count(DropReason::NoSession);
        }
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
            old.dismantle(now, cx.store)
        });
        self.labelled = [FIRST_LABELS; 2];
        self.session = Some(Session::new(now, id, self.side, keys, settings, queue.unwrap_or_else(ingress_queue)));
        for train in std::mem::take(&mut self.waiting) {
            self.enqueue(now, train, cx);
        }
    }

    /// Ends the session: its keys, labels and trains go.
    pub fn end_session(&mut self, now: Time, labels: &mut Labels, store: &mut TrainStore) {
        let Some(session) = self.session.take() else { return };
        session.key_ids().for_each(|key| labels.remove_key(key));
        empty(now, session.dismantle(now, store), store);
        self.instance = None;
        self.greet_at = Some(now);
    }

    /// Nothing is left of it but its place.
    pub fn retire(&mut self, now: Time, labels: &mut Labels, store: &mut TrainStore) {
        self.end_session(now, labels, store);
        self.pending.iter().for_each(|pending| labels.remove_key(pending.keys.id));
        self.pending = PendingTable::default();
        self.waiting.drain(..).for_each(|train| store.release_all(train));
        (self.config.endpoints, self.config.allowed_ips) = (Vec::new(), Vec::new());
        (self.greeting, self.greet_at, self.greeted, self.gone) = (None, None, Memory::default(), true);
    }

    /// Whether anything may become due, or sent.
    pub fn is_active(&self) -> bool {
        self.session.is_some() || !self.config.endpoints.is_empty()
    }

    /// Whether it has this key.
    pub fn is(&self, key: &PublicKey) -> bool {
        !self.gone && self.config.public_key == *key
    }

    /// Opens a path on `link` to every endpoint that it can reach.
    pub fn open_paths(&mut self, now: Time, link: &Link) {
        let Some(session) = &mut self.session else { return };
        for endpoint in self.config.endpoints.iter().filter(|endpoint| link.reaches(endpoint)) {
            let remote = link.address_of(endpoint);
            session.open_path(now, Route { link: link.id, remote, source: None }, link.group, link.metric);
        }
    }

    /// Whether these keys are the session's.
    pub fn has_live_key(&self, key: KeyId) -> bool {
        self.session.as_ref().is_some_and(|session| session.open_key(key).is_some())
    }

    /// Whether the keys of `owner` open these bytes, which stay as they are.
    pub fn opens(&self, owner: &Owner, header: &DataHeader, bytes: &[u8], scratch: &mut Vec<u8>) -> bool {
        let live = self.session.as_ref().and_then(|session| session.open_key(owner.key));
        let pending = || self.pending.iter().find(|pending| pending.keys.id == owner.key).map(|p| &p.keys.keys.recv);
        let Some(open) = live.or_else(pending) else { return false };
        let largest = self.session.as_ref().and_then(|session| session.largest_received(owner.path));
        scratch.resize(bytes.len(), 0);
        let same_session = open.open_into(owner.path, header.number.expand(largest), bytes, scratch);
        same_session.or_else(|_| open.open_into(owner.path, header.number.expand(None), bytes, scratch)).is_ok()
    }

    /// Makes the labels of paths up to `path` known, under all live and pending keys.
    pub fn label_up_to(&mut self, id: PeerId, path: PathId, labels: &mut Labels) {
        let PathId(upto) = path;
        let side = upto & 1;
        let known = &mut self.labelled[side as usize];
        if upto <= *known {
            return;
        }
        let ids = (*known + 1..=upto).filter(|id| id & 1 == side);
        *known = upto;
        for pending in self.pending.iter() {
            label_paths(labels, id, pending.keys.id, &pending.keys.keys.recv, ids.clone());
        }
        let Some(session) = &self.session else { return };
        for key in session.key_ids() {
            if let Some(open) = session.open_key(key) {
                label_paths(labels, id, key, open, ids.clone());
            }
        }
    }

    /// Makes the labels of a new set of keys known.
    pub fn label_key(&self, id: PeerId, keys: &KeySet, labels: &mut Labels) {
        let may_come = |path: &u32| self.session.as_ref().is_none_or(|session| session.may_come(PathId(*path)));
        let highest = self.labelled[0].max(self.labelled[1]);
        let later = (FIRST_LABELS + 1..=highest).filter(|id| *id <= self.labelled[(id & 1) as usize]).filter(may_come);
        label_paths(labels, id, keys.id, &keys.keys.recv, (0..=FIRST_LABELS).chain(later));
    }

    /// The next deadline of this peer.
    pub fn poll_timeout(&mut self, now: Time) -> Option<(Time, Reason)> {
        let greet = self.next_greeting().map(|at| (at, Reason::Handshake));
        earlier(greet, self.session.as_mut().and_then(|session| session.poll_timeout(now)))
    }

    /// When the peer is to be greeted, if we are the one who greets.
    pub fn next_greeting(&self) -> Option<Time> {
        if self.config.endpoints.is_empty() {
            return None;
        }
        if self.greeting.is_some() || self.session.is_none() {
            return self.greet_at;
        }
        let session = self.session.as_ref()?;
        let due = session.silence_deadline().map_or(session.rekey_at(), |silence| silence.min(session.rekey_at()));
        Some(due.max(self.greet_at.unwrap_or(Time::ZERO)))
    }
}

/// Gives back every train of a queue that nobody will pull from.
fn empty(now: Time, mut queue: Queue, store: &mut TrainStore) {
    let mut all = |flow: &FlowView| Choice::Take { max_bytes: flow.backlog, max_segments: u16::MAX };
    while let Some(pulled) = queue.pull(now, store, &mut all, &mut |_| {}) {
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
