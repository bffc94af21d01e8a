//! What can go wrong with a TUN device, and what a write can come to.

use std::io;

use rustix::io::Errno;

use super::kernel_release;
use super::steering::SteeringError;

/// Why a TUN device could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The name is empty, too long (15 bytes) or holds a character the kernel refuses.
    #[error("create tun device: {name:?} is no interface name")]
    Name {
        /// The name as it was given.
        name: String,
    },
    /// `/dev/net/tun` is missing: the kernel was built without TUN, or its module is not loaded.
    #[error("create tun device: /dev/net/tun is missing on Linux {kernel} (is the module `tun` loaded?)")]
    Missing {
        /// The running kernel's release.
        kernel: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Making a device needs CAP_NET_ADMIN.
    #[error("create tun device: not permitted (CAP_NET_ADMIN is needed)")]
    NotPermitted(#[source] io::Error),
    /// Another process has a device of that name, or it is no TUN device.
    #[error("create tun device: {name} is in use")]
    InUse {
        /// The device's name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// `/dev/net/tun` cannot be opened.
    #[error("open /dev/net/tun")]
    Open(#[source] io::Error),
    /// The kernel refuses a device of this kind.
    #[error("create tun device {name} on Linux {kernel}")]
    Attach {
        /// The device's name.
        name: String,
        /// The running kernel's release.
        kernel: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refuses the header before each packet.
    #[error("set the tun device's header size")]
    HeaderSize(#[source] io::Error),
    /// The index of the new device cannot be read.
    #[error("read the tun device's interface index")]
    Index(#[source] io::Error),
    /// The kernel cannot tell packets apart by their marks.
    #[error(transparent)]
    Steering(#[from] SteeringError),
}

impl TunError {
    pub(super) fn open(errno: Errno) -> TunError {
        let source = io::Error::from(errno);
        match errno {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => TunError::Missing { kernel: kernel_release(), source },
            Errno::ACCESS | Errno::PERM => TunError::NotPermitted(source),
            _ => TunError::Open(source),
        }
    }

    pub(super) fn attach(name: &str, source: io::Error) -> TunError {
        let name = name.to_owned();
        match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) => TunError::NotPermitted(source),
            // EINVAL: a device of that name exists and is of another kind.
            Some(Errno::BUSY | Errno::EXIST | Errno::INVAL) => TunError::InUse { name, source },
            _ => TunError::Attach { name, kernel: kernel_release(), source },
        }
    }
}

/// What became of a write that was no error of the device.
/// Everything but `Written` lost the packet, `Blocked` excepted: it may be written again.
/// Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum WriteOutcome {
    /// The host has the packet.
    Written,
    /// The device takes nothing now (`EAGAIN`): write it again when the device is writable.
    Blocked,
    /// The host has no memory for it now (`ENOBUFS`, `ENOMEM`).
    NoBuffers,
    /// The interface is down (`EIO`).
    Down,
    /// The kernel finds header and packet in contradiction (`EINVAL`).
    Refused,
}

impl WriteOutcome {
    pub(super) fn from_errno(errno: Errno) -> io::Result<WriteOutcome> {
        match errno {
            Errno::AGAIN => Ok(WriteOutcome::Blocked),
            Errno::NOBUFS | Errno::NOMEM => Ok(WriteOutcome::NoBuffers),
            Errno::IO => Ok(WriteOutcome::Down),
            Errno::INVAL => Ok(WriteOutcome::Refused),
            other => Err(other.into()),
        }
    }
}

/// Whether an error of reading or writing says that the device was deleted under the portal
/// (`EBADFD`, and once `EFAULT`: drivers/net/tun.c, `tun_get` and `tun_ring_recv`).
pub fn is_device_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::BADFD | Errno::FAULT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errno_of_a_write_has_its_outcome() {
        for (errno, outcome) in [
            (Errno::AGAIN, WriteOutcome::Blocked),
            (Errno::NOBUFS, WriteOutcome::NoBuffers),
            (Errno::NOMEM, WriteOutcome::NoBuffers),
            (Errno::IO, WriteOutcome::Down),
            (Errno::INVAL, WriteOutcome::Refused),
        ] {
            assert_eq!(WriteOutcome::from_errno(errno).expect("an outcome"), outcome);
        }
        let gone = WriteOutcome::from_errno(Errno::BADFD).expect_err("no outcome");
        assert!(is_device_gone(&gone));
        assert!(!is_device_gone(&Errno::PERM.into()));
    }

    #[test]
    fn each_errno_of_opening_says_what_to_do() {
        assert!(matches!(TunError::open(Errno::NOENT), TunError::Missing { .. }));
        assert!(matches!(TunError::open(Errno::ACCESS), TunError::NotPermitted(_)));
        assert!(matches!(TunError::open(Errno::MFILE), TunError::Open(_)));
        assert!(matches!(TunError::attach("x", Errno::BUSY.into()), TunError::InUse { .. }));
        assert!(matches!(TunError::attach("x", Errno::PERM.into()), TunError::NotPermitted(_)));
        assert!(matches!(TunError::attach("x", Errno::NOMEM.into()), TunError::Attach { .. }));
    }
}
