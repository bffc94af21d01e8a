//! From peers: datagrams of UDP.
//!
//! 1. [`Engine::take_udp_in`]: a packet that peer's contexts made, or that came whole, finds its flow; a new one goes
//!    back by the way that it came. Where peers or flows are too many, those that matter least go.
//! 2. The way back is another one when the peer's end chose another ([`Engine::heard_udp`]). UDP has no numbers that
//!    must fit: who names an id that nobody else knows is believed, anybody else only where the peer was silent. And
//!    not back and forth, by what is late.
//! 3. The packet goes to this host, to the address that its server answered from.
//! 4. A flow that goes one way has its context acknowledged alone.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::conn::WayBack;

use super::control::{Control, Said};
use super::inbound::Origin;
use super::lanes::Way;
use super::{By, Drop, Engine, Heard, Outside, STRANGERS};
use crate::flow::{Direction, FlowId, FlowKey, Protocol};
use crate::route::InterfaceIndex;
use crate::translate::Layer4;
use crate::udp::{Content, End, Fragment, Refused, readdress};

/// Who says nothing for so long may have begun anew, and is then known by nothing.
const BEGINS_ANEW: Duration = Duration::from_secs(1);
/// So long what comes by a way that was just left is late, and turns nothing: what a path's queue holds, mostly.
const LATE: Duration = Duration::from_secs(1);

impl Engine {
    /// Steps 1 to 4. `is_whole`: it came with all its headers.
    pub(super) fn take_udp_in(
        &mut self,
        now: Time,
        origin: Origin,
        packet: &mut [u8],
        partial: bool,
        is_whole: bool,
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        let content = Content::of_udp(packet);
        if let Content::Refused(refused) = content {
            return self.take_refused(origin, packet, refused, outside);
        }
        let Arrived { key, data_at, udp_at, part } = Arrived::of(&content).ok_or(Drop::Malformed)?;
        let known = match (key, part) {
            (None, Some(part)) => Some(self.parts[1].find(now, &part).ok_or(Drop::Stray)?),
            (key, _) => key.and_then(|key| self.table.find(&key)),
        };
        // The addresses of a flow may lead to one peer and come from another: only one of them is right.
        if known.and_then(|id| self.lane(id)).is_some_and(|lane| lane.peer != origin.peer) {
            return Err(Drop::Foreign);
        }
        let id = self.flow_in(now, known, key, origin, packet.len().saturating_sub(data_at), outside)?;
        part.iter().for_each(|part| self.parts[1].keep(now, part, id));
        let lane = self.lane(id).ok_or(Drop::Stray)?;
        let (interface, alias, key) = (lane.interface, lane.talk.alias, lane.key);
        self.got(origin.peer, origin.bytes);
        // Compact ones name an id.
        let heard = if is_whole && part.is_none() { self.ack_state(origin, &key) } else { (!is_whole, None) };
        self.heard_udp(now, id, origin, heard.0, outside);
        if let Some((address, _)) = alias {
            readdress(packet, End::Destination, address, udp_at, partial);
        }
        outside.deliver(alias.map_or(interface, |(_, interface)| interface), packet, partial);
        Ok(Heard { keep: self.goes_back(id, origin.by), echo: heard.1 })
    }

    /// What a peer's host has no use for, of a flow there is with it: programs are told as they are by IP.
    fn take_refused(
        &mut self,
        origin: Origin,
        packet: &[u8],
        refused: Refused,
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        let key = FlowKey::between(Protocol::Udp, refused.source, refused.destination, Direction::Out);
        let lane = self.table.find(&key).and_then(|id| self.lane(id)).ok_or(Drop::Stray)?;
        if lane.peer != origin.peer {
            return Err(Drop::Foreign);
        }
        outside.deliver(lane.interface, packet, false);
        Ok(Heard::default())
    }

    /// Headers alone.
    pub(super) fn take_udp_headers(
        &mut self,
        now: Time,
        origin: Origin,
        key: FlowKey,
        outside: &mut impl Outside,
    ) -> Heard {
        let (is_proven, echo) = self.ack_state(origin, &key);
        let id = self.table.find(&key);
        let Some(id) = id.filter(|id| self.lane(*id).is_some_and(|lane| lane.peer == origin.peer)) else {
            // What follows them begins a flow: its context is kept until then, or given up with the others that have
            // none.
            return Heard { keep: false, echo: None };
        };
        self.heard_udp(now, id, origin, is_proven, outside);
        Heard { keep: self.goes_back(id, origin.by), echo }
    }

    /// Step 1.
    fn flow_in(
        &mut self,
        now: Time,
        known: Option<FlowId>,
        key: Option<FlowKey>,
        origin: Origin,
        bytes: usize,
        outside: &mut impl Outside,
    ) -> Result<FlowId, Drop> {
        if let Some(observed) = known.and_then(|id| self.table.observe_datagram(now, Direction::In, id, bytes)) {
            self.follow(observed, outside);
            return Ok(observed.flow);
        }
        let key = key.ok_or(Drop::Stray)?;
        let flows = self.peers.get(origin.peer.0).map_or(0, |peer| peer.flows);
        if flows >= STRANGERS && !self.is_known(origin.peer) {
            return Err(Drop::Strangers);
        }
        let begun = self.table.begin_datagrams(now, Direction::In, key, bytes);
        self.drop_displaced(now);
        let id = begun.map_err(|_| Drop::Full)?.flow;
        self.begin_in(now, id, key, origin);
        self.served.insert((key.local.port(), key.remote), id);
        Ok(id)
    }

