//! What the kernel lets through to a raw socket: packets whose payload begins as a datagram of Hawser does
//! (docs/wire.md: the type in the high half of the first byte, 1 to 4, and no flag below).
//!
//! ```text
//!   IPv4: x = length of the IP header; a = first byte behind it     IPv6: a = first byte
//!   a is 0x10, 0x20, 0x30 or 0x40: take the packet, else drop it
//! ```

use std::io;
use std::os::fd::AsRawFd;

use socket2::Socket;

/// First bytes that a datagram may have.
const FIRST_BYTES: [u8; 4] = [0x10, 0x20, 0x30, 0x40];
/// What the filter returns to let a packet through whole, in bytes.
const WHOLE: u32 = u32::MAX;

/// Attaches the filter.
///
/// # Errors
/// What the kernel said.
pub fn attach(socket: &Socket, v4: bool) -> io::Result<()> {
    let mut program = program(v4);
    let program = libc::sock_fprog {
        // A dozen instructions.
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the socket is open; `program` and the instructions it points to outlive the call, which copies them.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The instructions (linux/bpf_common.h): over IPv4 the kernel shows the packet from its IP header, else from its
/// payload.
fn program(v4: bool) -> Vec<libc::sock_filter> {
    let op = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = Vec::new();
    if v4 {
        program.push(op(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0));
        program.push(op(libc::BPF_LD | libc::BPF_B | libc::BPF_IND, 0, 0, 0));
    } else {
        program.push(op(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 0));
    }
    for (at, first) in FIRST_BYTES.iter().enumerate() {
        // To the last instruction, over the comparisons left and the refusal.
        let over = (FIRST_BYTES.len() - at) as u8;
        program.push(op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, over, 0, u32::from(*first)));
    }
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, 0, 0));
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, 0, WHOLE));
    program
}
