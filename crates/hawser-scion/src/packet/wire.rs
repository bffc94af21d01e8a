//! The numbers of the format, and reading of numbers from bytes.

/// Bytes of the unit that header and extensions are counted in (scion-header.rst, "Common Header").
pub(super) const LINE_LEN: usize = 4;
/// Bytes of the common header (scion-header.rst, "Common Header").
pub(super) const COMMON_LEN: usize = 12;
/// Bytes of both ISD-AS numbers (scion-header.rst, "Address Header").
pub(super) const BOTH_AS_LEN: usize = 16;
/// Bytes that a SCION header may have: HdrLen is one byte (scion-header.rst, "Common Header").
pub const MAX_HEADER_LEN: usize = 255 * LINE_LEN;
/// The one version there is (scion-header.rst, "Common Header").
pub(super) const VERSION: u8 = 0;

/// Where NextHdr stands, in bytes.
pub(super) const NEXT_HEADER_AT: usize = 4;
/// Where HdrLen stands, in bytes.
pub(super) const HEADER_LEN_AT: usize = 5;
/// Where PayloadLen stands, in bytes.
pub(super) const PAYLOAD_LEN_AT: usize = 6;
/// Where PathType stands, in bytes.
pub(super) const PATH_TYPE_AT: usize = 8;
/// Where types and lengths of addresses stand, in bytes.
pub(super) const ADDRESS_TYPES_AT: usize = 9;
/// Bits of a flow id (scion-header.rst, "Common Header").
pub(super) const FLOW_BITS: u32 = 20;

/// Type and length of an IPv4 host (scion-header.rst, "Address Header").
pub(super) const HOST_V4: u8 = 0b0000;
/// Type and length of a service.
pub(super) const HOST_SERVICE: u8 = 0b0100;
/// Type and length of an IPv6 host.
pub(super) const HOST_V6: u8 = 0b0011;

/// Bytes of a path's meta header (scion-header.rst, "Path Meta Header").
pub(super) const META_LEN: usize = 4;
/// Bytes of an info field (scion-header.rst, "Info Field").
pub(super) const INFO_LEN: usize = 8;
/// Bytes of a hop field (scion-header.rst, "Hop Field").
pub(super) const HOP_LEN: usize = 12;
/// Segments of a path, at most (scion-header.rst, "Path Meta Header").
pub(super) const MAX_SEGMENTS: usize = 3;
/// Hop fields of a path, at most: CurrHF has 6 bits.
pub(super) const MAX_HOPS: usize = 64;
/// Bytes of a one-hop path: an info field and two hop fields (scion-header.rst, "One-Hop").
pub(super) const ONE_HOP_LEN: usize = INFO_LEN + 2 * HOP_LEN;
/// Bytes of an EPIC path before its SCION path (scion-header.rst, "EPIC-HP").
pub(super) const EPIC_META_LEN: usize = 16;

/// Bytes of a UDP header (RFC 768).
pub const UDP_LEN: usize = 8;
/// Bytes of payload that a UDP length can tell (RFC 768).
pub const MAX_UDP_PAYLOAD: usize = u16::MAX as usize - UDP_LEN;
/// Where the destination port stands in a UDP header or a TCP header, in bytes (RFC 768, RFC 9293).
pub(super) const DESTINATION_PORT_AT: usize = 2;
/// Bytes of a TCP header without options (RFC 9293, 3.1).
pub(super) const TCP_LEN: usize = 20;
/// Where the checksum stands in a TCP header, in bytes (RFC 9293, 3.1).
pub(super) const TCP_CHECKSUM_AT: usize = 16;
/// Bytes that an SCMP error may have in all, from the SCION header on (scmp.rst, "Message Processing").
pub const MAX_SCMP_LEN: usize = 1232;
/// Bytes of type, code and checksum of an SCMP message (scmp.rst).
pub(super) const SCMP_LEN: usize = 4;

/// What can follow a header (scion-header.rst, "Protocol Numbers").
pub mod protocol {
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// Options for every hop.
    pub const HOP_BY_HOP: u8 = 200;
    /// Options for the end host.
    pub const END_TO_END: u8 = 201;
    /// Control messages.
    pub const SCMP: u8 = 202;
}

/// Two bytes at an offset that the caller has checked.
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Four bytes at an offset that the caller has checked.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

/// Eight bytes at an offset that the caller has checked.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

/// Bytes at an offset that the caller has checked.
#[inline]
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the caller has checked the length")
}
