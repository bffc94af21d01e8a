//! From peers: datagrams become packets.
//!
//! 1. [`Engine::handle_datagram`]: control datagrams go their own way.
//! 2. The peer's contexts make a packet of it. A whole one must be between the peer's addresses and this host's, and of
//!    a known flow only if its numbers fit: nobody else's definitions count.
//! 3. The packet finds its flow; a new flow goes back by the way that it came. Datagrams of UDP are `udp_in`'s.
//! 4. What the peer's end chose as its way is the way back from then on.
//! 5. The largest segment that a SYN offers is lowered, and the packet goes to this host.

use hawser_core::units::Time;
use hawser_scion::EndpointAddr;

use super::control::{Control, Said, is_control, parse};
use super::lanes::{Lane, Way};
use super::rewrite::clamp;
use super::{By, ConnId, Drop, Engine, Heard, Outside, PeerId};
use crate::compress::{Expanded, Rejected, is_datagram, is_whole};
use crate::flow::{Direction, FlowId, FlowKey, FlowTable, Mains, Protocol, Refused, State};
use crate::mptcp::{Flags, Segment, Sequence};
use crate::route::{InterfaceIndex, ScionHost};
use crate::translate::{Layer4, OuterPort};
use crate::udp::{Content, UserDatagram};

/// Numbers further than this from what is expected are nobody's who sees the flow: the largest windows in use (Linux's
/// `tcp_rmem` at its highest common setting, 64 MiB; RFC 5961 section 5 asks for a check like this one).
const PLAUSIBLE: u32 = 1 << 26;

/// The flow of a whole datagram, and whether that is a SYN.
type Named = (FlowKey, bool);

/// Where a datagram comes from. Plain value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub peer: PeerId,
    pub by: By,
    pub from: EndpointAddr,
    /// What it came as.
    pub layer4: Layer4,
    /// Its length.
    pub bytes: usize,
}

