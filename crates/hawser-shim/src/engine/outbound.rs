//! From this host: packets become datagrams.
//!
//! 1. [`Engine::handle_packet`]: a packet of TCP, from an address of this host's, finds its flow. UDP's are
//!    `udp_out`'s.
//! 2. A new flow finds its peer by its destination, and gets a path ([`Engine::begin`]). Where paths are not known yet
//!    it waits for them; where there are none, this host is told at once, by ICMP or, for a subflow, by a RST.
//! 3. The largest segment that a SYN offers is lowered to what the path takes.
//! 4. The packet becomes datagrams, and they leave. One that is too large is cut where its checksum is still to be
//!    made, and the kernel is told of the size; else it is refused.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_core::packet::inner::{IPV4_HEADER, IPV6_HEADER, TCP_HEADER};
use hawser_core::units::Time;
use hawser_scion::{Dataplane, EndpointAddr, Fingerprint, Path};

use super::choice::AsPaths;
use super::form::{Form, Writer};
use super::lanes::{Lane, Way};
use super::replies::{Refusal, refuse, reset};
use super::rewrite::clamp;
use super::{Drop, Engine, Outside, Sent, Via};
use crate::compress::Offload;
use crate::flow::{Direction, FlowId, Protocol, Refused, Role};
use crate::mptcp::{Flags, JoinForm, MptcpOption, Segment, Token};
use crate::route::{InterfaceIndex, ScionHost};
use crate::translate::{Layer4, NotCut, OuterPort};

/// Packets that wait for paths, all together: SYNs, mostly.
const MOST_WAITING: usize = 256;
/// Datagrams of UDP among them: nobody holds them back until the first has an answer.
const MOST_WAITING_UDP: usize = 64;
/// How long one waits: longer than a daemon may take (hawser-scion's `REQUEST_TIMEOUT`, 5 s).
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(6);
/// Paths are asked for again so long after no answer came.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Protocols that this host hears nothing of when they do not cross: ICMPv6, whose messages nobody refuses (RFC 4443
/// section 2.4), and ICMP.
const SILENT: [u8; 2] = [1, 58];
/// A packet that waits for paths.
#[derive(Debug)]
pub(super) struct Waiting {
    pub since: Time,
    pub to: EndpointAddr,
    interface: InterfaceIndex,
    is_udp: bool,
    packet: Vec<u8>,
    offload: Offload,
}

/// What is asked for by the first packet of a flow. Lives while that begins.
pub(super) struct Asked {
    pub destination: SocketAddr,
    /// By which it joins.
    pub joins: Option<Token>,
    /// This host begins it.
    pub begins: bool,
}

impl Engine {
    /// A packet that this host sends into an interface. What was changed in it is of no more interest.
    pub fn handle_packet(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        packet: &mut [u8],
        offload: Offload,
        outside: &mut impl Outside,
    ) {
        if let Err(why) = self.take_packet(now, interface, packet, offload, outside) {
            self.counters.drop(why);
        }
        self.settle(now, outside);
    }

    /// Step 1.
    fn take_packet(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        packet: &mut [u8],
        offload: Offload,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        let Ok(segment) = Segment::parse(packet) else {
            return self.take_udp(now, interface, packet, offload, outside);
        };
        if self.own.interface(segment.source.ip()).is_none() {
            return Err(Drop::NotOurs);
        }
        let observed = self.table.observe(now, Direction::Out, &segment);
        self.drop_displaced(now);
        let observed = observed.map_err(|refused| match refused {
            Refused::Full => Drop::Full,
            Refused::UnknownToken(_) => Drop::UnknownToken,
            Refused::Stray => Drop::Stray,
        })?;
        let is_syn = segment.flags.has(Flags::SYN);
        let headers = usize::from(segment.tcp_at) + TCP_HEADER + segment.options_len();
        if self.lane(observed.flow).is_none() {
            let asked = Asked { destination: segment.destination, joins: token_of(&segment), begins: is_syn };
            match self.begin(now, interface, &asked, observed.flow, outside) {
                Ok(()) => {}
                Err(why) => {
                    self.table.forget(observed.flow);
                    return self.refuse_flow(now, interface, packet, offload, why, outside);
                }
            }
        }
        self.follow(observed, outside);
        if is_syn && let Some(most) = self.max_segment(observed.flow, outside) {
            clamp(packet, most, offload.partial);
        }
        self.leave(now, observed.flow, packet, headers, offload, outside)
    }

