//! A train: the segments of one super-packet as the kernel handed it over, cut only when written.
//!
//! 1. `Shape::of` checks the offload description against the packet.
//! 2. `head(i)` writes the headers of segment i, `body(i)` is the rest of it, in place.
//! 3. CoDel may mark one segment; the mark stays, however often the segment is written.

use super::checksum;
use super::flow::{FlowHash, FlowKey};
use super::inner::{self, Class, Inner, Transport, be16, be32, put16};
use super::pure_ack;
use super::store::PacketDrop;
use crate::treatment::Treatment;
use crate::units::{ByteCount, Ecn};
use std::net::IpAddr;

/// The longest headers of a train's segment, bytes: IPv4 and TCP with all options have 120.
pub const MAX_HEAD: usize = 256;
/// The checksum field within a TCP header (RFC 9293 section 3.1), bytes.
const TCP_CHECKSUM: usize = 16;
/// The checksum field within a UDP header (RFC 768), bytes.
const UDP_CHECKSUM: usize = 6;
/// The flags byte of a TCP header, and flags in it (RFC 9293 section 3.1, RFC 3168 section 6.1).
pub(super) const TCP_FLAGS: usize = 13;
pub(super) const FIN: u8 = 0x01;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const ECE: u8 = 0x40;
pub(super) const CWR: u8 = 0x80;
/// Flags that no super-packet may have: SYN, RST, URG.
pub(super) const NEVER_IN_TRAIN: u8 = 0x02 | 0x04 | 0x20;

/// How the kernel wants a packet segmented (`gso_type` of virtio_net_hdr).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Gso {
    /// Not at all.
    #[default]
    None,
    /// As TCP over IPv4.
    TcpV4,
    /// As TCP over IPv6.
    TcpV6,
    /// As UDP datagrams of one size (UDP_SEGMENT).
    UdpL4,
}

/// virtio_net_hdr, parsed (virtio 1.2 section 5.1.6; its `hdr_len` is not to be trusted). The
/// default: a plain packet with a full checksum. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The transport checksum covers the pseudo-header only; whoever needs it completes it.
    pub needs_csum: bool,
    /// Where checksumming starts, bytes from the packet's start.
    pub csum_start: u16,
    /// Where the checksum goes, bytes from `csum_start`.
    pub csum_offset: u16,
    /// How to segment.
    pub gso: Gso,
    /// Payload bytes of each segment but the last.
    pub gso_size: u16,
}

impl Offload {
    /// The description of a packet with a partial checksum; `None` when it is neither TCP nor UDP.
    pub(super) fn partial(inner: &Inner) -> Option<Offload> {
        Some(Offload {
            needs_csum: true,
            csum_start: inner.transport_at,
            csum_offset: checksum_offset(inner)? as u16,
            ..Offload::default()
        })
    }
}

fn checksum_offset(inner: &Inner) -> Option<usize> {
    match inner.transport {
        Transport::Tcp { .. } => Some(TCP_CHECKSUM),
        Transport::Udp => Some(UDP_CHECKSUM),
        _ => None,
    }
}

/// What is known about a packet before its bytes have found their place.
#[derive(Copy, Clone, Debug)]
pub(super) struct Shape {
    inner: Inner,
    flow: FlowHash,
    treatment: Treatment,
    partial: bool,
    /// Whole packet, bytes.
    len: u32,
    /// Headers that each segment repeats, bytes; zero for a single packet.
    header: u16,
    /// Payload of each segment but the last, bytes.
    size: u32,
    pub(super) count: u16,
    /// Sums over what is the same in all segments.
    ip_sum: u16,
    pseudo_sum: u16,
}

impl Shape {
    /// Checks `packet` against `offload`. A partial checksum that is not the packet's own TCP or
    /// UDP checksum (a tunnel's inner packet) is completed here, because DATA frames cannot describe it.
    pub(super) fn of(packet: &mut [u8], offload: &Offload, key: &FlowKey) -> Result<Shape, PacketDrop> {
        let inner = inner::parse(packet)?;
        let mut shape = Shape {
            inner,
            flow: inner.flow(key, true),
            treatment: Treatment::default(),
            partial: false,
            len: packet.len() as u32,
            header: 0,
            size: packet.len() as u32,
            count: 1,
            ip_sum: 0,
            pseudo_sum: 0,
        };
        let own = Offload::partial(&inner)
            .is_some_and(|own| (own.csum_start, own.csum_offset) == (offload.csum_start, offload.csum_offset));
        if offload.gso != Gso::None {
            if offload.needs_csum && !own {
                return Err(PacketDrop::ChecksumPlace);
            }
            shape.cut(packet, offload)?;
        }
        shape.partial = shape.count > 1 || offload.needs_csum && own;
        if offload.needs_csum && !shape.partial {
            complete(packet, offload)?;
        }
        Ok(shape)
    }

