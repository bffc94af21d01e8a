//! A plain TUN device: whole IP packets, without offloads or headers, as they cross a real line.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::WireError;
use crate::netlink::End;

/// The device that makes TUN interfaces. Source: kernel documentation, networking/tuntap.
const TUN_DEVICE: &str = "/dev/net/tun";

/// One end's TUN interface; it vanishes with this handle. Starts down. One owner.
#[derive(Debug)]
pub(crate) struct Tun(OwnedFd);

impl Tun {
    /// Makes the interface in the end's namespace.
    pub(crate) fn open(end: &End) -> Result<Self, WireError> {
        end.namespace.run(|| attach(&end.interface))?.map(|file| Self(file.into())).map_err(|error| {
            let namespace = end.namespace.name();
            WireError::system(format!("make tun {} in {namespace}", end.interface), error)
        })
    }

    /// Reads a packet; None where none waits.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        // What a read can fail with besides "none waits" is an interface that is down or gone: none comes.
        rustix::io::read(&self.0, buffer).ok()
    }

    /// Writes a packet; false where the interface is down.
    pub(crate) fn write(&self, packet: &[u8]) -> bool {
        rustix::io::write(&self.0, packet).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens the device and names the interface, on a thread inside the namespace.
fn attach(interface: &str) -> io::Result<File> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(TUN_DEVICE)?;
    // SAFETY: ifreq is plain data for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives through the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}
