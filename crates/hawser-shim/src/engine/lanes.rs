//! Lanes: which way each flow goes.
//!
//! 1. A flow that begins gets a lane ([`Engine::put_lane`]); its connection's other flows say which paths are taken.
//! 2. Its state's changes are told ([`Engine::follow`]).
//! 3. When the table has freed it, so is the lane ([`Engine::drop_lane`]).
//! 4. How many more subflows a connection may have follows from all that ([`Engine::settle`]).

use hawser_core::units::Time;
use hawser_scion::conn::WayBack;
use hawser_scion::{EndpointAddr, Fingerprint};

use super::choice::{Wish, table_of};
use super::udp_in::Talk;
use super::{ConnId, Engine, Notice, Opened, Outside, PeerId};
use crate::compress::Compression;
use crate::flow::{ConnectionId, Direction, FlowId, FlowKey, Observed, Protocol, State};
use crate::mptcp::Token;
use crate::route::InterfaceIndex;
use crate::translate::{self, Layer4, OuterPort};

/// Bytes of the longest headers that are kept: IPv6 and TCP with all its options (RFC 8200, RFC 9293 section 3.1).
const HEADERS: usize = 100;

/// Which way a flow goes, and what else is known of it. Starts with its first packet. The engine owns it.
#[derive(Debug)]
pub(super) struct Lane {
    pub id: FlowId,
    pub key: FlowKey,
    pub peer: PeerId,
    /// What comes for this host goes in by it.
    pub interface: InterfaceIndex,
    pub way: Way,
    /// By which way somebody begins it anew, though it lives, and since when.
    pub anew: Option<(WayBack, Time)>,
    /// This host's port as SCION sees it, where TCP is its layer 4; none: UDP carries the flow.
    pub outer: Option<OuterPort>,
    /// This host chooses its path.
    pub is_ours: bool,
    /// By which it joins; its connection may be unknown.
    pub joins: Option<Token>,
    pub moves: u64,
    pub is_over: bool,
    /// It was told that it is to be given up.
    pub is_lost: bool,
    pub announcement: Option<Announcement>,
    pub headers: Headers,
    pub talk: Talk,
}

impl Lane {
    /// A flow that the peer chooses the path of, and that joins none.
    pub fn new(id: FlowId, key: FlowKey, peer: PeerId, interface: InterfaceIndex, way: Way) -> Self {
        Self {
            id,
            key,
            peer,
            interface,
            way,
            anew: None,
            outer: None,
            is_ours: false,
            joins: None,
            moves: 0,
            is_over: false,
            is_lost: false,
            announcement: None,
            headers: Headers::default(),
            talk: Talk::default(),
        }
    }

    /// What carries it.
    pub const fn layer4(&self) -> Layer4 {
        if self.outer.is_some() { Layer4::Tcp } else { Layer4::Udp }
    }

    /// Its largest segment (TCP's MSS) along a way whose datagrams may have `room` bytes.
    pub const fn max_segment(&self, room: u16) -> u16 {
        match self.layer4() {
            Layer4::Udp => Compression::max_segment(room),
            Layer4::Tcp => translate::max_segment(room),
        }
    }
}

/// Which way datagrams go. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// This host chose it.
    Conn(ConnId),
    /// The peer chose it: what came of this flow came by it, whatever came of others (RFC 9000 section 9.3).
    Back(WayBack),
}

/// The peer has yet to hear of another way. Plain value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    pub left: u8,
    pub next: Time,
}

/// Headers of the last packet that went out. None at first.
#[derive(Debug)]
pub(super) struct Headers {
    bytes: [u8; HEADERS],
    len: usize,
}

impl Default for Headers {
    fn default() -> Self {
        Self { bytes: [0; HEADERS], len: 0 }
    }
}

impl Headers {
    pub fn keep(&mut self, headers: &[u8]) {
        self.len = 0;
        if let Some(room) = self.bytes.get_mut(..headers.len()) {
            room.copy_from_slice(headers);
            self.len = headers.len();
        }
    }

