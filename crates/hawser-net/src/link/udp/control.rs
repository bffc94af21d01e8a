//! Control messages beside a datagram (`cmsg(3)`), read and written as plain bytes.
//!
//! ```text
//!  | length: usize | level: i32 | type: i32 | data, padded to a usize | next …
//! ```

use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::Ecn;

/// Room for what one sent datagram carries, in bytes: marks 24, source 40, segment size 24.
pub(super) const SEND_CONTROL_BYTES: usize = 96;

/// Room for what one received datagram brings, in bytes: merge size 24, drops 24, marks 24,
/// destination 40, and as much again for what a later kernel adds.
pub(super) const RECV_CONTROL_BYTES: usize = 224;

/// Room for what one error brings, in bytes: the error and its sender 64, and all of the above.
pub(super) const ERROR_CONTROL_BYTES: usize = 320;

/// linux/in.h and linux/in6.h: bytes of `in_pktinfo` (index, local address, destination) and of
/// `in6_pktinfo` (address, index).
const PKTINFO4_BYTES: usize = 12;
const PKTINFO6_BYTES: usize = 20;

/// Bytes of the header of a control message, and what each is padded to.
const HEADER_BYTES: usize = mem::size_of::<usize>() + 2 * mem::size_of::<i32>();
const ALIGN: usize = mem::size_of::<usize>();

/// Control bytes for one datagram; all zero at first. Plain data, aligned as the kernel's.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Control<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> Control<N> {
    pub(super) const EMPTY: Control<N> = Control([0; N]);
}

/// Writes control messages one behind the other.
/// Starts with none. For one thread.
pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Writer<'a> {
        Writer { bytes, len: 0 }
    }

    /// Bytes written.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn ecn(&mut self, ecn: Ecn, v6: bool) {
        let (level, kind) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        self.put(level, kind, &i32::from(ecn as u8).to_ne_bytes());
    }

    /// The address to send from. `scope` is the interface of a link-local one, else 0.
    pub(super) fn source(&mut self, source: IpAddr, scope: u32) {
        match source {
            IpAddr::V4(address) => {
                let mut info = [0; PKTINFO4_BYTES];
                info[4..8].copy_from_slice(&address.octets());
                self.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            IpAddr::V6(address) => {
                let mut info = [0; PKTINFO6_BYTES];
                info[..16].copy_from_slice(&address.octets());
                info[16..].copy_from_slice(&scope.to_ne_bytes());
                self.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
    }

    pub(super) fn segment_size(&mut self, bytes: u16) {
        self.put(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
    }

    fn put(&mut self, level: i32, kind: i32, data: &[u8]) {
        let length = HEADER_BYTES + data.len();
        let at = &mut self.bytes[self.len..];
        at[..ALIGN].copy_from_slice(&length.to_ne_bytes());
        at[ALIGN..ALIGN + 4].copy_from_slice(&level.to_ne_bytes());
        at[ALIGN + 4..HEADER_BYTES].copy_from_slice(&kind.to_ne_bytes());
        at[HEADER_BYTES..length].copy_from_slice(data);
        self.len += length.next_multiple_of(ALIGN);
    }
}

/// What the control messages of a received datagram say.
/// Says nothing at first. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) local: Option<IpAddr>,
    pub(super) ecn: Ecn,
    /// Length of each merged datagram, in bytes; `None` when it is a single one.
    pub(super) segment_size: Option<usize>,
    /// Datagrams the socket lost so far, modulo 2^32.
    pub(super) drops: Option<u32>,
}

impl Received {
    pub(super) fn parse(bytes: &[u8]) -> Received {
        let mut received = Received::default();
        for (level, kind, data) in messages(bytes) {
            match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    received.local = array::<4>(data, 4).map(|a| Ipv4Addr::from(a).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    received.local = array::<16>(data, 0).map(|a| Ipv6Addr::from(a).into());
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => {
                    received.ecn = Ecn::from_tos(data.first().copied().unwrap_or(0));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    let class = array(data, 0).map_or(0, i32::from_ne_bytes);
                    received.ecn = Ecn::from_tos((class & 0xff) as u8);
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = array(data, 0).map(i32::from_ne_bytes);
                    received.segment_size = size.and_then(|size| usize::try_from(size).ok());
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    received.drops = array(data, 0).map(u32::from_ne_bytes);
                }
                _ => {}
            }
        }
        received
    }
}

/// What the control messages of an error say (linux/errqueue.h, `sock_extended_err`).
/// Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExtendedError {
    pub(super) errno: i32,
    pub(super) info: u32,
    pub(super) from: Option<IpAddr>,
}

/// Bytes of `sock_extended_err`; the address of who said so follows.
const EXTENDED_ERROR_BYTES: usize = 16;
/// Where `sockaddr_in` and `sockaddr_in6` keep the address.
const SOCKADDR4_ADDRESS: usize = 4;
const SOCKADDR6_ADDRESS: usize = 8;

impl ExtendedError {
    pub(super) fn parse(bytes: &[u8]) -> Option<ExtendedError> {
        let (_, _, data) = messages(bytes).find(|&(level, kind, _)| {
            (level, kind) == (libc::IPPROTO_IP, libc::IP_RECVERR)
                || (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        })?;
        let from = data.get(EXTENDED_ERROR_BYTES..).and_then(|offender| {
            match i32::from(array(offender, 0).map(u16::from_ne_bytes)?) {
                libc::AF_INET => array::<4>(offender, SOCKADDR4_ADDRESS).map(|a| Ipv4Addr::from(a).into()),
                libc::AF_INET6 => array::<16>(offender, SOCKADDR6_ADDRESS).map(|a| Ipv6Addr::from(a).into()),
                _ => None,
            }
        });
        Some(ExtendedError {
            errno: array(data, 0).map(i32::from_ne_bytes)?,
            info: array(data, 8).map(u32::from_ne_bytes)?,
            from,
        })
    }
}

/// The messages in `bytes`: level, type, data. Stops at the first that does not fit.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let length = array(bytes, 0).map(usize::from_ne_bytes)?;
        let level = array(bytes, ALIGN).map(i32::from_ne_bytes)?;
        let kind = array(bytes, ALIGN + 4).map(i32::from_ne_bytes)?;
        let data = bytes.get(HEADER_BYTES..length)?;
        let next = length.checked_next_multiple_of(ALIGN)?;
        bytes = bytes.get(next..).unwrap_or_default();
        Some((level, kind, data))
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
