//! From peers, where TCP is SCION's layer 4: segments become packets.
//!
//! 1. [`Engine::handle_segment`]: a host whose policy is another takes none.
//! 2. A segment to a port that a flow of this host's has is that flow's, and between its addresses again
//!    ([`Engine::ends`]). Any other is for a server here: from a surrogate address of its sender, which stands for all
//!    of them, to the ingress. Where the sender is an IPv6 host in SCION, derived addresses stand there.
//! 3. From there on it is a packet as from a datagram: its numbers must fit, and its flow may be.

use std::net::{IpAddr, SocketAddr};

use hawser_core::units::Time;
use hawser_scion::EndpointAddr;
use hawser_scion::conn::WayBack;

use super::inbound::{Origin, is_plausible};
use super::{By, Drop, Engine, Heard, Outside};
use crate::mptcp::Segment;
use crate::route::{Addresses, InterfaceIndex, ScionHost};
use crate::translate::{Layer4, OuterPort, ports, restore};

/// The interface that a peer's flows come from here: which one it was is not told, and their ports tell them apart.
const SENDER: u8 = 1;

impl Engine {
    /// A segment that came by a way; the port of its end is TCP's. `class` is its traffic class. Says whether it is of
    /// one of its sender's flows, which goes back by that way: it is to be kept.
    pub fn handle_segment(
        &mut self,
        now: Time,
        back: WayBack,
        segment: &[u8],
        class: u8,
        outside: &mut impl Outside,
    ) -> bool {
        let taken = self.take_bare(now, back, segment, class, outside);
        self.settle(now, outside);
        taken.map_err(|why| self.counters.drop(why)).is_ok_and(|heard| heard.keep)
    }

    /// Step 1.
    fn take_bare(
        &mut self,
        now: Time,
        back: WayBack,
        segment: &[u8],
        class: u8,
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        if self.opts.layer4 != Layer4::Tcp {
            return Err(Drop::Layer4);
        }
        let (_, port) = ports(segment).ok_or(Drop::Malformed)?;
        let from = back.end;
        let peer = self.peer(ScionHost::from(from)).ok_or(Drop::Full)?;
        let origin = Origin { peer, by: By::Port(back), from, layer4: Layer4::Tcp, bytes: segment.len() };
        let mut packet = std::mem::take(&mut self.scratch.packet);
        let taken = self.ends(origin, OuterPort(port)).and_then(|(source, destination)| {
            restore(segment, class, source, destination, &mut packet).ok_or(Drop::Malformed)?;
            self.take_restored(now, origin, &mut packet, outside)
        });
        self.scratch.packet = packet;
        if taken.is_err() {
            self.forget_idle_peer(peer);
        }
        taken
    }

    /// Step 2.
    fn ends(&self, origin: Origin, port: OuterPort) -> Result<(SocketAddr, SocketAddr), Drop> {
        let Origin { peer, from, .. } = origin;
        let remote = from.host.port();
        if let Some(lane) = self.ports.find(peer, remote, port).and_then(|id| self.lane(id)) {
            return Ok((lane.key.remote, lane.key.local));
        }
        if self.ports.has(port) {
            return Err(Drop::Stray);
        }
        let (source, destination) = self.servers_view(from).ok_or(Drop::Foreign)?;
        Ok((SocketAddr::new(source, remote), SocketAddr::new(destination, port.0)))
    }

    /// What stands for a peer's host, and where servers here are reached by it.
    fn servers_view(&self, from: EndpointAddr) -> Option<(IpAddr, IpAddr)> {
        // Its shim's port is not told: mostly all hosts have one and the same.
        let mut end = from;
        end.host.set_port(self.opts.local.host.port());
        let interface = InterfaceIndex::new(SENDER)?;
        let of = |range| Addresses::of(end, range, interface).ok();
        let v6 = || Some((of(None)?.ipv6?.into(), self.own.ingress(true)?));
        let v4 = || Some((of(self.routes.ipv4())?.ipv4?.into(), self.own.ingress(false)?));
        v6().or_else(v4)
    }

    /// Step 3.
    fn take_restored(
        &mut self,
        now: Time,
        origin: Origin,
        packet: &mut [u8],
        outside: &mut impl Outside,
    ) -> Result<Heard, Drop> {
        let segment = Segment::parse(packet).map_err(|_| Drop::Malformed)?;
        if self.own.interface(segment.destination.ip()).is_none() {
            return Err(Drop::Foreign);
        }
        if !is_plausible(&self.table, &segment) {
            return Err(Drop::Implausible);
        }
        self.take_segment(now, origin, packet, true, outside)
    }
}
