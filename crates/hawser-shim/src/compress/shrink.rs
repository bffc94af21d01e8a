//! From packets to datagrams.
//!
//! 1. A packet that is no segment of TCP, or has unusual headers, goes whole.
//! 2. A segment's flow has a context, drawn where there is none, or it no longer serves.
//! 3. Where the peer may not know it, the segment goes whole and defines it; one too large for that, and a train, has
//!    the definition sent ahead, with headers alone.
//! 4. Else it goes compact; a train as a datagram for each of its segments, all of one length but the last.

use std::collections::btree_map::Entry;

use hawser_core::packet::inner::TCP_HEADER;
use hawser_core::units::Time;

use super::context::{Constants, ContextId, Varying};
use super::format::{Compact, Datagrams, TCP_FIELDS, Whole};
use super::{Compression, Flow, Outbound};
use crate::flow::{Direction, FlowKey, Protocol};
use crate::mptcp::{Flags, Segment, Sequence};

/// Where in a TCP header the fields begin that go in a compact datagram, and where flags, checksum and urgent pointer
/// stand (RFC 9293 section 3.1).
const FIELDS_AT: usize = 4;
const CHECKSUM_AT: usize = 16;
const URGENT_AT: usize = 18;
/// Where in those fields the sequence number and the flags stand.
const SEQUENCE_IN_FIELDS: usize = 0;
const FLAGS_IN_FIELDS: usize = 9;

/// What the kernel left undone in a packet that was read from TUN.
/// Nothing by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The TCP checksum is the pseudo-header's sum alone.
    pub partial: bool,
    /// The packet is a train: payload of each segment but the last.
    pub segment: Option<u16>,
}

/// A packet does not fit: the flow's MSS is larger than [`Compression::max_segment`], or the packet is no segment of
/// TCP. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("compress a packet: its datagram has {len} bytes, there is room for {room}")]
pub struct TooLarge {
    /// Bytes that the datagram would have.
    pub len: usize,
    /// Bytes that it may have.
    pub room: usize,
}

/// A segment, or a train of them, with all that is needed to write it. Lives while a packet is written.
struct Train<'p> {
    packet: &'p [u8],
    segment: Segment<'p>,
    varying: Varying,
    offload: Offload,
}

impl Compression {
    /// Adds the datagrams of a packet, each of at most `room` bytes, to `out`; `random` gives random numbers.
    ///
    /// # Errors
    /// [`TooLarge`]: nothing was added.
    pub fn shrink(
        &mut self,
        now: Time,
        packet: &[u8],
        offload: Offload,
        room: u16,
        random: &mut impl FnMut() -> u64,
        out: &mut Datagrams,
    ) -> Result<(), TooLarge> {
        let room = usize::from(room);
        let segment = Segment::parse(packet).ok();
        let is_whole = |segment: &Segment<'_>| packet.len() == headers_of(segment) + segment.payload as usize;
        let segment = segment.filter(|segment| offload.segment.is_some() || is_whole(segment));
        let found = segment.and_then(|segment| Some((segment, constants_of(packet, &segment)?)));
        let Some((segment, (constants, varying))) = found else {
            return self.whole(packet, Whole { partial: offload.partial, ..Whole::default() }, room, out);
        };
        let key = FlowKey::of(&segment, Direction::Out);
        self.renew(key, constants, now, segment.sequence, random);
        let Some(flow) = self.flows.get_mut(&key) else {
            return self.whole(packet, Whole { partial: offload.partial, ..Whole::default() }, room, out);
        };
        let Some(plan) = Plan::of(flow, now, &segment) else { return Ok(()) };
        let train = Train { packet, segment, varying, offload };
        let sent = train.write(&plan, room, out)?;
        if sent.acknowledged {
            flow.owed = None;
        }
        self.counters.whole += sent.whole;
        self.counters.compact += sent.compact;
        Ok(())
    }

