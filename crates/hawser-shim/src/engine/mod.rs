//! The heart of the shim, sans-IO: packets of this host become datagrams along paths, and datagrams become packets.
//!
//! 1. [`Engine::handle_packet`] (`outbound`): a packet from a TUN device finds its flow; a new flow gets a path of its
//!    own (`choice`, `lanes`), and the packet becomes datagrams.
//! 2. [`Engine::handle_datagram`] (`inbound`): a datagram of a peer becomes a packet, if its flow may be and its
//!    numbers fit; [`Engine::handle_segment`] (`segments`, `ports`): so does a segment, where TCP is SCION's layer 4.
//! 3. Paths are watched (`health`, `control`): flows on a dead one move to another, or are given up. Datagrams of UDP
//!    go the same ways (`udp_out`, `udp_in`, `parts`), and not without end to who may be nobody (`proof`). Answers go
//!    back by their flow's own way, and a SYN of a flow that lives does not turn it at once (`anew`).
//! 4. [`Engine::handle_paths`], [`Engine::handle_dead_part`]: what is known of paths from elsewhere.
//! 5. [`Engine::handle_timeout`] (`timeout`): probes, and the end of what is over or silent.
//! 6. What is to be done goes to an [`Outside`]; [`Engine::snapshot`] says what there is.
//!
//! Time, randomness and bytes are arguments. Nothing is allocated for packets of known flows.

mod anew;
mod choice;
mod conns;
mod control;
mod counters;
mod form;
mod health;
mod inbound;
mod lanes;
mod moves;
mod notice;
mod opts;
mod outbound;
mod parts;
mod ports;
mod proof;
mod replies;
mod rewrite;
mod segments;
mod slab;
mod snapshot;
mod status;
mod timeout;
mod udp_in;
mod udp_out;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use hawser_core::units::Time;
use hawser_scion::conn::WayBack;
use hawser_scion::{EndpointAddr, IsdAs, Path};

use crate::compress::{Compression, Datagrams};
use crate::flow::{ConnectionId, FlowId, FlowTable, Limits, Protocol};
use crate::route::{InterfaceIndex, RouteTable, ScionHost};
use crate::translate::OuterPort;

use choice::AsPaths;
use conns::Conn;
use lanes::Lane;
use outbound::Waiting;
use parts::Parts;
use ports::Ports;
use proof::{Beginnings, Held, Trust};
use slab::Slab;

pub use choice::ranked;
pub use conns::NotOpened;
pub use control::Control;
pub use counters::{Counters, Drop};
pub use notice::{Notice, Opened, Reason};
pub use opts::{EngineOpts, Found, OwnAddresses};
pub use snapshot::{
    ConnSnapshot, ConnectionSnapshot, FlowSnapshot, Passed, PathSnapshot, PathState, PeerSnapshot, Snapshot,
};

/// Flows of a host: 500 connections a second of which each is kept for 2 s, with 8 subflows, and as many that last.
const LIMITS: Limits = Limits { flows: 16_384, half_open: 2048 };
/// The same of UDP: a name server's 136 questions a second, each kept for two minutes, or calls. Beyond that what
/// matters least goes.
const UDP_LIMITS: Limits = Limits { flows: 16_384, half_open: 8192 };
/// Hosts that flows go to or come from, and how many of them are for TCP alone.
const MOST_PEERS: usize = 4096;
const TCP_PEERS: usize = 1024;
/// Flows of UDP that a host may begin which nobody knows; at most this many make room for those of another one.
const STRANGERS: usize = 64;
/// Flows of one peer that have contexts; what is beyond goes whole.
const CONTEXTS_PER_PEER: usize = 8192;

/// Names a connection along one path, which the engine has had opened. A name may come again after it was closed.
/// Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub usize);

/// How datagrams leave. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// By a connection of this host's, along a path that it chose.
    Conn(ConnId),
    /// From the shim's port, back along the path that something of the flow's peer came by.
    Back(WayBack),
}

/// By what a datagram came. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// A connection of this host's.
    Conn(ConnId),
    /// The shim's port; back goes what is answered.
    Port(WayBack),
}

/// What became of datagrams. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// They went.
    All,
    /// Some did not: the socket takes no more now.
    Full,
    /// They did not.
    Refused,
    /// They did not, and nothing will along this path: it expired.
    Expired,
}

/// What came of a datagram. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    /// It is of one of its sender's flows, which goes back by the path that it came by: that is to be kept.
    pub keep: bool,
    /// To be sent back at once, along that path.
    pub echo: Option<Control>,
}

/// The world, as far as an engine needs it. Nothing of it waits.
pub trait Outside {
    /// A random number.
    fn random(&mut self) -> u64;

    /// Opens a connection to a peer's shim along a path, which is empty inside the AS; says how many bytes its
    /// datagrams may have.
    ///
    /// # Errors
    /// [`NotOpened`].
    fn open(&mut self, conn: ConnId, to: EndpointAddr, path: &Path) -> Result<u16, NotOpened>;

    /// Has a connection follow its path, renewed; says how many bytes its datagrams may have.
    fn follow(&mut self, conn: ConnId, path: &Path) -> Option<u16>;

    /// Closes a connection.
    fn close(&mut self, conn: ConnId);

    /// How many bytes datagrams may have along a way back; none where it is not kept any more.
    fn room_back(&mut self, to: WayBack) -> Option<u16>;

    /// Sends datagrams.
    fn send(&mut self, via: Via, datagrams: &Datagrams) -> Sent;

    /// Sends segments of TCP as they are, with this traffic class: SCION's headers go before them.
    fn send_segments(&mut self, via: Via, segments: &Datagrams, class: u8) -> Sent;

