//! The TUN device, with the offloads of the Linux kernel: it hands over and takes whole trains.
//!
//! 1. [`Tun::create`] makes the device and agrees with the kernel on offloads (`offload.rs`).
//! 2. [`Tun::read`] takes one train (or one packet) that the host sends, behind its [`VnetHdr`].
//! 3. [`Tun::write`] gives one train (or one packet) to the host, in one system call.
//!
//! A device made by [`Tun::create_marked`] has further queues, for what bears certain marks (`steering.rs`):
//! [`Tun::read_marked`] reads them, and [`Tun::read`] what bears none of these. It is written to as any other.

mod convert;
mod error;
mod offload;
mod steering;
mod vnet;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::netcfg::MarkMatch;
use steering::Steering;

pub use convert::{header, offload};
pub use error::{TunError, WriteOutcome, is_device_gone};
pub use offload::{Features, TunFinding};
pub use steering::SteeringError;
pub use vnet::{GsoKind, MalformedVnetHdr, VNET_HDR_BYTES, VnetHdr};

/// Least length of the buffer given to [`Tun::read`], in bytes: the longest IP packet
/// (RFC 791 section 3.1: a total length of 16 bits), in 64 KiB.
pub const READ_BUFFER_BYTES: usize = 65_536;

/// Most parts that one [`Tun::write`] takes: headers and a part for each segment of a full train
/// of 536-byte segments (RFC 9293 section 3.7.1, the smallest default of TCP), rounded up.
pub const MAX_WRITE_PARTS: usize = 128;

/// Parts up to which a write goes by the short array: most packets are one or two.
const FEW_WRITE_PARTS: usize = 3;

/// Longest interface name, in bytes, without its final NUL (linux/if.h, `IFNAMSIZ` less one).
const MAX_NAME_BYTES: usize = libc::IFNAMSIZ - 1;

/// The kernel's device that makes TUN devices.
const CLONE_DEVICE: &str = "/dev/net/tun";

/// What a TUN device is made with. The default asks for every offload. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunOpts {
    /// The offloads to ask for.
    pub features: Features,
}

impl Default for TunOpts {
    fn default() -> Self {
        TunOpts { features: Features::ALL }
    }
}

/// A TUN device, open and non-blocking; it goes when this value is dropped.
/// Starts down, without addresses and with the kernel's MTU of 1500.
/// For one thread: reading and writing take `&mut self`.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    index: u32,
    features: Features,
    findings: Vec<TunFinding>,
    malformed: u64,
    marked: Vec<MarkedQueue>,
}

/// The queue of what bears a mark. Empty until the device is up; goes with it.
/// For the thread that has the device.
#[derive(Debug)]
struct MarkedQueue {
    fd: OwnedFd,
    mark: MarkMatch,
}

/// One packet or train that [`Tun::read`] brought.
/// Never empty. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the buffer that are the IP packet.
    pub len: usize,
    /// Which work the kernel left to the reader; its offsets lie within the packet.
    pub header: VnetHdr,
}

impl Tun {
    /// Makes the device `name`, where `%d` stands for the first free number, in the calling
    /// thread's network namespace.
    ///
    /// # Errors
    /// [`TunError`], for a bad name, a missing permission or module, or a name that is taken.
    /// An offload the kernel refuses is no error but a finding.
    pub fn create(name: &str, opts: &TunOpts) -> Result<Tun, TunError> {
        Tun::make(name, opts, 0)
    }

    /// The same with a queue for each of `marks`. A packet goes to that of the first which matches it.
    ///
    /// # Errors
    /// As [`Tun::create`]; [`TunError::Steering`] where the kernel cannot tell marks apart.
    pub fn create_marked(name: &str, opts: &TunOpts, marks: &[MarkMatch]) -> Result<Tun, TunError> {
        if marks.is_empty() {
            return Tun::create(name, opts);
        }
        // First, so that a refusal leaves nothing behind.
        let steering = Steering::load(marks)?;
        // The first queue makes the device: else it would join one that somebody else has.
        let mut tun = Tun::make(name, opts, libc::IFF_MULTI_QUEUE | libc::IFF_TUN_EXCL)?;
        for &mark in marks {
            let fd = open()?;
            attach(&fd, &tun.name, libc::IFF_MULTI_QUEUE)?;
            tun.marked.push(MarkedQueue { fd, mark });
        }
        steering.attach(&tun.fd)?;
        Ok(tun)
    }

