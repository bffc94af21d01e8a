//! Datagrams of UDP: contexts as for TCP, and what is different.
//!
//! 1. [`Compression::shrink_datagram`]: a datagram, or a train of them, goes compact where the peer knows its context.
//!    Else it goes whole and defines it, or has the definition sent ahead.
//! 2. UDP is not retransmitted, and so no context is defined anew that the peer has forgotten: a definition is repeated
//!    [`REFRESH`] after the last one (as RFC 3095 section 5.3.1 refreshes contexts without a way back).
//! 3. [`Compression::expand`] leads to [`write`] and [`Compression::learn_udp`]; [`Compression::ack_state`] says what
//!    else a whole datagram brought: whether who sent it knows what nobody can guess, and which id is to be
//!    acknowledged alone, for a flow that goes one way has no datagram that could do so.
//! 4. [`Compression::knows`]: the peer did that. [`Compression::announce_datagram`]: headers alone, of a flow that goes
//!    another way.

#[cfg(test)]
mod tests;

use std::time::Duration;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{PROTOCOL_UDP, UDP_HEADER};
use hawser_core::units::Time;

use super::context::{Constants, ContextId, Varying};
use super::format::{Compact, Datagrams, Whole};
use super::shrink::{Offload, TooLarge};
use super::{Compression, Flow};
use crate::flow::{Direction, FlowKey, Protocol};
use crate::mptcp::Sequence;
use crate::udp::{CHECKSUM_AT, UserDatagram};

/// How long a datagram may go compact since its context was defined last: a shim that began anew costs a flow that goes
/// one way as much. 61 bytes twice a second are 1.5 % of a call's 64 kbit/s.
const REFRESH: Duration = Duration::from_millis(500);
/// Ids are acknowledged alone so seldom: definitions come with each datagram until the first arrives.
const ACK_INTERVAL: Duration = Duration::from_millis(100);

/// What whole datagrams of a flow brought beside data. Nothing at first. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckState {
    /// The last one named an id that only peer, this host and the way between know.
    pub is_proven: bool,
    /// To be acknowledged alone: it was owed before, and nothing went back.
    pub due: Option<ContextId>,
    sent_at: Option<Time>,
}

impl Compression {
    /// Step 1: adds the datagrams of a packet, each of at most `room` bytes, to `out`; `random` gives random numbers.
    ///
    /// # Errors
    /// [`TooLarge`]: nothing was added.
    #[expect(clippy::too_many_arguments, reason = "as `shrink`, and what was read already")]
    pub fn shrink_datagram(
        &mut self,
        now: Time,
        packet: &[u8],
        datagram: &UserDatagram,
        offload: Offload,
        room: u16,
        random: &mut impl FnMut() -> u64,
        out: &mut Datagrams,
    ) -> Result<(), TooLarge> {
        let UserDatagram { source, destination, is_exact, .. } = *datagram;
        let constants = Constants::of(packet, Protocol::Udp, source, destination).filter(|_| is_exact);
        let key = FlowKey::between(Protocol::Udp, source, destination, Direction::Out);
        if let Some((constants, _)) = constants {
            self.renew(key, constants, now, Sequence::default(), random);
        }
        let (Some((_, varying)), Some(flow)) = (constants, self.flows.get_mut(&key)) else {
            let header = Whole { partial: offload.partial, ..Whole::default() };
            return self.whole(packet, header, room.into(), out);
        };
        let train = Train { packet, datagram, varying, offload };
        let [whole, compact] = train.write(flow, now, room.into(), out)?;
        self.counters.whole += whole;
        self.counters.compact += compact;
        Ok(())
    }

    /// A part of a datagram goes whole, without a context; its headers and data stand apart.
    ///
    /// # Errors
    /// [`TooLarge`]: nothing was added.
    pub fn carry(&mut self, headers: &[u8], data: &[u8], room: u16, out: &mut Datagrams) -> Result<(), TooLarge> {
        let header = Whole::default();
        let (len, room) = (header.len() + headers.len() + data.len(), usize::from(room));
        if len > room {
            return Err(TooLarge { len, room });
        }
        header.write(&mut out.bytes);
        out.bytes.extend(headers);
        out.bytes.extend(data);
        out.finish();
        self.counters.whole += 1;
        Ok(())
    }

    /// Bytes that a packet may have to go whole, whatever else it is: what senders are told.
    pub const fn max_whole(room: u16) -> u16 {
        room.saturating_sub(1)
    }

    /// Step 4: adds headers alone, as of an empty datagram. Says whether it did: a context there must be, and room.
    pub fn announce_datagram(&mut self, now: Time, key: &FlowKey, room: u16, out: &mut Datagrams) -> bool {
        let Some(flow) = self.flows.get_mut(key) else { return false };
        let is_said = ahead(flow, now, room.into(), out);
        self.counters.whole += u64::from(is_said);
        is_said
    }

    /// Step 3, for whole ones.
    pub(super) fn learn_udp(&mut self, now: Time, whole: Whole, packet: &[u8], datagram: &UserDatagram) {
        let key = FlowKey::between(Protocol::Udp, datagram.source, datagram.destination, Direction::In);
        let before = self.flows.get(&key);
        let knows_own = whole.defines.is_some_and(|id| before.is_some_and(|flow| flow.inbound.contains(&Some(id))));
        let outbound = before.and_then(|flow| flow.outbound).map(|outbound| outbound.id);
        let knows_ours = whole.acknowledges.is_some() && whole.acknowledges == outbound;
        let owed = before.and_then(|flow| flow.owed);
        self.learn(now, whole, packet, key);
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.ack_state.is_proven = knows_own || knows_ours;
        let is_time = flow.ack_state.sent_at.is_none_or(|told| now.since(told) >= ACK_INTERVAL);
        flow.ack_state.due = owed.filter(|id| is_time && whole.defines == Some(*id));
        if flow.ack_state.due.is_some() {
            flow.ack_state.sent_at = Some(now);
        }
    }