    /// What is neither TCP nor UDP does not cross.
    pub(super) fn refuse_other(&mut self, interface: InterfaceIndex, packet: &[u8], outside: &mut impl Outside) {
        let Ok(inner) = hawser_core::packet::inner::parse(packet) else { return };
        let is_unicast = !inner.destination.is_multicast() && !inner.destination.is_unspecified();
        if !SILENT.contains(&inner.protocol) && is_unicast && self.own.interface(inner.source).is_some() {
            self.reply(interface, packet, Refusal::Prohibited, outside);
        }
    }

    pub(super) fn reply(
        &mut self,
        interface: InterfaceIndex,
        packet: &[u8],
        refusal: Refusal,
        outside: &mut impl Outside,
    ) {
        let reply = &mut self.scratch.reply;
        if refuse(packet, refusal, reply) {
            outside.deliver(interface, reply, false);
        }
    }

    /// Step 2, where there is no way.
    pub(super) fn refuse_flow(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        packet: &[u8],
        offload: Offload,
        why: NoWay,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        match why {
            NoWay::Waits(to) => {
                let is_udp = Segment::parse(packet).is_err();
                let most = if is_udp { MOST_WAITING_UDP } else { MOST_WAITING };
                if self.waiting.iter().filter(|one| !is_udp || one.is_udp).count() >= most {
                    return Err(Drop::Waiting);
                }
                self.waiting.push(Waiting { since: now, to, interface, is_udp, packet: packet.to_vec(), offload });
                Ok(())
            }
            NoWay::Dropped(why @ (Drop::NoRoute | Drop::NoPath)) => {
                self.reply(interface, packet, Refusal::Unreachable, outside);
                Err(why)
            }
            NoWay::Dropped(why @ Drop::NoPathLeft) => {
                if let Ok(segment) = Segment::parse(packet) {
                    reset(&segment, &mut self.scratch.reply);
                    outside.deliver(interface, &self.scratch.reply, false);
                }
                Err(why)
            }
            NoWay::Dropped(why) => Err(why),
        }
    }

    /// Step 2.
    pub(super) fn begin(
        &mut self,
        now: Time,
        interface: InterfaceIndex,
        asked: &Asked,
        id: FlowId,
        outside: &mut impl Outside,
    ) -> Result<(), NoWay> {
        let flow = self.table.get(id).ok_or(NoWay::Dropped(Drop::Full))?;
        let (key, role, connection) = (flow.key, flow.role, flow.connection);
        let target = self.routes.to(key.protocol, asked.destination).ok_or(NoWay::Dropped(Drop::NoRoute))?;
        let to = target.end;
        if ScionHost::from(to) == ScionHost::from(self.opts.local) {
            return Err(NoWay::Dropped(Drop::NoRoute));
        }
        self.know_paths(now, to, outside)?;
        let peer = self.peer_for(now, key.protocol, ScionHost::from(to)).ok_or(NoWay::Dropped(Drop::Full))?;
        if key.protocol == Protocol::Udp && !self.may_begin(now, peer) {
            self.forget_idle_peer(peer);
            return Err(NoWay::Dropped(Drop::Unproven));
        }
        let joins = asked.joins;
        let siblings = self.siblings(id, connection, joins, peer);
        let used = self.paths_of(&siblings);
        let path = self.path_for(now, to, role, &used)?;
        let conn = self.conn_along(now, peer, to, &path, outside);
        let Some(conn) = conn else {
            self.ases
                .get_mut(&to.isd_as)
                .into_iter()
                .for_each(|paths| paths.set_aside(now, |one| *one == path.interfaces));
            self.forget_idle_peer(peer);
            return Err(NoWay::Dropped(Drop::Refused));
        };
        let is_ours = !interface.is_ingress() || asked.begins;
        let outer = match self.opts.layer4 {
            Layer4::Udp => None,
            Layer4::Tcp if key.protocol == Protocol::Udp => None,
            Layer4::Tcp if is_ours => {
                let port = self.take_port(now, peer, key.remote.port(), id, outside);
                Some(port.ok_or(NoWay::Dropped(Drop::Full))?)
            }
            // A server's, as its peer knows it.
            Layer4::Tcp => Some(OuterPort(key.local.port())),
        };
        self.put_lane(now, Lane { is_ours, joins, outer, ..Lane::new(id, key, peer, interface, Way::Conn(conn)) });
        Ok(())
    }