    fn make(name: &str, opts: &TunOpts, flags: libc::c_int) -> Result<Tun, TunError> {
        check_name(name)?;
        let fd = open()?;
        let name = attach(&fd, name, flags)?;
        set_header_size(&fd)?;
        let (features, findings) = offload::negotiate(opts.features, |bits| set_offload(&fd, bits));
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).map_err(TunError::Index)?;
        let index =
            rustix::net::netdevice::name_to_index(&socket, &name).map_err(|errno| TunError::Index(errno.into()))?;
        Ok(Tun { fd, name, index, features, findings, malformed: 0, marked: Vec::new() })
    }

    /// The device's name when it was made, with its number in the place of `%d`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device's interface index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Which offloads are on.
    pub fn features(&self) -> Features {
        self.features
    }

    /// What the kernel refused, for the log and for `hawser doctor`.
    pub fn findings(&self) -> &[TunFinding] {
        &self.findings
    }

    /// Packets thrown away because their header and their length contradicted each other
    /// (another virtual device may send such packets through this host).
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Reads one packet or train into `buf`, or `None` when there is none now.
    ///
    /// # Errors
    /// `InvalidInput` when `buf` is shorter than [`READ_BUFFER_BYTES`], else what the kernel says;
    /// [`is_device_gone`] tells whether the device was deleted.
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<Option<Received>> {
        read(&self.fd, buf, &mut self.malformed)
    }

    /// The same of what bears a mark; `place` is that of the mark among those that the device was made with.
    ///
    /// # Errors
    /// As [`Tun::read`].
    ///
    /// # Panics
    /// Without such a place.
    pub fn read_marked(&mut self, place: usize, buf: &mut [u8]) -> io::Result<Option<Received>> {
        read(&self.marked[place].fd, buf, &mut self.malformed)
    }

    /// The marks that have queues, in their order, each with what tells that it can be read.
    pub fn marked(&self) -> impl ExactSizeIterator<Item = (MarkMatch, BorrowedFd<'_>)> {
        self.marked.iter().map(|queue| (queue.mark, queue.fd.as_fd()))
    }

    /// Writes one packet or train, the concatenation of `parts`, in one system call.
    ///
    /// # Errors
    /// `InvalidInput` for more than [`MAX_WRITE_PARTS`] parts; what the kernel says when it is
    /// none of the [`WriteOutcome`]s ([`is_device_gone`]: the device was deleted).
    pub fn write(&mut self, header: &VnetHdr, parts: &[IoSlice<'_>]) -> io::Result<WriteOutcome> {
        let raw = header.encode();
        if parts.len() <= FEW_WRITE_PARTS {
            write_parts::<{ FEW_WRITE_PARTS + 1 }>(&self.fd, &raw, parts)
        } else if parts.len() <= MAX_WRITE_PARTS {
            write_parts::<{ MAX_WRITE_PARTS + 1 }>(&self.fd, &raw, parts)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "write to tun: too many parts"))
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The running kernel's release, such as `6.1.0-18-amd64`, for errors and findings.
pub(crate) fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn check_name(name: &str) -> Result<(), TunError> {
    let bad = name.is_empty()
        || name.len() > MAX_NAME_BYTES
        || name == "."
        || name == ".."
        || name.bytes().any(|b| b == b'/' || b == b':' || b == 0 || b.is_ascii_whitespace());
    if bad {
        return Err(TunError::Name { name: name.to_owned() });
    }
    Ok(())
}

/// A file that has no device yet.
fn open() -> Result<OwnedFd, TunError> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(CLONE_DEVICE, flags, Mode::empty()).map_err(TunError::open)
}

/// `TUNSETIFF`: gives the file its device, and returns the device's real name.
fn attach(fd: &OwnedFd, name: &str, more_flags: libc::c_int) -> Result<String, TunError> {
    // Without IFF_NAPI: what the portal writes is merged already, and merging it again in the
    // kernel saved no CPU time (1 GiB of TCP from device to device, either way within the noise).
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | more_flags;
    // SAFETY: all zeroes is a valid `ifreq`: integers, and a union of integers and null pointers.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the descriptor is open and TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        return Err(TunError::attach(name, io::Error::last_os_error()));
    }
    let bytes = request.ifr_name.iter().map(|c| c.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|&b| b != 0).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `TUNSETVNETHDRSZ`: sets the length of the header before each packet, and its byte order to the machine's.
fn set_header_size(fd: &OwnedFd) -> Result<(), TunError> {
    let size = VNET_HDR_BYTES as libc::c_int;
    // SAFETY: the descriptor is open and TUNSETVNETHDRSZ reads one `int`, which outlives the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const size) };
    if done < 0 {
        return Err(TunError::HeaderSize(io::Error::last_os_error()));
    }
    Ok(())
}

/// `TUNSETOFFLOAD`: tells the kernel what this reader can take.
fn set_offload(fd: &OwnedFd, bits: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open and TUNSETOFFLOAD takes its argument by value.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(bits)) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Reads one packet or train of a queue, or `None` when there is none now.
fn read(fd: &OwnedFd, buf: &mut [u8], malformed: &mut u64) -> io::Result<Option<Received>> {
    if buf.len() < READ_BUFFER_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "read from tun: the buffer is shorter than 64 KiB"));
    }
    loop {
        let mut raw = [0; VNET_HDR_BYTES];
        let mut parts = [IoSliceMut::new(&mut raw), IoSliceMut::new(buf)];
        let total = match rustix::io::readv(fd, &mut parts) {
            Ok(total) => total,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let packet = total.checked_sub(VNET_HDR_BYTES).and_then(|n| buf.get(..n));
        match packet.map(|packet| VnetHdr::parse(&raw, packet)) {
            Some(Ok(header)) => {
                let len = total - VNET_HDR_BYTES;
                return Ok(Some(Received { len, header }));
            }
            // One bad packet must stop neither the portal nor the packets behind it.
            Some(Err(_)) | None => *malformed += 1,
        }
    }
}

fn write_parts<const N: usize>(
    fd: &OwnedFd,
    header: &[u8; VNET_HDR_BYTES],
    parts: &[IoSlice<'_>],
) -> io::Result<WriteOutcome> {
    let mut all = [IoSlice::new(&[]); N];
    all[0] = IoSlice::new(header);
    all[1..=parts.len()].copy_from_slice(parts);
    loop {
        match rustix::io::writev(fd, &all[..=parts.len()]) {
            Ok(_) => return Ok(WriteOutcome::Written),
            Err(Errno::INTR) => {}
            Err(errno) => return WriteOutcome::from_errno(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_refuse_are_refused_before() {
        for bad in ["", "a-name-of-sixteen", "a/b", "a b", "a:b", "a\0b", ".", ".."] {
            let error = Tun::create(bad, &TunOpts::default()).expect_err(bad);
            assert!(matches!(error, TunError::Name { .. }), "{bad:?} gave {error}");
        }
    }
}
