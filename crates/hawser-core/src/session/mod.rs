//! A session: what two portals share once they know each other. Here the packet's story is told.
//!
//! ```text
//! out  1 read a train from TUN          endpoint::handle_inner
//!      2 classify: flow bucket, class   packet
//!      3 queue, fair, with CoDel        Session::enqueue         -> queue
//!      4 a path has room: the scheduler hands it the next packets   outbound::fill_data
//!      5 number: flow sequence, packet number                       Outbound::number, Batch
//!      6 remember until acknowledged                                path::SentPackets, Recovery
//!      7 seal                           sealing -> handshake::SealKey, or `beside`
//!      8 send as one batch              Transmit, by the driver
//!
//! in   1 receive a batch                endpoint::handle_datagram
//!      2 find the session               endpoint::labels
//!      3 open                           inbound::open, or `beside`
//!      4 replay check                   path::ReceivedPackets
//!      5 account: acks, loss, health    inbound::account, acks::on_ack
//!      6 resequence                     resequence
//!      7 write to TUN, coalesced        Sink, by the driver
//! ```
//!
//! The session owns parts, each in the file of its story:
//!
//! | part | what it owns | file |
//! | --- | --- | --- |
//! | `Paths` | the paths, and by what they begin | `path_list`, `path` |
//! | `Scheduling` | what is known of them, what the policy decided, which may carry what | `views` |
//! | `Outbound` | the ingress queue, the flows' next sequences | `outbound` |
//! | `Recovery` | what was sent and must arrive | `recovery` |
//! | `RedundantCopies` | what another path is to carry too | `redundant_copies` |
//! | `Inbound` | what arrived and is not delivered yet | `inbound` |
//! | `Hold` | how long gaps are waited for | `hold` |
//! | `Liveness` | when who was heard | `liveness` |
//! | `Keyring`, `Fec`, `Filler` | keys, repairs, speed tests | `keyring`, `fec`, `filler` |
//! | `HubFrames` | what the peer and this portal say of a hub | `hub`; moves: `hand_over`, `kept`, `room` |
//!
//! What needs one part is its function; a session's own functions are those in which parts meet: `outbound` and
//! `inbound` walk the steps above, `acks` settles what arrived or was lost, `control` says what is not data, `paths`
//! opens, validates and closes paths, `timeout` wakes all of them and says why.

mod acks;
mod batch;
pub mod constants;
mod control;
mod fec;
mod filler;
mod hand_over;
mod hedge;
mod held;
mod hold;
mod hub;
mod idle;
mod inbound;
mod kept;
mod keyring;
mod keys;
mod liveness;
mod outbound;
mod path;
mod path_ids;
mod path_list;
mod paths;
mod recovery;
mod redundant_copies;
mod reliable;
mod retransmit;
mod rivals;
mod room;
mod sealing;
mod snapshot;
mod split;
mod terms;
pub(crate) mod timeout;
mod views;

pub use filler::{
    BYTES_MOST as SPEED_BYTES_MOST, Direction, FillerCount, RUN_MOST as SPEED_RUN_MOST, SpeedError, SpeedRun,
    SpeedSnapshot,
};
pub(crate) use hand_over::Part;
pub use hub::{Presence, Reach};
pub(crate) use inbound::Datagram;
pub use keyring::KeyEnd;
pub(crate) use keyring::{KeySet, Rekey};
pub use rivals::Rank;
pub use snapshot::{PathSnapshot, SessionSnapshot};
pub use terms::Terms;
pub use timeout::Reason;

use crate::beside::Unsealed;
use crate::congestion::Kind;
use crate::drops::{DropReason, Drops};
use crate::endpoint::routing::Routing;
use crate::fec::Fec;
use crate::flows::{FlowPath, FlowWatch};
use crate::packet::{TrainId, TrainStore};
use crate::policy::Tuning;
use crate::queue::{Queue, QueueParams};
use crate::rules::Rules;
use crate::scheduler::{Kind as SchedulerKind, MptcpOption};
use crate::transport::Transport;
use crate::units::{Ecn, KeyId, LinkId, PacketNumber, PathId, PeerId, Random, Time};
use crate::wire::{Capabilities, Version};
use filler::Filler;
use hold::Hold;
use hub::HubFrames;
use inbound::Inbound;
use keyring::Keyring;
use liveness::Liveness;
use outbound::Outbound;
use path::Path;
use path_ids::PathIds;
use path_list::Paths;
use recovery::Recovery;
use redundant_copies::RedundantCopies;
use std::net::{IpAddr, SocketAddr};
use views::Scheduling;

