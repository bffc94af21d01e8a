//! Why the bypass is not to be had. Packets go by the dispatcher then, as they do without it.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::interfaces::Mode;

/// The first kernel that has all the program asks for: `bpf_xdp_load_bytes`, and packets in several buffers.
pub(super) const SINCE: &str = "5.18";

/// Why the bypass is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// A capability is missing.
    #[error("{operation}: not permitted (CAP_BPF and CAP_NET_ADMIN are needed)")]
    NotPermitted {
        /// What was tried.
        operation: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel was built without bpf(2).
    #[error("load the bypass: Linux {kernel} has no bpf(2) (CONFIG_BPF_SYSCALL)")]
    NoBpf {
        /// The running kernel's release.
        kernel: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refuses the program.
    #[error("load the bypass: Linux {kernel} refuses it (it needs Linux {SINCE})")]
    Load {
        /// The running kernel's release.
        kernel: String,
        /// What the kernel, or the loader, said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no file system for the program to stay in, and none can be mounted.
    #[error("mount {}, the file system that keeps the bypass (CONFIG_BPF_SYSCALL and CAP_SYS_ADMIN are needed)", path.display())]
    Mount {
        /// Where it belongs.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no file system for the program to stay in, and one mounted here would go with this mount namespace.
    #[error("keep the bypass: {} is not mounted where this command was called from, and what it mounts goes with it", path.display())]
    Hidden {
        /// Where it belongs.
        path: PathBuf,
    },
    /// A file or folder of the bypass cannot be used.
    #[error("{operation} {}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// What is kept is not what this version keeps.
    #[error("open {}: made by another version of hawser", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
    },
    /// The kernel did not answer about its interfaces.
    #[error("{operation}")]
    Netlink {
        /// What was asked.
        operation: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no such interface in this network namespace.
    #[error("attach the bypass: there is no interface \"{name}\"")]
    NoInterface {
        /// Its name.
        name: String,
    },
    /// The interface's driver runs no XDP programs itself.
    #[error("attach the bypass to {interface}: its driver has no native mode")]
    NotNative {
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Somebody else's program is there.
    #[error("attach the bypass to {interface}: program {program} is there in {mode} mode, and not ours")]
    Occupied {
        /// The interface.
        interface: String,
        /// The kernel's number of the program.
        program: u32,
        /// How it runs.
        mode: Mode,
    },
    /// Somebody else's program is there, and nobody but its owner can take it off.
    #[error("take program {program} off {interface}: its owner holds it by a link of BPF")]
    Held {
        /// The interface.
        interface: String,
        /// The kernel's number of the program.
        program: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not attach the program.
    #[error("attach the bypass to {interface} in {mode} mode")]
    Attach {
        /// The interface.
        interface: String,
        /// How it should have run.
        mode: Mode,
        /// What the kernel said.
        source: io::Error,
    },
    /// No bypass in this network namespace.
    #[error("take a port on the bypass's whitelist: no bypass is attached in this network namespace")]
    NotAttached,
    /// The whitelist cannot be read or changed.
    #[error("{operation}")]
    Whitelist {
        /// What was tried.
        operation: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The socket has no port.
    #[error("take a port on the bypass's whitelist: the socket is not bound to a UDP port")]
    NotBound,
}

impl XdpError {
    /// What loading a program or its maps means by this.
    pub(super) fn loading(error: aya::EbpfError) -> XdpError {
        let kernel = kernel_release();
        let operation = "load the bypass";
        match errno(&error) {
            Some(Errno::PERM | Errno::ACCESS) => XdpError::NotPermitted { operation, source: io_error(&error) },
            Some(Errno::NOSYS) => XdpError::NoBpf { kernel, source: io_error(&error) },
            _ => XdpError::Load { kernel, source: Box::new(error) },
        }
    }

    /// What opening a pinned object, or pinning it, means by this.
    pub(super) fn file(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> XdpError {
        match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) => XdpError::NotPermitted { operation, source },
            _ => XdpError::File { operation, path: path.into(), source },
        }
    }
}

/// The release of the running kernel.
fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The kernel's word behind an error of the loader, if there is one.
pub(super) fn errno(error: &(dyn std::error::Error + 'static)) -> Option<Errno> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(errno) = error.downcast_ref::<io::Error>().and_then(Errno::from_io_error) {
            return Some(errno);
        }
        cause = error.source();
    }
    None
}

/// The same as an I/O error, whatever it was wrapped in.
pub(super) fn io_error(error: &(dyn std::error::Error + 'static)) -> io::Error {
    match errno(error) {
        Some(errno) => errno.into(),
        None => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(errno: Errno) -> aya::EbpfError {
        aya::EbpfError::MapError(aya::maps::MapError::CreateError { name: "WHITELIST".into(), io_error: errno.into() })
    }

    #[test]
    fn each_errno_of_loading_says_what_is_missing() {
        let said = |errno| XdpError::loading(refused(errno));
        assert!(matches!(said(Errno::PERM), XdpError::NotPermitted { .. }));
        assert!(said(Errno::PERM).to_string().contains("CAP_BPF"));
        assert!(matches!(said(Errno::NOSYS), XdpError::NoBpf { .. }));
        let load = said(Errno::INVAL);
        assert!(matches!(load, XdpError::Load { .. }), "{load}");
        assert!(load.to_string().contains(&kernel_release()) && load.to_string().contains(SINCE), "{load}");
    }
}
