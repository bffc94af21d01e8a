//! Receiving on a UDP link.
//!
//! 1. One `recvmmsg` into the batch's buffers; errors that routers caused are passed over, as
//!    they wait in the error queue too.
//! 2. For each message: who, to which address, which marks, merged from datagrams of which size.
//! 3. [`next_error`] takes one error off the error queue.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;

use super::super::recv_batch::{RUNS_PER_BATCH, RecvBatch, Run};
use super::super::{PathError, QUOTED_BYTES, Quoted, Refusal, ip};
use super::UdpLink;
use super::control::{Control, ERROR_CONTROL_BYTES, ExtendedError, RECV_CONTROL_BYTES, Received};
use super::name::{NAME_BYTES, Name};

/// Errors of earlier datagrams passed over in one call; the socket stays readable if there are more.
const MAX_PASSED_OVER: usize = 8;

/// What the kernel tells of each message, beside its bytes.
struct Told {
    len: usize,
    control_len: usize,
    complete: bool,
}

pub(super) fn receive(link: &mut UdpLink, batch: &mut RecvBatch) -> io::Result<usize> {
    link.resume_icmp()?;
    let mut names = [Name::EMPTY; RUNS_PER_BATCH];
    let mut controls = [Control::<RECV_CONTROL_BYTES>::EMPTY; RUNS_PER_BATCH];
    let mut told = [const { None }; RUNS_PER_BATCH];
    receive_messages(link, batch, &mut names, &mut controls, &mut told)?;
    let mut runs = 0;
    for (at, told) in told.iter().enumerate() {
        let Some(told) = told else { break };
        batch.messages += 1;
        let control = Received::parse(&controls[at].0[..told.control_len.min(RECV_CONTROL_BYTES)]);
        if let Some(total) = control.drops {
            // The socket counts modulo 2^32.
            batch.kernel_drops += u64::from(total.wrapping_sub(link.last_overflow));
            link.last_overflow = total;
        }
        let header = if link.brings_header() { ip::header_len(batch.bytes(at, told.len)) } else { Some(0) };
        let (Some(remote), Some(start)) = (names[at].get().filter(|_| told.complete), header) else {
            batch.truncated += 1;
            continue;
        };
        let len = told.len - start;
        let run = Run {
            remote,
            local: control.local,
            ecn: control.ecn,
            segment_size: control.segment_size.unwrap_or(len).max(1),
            start,
            len,
        };
        runs += batch.set(at, run);
    }
    link.kernel_drops += batch.kernel_drops;
    Ok(runs)
}

/// Step 1: one system call, whose results go to `names`, `controls` and `told`.
fn receive_messages(
    link: &UdpLink,
    batch: &mut RecvBatch,
    names: &mut [Name; RUNS_PER_BATCH],
    controls: &mut [Control<RECV_CONTROL_BYTES>; RUNS_PER_BATCH],
    told: &mut [Option<Told>; RUNS_PER_BATCH],
) -> io::Result<()> {
    let mut pieces = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; RUNS_PER_BATCH];
    // SAFETY: all zeroes is a valid `mmsghdr`: integers and null pointers.
    let mut messages: [libc::mmsghdr; RUNS_PER_BATCH] = unsafe { mem::zeroed() };
    for (at, buffer) in batch.start().enumerate() {
        pieces[at].iov_base = buffer.as_mut_ptr().cast();
        pieces[at].iov_len = buffer.len();
        let header = &mut messages[at].msg_hdr;
        header.msg_name = names[at].0.as_mut_ptr().cast();
        header.msg_namelen = NAME_BYTES as libc::socklen_t;
        header.msg_iov = &raw mut pieces[at];
        header.msg_iovlen = 1;
        header.msg_control = controls[at].0.as_mut_ptr().cast();
        header.msg_controllen = RECV_CONTROL_BYTES as _;
    }
    for _ in 0..MAX_PASSED_OVER {
        // SAFETY: every pointer in `messages` leads to memory that outlives the call, is borrowed
        // mutably by this function and is as long as the length beside it says.
        let count = unsafe {
            libc::recvmmsg(
                link.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                RUNS_PER_BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if let Ok(count) = usize::try_from(count) {
            for (message, told) in messages.iter().zip(told).take(count) {
                *told = Some(Told {
                    len: message.msg_len as usize,
                    control_len: message.msg_hdr.msg_controllen as _,
                    complete: message.msg_hdr.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) == 0,
                });
            }
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN) => return Ok(()),
            Some(errno) if is_of_the_socket(errno) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Step 3: the oldest error in the queue.
pub(super) fn next_error(link: &mut UdpLink) -> io::Result<Option<PathError>> {
    let mut name = Name::EMPTY;
    let mut control = Control::<ERROR_CONTROL_BYTES>::EMPTY;
    let mut payload = [0_u8; QUOTED_BYTES];
    loop {
        let mut piece = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
        // SAFETY: all zeroes is a valid `msghdr`: integers and null pointers.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = name.0.as_mut_ptr().cast();
        header.msg_namelen = NAME_BYTES as libc::socklen_t;
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = ERROR_CONTROL_BYTES as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: every pointer in `header` leads to a local that outlives the call and is as long
        // as the length beside it says.
        let got = unsafe { libc::recvmsg(link.socket.as_raw_fd(), &raw mut header, flags) };
        if got < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(None),
                Some(libc::EINTR) => continue,
                _ => return Err(error),
            }
        }
        link.icmp.on_error(&link.socket, link.local.is_ipv6())?;
        let quoted = Quoted::of(&payload[..got.unsigned_abs().min(QUOTED_BYTES)]);
        let control_len: usize = header.msg_controllen as _;
        let error = ExtendedError::parse(&control.0[..control_len.min(ERROR_CONTROL_BYTES)]);
        if let (Some(remote), Some(error)) = (name.get(), error) {
            let reason = Refusal::from_errno(error.errno);
            return Ok(Some(PathError {
                remote,
                reason,
                mtu: (reason == Refusal::TooBig && error.info > 0).then_some(error.info),
                from: error.from,
                quoted: Some(quoted),
            }));
        }
    }
}

/// Whether an error number speaks of the socket itself, not of a datagram sent earlier.
pub(super) fn is_of_the_socket(errno: i32) -> bool {
    matches!(errno, libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL | libc::ENOMEM)
}