impl Engine {
    /// A datagram that came from an endpoint.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        by: By,
        from: EndpointAddr,
        datagram: &[u8],
        outside: &mut impl Outside,
    ) -> Heard {
        let heard = if is_control(datagram) {
            self.take_control(now, by, from, datagram, outside)
        } else {
            self.take_datagram(now, by, from, datagram, outside)
        };
        self.settle(now, outside);
        heard.unwrap_or_else(|why| {
            self.counters.drop(why);
            Heard::default()
        })
    }

    /// Step 1.
    fn take_control(
        &mut self,
        now: Time,
        by: By,
        from: EndpointAddr,
        datagram: &[u8],
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        match (parse(datagram).ok_or(Drop::Malformed)?, by) {
            (Said::Probe(nonce), _) => {
                let peer = self.hosts.get(&ScionHost::from(from)).and_then(|id| self.peers.get(id.0));
                if peer.is_none_or(|peer| peer.flows == 0) {
                    return Err(Drop::StrangeProbe);
                }
                self.counters.echoes += 1;
                Ok(Heard { keep: false, echo: Some(Control::of(Said::Answer(nonce))) })
            }
            (Said::Answer(nonce), By::Conn(id)) => {
                let conn = self.conns.get_mut(id.0).ok_or(Drop::UnknownEcho)?;
                let (peer, is_back) = (conn.peer, conn.health.answered(now, nonce).ok_or(Drop::UnknownEcho)?);
                self.has_answered(peer);
                if is_back {
                    self.conn_is_back(now, id, outside);
                }
                Ok(Heard::default())
            }
            (Said::Answer(nonce), By::Port(_)) => {
                let peer = *self.hosts.get(&ScionHost::from(from)).ok_or(Drop::UnknownEcho)?;
                self.answers_back(now, peer, from, nonce, outside).map(|()| Heard::default())
            }
            (Said::Knows(id), by) => {
                let peer = self.hosts.get(&ScionHost::from(from)).and_then(|peer| self.peers.get_mut(peer.0));
                let key = peer.and_then(|peer| peer.compression.knows(id)).ok_or(Drop::UnknownContext)?;
                self.heard_ack(now, by, &key, outside);
                // Who listens alone says nothing else, and nobody else knows the id.
                Ok(Heard { keep: self.table.find(&key).is_some_and(|id| self.goes_back(id, by)), echo: None })
            }
        }
    }

    /// Steps 2 to 5.
    fn take_datagram(
        &mut self,
        now: Time,
        by: By,
        from: EndpointAddr,
        datagram: &[u8],
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        if matches!(by, By::Port(_)) && !is_whole(datagram) && !self.hosts.contains_key(&ScionHost::from(from)) {
            return Err(Drop::UnknownContext);
        }
        let protocol = if is_datagram(datagram) { Protocol::Udp } else { Protocol::Tcp };
        let peer = match by {
            By::Conn(id) => self.conns.get(id.0).map(|conn| conn.peer),
            By::Port(_) => self.peer_for(now, protocol, ScionHost::from(from)),
        };
        let peer = peer.ok_or(Drop::Full)?;
        let origin = Origin { peer, by, from, layer4: Layer4::Udp, bytes: datagram.len() };
        let taken = self.take_from(now, origin, datagram, outside);
        if taken.is_err() {
            self.forget_idle_peer(peer);
        }
        taken
    }

    fn take_from(
        &mut self,
        now: Time,
        origin: Origin,
        datagram: &[u8],
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        let (named, partial) = self.expand(now, origin.peer, datagram)?;
        let Some(partial) = partial else {
            return match named {
                Some((key, _)) if key.protocol == Protocol::Udp => Ok(self.take_udp_headers(now, origin, key, outside)),
                _ => Ok(self.take_headers(now, origin, named, outside)),
            };
        };
        let mut packet = std::mem::take(&mut self.scratch.packet);
        let taken = if is_datagram(datagram) {
            self.take_udp_in(now, origin, &mut packet, partial, is_whole(datagram), outside)
        } else {
            self.take_segment(now, origin, &mut packet, partial, outside)
        };
        self.scratch.packet = packet;
        taken
    }

    /// Step 2. Says of which flow a whole datagram is and whether it is a SYN, and, where there is a packet, whether its
    /// checksum is partial.
    fn expand(&mut self, now: Time, peer: PeerId, datagram: &[u8]) -> Result<(Option<Named>, Option<bool>), Drop> {
        let Self { peers, routes, own, table, scratch, .. } = self;
        let peer = peers.get_mut(peer.0).ok_or(Drop::Full)?;
        let (mut named, mut why) = (None, Drop::Foreign);
        let host = peer.host;
        let may = |source, destination, content: &Content<'_>| {
            let protocol = match content {
                Content::Datagram(_) | Content::Fragment(_) | Content::Refused(_) => Protocol::Udp,
                Content::Segment(_) | Content::Other => Protocol::Tcp,
            };
            if !routes.may_send(host, protocol, source) || own.interface(destination).is_none() {
                return false;
            }
            match content {
                Content::Segment(segment) => {
                    named = Some((FlowKey::of(segment, Direction::In), segment.flags.has(Flags::SYN)));
                    why = Drop::Implausible;
                    is_plausible(table, segment)
                }
                Content::Datagram(UserDatagram { source, destination, .. }) => {
                    named = Some((FlowKey::between(protocol, *source, *destination, Direction::In), false));
                    true
                }
                Content::Fragment(_) | Content::Refused(_) => true,
                Content::Other => {
                    why = Drop::OtherProtocol;
                    false
                }
            }
        };
        match peer.compression.expand(now, datagram, may, &mut scratch.packet) {
            Ok(Expanded::Packet { partial }) => Ok((named, Some(partial))),
            Ok(Expanded::Nothing) => Ok((named, None)),
            Err(Rejected::Malformed) => Err(Drop::Malformed),
            Err(Rejected::Unknown) => Err(Drop::UnknownContext),
            Err(Rejected::Foreign) => Err(why),
        }
    }

    /// Headers alone say which way the peer's flow goes from now on, and what its context is. Of a flow that there is
    /// not they say no way: anybody can write them.
    fn take_headers(&mut self, now: Time, origin: Origin, named: Option<Named>, outside: &mut impl Outside) -> Heard {
        let is_its = |lane: &Lane| lane.peer == origin.peer && lane.layer4() == origin.layer4;
        let Some((key, is_syn)) = named else { return Heard::default() };
        let id = self.table.find(&key).filter(|id| self.lane(*id).is_some_and(is_its));
        let Some(id) = id else { return Heard::default() };
        let turns = !is_syn || self.turns_by_syn(now, &key, origin, outside);
        self.heard_of(now, id, origin, turns, outside);
        Heard { keep: self.goes_back(id, origin.by), echo: None }
    }

    /// Steps 3 to 5.
    pub(super) fn take_segment(
        &mut self,
        now: Time,
        origin: Origin,
        packet: &mut [u8],
        partial: bool,
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        let segment = Segment::parse(packet).map_err(|_| Drop::Malformed)?;
        let key = FlowKey::of(&segment, Direction::In);
        if let Some(lane) = self.table.find(&key).and_then(|id| self.lane(id)).filter(|lane| !lane.is_over) {
            // The addresses of a flow may lead to one peer and come from another: only one of them is right.
            if lane.peer != origin.peer {
                return Err(Drop::Foreign);
            }
            if lane.layer4() != origin.layer4 {
                return Err(Drop::Layer4);
            }
        }
        let is_syn = segment.flags.has(Flags::SYN);
        let turns = !is_syn || self.turns_by_syn(now, &key, origin, outside);
        let is_the_shims = self.own.is_the_shims(key.local.ip());
        let mains = if is_the_shims { Mains::Here } else { Mains::Anywhere };
        let observed = self.table.observe_among(now, Direction::In, &segment, mains);
        self.drop_displaced(now);
        let observed = observed.map_err(|refused| {
            self.forget_context(origin.peer, &key);
            match refused {
                Refused::Full => Drop::Full,
                Refused::UnknownToken(_) => Drop::UnknownToken,
                Refused::Stray => Drop::Stray,
            }
        })?;
        let id = observed.flow;
        let interface = match self.lane(id) {
            Some(lane) => lane.interface,
            None => self.begin_in(now, id, key, origin),
        };
        self.follow(observed, outside);
        self.heard_of(now, id, origin, turns, outside);
        if is_syn && let Some(most) = self.max_segment(id, outside) {
            clamp(packet, most, partial);
        }
        outside.deliver(interface, packet, partial);
        Ok(Heard { keep: self.goes_back(id, origin.by), echo: None })
    }

    /// Step 4, for a SYN: of a flow whose ends know each other's numbers it is believed late.
    fn turns_by_syn(&mut self, now: Time, key: &FlowKey, origin: Origin, outside: &mut impl Outside) -> bool {
        let Some(id) = self.table.find(key) else { return true };
        let lives = |state: State| !state.is_half_open() && !state.is_ended();
        match origin.by {
            By::Port(back) if self.table.get(id).is_some_and(|flow| lives(flow.state)) => {
                self.begins_anew(now, id, back, outside)
            }
            _ => true,
        }
    }

    /// Whether a flow's way is back by the one that something came by, or may be it soon.
    pub(super) fn goes_back(&self, id: FlowId, by: By) -> bool {
        let By::Port(back) = by else { return false };
        self.lane(id).is_some_and(|lane| lane.way == Way::Back(back) || lane.anew.is_some_and(|(by, _)| by == back))
    }

    /// A definition of a flow that there is not.
    fn forget_context(&mut self, peer: PeerId, key: &FlowKey) {
        if self.table.find(key).is_none() {
            self.peers.get_mut(peer.0).into_iter().for_each(|peer| peer.compression.forget(key));
        }
    }

    /// Step 3.
    pub(super) fn begin_in(&mut self, now: Time, id: FlowId, key: FlowKey, origin: Origin) -> InterfaceIndex {
        let Origin { peer, by, layer4, .. } = origin;
        let interface = self.own.interface(key.local.ip()).unwrap_or_default();
        let way = match by {
            By::Conn(conn) => Way::Conn(conn),
            By::Port(back) => Way::Back(back),
        };
        // A server's port is SCION's too.
        let outer = (layer4 == Layer4::Tcp).then_some(OuterPort(key.local.port()));
        let is_ours = matches!(by, By::Conn(_));
        self.put_lane(now, Lane { is_ours, outer, ..Lane::new(id, key, peer, interface, way) });
        interface
    }

    /// Step 4. `turns`: the flow's way is the one that this came by, from now on.
    fn heard_of(&mut self, now: Time, id: FlowId, origin: Origin, turns: bool, outside: &mut impl Outside) {
        let Some(lane) = self.lane_mut(id) else { return };
        match origin.by {
            By::Conn(conn) => {
                if lane.way == Way::Conn(conn) {
                    lane.announcement = None;
                }
                self.count_in(now, conn, origin.bytes, outside);
            }
            By::Port(back) if !lane.is_ours => {
                if turns {
                    lane.anew = None;
                    let _ = self.set_way(now, id, Way::Back(back));
                }
            }
            By::Port(_) => {
                // A segment says by its port which flow it is of, and nothing of its path: the peer answers along the
                // flow's.
                if let (Way::Conn(conn), Layer4::Tcp) = (lane.way, origin.layer4) {
                    lane.announcement = None;
                    self.count_in(now, conn, origin.bytes, outside);
                }
            }
        }
    }

    pub(super) fn count_in(&mut self, now: Time, id: ConnId, bytes: usize, outside: &mut impl Outside) {
        if let Some(conn) = self.conns.get_mut(id.0) {
            conn.passed[1].packets += 1;
            conn.passed[1].bytes += bytes as u64;
            self.conn_heard(now, id, outside);
        }
    }
}

/// Whether a whole segment from outside can be of the flow that it names: what it acknowledges was sent, and not long
/// ago, and it stands where the peer's next bytes are. What begins a flow is for the table.
pub(super) fn is_plausible(table: &FlowTable, segment: &Segment<'_>) -> bool {
    let Some(flow) = table.find(&FlowKey::of(segment, Direction::In)).and_then(|id| table.get(id)) else { return true };
    let (out, incoming) = (flow.track(Direction::Out), flow.track(Direction::In));
    let is_near = |number: Sequence, expected: Sequence| {
        number.since(expected) <= PLAUSIBLE || expected.since(number) <= PLAUSIBLE
    };
    let begins = segment.flags.has(Flags::SYN);
    let fits = begins || flow.state.is_ended() || incoming.end().is_none_or(|end| is_near(segment.sequence, end));
    let acknowledges = !segment.flags.has(Flags::ACK)
        || flow.state.is_ended()
        || out.end().is_none_or(|end| end.since(segment.acknowledgment) <= PLAUSIBLE);
    fits && acknowledges
}