    /// Step 4. Says whether the last whole datagram of a flow proved to be the peer's, and what is to be told of it.
    fn ack_state(&mut self, origin: Origin, key: &FlowKey) -> (bool, Option<Control>) {
        let state = self.peers.get(origin.peer.0).map(|peer| peer.compression.ack_state(key)).unwrap_or_default();
        let due = state.due.map(|id| Control::of(Said::Knows(id)));
        // It counts as an answer, too.
        let may = |control: &Control| self.is_known(origin.peer) || self.spend(origin.peer, control.bytes().len(), 0);
        (state.is_proven, due.filter(may))
    }

    /// Step 2.
    pub(super) fn heard_udp(
        &mut self,
        now: Time,
        id: FlowId,
        origin: Origin,
        is_proven: bool,
        outside: &mut impl Outside,
    ) {
        debug_assert!(origin.layer4 == Layer4::Udp, "datagrams have no other");
        let Some(lane) = self.lane_mut(id) else { return };
        lane.talk.unheard = None;
        match (origin.by, lane.way) {
            (By::Conn(conn), way) => {
                if way == Way::Conn(conn) {
                    lane.announcement = None;
                }
                self.count_in(now, conn, origin.bytes, outside);
                self.conns.get_mut(conn.0).into_iter().for_each(|conn| conn.health.listen(now));
            }
            (By::Port(back), Way::Back(before)) if !lane.is_ours => {
                if !self.turn_back(now, id, before, back, is_proven) {
                    return;
                }
            }
            (By::Port(_), _) => {}
        }
        self.release_proven(now, origin.peer, outside);
    }

    /// Step 2: something of a flow's came by a way, which is another one maybe. Says whether it is believed.
    fn turn_back(&mut self, now: Time, id: FlowId, before: WayBack, back: WayBack, is_proven: bool) -> bool {
        let Some(talk) = self.lane_mut(id).map(|lane| &mut lane.talk) else { return false };
        if before != back && !talk.turns(now, back, is_proven) {
            return false;
        }
        if is_proven || before != back {
            talk.proven = Some(now);
        }
        if before != back {
            // Who is believed without a proof may be nobody: then the one before is not late.
            talk.left = is_proven.then_some((before, now));
            self.set_way(now, id, Way::Back(back));
        }
        true
    }

    /// The peer acknowledged a context alone.
    pub(super) fn heard_ack(&mut self, now: Time, by: By, key: &FlowKey, outside: &mut impl Outside) {
        let lane = self.table.find(key).and_then(|id| self.lane_mut(id));
        if let Some(lane) = lane {
            lane.talk.unheard = None;
            let (id, is_ours) = (lane.id, lane.is_ours);
            match (by, lane.way) {
                (By::Conn(conn), Way::Conn(its)) if its == conn => lane.announcement = None,
                (By::Port(back), Way::Back(before)) if !is_ours => drop(self.turn_back(now, id, before, back, true)),
                _ => {}
            }
        }
        if let By::Conn(conn) = by {
            self.conn_heard(now, conn, outside);
        }
    }
}

/// What of a packet a flow must know. Lives while the packet is taken.
struct Arrived {
    /// None in later fragments.
    key: Option<FlowKey>,
    data_at: usize,
    /// Where the UDP header starts, where there is one.
    udp_at: Option<usize>,
    part: Option<Fragment>,
}

impl Arrived {
    fn of(content: &Content<'_>) -> Option<Self> {
        let between = |source, destination| FlowKey::between(Protocol::Udp, source, destination, Direction::In);
        match *content {
            Content::Datagram(datagram) => Some(Self {
                key: Some(between(datagram.source, datagram.destination)),
                data_at: datagram.payload_at(),
                udp_at: Some(datagram.udp_at.into()),
                part: None,
            }),
            Content::Fragment(part) => {
                let ends = |(source, destination)| {
                    between((part.source, source).into(), (part.destination, destination).into())
                };
                let data_at = usize::from(part.data_at);
                let udp_at = part.ports.map(|_| data_at);
                Some(Self { key: part.ports.map(ends), data_at, udp_at, part: Some(part) })
            }
            Content::Segment(_) | Content::Refused(_) | Content::Other => None,
        }
    }
}

/// What of a lane is UDP's alone. Nothing at first. Plain data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Talk {
    /// The address that this host's server answers from, where it is another than it was asked at, and its interface.
    pub alias: Option<(std::net::IpAddr, InterfaceIndex)>,
    /// Which the way was before, and since when it is not.
    pub left: Option<(WayBack, Time)>,
    /// When who proved to be the peer said something last.
    pub proven: Option<Time>,
    /// Since when nothing came, while datagrams went out.
    pub unheard: Option<Time>,
}

impl Talk {
    /// Whether what comes by another way turns the flow's.
    fn turns(&self, now: Time, by: WayBack, is_proven: bool) -> bool {
        let is_late = self.left.is_some_and(|(left, since)| left == by && now.since(since) < LATE);
        let is_silent = self.proven.is_none_or(|proven| now.since(proven) >= BEGINS_ANEW);
        !is_late && (is_proven || is_silent)
    }
}