    /// Finds the segments of a super-packet.
    fn cut(&mut self, packet: &[u8], offload: &Offload) -> Result<(), PacketDrop> {
        let header = self.inner.header_len().ok_or(PacketDrop::GsoKind)?;
        let fits = match (offload.gso, self.inner.transport, self.inner.source) {
            (Gso::TcpV4, Transport::Tcp { .. }, IpAddr::V4(_)) | (Gso::TcpV6, Transport::Tcp { .. }, IpAddr::V6(_)) => {
                packet[usize::from(self.inner.transport_at) + TCP_FLAGS] & NEVER_IN_TRAIN == 0
            }
            (Gso::UdpL4, Transport::Udp, _) => {
                let at = usize::from(self.inner.transport_at);
                usize::from(be16(packet, at + 4)) == packet.len() - at
            }
            _ => false,
        };
        if !fits || self.inner.routed {
            return Err(PacketDrop::GsoKind);
        }
        if offload.gso_size == 0 {
            return Err(PacketDrop::GsoSize);
        }
        let count = (packet.len() - header).div_ceil(usize::from(offload.gso_size));
        if count <= 1 {
            return Ok(());
        }
        if header > MAX_HEAD {
            return Err(PacketDrop::GsoHeader(header));
        }
        self.count = count as u16;
        self.header = header as u16;
        self.size = u32::from(offload.gso_size);
        self.pseudo_sum = checksum::pseudo(self.inner.source, self.inner.destination, self.inner.protocol, 0);
        if self.inner.source.is_ipv4() {
            let ip = &packet[..usize::from(self.inner.transport_at)];
            let varying = [2, 4, 10].map(|at| !be16(ip, at));
            self.ip_sum = varying.into_iter().fold(checksum::sum(ip), checksum::add);
        }
        Ok(())
    }
}

/// Completes a checksum in place of the hardware that would have (virtio 1.2 section 5.1.6.2).
fn complete(packet: &mut [u8], offload: &Offload) -> Result<(), PacketDrop> {
    let start = usize::from(offload.csum_start);
    let at = start + usize::from(offload.csum_offset);
    if start > packet.len() || at + 2 > packet.len() {
        return Err(PacketDrop::ChecksumPlace);
    }
    let checksum = checksum::of_transport(&packet[start..], offload.csum_offset);
    put16(packet, at, checksum);
    Ok(())
}

/// The segments of one super-packet, or one packet. Made by a `TrainStore`, which owns it; the
/// bytes do not change while it lives, but for ECN marks.
#[derive(Debug)]
pub struct Train {
    pub(super) buffer: Vec<u8>,
    shape: Shape,
    /// Segments of a super-packet to be written with CE; almost always none.
    marked: Vec<u16>,
}

impl Train {
    pub(super) fn new(buffer: Vec<u8>, shape: Shape) -> Train {
        Train { buffer, shape, marked: Vec::new() }
    }

    /// Another packet in the same place, so that `marked` keeps its memory.
    pub(super) fn renew(&mut self, buffer: Vec<u8>, shape: Shape) {
        self.buffer = buffer;
        self.shape = shape;
        self.marked.clear();
    }

    /// How many segments; at least one.
    pub fn segments(&self) -> u16 {
        self.shape.count
    }

    /// Bytes of segment `i` as a whole inner packet.
    pub fn segment_len(&self, i: u16) -> usize {
        usize::from(self.shape.header) + self.range(i).len()
    }

    /// Bytes of all segments as whole inner packets.
    pub fn bytes(&self) -> ByteCount {
        let repeated = u64::from(self.shape.header) * (u64::from(self.shape.count) - 1);
        ByteCount(u64::from(self.shape.len) + repeated)
    }

    /// Writes the headers of segment `i` to `out` (at least [`MAX_HEAD`] bytes) and returns their
    /// length; zero for a single packet, whose body is all of it. The transport checksum is
    /// partial: the sum of the pseudo-header, as Linux leaves it with CHECKSUM_PARTIAL.
    pub fn head(&self, i: u16, out: &mut [u8]) -> usize {
        let len = usize::from(self.shape.header);
        if len == 0 {
            return 0;
        }
        let head = &mut out[..len];
        head.copy_from_slice(&self.buffer[..len]);
        let whole = len + self.range(i).len();
        self.ip_head(i, whole, head);
        self.transport_head(i, whole, head);
        len
    }

