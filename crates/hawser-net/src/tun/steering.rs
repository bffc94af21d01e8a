//! Which queue of a TUN device takes a packet, by its mark: what is read from a TUN device bears no mark any more, and
//! so the kernel runs a program of a few instructions for each packet that the host sends (bpf(2),
//! `TUNSETSTEERINGEBPF`).
//!
//! 1. [`program`] writes it: the first match that fits leads to its own queue, what fits none to queue 0.
//! 2. [`Steering::load`] has the kernel check it. 3. [`Steering::attach`] gives it to a device, which keeps it.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::kernel_release;
use crate::netcfg::MarkMatch;

/// First kernel that lets a program choose the queue (Linux 4.16, `TUNSETSTEERINGEBPF`).
const STEERING_SINCE: &str = "4.16";
/// bpf(2): the command that loads a program, and the kind of program that TUN devices take (linux/bpf.h, `enum bpf_cmd`
/// and `enum bpf_prog_type`).
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
/// Where the packet's mark is in the program's argument, in bytes (linux/bpf.h, `struct __sk_buff`).
const MARK_AT: i16 = 8;

/// Operations (RFC 9669 sections 4 and 5): a load of 32 bits, moves and an AND of 32 bits, a jump if not equal, the
/// end.
const LOAD: u8 = 0x61;
const MOVE: u8 = 0xbc;
const SET: u8 = 0xb4;
const AND: u8 = 0x54;
const JUMP_UNLESS_EQUAL: u8 = 0x5d;
const END: u8 = 0x95;
/// Registers (linux/bpf.h, `BPF_REG_0` and so on): the result, the argument, and three to work with.
const RESULT: u8 = 0;
const ARGUMENT: u8 = 1;
const MARK: u8 = 2;
const MASKED: u8 = 3;
const WANTED: u8 = 4;

/// One instruction (RFC 9669 section 3.1). Plain data.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    operation: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    const fn new(operation: u8, to: u8, from: u8, offset: i16, immediate: u32) -> Self {
        // Two fields of four bits in one byte lie as the machine orders bits.
        let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
        Self { operation, registers, offset, immediate: immediate.cast_signed() }
    }
}

/// The argument of bpf(2) that loads a program, to the program's name (linux/bpf.h, `union bpf_attr`). Plain data.
#[repr(C)]
#[derive(Debug, Default)]
struct LoadArgument {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// Why packets cannot be told apart by their marks.
#[derive(Debug, thiserror::Error)]
pub enum SteeringError {
    /// Loading a program needs CAP_BPF; a filter of system calls may refuse it too.
    #[error(
        "load the program that tells marks apart: not permitted (CAP_BPF is needed; CAP_SYS_ADMIN before Linux 5.8)"
    )]
    NotPermitted(#[source] io::Error),
    /// The kernel was built without bpf(2).
    #[error("load the program that tells marks apart: Linux {kernel} has no bpf(2) (CONFIG_BPF_SYSCALL)")]
    NoBpf {
        /// The running kernel's release.
        kernel: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refuses the program.
    #[error("load the program that tells marks apart on Linux {kernel}")]
    Load {
        /// The running kernel's release.
        kernel: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel lets no program choose the queue of a TUN device.
    #[error(
        "give the tun device the program that tells marks apart: Linux {kernel} refuses it (it came with {STEERING_SINCE})"
    )]
    Attach {
        /// The running kernel's release.
        kernel: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A program that the kernel has checked; it goes with this value and the devices that it was given to.
/// Made for certain matches, and the same from then on. Freely shared.
#[derive(Debug)]
pub(super) struct Steering(OwnedFd);

impl Steering {
    /// Step 2.
    pub(super) fn load(matches: &[MarkMatch]) -> Result<Self, SteeringError> {
        let program = program(matches);
        let license = c"Apache-2.0";
        let argument = LoadArgument {
            kind: BPF_PROG_TYPE_SOCKET_FILTER,
            // Six for each of some dozen matches.
            count: program.len() as u32,
            instructions: program.as_ptr().addr() as u64,
            license: license.as_ptr().addr() as u64,
            name: *b"hawser_marks\0\0\0\0",
            ..LoadArgument::default()
        };
        let size = mem::size_of::<LoadArgument>();
        // SAFETY: the kernel reads `size` bytes of the argument, `count` instructions and a string that ends with a
        // NUL, all of which outlive the call.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const argument, size) };
        if fd < 0 {
            return Err(SteeringError::load(io::Error::last_os_error()));
        }
        // SAFETY: the kernel has just made this descriptor (with close-on-exec), and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) }))
    }

    /// Step 3, for the device of this queue.
    pub(super) fn attach(&self, queue: &OwnedFd) -> Result<(), SteeringError> {
        let program = self.0.as_raw_fd();
        // SAFETY: both descriptors are open and TUNSETSTEERINGEBPF reads one `int`, which outlives the call.
        let done = unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETSTEERINGEBPF, &raw const program) };
        if done < 0 {
            let source = io::Error::last_os_error();
            return Err(SteeringError::Attach { kernel: kernel_release(), source });
        }
        Ok(())
    }
}

impl SteeringError {
    fn load(source: io::Error) -> Self {
        match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) => Self::NotPermitted(source),
            Some(Errno::NOSYS) => Self::NoBpf { kernel: kernel_release(), source },
            _ => Self::Load { kernel: kernel_release(), source },
        }
    }
}

/// Step 1. Queues are counted from 1 in the order of the matches.
fn program(matches: &[MarkMatch]) -> Vec<Instruction> {
    let mut program = vec![Instruction::new(LOAD, MARK, ARGUMENT, MARK_AT, 0)];
    for (queue, matched) in (1..).zip(matches) {
        program.extend([
            Instruction::new(MOVE, MASKED, MARK, 0, 0),
            Instruction::new(AND, MASKED, 0, 0, matched.mask),
            // By a register: a jump would extend the sign of a number beside it.
            Instruction::new(SET, WANTED, 0, 0, matched.mark.0),
            Instruction::new(JUMP_UNLESS_EQUAL, MASKED, WANTED, 2, 0),
            Instruction::new(SET, RESULT, 0, 0, queue),
            Instruction::new(END, 0, 0, 0, 0),
        ]);
    }
    program.extend([Instruction::new(SET, RESULT, 0, 0, 0), Instruction::new(END, 0, 0, 0, 0)]);
    program
}

#[cfg(test)]
mod tests;
