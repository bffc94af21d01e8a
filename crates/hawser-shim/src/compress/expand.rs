//! From datagrams to packets.
//!
//! 1. A whole packet is delivered as it is; what it defines is kept and will be acknowledged, what it acknowledges is
//!    known.
//! 2. A compact one has its headers written anew, by its context; without one it is counted, and answered with nothing.

use std::net::IpAddr;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{self, PROTOCOL_TCP, TCP_HEADER};
use hawser_core::units::Time;

use super::context::{Constants, ContextId, Varying};
use super::format::{Compact, Datagram, TCP_FIELDS, Whole};
use super::{Compression, Counters, udp};
use crate::flow::{Direction, FlowKey, Protocol};
use crate::mptcp::Segment;
use crate::udp::Content;

/// Where the offset of the data stands in the fields of a compact datagram, in words of four bytes (RFC 9293
/// section 3.1).
const OFFSET_IN_FIELDS: usize = 8;

/// A datagram was read. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expanded {
    /// The packet stands in the buffer.
    Packet {
        /// Its TCP checksum is the pseudo-header's sum alone.
        partial: bool,
    },
    /// It bore headers alone: nothing is to be delivered.
    Nothing,
}

/// Why a datagram was thrown away; nothing is answered. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejected {
    /// It makes no sense.
    #[error("expand a datagram: it is malformed")]
    Malformed,
    /// Nobody gave this id.
    #[error("expand a datagram: its context is unknown")]
    Unknown,
    /// The packet is between addresses that the peer has no business with.
    #[error("expand a datagram: the packet's addresses are not those of peer and host")]
    Foreign,
}

