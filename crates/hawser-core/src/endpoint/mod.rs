//! A portal's core: peers, their sessions, and the way from a datagram or an inner packet to them.
//!
//! ```text
//! handle_inner     -> routing (which peer) -> Session::enqueue
//! handle_datagram  -> handshakes (initiations wait: inbox), or labels (which session) -> Session::on_datagram -> Sink
//! handle_timeout   -> initiations, sessions
//! poll_transmit    <- handshake messages first, the newest initiations' responses among them, then each session in turn
//! poll_timeout     <- the next deadline and its reason
//! poll_event       <- what the driver is to do or to tell
//! ```

mod aliases;
mod datagrams;
mod enrolment;
mod handshakes;
pub(crate) mod hub;
mod inbox;
pub(crate) mod labels;
mod peer;
mod pending;
mod reload;
pub(crate) mod routing;
mod share;
mod speed;
mod streams;
mod telling;
mod words;

pub use hub::{Handing, Standing};
pub use peer::PeerConfig;
pub use share::Load;
pub use streams::Verdict;
pub use words::{Config, Event, Link, Refusal, Snapshot};

use crate::drops::{DropReason, Drops};
use crate::flows::FlowWatch;
use crate::handshake::{Identity, Responder};
use crate::packet::{FlowKey, Offload, PacketDrop, TrainStore};
use crate::path::health::DownReason;
use crate::rules::{Mark, Rules};
use crate::session::timeout::earlier;
use crate::session::{
    Buffers, Context, Event as SessionEvent, Moved, Reason, Sealing, Settings, Sink, Terms, Transmit,
};
use crate::units::{KeyId, LinkGroup, LinkId, PeerId, Random, Time};
use crate::wire::{InstanceId, Offer};
use handshakes::Outbox;
use hub::Pair;
use inbox::Inbox;
use labels::Labels;
use peer::{Peer, Preferred};
use routing::Routing;
use share::Shares;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Buffers that were idle for this long are given back.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// A portal without its system: sans-IO. It begins with peers and no link. One thread owns it.
///
/// Call order: `handle_…` as things happen, `handle_timeout` when `poll_timeout` says so; after
/// either, `poll_transmit` until it gives nothing, then `poll_event` until it gives nothing.
pub struct Endpoint {
    config_offer: Offer,
    identity: Identity,
    settings: Settings,
    responder: Responder,
    peers: Vec<Peer>,
    links: Vec<Link>,
    routing: Routing,
    labels: Labels,
    store: TrainStore,
    shares: Shares,
    rules: Rules,
    flows: FlowWatch,
    terms: Vec<(LinkGroup, Terms)>,
    drops: Drops,
    inbox: Inbox,
    outbox: Outbox,
    events: Vec<Event>,
    rng: Box<dyn Random + Send>,
    next_key: u64,
    /// Peers that have a session, or that handshakes are initiated with: the others cost nothing while they are away.
    active: Vec<PeerId>,
    /// Whose turn of them it is to send, so that one busy peer does not starve the others.
    turn: usize,
    /// Peers that are members of one hub.
    pairs: Vec<Pair>,
    /// Peers are kept apart.
    isolated: bool,
    /// The portal's own inner addresses.
    own: Vec<IpAddr>,
    /// All addresses of its host.
    host: Vec<IpAddr>,
    housekeeping: Time,
    scratch: Vec<u8>,
    tells_keys: bool,
    sealing: Sealing,
}

impl Endpoint {
    /// A portal that knows its peers and has no link yet.
    pub fn new(config: Config, mut rng: Box<dyn Random + Send>) -> Self {
        let ours = config.identity.public();
        let flow_key = FlowKey::new(rng.next_u64(), rng.next_u64());
        let offer = config.offer.spoken();
        let mut endpoint = Endpoint {
            config_offer: offer,
            responder: Responder::new(config.identity.clone(), offer),
            identity: config.identity,
            settings: config.settings,
            peers: config.peers.into_iter().map(|peer| Peer::new(peer, &ours, offer.instance)).collect(),
            links: Vec::new(),
            routing: Routing::default(),
            labels: Labels::default(),
            store: TrainStore::new(flow_key),
            shares: Shares::default(),
            rules: Rules::default(),
            flows: FlowWatch::default(),
            terms: Vec::new(),
            drops: Drops::default(),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            events: Vec::new(),
            rng,
            next_key: 0,
            active: Vec::new(),
            turn: 0,
            pairs: Vec::new(),
            isolated: false,
            own: Vec::new(),
            host: Vec::new(),
            housekeeping: Time::ZERO,
            scratch: Vec::new(),
            tells_keys: false,
            sealing: Sealing::AtOnce,
        };
        endpoint.route_anew();
        endpoint
    }

    /// From now on the secrets of new keys come out as [`Event::Keys`].
    pub fn tell_keys(&mut self) {
        self.tells_keys = true;
    }

