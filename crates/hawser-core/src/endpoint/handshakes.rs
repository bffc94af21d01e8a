//! Sessions begin: initiations sent, answered and taken up.
//!
//! ```text
//!   this side initiates                           this side responds
//!   initiate_if_due: an initiation by each link   on_initiation: it waits, the newest first (inbox)
//!                                                 answer: response, keys pending
//!   on_handshake_response: keys installed,        promote: the first datagram that opens under
//!   paths opened                                  pending keys makes them the session's
//! ```
//!
//! The same instance of the peer means new keys for a live session, another one a new session.

use super::inbox::{WORKED_AT_ONCE, Waiting};
use super::peer::{Peer, Preferred};
use super::pending::{Admission, Pending};
use super::{Endpoint, Event, Link, Refusal, name_key};
use crate::drops::DropReason;
use crate::handshake::{Accepted, Established, HandshakeDrop, HandshakeError, Initiator, Known, Verdict, Way};
use crate::session::{Buffers, KeySet, Route, Session, Transmit};
use crate::units::{Ecn, Owner, PeerId, Time};
use crate::wire::handshake::{CookieReply, HandshakeIndex, Response};
use crate::wire::{DataHeader, DatagramKind, Offer};
use std::collections::VecDeque;

/// Messages that may wait for a link; more are not sent.
const OUTBOX_MAX: usize = 256;
/// Initiations with a cookie that are answered by another one, until the peer is taken to have no such key.
const REFUSED_AFTER: u32 = 3;

/// What an initiation cost. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Effort {
    /// Hashes alone.
    Hash,
    /// Diffie-Hellman exchanges, too.
    Exchange,
}

/// A handshake that we began. The peer owns it until it is answered.
pub(super) struct OwnHandshake {
    initiator: Initiator,
}

impl OwnHandshake {
    /// Whether `quoted` begins an initiation that still waits for its answer.
    pub fn sent_quoted(&self, quoted: &[u8]) -> bool {
        let [kind, index @ ..] = quoted else { return false };
        let index = index.first_chunk().map(|index| HandshakeIndex(u32::from_be_bytes(*index)));
        *kind == DatagramKind::Initiation.first_byte() && index.is_some_and(|index| self.initiator.waits_for(index))
    }
}

/// Handshake messages that wait for their links. Empty at first; the endpoint owns it.
#[derive(Default)]
pub(super) struct Outbox {
    messages: VecDeque<(Route, Vec<u8>)>,
}

impl Outbox {
    pub fn push(&mut self, route: Route, message: &[u8]) {
        if self.messages.len() < OUTBOX_MAX {
            self.messages.push_back((route, message.to_vec()));
        }
    }

    /// The next message whose link has room; messages to links that are full or gone are dropped.
    pub fn poll(&mut self, buffers: &mut dyn Buffers) -> Option<Transmit> {
        while let Some((route, message)) = self.messages.pop_front() {
            let Some(buffer) = buffers.spare(route.link, route.remote) else { continue };
            buffer[..message.len()].copy_from_slice(&message);
            return Some(Transmit {
                link: route.link,
                remote: route.remote,
                source: route.source,
                ecn: Ecn::NotEct,
                segment_size: message.len(),
                len: message.len(),
                apart: false,
            });
        }
        None
    }
}

impl Endpoint {
    /// Initiates a handshake with a peer by every link at once, if that is due. Each way has an initiation of its own,
    /// so that their bytes do not tie the links together.
    pub(super) fn initiate_if_due(&mut self, now: Time, id: PeerId) {
        let peer = &mut self.peers[id.0 as usize];
        if peer.next_initiation().is_none_or(|at| at > now) {
            return;
        }
        peer.note_asked(now);
        let routes = routes(&self.links, peer);
        let (key, psk, offer) = (peer.config.public_key, &peer.config.psk, self.config_offer.started_as(peer.told));
        let handshake = peer.handshake.get_or_insert_with(|| {
            let memory = std::mem::take(&mut peer.remembered);
            OwnHandshake { initiator: Initiator::new(&self.identity, &key, psk.clone(), offer, memory) }
        });
        handshake.initiator.begin_round(now);
        for route in routes {
            let index = HandshakeIndex(self.rng.next_u64() as u32);
            let way = Way { link: route.link, remote: route.remote };
            match handshake.initiator.initiation(now, way, index, &mut *self.rng) {
                Ok(message) => self.outbox.push(route, &message),
                Err(_) => self.drops.count(DropReason::Handshake),
            }
        }
        peer.remembered = handshake.initiator.memory().clone();
    }