impl Compression {
    /// Reads a datagram of the peer's, and writes its packet to `out`. `may` says whether the peer may send from one
    /// address to another, and this: it is asked for whole packets, and contexts are of such.
    ///
    /// # Errors
    /// [`Rejected`]; it is counted.
    pub fn expand(
        &mut self,
        now: Time,
        datagram: &[u8],
        may: impl FnOnce(IpAddr, IpAddr, &Content<'_>) -> bool,
        out: &mut Vec<u8>,
    ) -> Result<Expanded, Rejected> {
        out.clear();
        let result = match Datagram::parse(datagram) {
            Some(Datagram::Whole(whole, packet)) => self.take_whole(now, whole, packet, may, out),
            Some(Datagram::Compact(compact, rest)) => self.take_compact(now, &compact, rest, out),
            None => Err(Rejected::Malformed),
        };
        result.inspect_err(|rejected| self.counters.count(*rejected))
    }

    /// Step 1.
    fn take_whole(
        &mut self,
        now: Time,
        whole: Whole,
        packet: &[u8],
        may: impl FnOnce(IpAddr, IpAddr, &Content<'_>) -> bool,
        out: &mut Vec<u8>,
    ) -> Result<Expanded, Rejected> {
        let content = Content::of(packet);
        let (source, destination) = match (whole.headers_only, &content) {
            (true, Content::Segment(segment)) => (segment.source.ip(), segment.destination.ip()),
            (true, Content::Fragment(_) | Content::Refused(_) | Content::Other) => return Err(Rejected::Malformed),
            (_, Content::Datagram(datagram)) => (datagram.source.ip(), datagram.destination.ip()),
            (false, _) => {
                let inner = inner::parse(packet).map_err(|_| Rejected::Malformed)?;
                (inner.source, inner.destination)
            }
        };
        if !may(source, destination, &content) {
            return Err(Rejected::Foreign);
        }
        match content {
            Content::Segment(Segment { source, destination, .. }) => {
                self.learn(now, whole, packet, FlowKey::between(Protocol::Tcp, source, destination, Direction::In));
            }
            Content::Datagram(datagram) => self.learn_udp(now, whole, packet, &datagram),
            Content::Fragment(_) | Content::Refused(_) | Content::Other => {}
        }
        if whole.headers_only {
            return Ok(Expanded::Nothing);
        }
        out.extend(packet);
        Ok(Expanded::Packet { partial: whole.partial })
    }

    pub(super) fn learn(&mut self, now: Time, whole: Whole, packet: &[u8], key: FlowKey) {
        if let Some(id) = whole.defines {
            let constants = Constants::of(packet, key.protocol, key.remote, key.local);
            let taken = constants.is_some_and(|(constants, _)| self.define(now, key, id, constants));
            self.counters.refused += u64::from(!taken);
        }
        // Last: a definition may say that nothing is known, and this what is.
        if let Some(id) = whole.acknowledges {
            self.acknowledged(key, id);
        }
    }

    /// Keeps a context. What stands under an id never changes: false where it would.
    fn define(&mut self, now: Time, key: FlowKey, id: ContextId, constants: Constants) -> bool {
        let there = self.inbound.get(&id).copied();
        if there.is_some_and(|there| there != constants) {
            return false;
        }
        let Some(flow) = self.flow(key, now) else { return false };
        flow.owed = Some(id);
        if there.is_some() {
            return true;
        }
        let [newest, oldest] = flow.inbound;
        flow.inbound = [Some(id), newest];
        if newest.is_some() {
            // The peer began anew: who knows what it still knows.
            flow.outbound.iter_mut().for_each(|outbound| outbound.is_known = false);
        }
        if let Some(oldest) = oldest {
            self.inbound.remove(&oldest);
        }
        self.inbound.insert(id, constants);
        true
    }

    pub(super) fn acknowledged(&mut self, key: FlowKey, id: ContextId) {
        let outbound = self.flows.get_mut(&key).and_then(|flow| flow.outbound.as_mut());
        if let Some(outbound) = outbound.filter(|outbound| outbound.id == id) {
            outbound.is_known = true;
            self.is_proven = true;
        }
    }

    /// Step 2.
    fn take_compact(
        &mut self,
        now: Time,
        compact: &Compact,
        rest: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Expanded, Rejected> {
        let constants = *self.inbound.get(&compact.context).ok_or(Rejected::Unknown)?;
        let partial = match (&compact.tcp, constants.protocol) {
            (Some(fields), Protocol::Tcp) => write(&constants, compact, fields, rest, out),
            (None, Protocol::Udp) => udp::write(&constants, compact, rest, out),
            _ => None,
        };
        let partial = partial.ok_or(Rejected::Malformed)?;
        let key = constants.key();
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.used = now;
        }
        if let Some(id) = compact.acknowledges {
            self.acknowledged(key, id);
        }
        Ok(Expanded::Packet { partial })
    }
}

/// Writes the packet; says whether its checksum is partial, and none where the datagram is too short or too long.
fn write(
    constants: &Constants,
    compact: &Compact,
    fields: &[u8; TCP_FIELDS],
    rest: &[u8],
    out: &mut Vec<u8>,
) -> Option<bool> {
    let len = usize::from(fields[OFFSET_IN_FIELDS] >> 4) * 4;
    let options = len.checked_sub(TCP_HEADER)?;
    if options > rest.len() {
        return None;
    }
    let len = TCP_HEADER + rest.len();
    let (source, destination) = (constants.source, constants.destination);
    let traffic_class = compact.class.unwrap_or(0);
    let identification = compact.identification.unwrap_or(0);
    constants.write(Varying { traffic_class, identification }, len, out)?;
    let partial = || checksum::pseudo(source.ip(), destination.ip(), PROTOCOL_TCP, len);
    let checksum = compact.checksum.unwrap_or_else(partial);
    out.extend(source.port().to_be_bytes());
    out.extend(destination.port().to_be_bytes());
    out.extend(fields);
    out.extend(checksum.to_be_bytes());
    out.extend(compact.urgent.unwrap_or(0).to_be_bytes());
    out.extend(rest);
    Some(compact.checksum.is_none())
}

impl Counters {
    fn count(&mut self, rejected: Rejected) {
        *match rejected {
            Rejected::Malformed => &mut self.malformed,
            Rejected::Unknown => &mut self.unknown,
            Rejected::Foreign => &mut self.foreign,
        } += 1;
    }
}