    /// Step 2: paths to the peer's AS must be known.
    pub(super) fn know_paths(&mut self, now: Time, to: EndpointAddr, outside: &mut impl Outside) -> Result<(), NoWay> {
        let local = self.opts.local;
        let paths = self.ases.entry(to.isd_as).or_insert_with(|| {
            let mut paths = AsPaths::default();
            if to.isd_as == local.isd_as {
                paths.learn(vec![inside(local)]);
            }
            paths
        });
        paths.used = now;
        if !paths.paths.is_empty() {
            return Ok(());
        }
        if paths.asked.is_none_or(|asked| now.since(asked) >= ASK_AGAIN) {
            paths.asked = Some(now);
            outside.ask(to.isd_as);
        }
        Err(if paths.is_known { NoWay::Dropped(Drop::NoPath) } else { NoWay::Waits(to) })
    }

    /// Step 2: a path that the connection does not use. A main flow takes a dead one rather than none: it may work
    /// again.
    pub(super) fn path_for(
        &self,
        now: Time,
        to: EndpointAddr,
        role: Role,
        used: &[Fingerprint],
    ) -> Result<Path, NoWay> {
        let dead = self.dead_to(to);
        let paths = self.ases.get(&to.isd_as).ok_or(NoWay::Dropped(Drop::NoPath))?;
        let path = paths.pick(&self.wish(now, to, used, &dead));
        match (path, role) {
            (Some(path), _) => Ok(path),
            (None, Role::Subflow) => Err(NoWay::Dropped(Drop::NoPathLeft)),
            (None, _) => paths.any().ok_or(NoWay::Dropped(Drop::NoPath)),
        }
    }

    /// Bytes that a flow's datagrams may have.
    pub(super) fn room(&self, id: FlowId, outside: &mut impl Outside) -> Option<u16> {
        match self.lane(id)?.way {
            Way::Conn(id) => self.conns.get(id.0).map(|conn| conn.room),
            Way::Back(to) => outside.room_back(to),
        }
    }

    /// The largest segment of a flow, as its way is now.
    pub(super) fn max_segment(&self, id: FlowId, outside: &mut impl Outside) -> Option<u16> {
        let room = self.room(id, outside)?;
        Some(self.lane(id)?.max_segment(room))
    }

    /// Step 4.
    fn leave(
        &mut self,
        now: Time,
        id: FlowId,
        packet: &[u8],
        headers: usize,
        offload: Offload,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        let room = self.room(id, outside).ok_or(Drop::Refused)?;
        let Self { lanes, peers, scratch, .. } = self;
        let lane = lanes.get_mut(id.place()).and_then(Option::as_mut).ok_or(Drop::Stray)?;
        let peer = peers.get_mut(lane.peer.0).ok_or(Drop::Stray)?;
        let (way, interface, mtu) = (lane.way, lane.interface, mtu_of(packet, lane.max_segment(room)));
        if lane.is_ours {
            lane.headers.keep(packet.get(..headers).unwrap_or_default());
        }
        let (compression, out) = (&mut peer.compression, &mut scratch.datagrams);
        out.clear();
        let mut writer = Writer { now, room, outer: lane.outer, compression, out };
        let mut written = writer.write(packet, offload, outside);
        let most = writer.most(u16::try_from(options_of(packet, headers)).unwrap_or(0));
        let is_cut = matches!(written, Err(NotCut::TooLarge(_))) && offload.partial && most > 0;
        if is_cut {
            written = writer.write(packet, Offload { segment: Some(most), ..offload }, outside);
        }
        let form = match written {
            Ok(form) => form,
            Err(NotCut::Damaged) => return Err(Drop::Damaged),
            Err(NotCut::TooLarge(_)) => {
                self.reply(interface, packet, Refusal::TooLarge(mtu), outside);
                return Err(Drop::TooLarge);
            }
        };
        let sent = self.depart(now, way, form, outside);
        if is_cut {
            self.reply(interface, packet, Refusal::TooLarge(mtu), outside);
        }
        sent
    }