    /// Adds the headers of a segment alone, which define its context anew and deliver nothing: so the peer hears of
    /// another way of the flow where there is no data to send. Says whether it did: they must fit, and be such that a
    /// context brings them back.
    pub fn announce(
        &mut self,
        now: Time,
        headers: &[u8],
        room: u16,
        random: &mut impl FnMut() -> u64,
        out: &mut Datagrams,
    ) -> bool {
        let Ok(segment) = Segment::parse(headers) else { return false };
        let Some((constants, _)) = constants_of(headers, &segment) else { return false };
        let key = FlowKey::of(&segment, Direction::Out);
        self.renew(key, constants, now, segment.sequence, random);
        let Some((flow, outbound)) =
            self.flows.get_mut(&key).and_then(|flow| flow.outbound.map(|outbound| (flow, outbound)))
        else {
            return false;
        };
        let defines = Some(outbound.id);
        let header = Whole { partial: false, defines, acknowledges: flow.owed, headers_only: true };
        let headers = &headers[..headers_of(&segment)];
        let fits = header.len() + headers.len() <= usize::from(room);
        if fits {
            flow.owed = None;
            header.write(&mut out.bytes);
            out.bytes.extend(headers);
            out.finish();
            self.counters.whole += 1;
        }
        fits
    }

    /// Step 1.
    pub(super) fn whole(
        &mut self,
        packet: &[u8],
        header: Whole,
        room: usize,
        out: &mut Datagrams,
    ) -> Result<(), TooLarge> {
        let len = header.len() + packet.len();
        if len > room {
            return Err(TooLarge { len, room });
        }
        header.write(&mut out.bytes);
        out.bytes.extend(packet);
        out.finish();
        self.counters.whole += 1;
        Ok(())
    }

    /// Step 2.
    pub(super) fn renew(
        &mut self,
        key: FlowKey,
        constants: Constants,
        now: Time,
        sequence: Sequence,
        random: &mut impl FnMut() -> u64,
    ) {
        let Some(flow) = self.flow(key, now) else { return };
        if flow.outbound.is_some_and(|outbound| outbound.constants == constants) {
            return;
        }
        let old = flow.outbound.take();
        if let Some(old) = old {
            self.given.remove(&old.id);
        }
        let id = loop {
            let id = ContextId::drawn(random());
            // One that was just given up is not drawn again either.
            if old.is_none_or(|old| old.id != id)
                && let Entry::Vacant(free) = self.given.entry(id)
            {
                free.insert(key);
                break id;
            }
        };
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.outbound =
                Some(Outbound { id, constants, is_known: false, highest: sequence, end: sequence, ended: now });
        }
    }
}

/// How a segment goes. Plain value.
struct Plan {
    outbound: Outbound,
    /// Step 3.
    defines: bool,
    owed: Option<ContextId>,
}

impl Plan {
    fn of(flow: &mut Flow, now: Time, segment: &Segment<'_>) -> Option<Self> {
        let outbound = flow.outbound.as_mut()?;
        // The last one may come again too: with the same numbers, and later. What bears no data does so as a rule.
        let end = segment.end();
        let is_last = end != segment.sequence && !end.is_after(outbound.end) && now > outbound.ended;
        let is_again = outbound.highest.is_after(segment.sequence) || is_last;
        if !is_again {
            outbound.highest = segment.sequence;
        }
        if end.is_after(outbound.end) {
            (outbound.end, outbound.ended) = (end, now);
        }
        let defines = !outbound.is_known || is_again || segment.flags.has(Flags::SYN);
        Some(Self { outbound: *outbound, defines, owed: flow.owed })
    }
}

/// What was written. Plain value.
#[derive(Default)]
struct Sent {
    whole: u64,
    compact: u64,
    acknowledged: bool,
}

