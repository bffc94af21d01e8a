//! From this host: datagrams of UDP.
//!
//! 1. [`Engine::take_udp`]: a datagram finds its flow, or begins one, with the best path for as long as that lives. An
//!    answer that a server gives from another address than it was asked at is given back the one it was asked at
//!    ([`Engine::flow_out`]).
//! 2. Where nothing comes back any more the way that the peer chose, this host chooses ([`Engine::choose_again`]).
//! 3. It becomes datagrams ([`Engine::leave_udp`]). One too large for the path is fragmented, where routers may do so,
//!    or refused.
//! 4. To whom nobody knows no more goes than came from there (`proof`).
//! 5. Fragments that the kernel made follow the first of them, which has the ports.
//! 6. What this host refuses of a peer's flow is told, as ICMP would.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_core::units::Time;

use super::form::Form;
use super::lanes::Way;
use super::outbound::{Asked, NoWay};
use super::replies::Refusal;
use super::{Drop, Engine, Outside, Reason};
use crate::compress::{Compression, Datagrams, Offload};
use crate::flow::{Direction, FlowId, FlowKey, Protocol, Role};
use crate::route::{InterfaceIndex, ScionHost};
use crate::udp::{
    Content, End, Fragment, Refused, UserDatagram, addresses, complete, fragment, may_fragment, readdress,
};

/// Silence of a peer that chose the way, while datagrams go: it acknowledges contexts twice a second at least.
const SILENCE: Duration = Duration::from_secs(3);

impl Engine {
    /// Step 1, for what is no segment of TCP.
    pub(super) fn take_udp(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        packet: &mut [u8],
        offload: Offload,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        let (content, ends) = (Content::of_udp(packet), addresses(packet));
        if let Content::Refused(refused) = content {
            return self.take_refusal(now, packet, refused, outside);
        }
        let (Content::Datagram(_) | Content::Fragment(_), Some((source, destination))) = (&content, ends) else {
            self.refuse_other(interface, packet, outside);
            return Err(Drop::OtherProtocol);
        };
        if self.own.interface(source).is_none() {
            return Err(Drop::NotOurs);
        }
        if destination.is_multicast() || destination.is_unspecified() {
            return Err(Drop::NoRoute);
        }
        match content {
            Content::Datagram(datagram) => {
                let (source, destination) = (datagram.source, datagram.destination);
                let bytes = packet.len() - datagram.payload_at();
                match self.flow_out(now, interface, (source, destination), bytes, outside) {
                    Ok(id) => self.leave_udp(now, interface, id, packet, datagram, offload, outside),
                    Err(why) => self.refuse_flow(now, interface, packet, offload, why, outside),
                }
            }
            Content::Fragment(part) => self.take_fragment(now, interface, packet, part, outside),
            Content::Segment(_) | Content::Refused(_) | Content::Other => Ok(()),
        }
    }

    /// Step 6.
    fn take_refusal(
        &mut self,
        now: Time,
        packet: &[u8],
        refused: Refused,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        let key = FlowKey::between(Protocol::Udp, refused.source, refused.destination, Direction::In);
        let id = self.table.find(&key).ok_or(Drop::OtherProtocol)?;
        let room = self.room(id, outside).ok_or(Drop::Refused)?;
        let peer = self.lane(id).ok_or(Drop::Stray)?.peer;
        let Self { peers, scratch, .. } = self;
        let compression = &mut peers.get_mut(peer.0).ok_or(Drop::Stray)?.compression;
        scratch.datagrams.clear();
        compression.carry(packet, &[], room, &mut scratch.datagrams).map_err(|_| Drop::TooLarge)?;
        self.depart_proven(now, id, outside)
    }

    /// Step 1.
    fn flow_out(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        (source, destination): (SocketAddr, SocketAddr),
        bytes: usize,
        outside: &mut impl Outside,
    ) -> Result<FlowId, NoWay> {
        let key = FlowKey::between(Protocol::Udp, source, destination, Direction::Out);
        let known = self.table.find(&key).or_else(|| self.served(&key, interface));
        if let Some(observed) = known.and_then(|id| self.table.observe_datagram(now, Direction::Out, id, bytes)) {
            self.follow(observed, outside);
            return Ok(observed.flow);
        }
        let begun = self.table.begin_datagrams(now, Direction::Out, key, bytes);
        self.drop_displaced(now);
        let id = begun.map_err(|_| NoWay::Dropped(Drop::Full))?.flow;
        let begun = self.begin(now, interface, &Asked { destination, joins: None, begins: true }, id, outside);
        begun.inspect_err(|_| self.table.forget(id))?;
        Ok(id)
    }

    /// Step 1: a flow that a peer began with one of this host's addresses, which the kernel answers from another: a
    /// socket that is bound to none says nothing of where it was asked.
    fn served(&mut self, key: &FlowKey, interface: InterfaceIndex) -> Option<FlowId> {
        let id = *self.served.get(&(key.local.port(), key.remote))?;
        let lane = self.lane_mut(id)?;
        lane.talk.alias = Some((key.local.ip(), interface));
        Some(id)
    }