/// One batch for one path: `len` bytes of datagrams, each `segment_size` long but the last, with what the transport
/// needs before each of them between them ([`Transport::room_before`]).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// By which link it leaves.
    pub link: LinkId,
    /// Where it goes.
    pub remote: SocketAddr,
    /// The local address to send it from, where the link's socket has several.
    pub source: Option<IpAddr>,
    /// The outer codepoint.
    pub ecn: Ecn,
    /// Bytes of each datagram but the last.
    pub segment_size: usize,
    /// Bytes written to the buffer, and left out between them.
    pub len: usize,
    /// Its datagrams are to leave one by one, as trains do not arrive there.
    pub apart: bool,
}

/// Where a path leads. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The local attachment.
    pub link: LinkId,
    /// The far end.
    pub remote: SocketAddr,
    /// The local address to send from, where the link's socket has several.
    pub source: Option<IpAddr>,
}

/// What of an address changed. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Moved {
    /// The port alone: the way is the same.
    Port,
    /// The IP address, perhaps the port too: another way.
    Address,
}

impl Moved {
    /// From one address to another; none where it is the same.
    pub fn between(one: SocketAddr, other: SocketAddr) -> Option<Moved> {
        let moved = if one.ip() == other.ip() { Moved::Port } else { Moved::Address };
        (one != other).then_some(moved)
    }
}

impl From<Route> for FlowPath {
    fn from(route: Route) -> Self {
        FlowPath { link: route.link, remote: route.remote }
    }
}

impl Route {
    /// What changes from this route to that one.
    fn moved_to(&self, other: &Route) -> Option<Moved> {
        if self.link == other.link && self.source == other.source {
            Moved::between(self.remote, other.remote)
        } else {
            Some(Moved::Address)
        }
    }
}

/// Room to write datagrams to, link by link.
pub trait Buffers {
    /// At least 65,535 bytes for what goes by `link` to `remote`; `None` while the link's socket, or its stream to
    /// there, is full or gone.
    fn spare(&mut self, link: LinkId, remote: SocketAddr) -> Option<&mut [u8]>;
}

/// Where inner packets go that arrived, in order of delivery.
pub use crate::resequence::Sink;

/// How sessions behave, the same for all of a portal. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Settings {
    /// The controller of each path.
    pub congestion: Kind,
    /// The MTU of each path's link is taken to be at most this, in bytes of an IP packet.
    pub max_link_mtu: u16,
    /// The policy's constants.
    pub tuning: Tuning,
}

/// What the endpoint lends a session for the length of a call.
pub(crate) struct Context<'a> {
    pub store: &'a mut TrainStore,
    pub routing: &'a mut Routing,
    pub drops: &'a mut Drops,
    pub rng: &'a mut dyn Random,
    pub rules: &'a Rules,
    pub flows: &'a mut FlowWatch,
    pub sealing: &'a mut Sealing,
}

/// When batches of data are sealed. At once by default; the endpoint owns it.
#[derive(Default)]
pub(crate) enum Sealing {
    /// Each datagram when it is written.
    #[default]
    AtOnce,
    /// By whoever takes the batch: how is left here.
    Later(Option<Unsealed>),
}

/// What the endpoint must do after a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// There is another path, or others may come: their labels are needed, and those of some that were skipped no more.
    PathsSeen,
    /// This path is closed: its label is of no use any more.
    PathClosed(PathId),
    /// Nothing is sealed under these keys any more.
    KeysRetired(KeyId),
    /// A path carries larger datagrams than was known, or only smaller ones.
    MtuChanged,
    /// A path is down, or in doubt for long.
    PathDown,
    /// Trains do not arrive on a path by this link to there; its datagrams leave one by one from now on.
    TrainsLost(LinkId, SocketAddr),
    /// The peer closed the session.
    Closed,
    /// The peer was not heard for so long that the session is over.
    Silent,
    /// Nothing is sealed any more, until there are other keys.
    KeysOver(KeyEnd),
    /// The peer said something of a hub.
    HubSaid,
    /// Packets from it are held.
    Holds,
}

/// Whose session it is, and what the peer speaks: nothing is said that it does not know. Plain data.
struct Counterpart {
    id: PeerId,
    version: Version,
}

/// A live session with one peer. Begins with keys and no path; its endpoint owns it, nothing is shared.
///
/// Call order: `enqueue` and `on_datagram` as things arrive, `handle_timeout` when `poll_timeout`
/// says so, then `poll_transmit` until it gives nothing, then `poll_event` likewise.
pub(crate) struct Session {
    peer: Counterpart,
    settings: Settings,
    keyring: Keyring,
    paths: Paths,
    scheduling: Scheduling,
    outbound: Outbound,
    recovery: Recovery,
    copies: RedundantCopies,
    fec: Fec,
    filler: Filler,
    inbound: Inbound,
    hold: Hold,
    liveness: Liveness,
    hub: HubFrames,
    events: Vec<Event>,
}