    /// Step 4: what a packet has become goes.
    pub(super) fn depart(&mut self, now: Time, way: Way, form: Form, outside: &mut impl Outside) -> Result<(), Drop> {
        let datagrams = &self.scratch.datagrams;
        let (via, conn) = match way {
            Way::Conn(id) => (Via::Conn(id), Some(id)),
            Way::Back(to) => (Via::Back(to), None),
        };
        let sent = form.send(via, datagrams, outside);
        if let Some(conn) = conn.and_then(|id| self.conns.get_mut(id.0)) {
            conn.sent(now, datagrams.len(), datagrams.total());
        }
        match (sent, conn) {
            (Sent::All, _) => Ok(()),
            (Sent::Full, _) => Err(Drop::SocketFull),
            (Sent::Expired, Some(id)) => {
                // Each packet that stays on it finds that out anew.
                if self.conns.get(id.0).is_some_and(|conn| !conn.health.is_dead()) {
                    self.conn_died(now, id, super::Reason::Gone, outside);
                }
                Err(Drop::Refused)
            }
            (Sent::Refused | Sent::Expired, _) => Err(Drop::Refused),
        }
    }

    /// Step 2: packets that waited for paths to an AS go on, or are refused.
    pub(super) fn wake(&mut self, now: Time, isd_as: hawser_scion::IsdAs, outside: &mut impl Outside) {
        let (woken, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|one| one.to.isd_as == isd_as);
        self.waiting = waiting;
        for mut one in Vec::<Waiting>::into_iter(woken) {
            self.handle_packet(now, one.interface, &mut one.packet, one.offload, outside);
        }
    }

    /// Step 2: packets that waited for too long are refused.
    pub(super) fn refuse_waiting(&mut self, now: Time, outside: &mut impl Outside) {
        let (over, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|one| now.since(one.since) >= LONGEST_WAIT);
        self.waiting = waiting;
        for one in over {
            self.reply(one.interface, &one.packet, Refusal::Unreachable, outside);
            self.counters.drop(Drop::NoPath);
        }
    }
}

/// Why a new flow has no way. Plain value.
pub(super) enum NoWay {
    /// Paths are not known yet.
    Waits(EndpointAddr),
    /// There is none.
    Dropped(Drop),
}

/// The path inside an AS.
fn inside(local: EndpointAddr) -> Path {
    Path {
        source: local.isd_as,
        destination: local.isd_as,
        dataplane: Dataplane::Empty,
        next_hop: None,
        mtu: u16::MAX,
        interfaces: Fingerprint::default(),
        latency: Vec::new(),
        bandwidth: Vec::new(),
        expiry: std::time::UNIX_EPOCH,
    }
}

/// The token by which a SYN joins.
fn token_of(segment: &Segment<'_>) -> Option<Token> {
    segment.mptcp().flatten().find_map(|option| match option {
        MptcpOption::Join(join) => match join.form {
            JoinForm::Syn { token, .. } => Some(token),
            _ => None,
        },
        _ => None,
    })
}

/// Bytes of TCP's options, of a packet whose headers have this many bytes.
fn options_of(packet: &[u8], headers: usize) -> usize {
    headers.saturating_sub(TCP_HEADER + ip_header(packet))
}

fn ip_header(packet: &[u8]) -> usize {
    if packet.first().is_some_and(|first| first >> 4 == 4) { IPV4_HEADER } else { IPV6_HEADER }
}

/// Bytes of a packet of this IP version with the largest segment.
fn mtu_of(packet: &[u8], most: u16) -> u16 {
    let headers = u16::try_from(ip_header(packet) + TCP_HEADER).unwrap_or(u16::MAX);
    most.saturating_add(headers)
}