    /// Initiates a handshake as soon as possible, if this side is to.
    pub(super) fn initiate_at(&mut self, now: Time, id: PeerId) {
        self.peers[id.0 as usize].ask_anew(now);
    }

    /// An initiation came: it waits among others, if it is of somebody who knows our public key.
    pub(super) fn on_initiation(&mut self, now: Time, route: Route, bytes: &[u8]) -> Result<(), DropReason> {
        let (Some(id), Ok(bytes)) = (self.responder.initiation_id(bytes), bytes.try_into()) else {
            return self.on_enrolment(now, route, bytes);
        };
        // The oldest may go for it.
        if self.inbox.push(route, id, bytes) { Err(DropReason::Handshake) } else { Ok(()) }
    }

    /// Works on the newest of those that wait, if it is time to.
    pub(super) fn answer_newest(&mut self, now: Time) {
        if !self.inbox.take_due() {
            return;
        }
        let mut worked = 0;
        while worked < WORKED_AT_ONCE
            && let Some(waiting) = self.inbox.pop()
        {
            worked += usize::from(self.answer(now, &waiting) == Effort::Exchange);
        }
    }

    /// Answers an initiation. Nothing is kept unless it is a known key. A stranger who knows ours gets a cookie, as under
    /// load: so somebody whose key was forgotten here is told from somebody whom nothing answers.
    fn answer(&mut self, now: Time, waiting: &Waiting) -> Effort {
        let Waiting { route, bytes, id, .. } = waiting;
        let known = self.peers.iter().flat_map(|peer| peer.pending.iter()).find(|pending| pending.id == *id);
        if let Some(known) = known {
            self.outbox.push(*route, &known.response);
            return Effort::Hash;
        }
        let index = HandshakeIndex(self.rng.next_u64() as u32);
        let peers = &self.peers;
        let mut lookup = |key: &crate::handshake::PublicKey| {
            let peer = peers.iter().find(|peer| peer.is(key))?;
            Some(Known { psk: peer.config.psk.clone(), instance: Some(peer.told) })
        };
        let verdict = self.responder.on_initiation(now, bytes, route.remote, index, &mut lookup, &mut *self.rng);
        match verdict {
            Verdict::Accept(accepted) => self.keep_pending(now, waiting, *accepted),
            Verdict::Cookie(cookie) => {
                self.outbox.push(*route, &cookie);
                return Effort::Hash;
            }
            Verdict::Drop(reason) => {
                self.drops.count(DropReason::Handshake);
                if reason == HandshakeDrop::UnknownKey {
                    self.send_cookie(now, waiting);
                } else if reason.is_cheap() {
                    return Effort::Hash;
                }
            }
        }
        Effort::Exchange
    }

    fn send_cookie(&mut self, now: Time, waiting: &Waiting) {
        let cookie = self.responder.cookie(now, &waiting.bytes, waiting.route.remote, &mut *self.rng);
        cookie.iter().for_each(|cookie| self.outbox.push(waiting.route, cookie));
    }

    /// An initiation was answered: its keys wait for their first datagram, if there is a place.
    fn keep_pending(&mut self, now: Time, waiting: &Waiting, accepted: Accepted) {
        let place = self.peers.iter().position(|peer| peer.is(&accepted.peer));
        let Some(place) = place else { return self.drops.count(DropReason::Handshake) };
        let Accepted { response, established: Established { keys, peer_offer, .. }, fresh, count, .. } = accepted;
        let keys = KeySet { id: name_key(&mut self.next_key), keys, made_at: now, ours: false };
        let peer = &mut self.peers[place];
        let Waiting { route, arrival, id, .. } = *waiting;
        let pending = Pending { id, route, arrival, response, keys, offer: peer_offer, fresh, count };
        match peer.pending.admit(now, pending) {
            Admission::Kept { evicted } => {
                if let Some(evicted) = evicted {
                    self.labels.remove_key(evicted);
                }
                let kept = peer.pending.iter().last();
                kept.iter().for_each(|kept| peer.label_pending(PeerId(place as u32), kept, &mut self.labels));
                self.outbox.push(route, &response);
            }
            Admission::AskCookie => self.send_cookie(now, waiting),
            Admission::Recorded => self.drops.count(DropReason::Handshake),
        }
    }