    /// Step 1 out: where the next packet from TUN is read to; more than 65,536 bytes.
    pub fn read_buffer(&mut self) -> &mut [u8] {
        self.store.read_buffer()
    }

    /// Steps 2 and 3 out: the first `len` bytes of the read buffer are a packet from TUN.
    pub fn handle_inner(&mut self, now: Time, len: usize, offload: Offload) {
        self.handle_marked(now, len, offload, Mark::default());
    }

    /// The same of a packet that nftables marked, as far as its mark is known.
    pub fn handle_marked(&mut self, now: Time, len: usize, offload: Offload, mark: Mark) {
        let train = match self.store.admit(len, offload) {
            Ok(train) => train,
            Err(PacketDrop::Full) => return self.drops.count(DropReason::StoreFull),
            Err(_) => return self.drops.count(DropReason::BadInner),
        };
        let (source, destination) = (self.store.train(train).source(), self.store.train(train).destination());
        match self.routing.peer_for(source, destination) {
            Ok(peer) if !self.store.charge(train, peer.0) => {
                self.store.release_all(train);
                self.drops.count(DropReason::StoreShare);
            }
            Ok(peer) => {
                let treatment = self.rules.treatment(self.store.train(train).inner(), mark);
                self.store.treat(train, treatment);
                self.note_flow(now, peer, train, mark);
                let (peer, mut cx) = self.parts(peer);
                peer.enqueue(now, train, &mut cx);
            }
            Err(reason) => self.refuse_inner(now, train, mark, reason),
        }
    }

    /// A window of 10 ms is over, in which the sockets stood so. Whether [`Endpoint::charge`] is to be told what
    /// datagrams cost.
    pub fn handle_load(&mut self, load: Load) -> bool {
        self.shares.on_window(load);
        self.shares.measures()
    }

    /// What the datagrams from one address since the last call cost, processor time: their peer may be limited for it.
    pub fn charge(&mut self, time: Duration) {
        self.shares.charge(time);
    }

    /// A peer with what its session borrows.
    fn parts(&mut self, peer: PeerId) -> (&mut Peer, Context<'_>) {
        let cx = Context {
            store: &mut self.store,
            routing: &mut self.routing,
            drops: &mut self.drops,
            rng: &mut *self.rng,
            rules: &self.rules,
            flows: &mut self.flows,
            sealing: &mut self.sealing,
        };
        (&mut self.peers[peer.0 as usize], cx)
    }

    /// Does what a session asked for.
    fn settle(&mut self, now: Time, id: PeerId) {
        let place = id.0 as usize;
        let (mut mtu_changed, mut paths_seen) = (false, false);
        while let Some(event) = self.peers[place].session.as_mut().and_then(|session| session.poll_event()) {
            let peer = &mut self.peers[place];
            match event {
                SessionEvent::PathsSeen => paths_seen = true,
                SessionEvent::PathClosed(path) => peer.forget_path(path, &mut self.labels),
                SessionEvent::KeysRetired(key) => self.labels.remove_key(key),
                SessionEvent::MtuChanged => mtu_changed = true,
                SessionEvent::PathDown => self.housekeeping = Time::ZERO,
                SessionEvent::TrainsLost(link, remote) => {
                    self.events.push(Event::TrainsLost { peer: id, link, remote });
                }
                SessionEvent::Closed => self.end_with(now, id, Event::Closed { peer: id }),
                SessionEvent::Silent => self.end_with(now, id, Event::Silent { peer: id }),
                SessionEvent::KeysOver(end) => self.events.push(Event::KeysOver { peer: id, end }),
                SessionEvent::Holds => self.events.push(Event::Holds { peer: id }),
                SessionEvent::HubSaid => {
                    let frame = peer.session.as_mut().and_then(|session| session.take_hub_frame());
                    self.events.extend(frame.map(|frame| Event::HubSaid { peer: id, frame }));
                }
            }
        }
        // Once for all that a datagram said of paths.
        if paths_seen {
            self.peers[place].follow_paths(id, &mut self.labels);
        }
        // Streams that begin meanwhile would keep a size that is too small, or need pieces.
        if mtu_changed {
            self.follow_mtu(now, id);
        }
    }

    /// A session is over; what it had goes to the peer's twin, if it has one.
    fn end_with(&mut self, now: Time, id: PeerId, event: Event) {
        self.leave_closed(now, id);
        let peer = &mut self.peers[id.0 as usize];
        if peer.session.is_some() {
            let told = InstanceId(self.rng.next_u64());
            peer.end_alone(now, told, &mut self.labels, &mut self.store, &mut self.drops);
            self.events.push(event);
            self.count_active();
        }
    }