    pub fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Engine {
    pub(super) fn lane(&self, id: FlowId) -> Option<&Lane> {
        self.lanes.get(id.place())?.as_ref().filter(|lane| lane.id == id)
    }

    pub(super) fn lane_mut(&mut self, id: FlowId) -> Option<&mut Lane> {
        self.lanes.get_mut(id.place())?.as_mut().filter(|lane| lane.id == id)
    }

    /// Step 1.
    pub(super) fn put_lane(&mut self, now: Time, lane: Lane) {
        self.drop_lane_at(now, lane.id.place());
        self.peers.get_mut(lane.peer.0).into_iter().for_each(|peer| peer.flows += 1);
        self.count_flow(now, lane.way, true);
        let place = lane.id.place();
        if self.lanes.len() <= place {
            self.lanes.resize_with(place + 1, || None);
        }
        self.lanes[place] = Some(lane);
    }

    /// A flow goes another way; says whether that is news.
    pub(super) fn set_way(&mut self, now: Time, id: FlowId, way: Way) -> bool {
        let Some(lane) = self.lane_mut(id).filter(|lane| lane.way != way) else { return false };
        let before = std::mem::replace(&mut lane.way, way);
        self.count_flow(now, before, false);
        self.count_flow(now, way, true);
        true
    }

    fn count_flow(&mut self, now: Time, way: Way, comes: bool) {
        let Way::Conn(id) = way else { return };
        let Some(conn) = self.conns.get_mut(id.0) else { return };
        conn.flows = if comes { conn.flows + 1 } else { conn.flows.saturating_sub(1) };
        conn.idle_since = now;
    }

    /// Step 3.
    pub(super) fn drop_lane(&mut self, now: Time, id: FlowId) {
        if self.lane(id).is_some() {
            self.drop_lane_at(now, id.place());
        }
    }

    pub(super) fn drop_lane_at(&mut self, now: Time, place: usize) {
        let Some(lane) = self.lanes.get_mut(place).and_then(Option::take) else { return };
        self.count_flow(now, lane.way, false);
        self.ports.give_back(now, &lane);
        let asked = (lane.key.local.port(), lane.key.remote);
        if lane.key.protocol == Protocol::Udp && self.served.get(&asked) == Some(&lane.id) {
            self.served.remove(&asked);
        }
        if let Some(peer) = self.peers.get_mut(lane.peer.0) {
            peer.flows -= 1;
            peer.compression.forget(&lane.key);
        }
        self.forget_idle_peer(lane.peer);
    }

    /// Step 3, for flows that made room for others.
    pub(super) fn drop_displaced(&mut self, now: Time) {
        while let Some((id, _)) = self.table.displaced() {
            self.drop_lane(now, id);
        }
    }

    /// Step 2.
    pub(super) fn follow(&mut self, observed: Observed, outside: &mut impl Outside) {
        if observed.before == Some(observed.state) {
            return;
        }
        let id = observed.flow;
        let connection = self.table.get(id).and_then(|flow| flow.connection);
        self.doubtful.extend(connection);
        match observed.state {
            State::Established => self.tell_opened(id, outside),
            State::Ended(end) => {
                let Some(lane) = self.lane_mut(id).filter(|lane| !lane.is_over) else { return };
                lane.is_over = true;
                let key = lane.key;
                self.tell_closed(id, key, Some(end), outside);
            }
            _ => {}
        }
    }

    fn tell_opened(&mut self, id: FlowId, outside: &mut impl Outside) {
        let (Some(flow), Some(lane)) = (self.table.get(id), self.lane(id)) else { return };
        let Some(peer) = self.peers.get(lane.peer.0) else { return };
        let token = flow.connection.and_then(|id| self.table.connection(id)?.token(Direction::In));
        outside.tell(Notice::Opened(Opened {
            key: flow.key,
            asked: flow.asked,
            role: flow.role,
            token,
            peer: peer.host,
            path: self.path_of(lane).cloned(),
        }));
    }

    pub(super) fn tell_closed(
        &self,
        id: FlowId,
        key: FlowKey,
        end: Option<crate::flow::End>,
        outside: &mut impl Outside,
    ) {
        let bytes = |direction| self.table.get(id).map_or(0, |flow| flow.track(direction).bytes);
        let (sent, received) = (bytes(Direction::Out), bytes(Direction::In));
        outside.tell(Notice::Closed { key, end, sent, received });
    }

    /// The path that this host chose for a flow.
    pub(super) fn path_of(&self, lane: &Lane) -> Option<&Fingerprint> {
        match lane.way {
            Way::Conn(id) => self.conns.get(id.0).map(|conn| conn.fingerprint()),
            Way::Back(_) => None,
        }
    }

    /// Other flows of a flow's connection that are not over: by the connection, or by the token by which they join.
    pub(super) fn siblings(
        &self,
        id: FlowId,
        connection: Option<ConnectionId>,
        joins: Option<Token>,
        peer: PeerId,
    ) -> Vec<FlowId> {
        let known = connection.and_then(|connection| self.table.connection(connection));
        let is_other = |lane: &Lane| lane.id != id && !lane.is_over && self.table.get(lane.id).is_some();
        if let Some(known) = known {
            return known.flows.iter().copied().filter(|one| self.lane(*one).is_some_and(is_other)).collect();
        }
        let Some(token) = joins else { return Vec::new() };
        let is_sibling = |lane: &&Lane| lane.joins == Some(token) && lane.peer == peer && is_other(lane);
        self.lanes.iter().flatten().filter(is_sibling).map(|lane| lane.id).collect()
    }

    /// Paths that flows have.
    pub(super) fn paths_of(&self, flows: &[FlowId]) -> Vec<Fingerprint> {
        flows.iter().filter_map(|id| self.path_of(self.lane(*id)?)).cloned().collect()
    }

    /// What a choice of a path to a peer depends on, beside paths that are used already.
    pub(super) fn wish<'u>(
        &self,
        now: Time,
        to: EndpointAddr,
        used: &'u [Fingerprint],
        dead: &'u [Fingerprint],
    ) -> Wish<'u> {
        let there = self.conns.iter().filter(|(_, conn)| conn.to == to);
        let health = there.map(|(_, conn)| (conn.fingerprint().clone(), conn.health.measured(now)));
        let planned = usize::from(self.opts.egress);
        Wish { now, select: self.opts.select, planned, used, dead, health: table_of(health) }
    }

    /// Paths that are dead to a peer.
    pub(super) fn dead_to(&self, to: EndpointAddr) -> Vec<Fingerprint> {
        let dead = self.conns.iter().filter(|(_, conn)| conn.to == to && conn.health.is_dead());
        dead.map(|(_, conn)| conn.fingerprint().clone()).collect()
    }

    /// The room of all connections may have changed.
    pub(super) fn doubt_all(&mut self) {
        let Self { doubtful, table, .. } = self;
        doubtful.extend(table.connections().map(|(id, _)| id));
    }

    /// Step 4.
    pub(super) fn settle(&mut self, now: Time, outside: &mut impl Outside) {
        while let Some(id) = self.doubtful.pop_first() {
            let Some((token, free)) = self.room_of(now, id) else { continue };
            let before = self.told.insert(id, free).unwrap_or(0);
            if before != free {
                outside.tell(Notice::Room { token, free });
            }
        }
    }

    /// How many more subflows a connection may have that this host's application asked for, and its name at this host's
    /// kernel.
    fn room_of(&self, now: Time, id: ConnectionId) -> Option<(Token, usize)> {
        let connection = self.table.connection(id)?;
        let token = connection.token(Direction::In)?;
        let lanes: Vec<&Lane> = connection.flows.iter().filter_map(|flow| self.lane(*flow)).collect();
        let lane = lanes.iter().find(|lane| !lane.is_over && lane.is_ours)?;
        let living = lanes.iter().filter(|lane| !lane.is_over).count();
        let Way::Conn(conn) = lane.way else { return None };
        let to = self.conns.get(conn.0)?.to;
        let used: Vec<Fingerprint> =
            lanes.iter().filter(|lane| !lane.is_over).filter_map(|lane| self.path_of(lane)).cloned().collect();
        let dead = self.dead_to(to);
        let wish = self.wish(now, to, &used, &dead);
        let unused = self.ases.get(&to.isd_as).map_or(0, |paths| paths.unused(&wish).count());
        Some((token, unused.min(usize::from(self.opts.egress).saturating_sub(living))))
    }
}