    /// Steps 2 to 4.
    #[expect(clippy::too_many_arguments, reason = "a packet, and what was read of it")]
    fn leave_udp(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        id: FlowId,
        packet: &mut [u8],
        mut datagram: UserDatagram,
        offload: Offload,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        self.look_for_silence(now, id, outside);
        let room = self.room(id, outside).ok_or(Drop::Refused)?;
        let Self { lanes, peers, scratch, .. } = self;
        let lane = lanes.get_mut(id.place()).and_then(Option::as_mut).ok_or(Drop::Stray)?;
        let peer = peers.get_mut(lane.peer.0).ok_or(Drop::Stray)?;
        let (asked_at, at) = (lane.key.local, usize::from(datagram.udp_at));
        let from = std::mem::replace(&mut datagram.source, asked_at);
        if from != asked_at {
            readdress(packet, End::Source, asked_at.ip(), Some(at), offload.partial);
        }
        let (compression, out) = (&mut peer.compression, &mut scratch.datagrams);
        out.clear();
        let mut random = || outside.random();
        let written = compression.shrink_datagram(now, packet, &datagram, offload, room, &mut random, out);
        let is_written = written.is_ok()
            || (offload.segment.is_none() && may_fragment(packet) && {
                if offload.partial {
                    complete(packet, at);
                }
                carry_cut(packet, room, compression, out)
            });
        if !is_written {
            // The kernel finds the socket by the address that it knows.
            readdress(packet, End::Source, from.ip(), Some(at), offload.partial);
            self.reply(interface, packet, Refusal::TooLarge(Compression::max_whole(room)), outside);
            return Err(Drop::TooLarge);
        }
        self.depart_proven(now, id, outside)
    }

    /// Step 4, of what was written.
    fn depart_proven(&mut self, now: Time, id: FlowId, outside: &mut impl Outside) -> Result<(), Drop> {
        let way = self.lane(id).ok_or(Drop::Stray)?.way;
        let is_answer = self.table.get(id).is_some_and(|flow| flow.asked == Direction::In);
        if is_answer && !self.may_answer(id) {
            return self.hold(now, id, outside);
        }
        self.depart(now, way, Form::Datagrams, outside)
    }

    /// Step 5.
    fn take_fragment(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        packet: &mut [u8],
        part: Fragment,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        let bytes = packet.len() - usize::from(part.data_at);
        let id = match part.ports {
            Some((source, destination)) => {
                let ends = (SocketAddr::new(part.source, source), SocketAddr::new(part.destination, destination));
                match self.flow_out(now, interface, ends, bytes, outside) {
                    Ok(id) => id,
                    Err(why) => return self.refuse_flow(now, interface, packet, Offload::default(), why, outside),
                }
            }
            None => {
                let id = self.parts[0].find(now, &part).ok_or(Drop::Stray)?;
                self.table.observe_datagram(now, Direction::Out, id, bytes).ok_or(Drop::Stray)?;
                id
            }
        };
        self.parts[0].keep(now, &part, id);
        let room = self.room(id, outside).ok_or(Drop::Refused)?;
        let lane = self.lane(id).ok_or(Drop::Stray)?;
        let (peer, asked_at) = (lane.peer, lane.key.local.ip());
        if part.source != asked_at {
            readdress(packet, End::Source, asked_at, part.ports.map(|_| part.data_at.into()), false);
        }
        let Self { peers, scratch, .. } = self;
        let compression = &mut peers.get_mut(peer.0).ok_or(Drop::Stray)?.compression;
        let out = &mut scratch.datagrams;
        out.clear();
        let is_carried = compression.carry(packet, &[], room, out).is_ok()
            || (may_fragment(packet) && carry_cut(packet, room, compression, out));
        if !is_carried {
            self.reply(interface, packet, Refusal::TooLarge(Compression::max_whole(room)), outside);
            return Err(Drop::TooLarge);
        }
        self.depart_proven(now, id, outside)
    }

    /// Step 2.
    fn look_for_silence(&mut self, now: Time, id: FlowId, outside: &mut impl Outside) {
        let Some(lane) = self.lane_mut(id).filter(|lane| matches!(lane.way, Way::Back(_))) else { return };
        let since = *lane.talk.unheard.get_or_insert(now);
        if now.since(since) >= SILENCE {
            // One try, and the next after as much silence again.
            lane.talk.unheard = Some(now);
            self.choose_again(now, id, outside);
        }
    }

    /// Step 2: the peer's shim began anew, and its end only listens; or its path is dead.
    fn choose_again(&mut self, now: Time, id: FlowId, outside: &mut impl Outside) -> Option<()> {
        let lane = self.lane(id)?;
        let (key, peer) = (lane.key, lane.peer);
        let to = self.routes.to(Protocol::Udp, key.remote)?.end;
        let is_the_peers = self.peers.get(peer.0)?.host == ScionHost::from(to);
        if !is_the_peers || self.know_paths(now, to, outside).is_err() {
            return None;
        }
        let path = self.path_for(now, to, Role::Plain, &[]).ok()?;
        let conn = self.conn_along(now, peer, to, &path, outside)?;
        self.set_way(now, id, Way::Conn(conn));
        let lane = self.lane_mut(id)?;
        (lane.is_ours, lane.moves) = (true, lane.moves + 1);
        self.counters.move_flow(Reason::Silence);
        Some(())
    }
}

/// Step 3: writes a packet as fragments that fit. Says whether it did.
fn carry_cut(packet: &[u8], room: u16, compression: &mut Compression, out: &mut Datagrams) -> bool {
    fragment(packet, Compression::max_whole(room).into(), |header, data| {
        // They are made to fit.
        let _ = compression.carry(header, data, room, out);
    })
}