impl Session {
    /// A session under its first keys. `side` is 0 or 1, and the peer's is the other.
    pub fn new(now: Time, peer: PeerId, side: u32, keys: KeySet, settings: Settings, queue: Queue) -> Self {
        Session {
            peer: Counterpart { id: peer, version: Version::UNSAID },
            settings,
            keyring: Keyring::new(keys),
            paths: Paths::new(side),
            scheduling: Scheduling::new(now, settings.tuning),
            outbound: Outbound::new(queue),
            recovery: Recovery::default(),
            copies: RedundantCopies::new(&settings.tuning.hedge),
            fec: Fec::default(),
            filler: Filler::new(now),
            inbound: Inbound::new(),
            hold: Hold::default(),
            liveness: Liveness::new(now),
            hub: HubFrames::default(),
            events: Vec::new(),
        }
    }

    /// Learns what the peer speaks, before anything is said to it; `ours` is what this portal does.
    pub fn learn_version(&mut self, version: Version, ours: Version) {
        self.peer.version = version;
        self.hub.learn_versions(version, ours);
        self.fec.mute(!version.capabilities.contain(Capabilities::REPAIRS));
    }

    /// Learns how a link carries datagrams, before any path goes by it.
    pub fn learn_link(&mut self, link: LinkId, transport: Transport) {
        self.paths.learn_link(link, transport);
    }

    /// Steps 2 and 3 out: a classified train joins the queue of its flow.
    pub fn enqueue(&mut self, now: Time, train: TrainId, cx: &mut Context<'_>) {
        self.note_busy(now);
        let first = cx.store.train(train);
        // GSO packets carry no MPTCP handshake options.
        if first.treatment().scheduler == SchedulerKind::Flow
            && first.segments() == 1
            && let Some(option) = MptcpOption::of(first.body(0), first.inner())
        {
            let bucket = self.outbound.queue.place(now, first.flow());
            let flow = (bucket, self.outbound.queue.tag(bucket));
            self.scheduling.scheduler.on_mptcp_option(now, flow, option);
        }
        let drops = &mut *cx.drops;
        self.outbound.queue.enqueue(now, train, cx.store, &mut |dropped| drops.count(dropped.reason.into()));
    }

    /// The way of the path that speaks for all, while the peer answers.
    pub fn best_way(&self, now: Time) -> Option<Route> {
        let answers = self.silence_deadline().is_none_or(|at| now < at);
        let spokesman = (0..self.paths.len()).find(|index| self.is_spokesman(*index));
        spokesman.filter(|_| answers).map(|index| self.paths[index].route)
    }

    /// The ways back to a peer that is at an address of no configuration: those of validated paths.
    pub fn ways_back(&self) -> impl Iterator<Item = Route> + '_ {
        let known = |path: &&Path| path.validation.is_validated() && !path.is_closed();
        self.paths.iter().filter(known).map(|path| path.route)
    }

    /// What the endpoint must do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The largest packet number received on a path, to complete truncated ones.
    pub fn largest_received(&self, path: PathId) -> Option<PacketNumber> {
        self.paths.index_of(path).and_then(|index| self.paths[index].received.largest())
    }

    /// Gives back buffers that were idle, and what was held for too long.
    pub fn trim(&mut self, now: Time, drops: &mut Drops) {
        self.expire_held(now, drops);
        self.inbound.resequencer.shrink_idle(now);
        self.inbound.reassembler.trim();
        self.fec.trim();
    }

    /// When the session began.
    pub fn started(&self) -> Time {
        self.liveness.started()
    }

    /// Says CLOSE with the next datagram of every path that works.
    pub fn close(&mut self) {
        self.paths.iter_mut().filter(|path| path.works()).for_each(|path| path.wants.close = true);
    }

    /// Ends the session: what was in flight is given back, and counted; what waits to be sent is the caller's.
    pub fn dismantle(mut self, now: Time, store: &mut TrainStore, drops: &mut Drops) -> Queue {
        for index in 0..self.paths.len() {
            self.reinject(now, index);
        }
        while let Some(record) = self.recovery.retransmit.pop_any() {
            store.release(record.segment);
            drops.count(DropReason::SessionEnded);
        }
        let arrived = self.recovery.kept.surrender(store);
        arrived.iter().for_each(|record| store.release(record.segment));
        // What it holds back waits like all else.
        self.outbound.queue.release_acks(now, Time::NEVER, store, &mut |_| ());
        self.outbound.queue
    }
}

/// The path ids that the peer of `side` may open in a new session.
pub(crate) fn first_ids(side: u32) -> impl Iterator<Item = PathId> {
    let ids = PathIds::new(side);
    ids.may_come().collect::<Vec<_>>().into_iter()
}

/// The ingress queue as sessions begin with it.
pub(crate) fn ingress_queue() -> Queue {
    Queue::new(QueueParams::default())
}