    /// The next batch to send; handshake messages first.
    pub fn poll_transmit(&mut self, now: Time, buffers: &mut dyn Buffers) -> Option<Transmit> {
        self.answer_newest(now);
        if let Some(transmit) = self.outbox.poll(buffers) {
            return Some(transmit);
        }
        for _ in 0..self.active.len() {
            self.turn = (self.turn + 1) % self.active.len();
            let (peer, mut cx) = self.parts(self.active[self.turn]);
            let transmit = peer.session.as_mut().and_then(|session| session.poll_transmit(now, buffers, &mut cx));
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// The next deadline and what it is for.
    pub fn poll_timeout(&mut self, now: Time) -> Option<(Time, Reason)> {
        let housekeeping = (self.housekeeping, Reason::Housekeeping);
        let mut next = Some(if self.inbox.is_empty() { housekeeping } else { (now, Reason::Handshake) });
        for id in &self.active {
            next = earlier(next, self.peers[id.0 as usize].poll_timeout(now));
        }
        next
    }

    /// Does all that is due.
    pub fn handle_timeout(&mut self, now: Time, sink: &mut dyn Sink) {
        self.inbox.go_on();
        let mut turn = 0;
        // A session that ends meanwhile leaves its place to another, which is due as much the next time.
        while let Some(&id) = self.active.get(turn) {
            turn += 1;
            let (peer, mut cx) = self.parts(id);
            if let Some(session) = &mut peer.session {
                session.handle_timeout(now, sink, &mut cx);
            }
            self.settle(now, id);
            self.initiate_if_due(now, id);
        }
        if now >= self.housekeeping {
            self.housekeeping = now + HOUSEKEEPING;
            self.store.trim();
            self.peers.iter_mut().for_each(|peer| peer.trim(now, &mut self.labels, &mut self.store, &mut self.drops));
            (0..self.peers.len()).for_each(|place| self.follow_mtu(now, PeerId(place as u32)));
            self.reopen_paths(now);
        }
    }

    /// What the driver is to do or to tell.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() { None } else { Some(self.events.remove(0)) }
    }

    /// What fits to a peer may have changed.
    fn follow_mtu(&mut self, now: Time, id: PeerId) {
        if let Some(mtu) = self.peers[id.0 as usize].follow_mtu(now) {
            self.events.push(Event::PeerMtu { peer: id, mtu });
        }
    }

    /// Adds a link; if it opens paths, every peer with endpoints is reached by it.
    pub fn add_link(&mut self, now: Time, link: Link) {
        self.links.retain(|known| known.id != link.id);
        self.links.push(link);
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.learn_link(link.id, link.transport);
        }
        if link.up {
            self.handle_link_up(now, link.id);
        }
    }

    /// A link can be used (again).
    pub fn handle_link_up(&mut self, now: Time, id: LinkId) {
        let Some(link) = self.links.iter_mut().find(|link| link.id == id) else { return };
        link.up = true;
        let link = *link;
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            if let Some(session) = &mut peer.session {
                session.on_link_up(now, id);
                peer.open_paths(now, &link, Preferred::MayWork);
            }
            self.settle(now, PeerId(index as u32));
            self.initiate_at(now, PeerId(index as u32));
        }
    }

    /// A link cannot be used now.
    pub fn handle_link_down(&mut self, now: Time, id: LinkId, reason: DownReason) {
        if let Some(link) = self.links.iter_mut().find(|link| link.id == id) {
            link.up = false;
        }
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.on_link_down(now, id, reason);
        }
    }

    /// A link's own address changed.
    pub fn handle_link_moved(&mut self, now: Time, id: LinkId, moved: Moved) {
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.on_link_moved(now, id, moved);
        }
    }

    /// A link's socket refused datagrams of `size` bytes to `remote` as too large.
    pub fn handle_too_big(&mut self, id: LinkId, remote: SocketAddr, size: u16) {
        for peer in &mut self.peers {
            if peer.session.as_mut().is_some_and(|session| session.on_too_big(id, remote, size)) {
                peer.mtu_raised = None;
                self.housekeeping = Time::ZERO;
            }
        }
    }

    /// A router, or somebody in its name, says that datagrams of `size` bytes from this link do not pass to `remote`,
    /// and quotes the first bytes of one; without, the link itself has tested that the datagram is one of ours. What
    /// quotes none that was sent changes nothing and costs a look at each path. Whether it is news.
    pub fn handle_hint(&mut self, id: LinkId, remote: SocketAddr, size: u16, quoted: Option<&[u8]>) -> bool {
        let mut news = false;
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            news |= session.on_hint(id, remote, size, quoted);
        }
        if news {
            self.housekeeping = Time::ZERO;
        }
        news
    }

    /// Closes the session with every peer: call `poll_transmit` afterwards, until it gives nothing.
    pub fn close(&mut self) {
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.close();
        }
    }
}

/// A new name for keys.
fn name_key(next: &mut u64) -> KeyId {
    *next += 1;
    KeyId(*next)
}
