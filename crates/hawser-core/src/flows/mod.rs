//! The largest flows, counted only while somebody asks.
//!
//! 1. [`FlowWatch::begin`] makes the table. Before that, and after [`FlowWatch::end`], each of the following is one
//!    branch.
//! 2. [`FlowWatch::is_next`]: of all that happens some is looked at (`sampler`).
//! 3. [`FlowWatch::note_treatment`]: a train was classified.
//! 4. [`FlowWatch::note_sent`]: a path took packets of it; what is retransmitted or duplicated counts once.
//! 5. [`FlowWatch::note_received`]: an inner packet came home; a duplicate does not count.
//! 6. [`FlowWatch::largest`]: those that carried most lately.
//!
//! What is told of a flow is exact since it has had its place in the table ([`FlowSnapshot::since`]) while less than
//! 2,000 packets a second go each way, and an estimate above.

mod sampler;
mod table;
#[cfg(test)]
mod tests;

use crate::packet::inner::{self, Inner};
use crate::packet::{FlowKey, Transport};
use crate::treatment::Treatment;
use crate::units::{ByteCount, LinkId, PeerId, Random, Time};
use sampler::Sampler;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use table::Table;

/// Paths that are told apart for one flow; what goes by further ones counts for the flow alone.
pub const FLOW_PATHS: usize = 8;

/// Which flow: one entry for both directions. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowId {
    /// The peer that it is exchanged with.
    pub peer: PeerId,
    /// The protocol's number.
    pub protocol: u8,
    /// Whoever sends to the peer.
    pub local: IpAddr,
    /// Whoever is behind the peer.
    pub remote: IpAddr,
    /// Their ports, the local one first; of ICMP echo its identifier and zero. None: it has none, or comes in
    /// fragments.
    pub ports: Option<(u16, u16)>,
}

/// A path as flows know it: it outlives its session. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowPath {
    /// The link.
    pub link: LinkId,
    /// The far end.
    pub remote: SocketAddr,
}

/// What one path carried of a flow. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowShare {
    /// The path.
    pub path: FlowPath,
    /// Bytes of inner packets that left by it first.
    pub sent: ByteCount,
    /// Bytes of inner packets that it brought.
    pub received: ByteCount,
}

/// A flow at one moment. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowSnapshot {
    /// Which.
    pub id: FlowId,
    /// Since when it is counted.
    pub since: Time,
    /// Bytes of inner packets sent since then.
    pub sent: ByteCount,
    /// Bytes of inner packets received since then.
    pub received: ByteCount,
    /// What of that was sent in the interval that ends now.
    pub sent_lately: ByteCount,
    /// What of that was received in it.
    pub received_lately: ByteCount,
    /// The place of the rule that its last train matched, and how it is treated; none until one was sent.
    pub treatment: Option<(Option<u16>, Treatment)>,
    /// By path, in the order of their first packets.
    pub shares: [Option<FlowShare>; FLOW_PATHS],
}

/// The largest flows of an interval. A plain value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LargestFlows {
    /// Since the last time that they were asked for, or counting began.
    pub interval: Duration,
    /// Those first that carried most lately.
    pub flows: Vec<FlowSnapshot>,
}

/// What is looked at. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// A train that was classified.
    Classified,
    /// Packets that a path took at once.
    Sent,
    /// An inner packet that came.
    Received,
}

/// What a watch that is on has.
struct Counting {
    table: Table,
    /// By what is looked at.
    samplers: [Sampler; 3],
}

/// Counts flows while it is on. Off by default; the endpoint owns it.
#[derive(Default)]
pub struct FlowWatch {
    counting: Option<Box<Counting>>,
    /// The path of the datagram that is being taken in; none while it is off.
    arrives_by: Option<FlowPath>,
    told_at: Time,
}