    fn ip_head(&self, i: u16, whole: usize, head: &mut [u8]) {
        if self.shape.inner.source.is_ipv4() {
            let id = be16(head, 4).wrapping_add(i);
            put16(head, 2, whole as u16);
            put16(head, 4, id);
            let sum = checksum::add(self.shape.ip_sum, checksum::add(whole as u16, id));
            put16(head, 10, !sum);
        } else {
            put16(head, 4, (whole - inner::IPV6_HEADER) as u16);
        }
        if self.marked.contains(&i) {
            set_ce(head);
        }
    }

    fn transport_head(&self, i: u16, whole: usize, head: &mut [u8]) {
        let at = usize::from(self.shape.inner.transport_at);
        let sum = checksum::add(self.shape.pseudo_sum, (whole - at) as u16);
        if self.shape.inner.transport == Transport::Udp {
            put16(head, at + 4, (whole - at) as u16);
            put16(head, at + UDP_CHECKSUM, sum);
            return;
        }
        let sequence = be32(head, at + 4).wrapping_add(u32::from(i) * self.shape.size);
        head[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        if i > 0 {
            head[at + TCP_FLAGS] &= !CWR;
        }
        if i + 1 < self.shape.count {
            head[at + TCP_FLAGS] &= !(FIN | PSH);
        }
        put16(head, at + TCP_CHECKSUM, sum);
    }

    /// Whether this is an acknowledgement beside which `older` says nothing (RFC 3449 section 5.2.1).
    pub fn supersedes(&self, older: &Train) -> bool {
        let single = self.segments() == 1 && older.segments() == 1;
        let newer = (self.body(0), self.inner());
        single && self.partial() == older.partial() && pure_ack::supersedes(newer, (older.body(0), older.inner()))
    }

    /// Whether this is nothing but an acknowledgement of TCP, perhaps with timestamps.
    pub fn is_bare_ack(&self) -> bool {
        self.segments() == 1 && pure_ack::is_pure(self.body(0), self.inner())
    }

    /// What follows the head of segment `i`.
    pub fn body(&self, i: u16) -> &[u8] {
        &self.buffer[self.range(i)]
    }

    fn range(&self, i: u16) -> std::ops::Range<usize> {
        debug_assert!(i < self.shape.count, "a segment the train does not have");
        let start = usize::from(self.shape.header) + usize::from(i) * self.shape.size as usize;
        let end = (start + self.shape.size as usize).min(self.shape.len as usize);
        start..end
    }

    /// The transport checksum of every segment is partial.
    pub fn partial(&self) -> bool {
        self.shape.partial
    }

    /// What its flow hashes to.
    pub fn flow(&self) -> FlowHash {
        self.shape.flow
    }

    /// How its order matters: what is not retransmitted is not waited for; and an acknowledgement of TCP waits for
    /// none, as it says all that older ones said, and who receives it tells old from new (RFC 9293 section 3.10.7.4).
    pub fn class(&self) -> Class {
        let at_once = !self.shape.treatment.resend || self.is_bare_ack();
        if at_once { Class::Unordered } else { self.shape.inner.class() }
    }

    /// How it is treated.
    pub fn treatment(&self) -> Treatment {
        self.shape.treatment
    }

    /// It is treated so from now on; nobody may have seen its flow before.
    pub(super) fn treat(&mut self, treatment: Treatment, key: &FlowKey) {
        if self.shape.treatment.resend != treatment.resend {
            self.shape.flow = self.shape.inner.flow(key, treatment.resend);
        }
        self.shape.treatment = treatment;
    }

    /// All that was parsed.
    pub fn inner(&self) -> &Inner {
        &self.shape.inner
    }

    /// Inner destination.
    pub fn destination(&self) -> IpAddr {
        self.shape.inner.destination
    }

    /// Inner source.
    pub fn source(&self) -> IpAddr {
        self.shape.inner.source
    }

    /// The inner transport understands ECN: a segment may be marked instead of dropped.
    pub fn ect(&self) -> bool {
        self.shape.inner.ecn() != Ecn::NotEct
    }

    /// Marks segment `i` CE (RFC 3168 section 5). The caller has asked `ect`.
    pub(super) fn mark_ce(&mut self, i: u16) {
        debug_assert!(self.ect() && i < self.shape.count);
        if self.shape.header == 0 {
            set_ce(&mut self.buffer);
        } else if !self.marked.contains(&i) {
            self.marked.push(i);
        }
    }
}

/// Sets CE in an IP header and keeps IPv4's checksum right.
fn set_ce(header: &mut [u8]) {
    let old = be16(header, 0);
    if header[0] >> 4 == 4 {
        let new = old | u16::from(Ecn::Ce.bits());
        put16(header, 0, new);
        let checksum = checksum::update(be16(header, 10), old, new);
        put16(header, 10, checksum);
    } else {
        // The traffic class ends four bits before the second byte does (RFC 8200 section 3).
        put16(header, 0, old | u16::from(Ecn::Ce.bits()) << 4);
    }
}