    /// A datagram came for pending keys: if it opens, they are the session's.
    pub(super) fn promote(
        &mut self,
        now: Time,
        owner: &Owner,
        header: &DataHeader,
        bytes: &[u8],
    ) -> Result<(), DropReason> {
        let index = owner.peer.0 as usize;
        let peer = &mut self.peers[index];
        let waits = peer.pending.iter().find(|pending| pending.keys.id == owner.key);
        // Somebody may have held the first datagram back for as long as keys last.
        if waits.is_some_and(|pending| pending.keys.is_too_old(now)) {
            return Err(DropReason::KeyExpired);
        }
        if !peer.opens(owner, header, bytes, &mut self.scratch) {
            return Err(DropReason::Forged);
        }
        let (labels, inbox, mut outdated) = (&mut self.labels, &mut self.inbox, 0);
        let pending = peer.pending.take(owner.key, |useless| {
            labels.remove_key(useless.keys.id);
            outdated += inbox.outdate(useless.route, useless.arrival);
        });
        let pending = pending.ok_or(DropReason::UnknownLabel)?;
        outdated += inbox.outdate(pending.route, pending.arrival);
        self.drops.add(DropReason::Handshake, outdated);
        // New keys are here: an answer to our own initiation would only cross them.
        peer.handshake = None;
        self.install(now, owner.peer, pending.keys, &pending.offer);
        Ok(())
    }

    /// Our initiation was answered.
    pub(super) fn on_handshake_response(&mut self, now: Time, bytes: &[u8]) -> Result<(), DropReason> {
        let response = Response::decode(bytes).map_err(|_| DropReason::Malformed)?;
        let index = self.awaiting(response.receiver).ok_or(DropReason::Handshake)?;
        let peer = &mut self.peers[index];
        let handshake = peer.handshake.as_mut().ok_or(DropReason::Handshake)?;
        let established = match handshake.initiator.on_response(bytes) {
            Ok(established) => established,
            Err(error) => {
                if matches!(error, HandshakeError::Noise(_)) {
                    self.note_refused(PeerId(index as u32), Refusal::PresharedKey);
                }
                return Err(DropReason::Handshake);
            }
        };
        peer.handshake = None;
        let keys = KeySet { id: name_key(&mut self.next_key), keys: established.keys, made_at: now, ours: true };
        let id = PeerId(index as u32);
        self.install(now, id, keys, &established.peer_offer);
        Ok(())
    }

    /// The peer is under load and wants proof of our address. It has it with the next initiation, when that is due:
    /// the reply may be forged (WireGuard's paper, section 5.4.7).
    pub(super) fn on_cookie(&mut self, bytes: &[u8]) -> Result<(), DropReason> {
        let reply = CookieReply::decode(bytes).map_err(|_| DropReason::Malformed)?;
        let index = self.awaiting(reply.receiver).ok_or(DropReason::Handshake)?;
        let peer = &mut self.peers[index];
        let handshake = peer.handshake.as_mut().ok_or(DropReason::Handshake)?;
        let had_cookie = handshake.initiator.on_cookie(bytes).map_err(|_| DropReason::Handshake)?;
        peer.remembered = handshake.initiator.memory().clone();
        // Under load that is asked for once; a secret that was drawn anew meanwhile makes it twice.
        peer.cookies_in_vain += u32::from(had_cookie);
        if peer.cookies_in_vain >= REFUSED_AFTER {
            self.note_refused(PeerId(index as u32), Refusal::UnknownKey);
        }
        Ok(())
    }

