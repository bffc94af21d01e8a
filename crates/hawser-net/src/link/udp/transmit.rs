//! Sending on a UDP link.
//!
//! 1. Put the next pieces of the batch (trains, or single datagrams) into one `sendmmsg`.
//! 2. What went leaves the batch; the kernel stops at the first piece it refuses.
//! 3. That piece, now first, gives its reason: a full socket ends the call; trains refused are sent as single
//!    datagrams; anything else gives the entry up, and the next is tried.
//! 4. With IP_RECVERR an ICMP error, forged or not, about any datagram fails whichever call comes next. What may be
//!    such an error is passed over once; a second time the socket ignores ICMP first, so that a third is about this
//!    datagram.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;

use super::super::send_batch::{Piece, SendBatch};
use super::super::{Ecn, Refusal, SendOutcome};
use super::UdpLink;
use super::control::{Control, SEND_CONTROL_BYTES, Writer};
use super::name::Name;

/// Pieces in one system call: with trains far more than fit a batch, and enough single datagrams
/// that the call itself does not count.
const PIECES_PER_CALL: usize = 32;

/// What one system call came to.
enum Sent {
    /// This many bytes, the first piece at least.
    Bytes(usize),
    /// The first piece was refused.
    Refused {
        errno: i32,
        /// It is a train of this many bytes a datagram.
        train: bool,
    },
    /// There was nothing to send.
    Nothing,
}

pub(super) fn transmit(link: &mut UdpLink, batch: &mut SendBatch) -> io::Result<SendOutcome> {
    batch.start();
    let mut outcome = SendOutcome::default();
    link.resume_icmp()?;
    let mut doubts = 0;
    loop {
        let (errno, train) = match send_pieces(link, batch, PIECES_PER_CALL, link.segmentation) {
            Sent::Nothing => return Ok(outcome),
            Sent::Bytes(bytes) => {
                batch.consume(bytes);
                outcome.sent_bytes += bytes;
                doubts = 0;
                continue;
            }
            Sent::Refused { errno, train } => (errno, train),
        };
        match errno {
            libc::EINTR => {}
            libc::EAGAIN => {
                outcome.blocked = true;
                return Ok(outcome);
            }
            libc::EBADF | libc::ENOTSOCK | libc::EFAULT => {
                return Err(io::Error::from_raw_os_error(errno));
            }
            // EIO: the way out cannot complete checksums of segments (udp(7)).
            libc::EIO if train => lose_segmentation(link, &mut outcome),
            // EINVAL: no such option, or segments too long for the way out; one of them tells which.
            libc::EINVAL if train => match send_pieces(link, batch, 1, false) {
                Sent::Bytes(bytes) => {
                    batch.consume(bytes);
                    outcome.sent_bytes += bytes;
                    lose_segmentation(link, &mut outcome);
                }
                Sent::Refused { errno, .. } if errno == libc::EAGAIN => {
                    outcome.blocked = true;
                    return Ok(outcome);
                }
                Sent::Refused { errno, .. } => batch.refuse_first(Refusal::from_errno(errno)),
                Sent::Nothing => return Ok(outcome),
            },
            _ if may_be_of_an_earlier_datagram(errno) && is_doubted(link, doubts)? => doubts += 1,
            _ => {
                doubts = 0;
                batch.refuse_first(Refusal::from_errno(errno));
            }
        }
    }
}

fn lose_segmentation(link: &mut UdpLink, outcome: &mut SendOutcome) {
    outcome.segmentation_lost = true;
    link.segmentation = false;
}

/// Step 4: whether an error may be of another datagram than the one at hand; `doubts`: errors in a row before it.
fn is_doubted(link: &mut UdpLink, doubts: usize) -> io::Result<bool> {
    match doubts {
        0 => Ok(true),
        1 if !link.icmp.are_ignored() => {
            link.icmp.ignore(&link.socket, link.local.is_ipv6())?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// With IP_RECVERR the next call after a router's answer fails, whomever it is for.
fn may_be_of_an_earlier_datagram(errno: i32) -> bool {
    matches!(
        Refusal::from_errno(errno),
        Refusal::TooBig | Refusal::Unreachable | Refusal::PortClosed | Refusal::NotPermitted
    ) || matches!(errno, libc::EPROTO | libc::ENOPROTOOPT | libc::EOPNOTSUPP)
}

/// Step 1: sends up to `most` pieces from the batch's front in one system call.
fn send_pieces(link: &UdpLink, batch: &SendBatch, most: usize, trains: bool) -> Sent {
    let mut names = [Name::EMPTY; PIECES_PER_CALL];
    let mut controls = [Control::<SEND_CONTROL_BYTES>::EMPTY; PIECES_PER_CALL];
    let mut slices = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; PIECES_PER_CALL];
    // SAFETY: all zeroes is a valid `mmsghdr`: integers and null pointers.
    let mut messages: [libc::mmsghdr; PIECES_PER_CALL] = unsafe { mem::zeroed() };
    let mut count = 0;
    for (at, piece) in batch.pieces(trains).take(most.min(PIECES_PER_CALL)).enumerate() {
        slices[at].iov_base = piece.bytes.as_ptr().cast_mut().cast();
        slices[at].iov_len = piece.bytes.len();
        let header = &mut messages[at].msg_hdr;
        header.msg_namelen = names[at].set(piece.to) as libc::socklen_t;
        header.msg_name = names[at].0.as_mut_ptr().cast();
        header.msg_iov = &raw mut slices[at];
        header.msg_iovlen = 1;
        header.msg_controllen = write_control(&piece, &mut controls[at]) as _;
        header.msg_control = controls[at].0.as_mut_ptr().cast();
        count = at + 1;
    }
    if count == 0 {
        return Sent::Nothing;
    }
    // The system call itself: musl's function of the name sends one message at a time. SAFETY: every pointer in the
    // first `count` messages leads to memory that outlives the call and is as long as the length beside it says; the
    // kernel only reads it. Padding is zero, as the kernel's layout wants it.
    let sent = unsafe {
        libc::syscall(libc::SYS_sendmmsg, link.socket.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
    };
    match usize::try_from(sent) {
        Ok(sent) => Sent::Bytes(slices[..sent].iter().map(|slice| slice.iov_len).sum()),
        Err(_) => Sent::Refused {
            errno: io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
            train: trains && batch.pieces(trains).next().is_some_and(|piece| piece.segment_size.is_some()),
        },
    }
}

/// Says beside a piece which marks it has, where it comes from and where to cut it.
fn write_control(piece: &Piece<'_>, control: &mut Control<SEND_CONTROL_BYTES>) -> usize {
    let remote = piece.to;
    let mut writer = Writer::new(&mut control.0);
    // Without marks the socket's own class of traffic, 0, is the right one: the kernel need not read it each time.
    if piece.route.ecn != Ecn::NotEct {
        writer.ecn(piece.route.ecn, remote.is_ipv6());
    }
    if let Some(source) = piece.route.source {
        let scope = match remote {
            std::net::SocketAddr::V6(remote) => remote.scope_id(),
            std::net::SocketAddr::V4(_) => 0,
        };
        writer.source(source, scope);
    }
    if let Some(segment_size) = piece.segment_size {
        writer.segment_size(segment_size);
    }
    writer.len()
}