    /// Step 3: what the last whole datagram of a flow brought.
    pub fn ack_state(&self, key: &FlowKey) -> AckState {
        self.flows.get(key).map(|flow| flow.ack_state).unwrap_or_default()
    }

    /// Step 4: the peer acknowledges an id by itself. Says of which flow; none where nobody gave it out.
    pub fn knows(&mut self, id: ContextId) -> Option<FlowKey> {
        let key = *self.given.get(&id)?;
        self.acknowledged(key, id);
        Some(key)
    }

    /// Whether the peer has ever acknowledged an id: it receives what is sent to it.
    pub const fn is_proven(&self) -> bool {
        self.is_proven
    }
}

/// A datagram, or a train of them, with all that is needed to write it. Lives while a packet is written.
struct Train<'p> {
    packet: &'p [u8],
    datagram: &'p UserDatagram,
    varying: Varying,
    offload: Offload,
}

impl Train<'_> {
    /// Says how many datagrams are whole, and how many compact.
    fn write(&self, flow: &mut Flow, now: Time, room: usize, out: &mut Datagrams) -> Result<[u64; 2], TooLarge> {
        let Some(outbound) = flow.outbound else { return Ok([0; 2]) };
        let defines = !outbound.is_known || now.since(outbound.ended) >= REFRESH;
        let header = Whole {
            partial: self.offload.partial,
            defines: Some(outbound.id),
            acknowledges: flow.owed,
            headers_only: false,
        };
        if defines && self.offload.segment.is_none() && header.len() + self.packet.len() <= room {
            header.write(&mut out.bytes);
            out.bytes.extend(self.packet);
            out.finish();
            flow.defined(now);
            return Ok([1, 0]);
        }
        let mut compact = self.compact(outbound.id, outbound.constants.dont_fragment);
        let data = &self.packet[self.datagram.payload_at()..];
        let size = self.offload.segment.map_or(data.len(), usize::from).max(1);
        let largest = compact.len() + size.min(data.len());
        if largest > room {
            return Err(TooLarge { len: largest, room });
        }
        // An acknowledgment rides along where it fits and makes no datagram of a train longer than the others.
        let rides = Compact { acknowledges: flow.owed, ..compact };
        let fits = self.offload.segment.is_none() && rides.len() + largest - compact.len() <= room;
        let is_ahead = defines || (flow.owed.is_some() && !fits);
        if is_ahead {
            ahead(flow, now, room, out);
        } else {
            (compact, flow.owed) = (rides, None);
        }
        let mut count = 0;
        for piece in data.chunks(size) {
            compact.write(&mut out.bytes);
            out.bytes.extend(piece);
            out.finish();
            compact.identification = compact.identification.map(|number| number.wrapping_add(1));
            count += 1;
        }
        if data.is_empty() {
            compact.write(&mut out.bytes);
            out.finish();
            count = 1;
        }
        Ok([u64::from(is_ahead), count])
    }

    fn compact(&self, context: ContextId, dont_fragment: bool) -> Compact {
        let at = usize::from(self.datagram.udp_at) + CHECKSUM_AT;
        let checksum = u16::from_be_bytes([self.packet[at], self.packet[at + 1]]);
        Compact {
            context,
            tcp: None,
            acknowledges: None,
            checksum: (!self.offload.partial).then_some(checksum),
            class: Some(self.varying.traffic_class).filter(|class| *class != 0),
            urgent: None,
            identification: (!dont_fragment).then_some(self.varying.identification),
        }
    }
}

impl Flow {
    /// Its context went out, and what was owed.
    fn defined(&mut self, now: Time) {
        self.owed = None;
        self.outbound.iter_mut().for_each(|outbound| outbound.ended = now);
    }
}

/// Writes the headers of a flow alone. Says whether it did.
fn ahead(flow: &mut Flow, now: Time, room: usize, out: &mut Datagrams) -> bool {
    let Some(outbound) = flow.outbound else { return false };
    let header = Whole { headers_only: true, partial: false, defines: Some(outbound.id), acknowledges: flow.owed };
    let constants = outbound.constants;
    let before = out.bytes.len();
    header.write(&mut out.bytes);
    let varying = Varying { traffic_class: 0, identification: 0 };
    let is_written = constants.write(varying, UDP_HEADER, &mut out.bytes).is_some();
    write_header(&constants, UDP_HEADER, 0, &mut out.bytes);
    if !is_written || out.bytes.len() - before > room {
        out.bytes.truncate(before);
        return false;
    }
    out.finish();
    flow.defined(now);
    true
}

fn write_header(constants: &Constants, len: usize, checksum: u16, out: &mut Vec<u8>) {
    out.extend(constants.source.port().to_be_bytes());
    out.extend(constants.destination.port().to_be_bytes());
    out.extend(u16::try_from(len).unwrap_or(0).to_be_bytes());
    out.extend(checksum.to_be_bytes());
}

/// Writes the packet; says whether its checksum is partial, and none where it would be too long.
pub(super) fn write(constants: &Constants, compact: &Compact, data: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let len = UDP_HEADER + data.len();
    let (traffic_class, identification) = (compact.class.unwrap_or(0), compact.identification.unwrap_or(0));
    constants.write(Varying { traffic_class, identification }, len, out)?;
    let partial = || checksum::pseudo(constants.source.ip(), constants.destination.ip(), PROTOCOL_UDP, len);
    write_header(constants, len, compact.checksum.unwrap_or_else(partial), out);
    out.extend(data);
    Some(compact.checksum.is_none())
}