    /// The peer answers, and there is no session: that is told once until there is one, for answers may be forged.
    fn note_refused(&mut self, id: PeerId, refusal: Refusal) {
        if self.peers[id.0 as usize].refused.replace(refusal).is_none() {
            self.events.push(Event::Refused { peer: id, refusal });
        }
    }

    fn awaiting(&self, receiver: HandshakeIndex) -> Option<usize> {
        let waits =
            |peer: &Peer| peer.handshake.as_ref().is_some_and(|handshake| handshake.initiator.waits_for(receiver));
        self.peers.iter().position(waits)
    }

    /// New keys: for the live session with this instance of the peer, or for a new one.
    fn install(&mut self, now: Time, id: PeerId, keys: KeySet, offer: &Offer) {
        let settings = self.settings;
        let (instance, version) = (offer.instance, offer.version());
        let same = self.peers[id.0 as usize].instance == Some(instance);
        let links = self.links.clone();
        let ours = self.config_offer.version();
        let (peer, key) = (&mut self.peers[id.0 as usize], keys.id);
        let new = !(same && peer.session.is_some());
        let preferred = peer.tries_all();
        (peer.asking_since, peer.refused, peer.cookies_in_vain) = (None, None, 0);
        if self.tells_keys {
            self.events.push(Event::Keys { peer: id, new, secrets: Box::new(keys.keys.secrets()) });
        }
        if let Some(session) = peer.session.as_mut().filter(|_| same) {
            if !keys.ours && session.insists_on_keys(now, keys.made_at) {
                session.admit_keys(now, keys);
            } else {
                session.install_keys(now, keys);
            }
        } else {
            peer.instance = Some(instance);
            let mut cx = crate::session::Context {
                store: &mut self.store,
                routing: &mut self.routing,
                drops: &mut self.drops,
                rng: &mut *self.rng,
                rules: &self.rules,
                flows: &mut self.flows,
                sealing: &mut self.sealing,
            };
            peer.begin_session(now, id, keys, settings, &mut self.labels, &mut cx);
            if let Some(session) = &mut peer.session {
                session.learn_version(version, ours);
                session.begin_as_told(&self.rules, &self.terms);
                links.iter().for_each(|link| session.learn_link(link.id, link.transport));
            }
            links.iter().for_each(|link| peer.open_paths(now, link, preferred));
            self.count_active();
        }
        self.events.push(Event::Session { peer: id, new });
        // While they waited, paths came and went, or the session that they were to go on with.
        self.labels.remove_key(key);
        self.peers[id.0 as usize].follow_paths(id, &mut self.labels);
        if new && !version.is_like(ours) {
            self.events.push(Event::OtherVersion { peer: id, theirs: version, ours });
        }
        self.settle(now, id);
    }
}

/// Every way from a link to an endpoint of `peer`; to one that called, the ways back.
fn routes(links: &[Link], peer: &Peer) -> Vec<Route> {
    // New keys of a session whose peer answers go by its best path, and by all others where there was no answer by
    // then: each costs a metered link 300 bytes.
    let first = peer.asking_since == Some(peer.asked_at);
    if let Some(way) = peer.session.as_ref().filter(|_| first).and_then(|session| session.best_way(peer.asked_at)) {
        return vec![way];
    }
    if peer.config.endpoints.is_empty() {
        return peer.session.iter().flat_map(|session| session.ways_back()).collect();
    }
    let from = |link: &Link| {
        let link = *link;
        let reached = peer.config.endpoints.iter().filter(move |endpoint| link.reaches(endpoint));
        reached.map(move |endpoint| Route { link: link.id, remote: link.address_of(endpoint), source: None })
    };
    links.iter().filter(|link| may_ask(link, peer)).flat_map(from).collect()
}

/// A link that is not preferred asks where those of its group that are do not help.
fn may_ask(link: &Link, peer: &Peer) -> bool {
    let failed = peer.tries_all() == Preferred::Failed;
    let needed = |session: &Session| session.works_by(link.id) || !session.hopes_for(link.group, true);
    link.preference == 0 || peer.session.as_ref().map_or(failed, |session| failed || needed(session))
}