impl Train<'_> {
    /// Steps 3 and 4.
    fn write(&self, plan: &Plan, room: usize, out: &mut Datagrams) -> Result<Sent, TooLarge> {
        let defines = plan.defines.then_some(plan.outbound.id);
        let header = Whole { partial: self.offload.partial, defines, acknowledges: plan.owed, headers_only: false };
        let len = header.len() + self.packet.len();
        if plan.defines && self.offload.segment.is_none() && len <= room {
            header.write(&mut out.bytes);
            out.bytes.extend(self.packet);
            out.finish();
            return Ok(Sent { whole: 1, compact: 0, acknowledged: plan.owed.is_some() });
        }
        let mut compact = self.compact(plan);
        let payload = self.payload();
        let size = self.offload.segment.map_or(payload.len(), usize::from).max(1);
        let largest = compact.len() + self.segment.options_len() + size.min(payload.len());
        if largest > room {
            return Err(TooLarge { len: largest, room });
        }
        // An acknowledgment rides along where it fits and makes no segment of a train longer than the others.
        let rides = Compact { acknowledges: plan.owed, ..compact };
        let fits = self.offload.segment.is_none() && rides.len() + largest - compact.len() <= room;
        let mut sent = Sent { acknowledged: plan.owed.is_some(), ..Sent::default() };
        if plan.defines || (plan.owed.is_some() && !fits) {
            Whole { headers_only: true, ..header }.write(&mut out.bytes);
            out.bytes.extend(&self.packet[..self.headers()]);
            out.finish();
            sent.whole = 1;
        } else {
            compact = rides;
        }
        sent.compact = self.segments(compact, size, out);
        Ok(sent)
    }

    fn tcp(&self) -> &[u8] {
        &self.packet[usize::from(self.segment.tcp_at)..self.headers()]
    }

    /// Bytes of all headers.
    fn headers(&self) -> usize {
        headers_of(&self.segment)
    }

    fn payload(&self) -> &[u8] {
        &self.packet[self.headers()..]
    }

    fn compact(&self, plan: &Plan) -> Compact {
        let tcp = self.tcp();
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let mut fields = [0; TCP_FIELDS];
        fields.copy_from_slice(&tcp[FIELDS_AT..FIELDS_AT + TCP_FIELDS]);
        let constants = plan.outbound.constants;
        Compact {
            context: plan.outbound.id,
            tcp: Some(fields),
            acknowledges: None,
            checksum: (!self.offload.partial).then(|| half(CHECKSUM_AT)),
            class: Some(self.varying.traffic_class).filter(|class| *class != 0),
            urgent: Some(half(URGENT_AT)).filter(|urgent| *urgent != 0),
            identification: (!constants.dont_fragment).then_some(self.varying.identification),
        }
    }

    /// Writes each segment, and says how many there are.
    fn segments(&self, mut compact: Compact, size: usize, out: &mut Datagrams) -> u64 {
        let options = &self.tcp()[TCP_HEADER..];
        let mut fields = compact.tcp.unwrap_or_default();
        let flags = Flags(fields[FLAGS_IN_FIELDS]);
        let mut count = 0;
        for (sequence, kept, piece) in pieces(self.segment.sequence, flags, self.payload(), size) {
            fields[FLAGS_IN_FIELDS] = kept.0;
            fields[SEQUENCE_IN_FIELDS..SEQUENCE_IN_FIELDS + 4].copy_from_slice(&sequence.0.to_be_bytes());
            compact.tcp = Some(fields);
            compact.write(&mut out.bytes);
            out.bytes.extend(options);
            out.bytes.extend(piece);
            out.finish();
            compact.identification = compact.identification.map(|number| number.wrapping_add(1));
            count += 1;
        }
        count
    }
}

/// The segments of a train: number, flags and data of each, all of `size` bytes but the last; one where there is no
/// data.
pub(crate) fn pieces(
    first: Sequence,
    flags: Flags,
    payload: &[u8],
    size: usize,
) -> impl Iterator<Item = (Sequence, Flags, &[u8])> {
    let count = payload.len().div_ceil(size).max(1);
    (0..count).map(move |at| {
        let start = at * size;
        let end = (start + size).min(payload.len());
        let sequence = first.plus(u32::try_from(start).unwrap_or(u32::MAX));
        (sequence, flags_of(flags, at == 0, at + 1 == count), &payload[start..end])
    })
}

fn constants_of(packet: &[u8], segment: &Segment<'_>) -> Option<(Constants, Varying)> {
    Constants::of(packet, Protocol::Tcp, segment.source, segment.destination)
}

/// Bytes of all headers of a packet.
pub(crate) fn headers_of(segment: &Segment<'_>) -> usize {
    usize::from(segment.tcp_at) + TCP_HEADER + segment.options_len()
}

/// The flags of a train's segment: CWR stands in the first (RFC 3168 section 6.1.2), FIN and PSH in the last.
fn flags_of(flags: Flags, is_first: bool, is_last: bool) -> Flags {
    let mut without = 0;
    if !is_first {
        without |= Flags::CWR.0;
    }
    if !is_last {
        without |= Flags::FIN.0 | Flags::PSH.0;
    }
    Flags(flags.0 & !without)
}