impl FlowWatch {
    /// Step 1: counts from now on, beginning with an empty table; where it counts already, it goes on.
    pub fn begin(&mut self, now: Time, rng: &mut dyn Random) {
        if self.counting.is_none() {
            self.told_at = now;
            let table = Table::new(FlowKey::new(rng.next_u64(), rng.next_u64()));
            let samplers = std::array::from_fn(|_| Sampler::new(now, rng));
            self.counting = Some(Box::new(Counting { table, samplers }));
        }
    }

    /// Counts no more, and gives the memory back.
    pub fn end(&mut self) {
        (self.counting, self.arrives_by) = (None, None);
    }

    /// Whether it counts.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.counting.is_some()
    }

    /// Step 2: whether this is to be noted, as one of those that stand for all.
    #[inline]
    pub fn is_next(&mut self, look: Look) -> bool {
        self.counting.as_mut().is_some_and(|counting| counting.samplers[look as usize].is_next())
    }

    /// Step 3: a train of this flow matched the rule of that place, or none. Its bytes count once they leave.
    #[cold]
    pub fn note_treatment(
        &mut self,
        now: Time,
        peer: PeerId,
        inner: &Inner,
        rule: Option<usize>,
        treatment: Treatment,
    ) {
        let Some(counting) = &mut self.counting else { return };
        counting.samplers[Look::Classified as usize].take(now);
        let rule = rule.and_then(|place| u16::try_from(place).ok());
        counting.table.entry(now, id_of(peer, inner), inner).treatment = Some((rule, treatment));
    }

    /// Step 4: `bytes` of inner packets of this flow left by `path` for the first time.
    #[cold]
    pub fn note_sent(&mut self, now: Time, peer: PeerId, inner: &Inner, path: FlowPath, bytes: ByteCount) {
        let Some(counting) = &mut self.counting else { return };
        let bytes = ByteCount(bytes.0 * counting.samplers[Look::Sent as usize].take(now));
        counting.table.entry(now, id_of(peer, inner), inner).count(Some(path), bytes, ByteCount::ZERO);
    }

    /// The next inner packets come by this path.
    #[inline]
    pub fn arrive_by(&mut self, path: FlowPath) {
        if self.is_on() {
            self.arrives_by = Some(path);
        }
    }

    /// Step 5: an inner packet that was none before came from the peer.
    #[cold]
    pub fn note_received(&mut self, now: Time, peer: PeerId, packet: &[u8]) {
        let Some(counting) = &mut self.counting else { return };
        let bytes = ByteCount(packet.len() as u64 * counting.samplers[Look::Received as usize].take(now));
        let Ok(inner) = inner::parse(packet) else { return };
        let back = match inner.transport {
            // An echo and its reply have the identifier in one place.
            Transport::Icmp => Inner { ports: inner.ports, ..inner.reversed() },
            _ => inner.reversed(),
        };
        counting.table.entry(now, id_of(peer, &back), &back).count(self.arrives_by, ByteCount::ZERO, bytes);
    }

    /// A peer's place is another's from now on.
    pub fn forget(&mut self, peer: PeerId) {
        if let Some(counting) = &mut self.counting {
            counting.table.forget(peer);
        }
    }

    /// Step 6: at most `most` flows. Towards their order what a flow carried counts half as much after each call, so
    /// call it once a second. None while it is off.
    pub fn largest(&mut self, now: Time, most: usize) -> Option<LargestFlows> {
        let counting = self.counting.as_mut()?;
        counting.samplers.iter_mut().for_each(|sampler| sampler.follow(now));
        let flows = counting.table.largest(most);
        let interval = now.since(std::mem::replace(&mut self.told_at, now));
        Some(LargestFlows { interval, flows })
    }
}

fn id_of(peer: PeerId, inner: &Inner) -> FlowId {
    let ports = inner.ports.filter(|_| inner.transport != Transport::Fragment);
    FlowId { peer, protocol: inner.protocol, local: inner.source, remote: inner.destination, ports }
}