    /// Opens another port for segments that come to this host, one that routers deliver to; none where it cannot be
    /// opened.
    fn open_port(&mut self) -> Option<OuterPort>;

    /// Closes one.
    fn close_port(&mut self, port: OuterPort);

    /// Sends a control datagram.
    fn send_control(&mut self, via: Via, control: &Control) -> Sent;

    /// Gives a packet to this host. `partial`: its TCP or UDP checksum is the pseudo-header's sum alone.
    fn deliver(&mut self, interface: InterfaceIndex, packet: &[u8], partial: bool);

    /// Asks for the paths to an AS, now and whenever they change: [`Engine::handle_paths`] is told.
    fn ask(&mut self, isd_as: IsdAs);

    /// The paths to an AS are of no interest any more.
    fn forget(&mut self, isd_as: IsdAs);

    /// Tells what happened.
    fn tell(&mut self, notice: Notice);
}

/// A host's shim. Has no flows at first. One owner.
#[derive(Debug)]
pub struct Engine {
    opts: EngineOpts,
    routes: Arc<RouteTable>,
    own: OwnAddresses,
    table: FlowTable,
    /// What is known of each flow beside, by its place in the table.
    lanes: Vec<Option<Lane>>,
    peers: Slab<Peer>,
    hosts: BTreeMap<ScionHost, PeerId>,
    conns: Slab<Conn>,
    ports: Ports,
    ases: BTreeMap<IsdAs, AsPaths>,
    waiting: Vec<Waiting>,
    /// Flows of UDP that peers began, by this host's port and the peer's end.
    served: BTreeMap<(u16, SocketAddr), FlowId>,
    /// Fragments that go out, and that come in.
    parts: [Parts; 2],
    held: Vec<Held>,
    beginnings: Beginnings,
    /// Room that was told of, by connection.
    told: BTreeMap<ConnectionId, usize>,
    /// Connections of which the room may have changed.
    doubtful: BTreeSet<ConnectionId>,
    counters: Counters,
    /// Some flow's way is announced.
    announces: bool,
    ticked: Time,
    swept: Time,
    scratch: Scratch,
}

/// Names a peer in the engine. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct PeerId(usize);

/// A host that flows go to or come from. Starts without flows.
#[derive(Debug)]
struct Peer {
    host: ScionHost,
    compression: Compression,
    /// Lanes.
    flows: usize,
    trust: Trust,
}

/// Memory that is used again.
#[derive(Debug, Default)]
struct Scratch {
    datagrams: Datagrams,
    packet: Vec<u8>,
    reply: Vec<u8>,
}

impl Engine {
    /// An engine without flows.
    pub fn new(opts: EngineOpts, own: OwnAddresses, routes: Arc<RouteTable>) -> Self {
        Self {
            opts,
            routes,
            own,
            table: FlowTable::new(LIMITS, UDP_LIMITS),
            lanes: Vec::new(),
            peers: Slab::default(),
            hosts: BTreeMap::new(),
            conns: Slab::default(),
            ports: Ports::default(),
            ases: BTreeMap::new(),
            waiting: Vec::new(),
            served: BTreeMap::new(),
            parts: Default::default(),
            held: Vec::new(),
            beginnings: Beginnings::default(),
            told: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            counters: Counters::default(),
            announces: false,
            ticked: Time::ZERO,
            swept: Time::ZERO,
            scratch: Scratch::default(),
        }
    }

    /// New flows go by other routes from now on.
    pub fn set_routes(&mut self, routes: Arc<RouteTable>) {
        self.routes = routes;
    }

    /// This host has other addresses from now on.
    pub fn set_own(&mut self, own: OwnAddresses) {
        self.own = own;
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let table = self.table.counters();
        let mut counters = self.counters;
        (counters.opened, counters.freed) = (table.opened, table.freed);
        (counters.pushed_out, counters.evicted) = (table.pushed_out, table.evicted);
        counters
    }

    /// A peer, made where there is room.
    fn peer(&mut self, host: ScionHost) -> Option<PeerId> {
        if let Some(id) = self.hosts.get(&host) {
            return Some(*id);
        }
        if self.peers.len() >= MOST_PEERS {
            return None;
        }
        let compression = Compression::new(CONTEXTS_PER_PEER);
        let id = PeerId(self.peers.insert(Peer { host, compression, flows: 0, trust: Trust::default() }));
        self.hosts.insert(host, id);
        Some(id)
    }

    /// A peer of a flow that speaks this. Datagrams of strangers take no room from connections, and push each other
    /// out.
    fn peer_for(&mut self, now: Time, protocol: Protocol, host: ScionHost) -> Option<PeerId> {
        if protocol == Protocol::Udp && !self.hosts.contains_key(&host) {
            for _ in 0..STRANGERS {
                if self.peers.len() < MOST_PEERS - TCP_PEERS {
                    break;
                }
                self.table.evict()?;
                self.drop_displaced(now);
            }
            if self.peers.len() >= MOST_PEERS - TCP_PEERS {
                return None;
            }
        }
        self.peer(host)
    }

    /// Forgets a peer that has no flows.
    fn forget_idle_peer(&mut self, id: PeerId) {
        let is_idle = self.peers.get(id.0).is_some_and(|peer| peer.flows == 0);
        let has_conns = || self.conns.iter().any(|(_, conn)| conn.peer == id);
        if is_idle
            && !has_conns()
            && let Some(peer) = self.peers.remove(id.0)
        {
            self.hosts.remove(&peer.host);
        }
    }
}
