//! Why a portal did not start, or ended by itself.

use std::io;
use std::net::SocketAddr;

use hawser_net::link::LinkError;
use hawser_net::netcfg::NetConfigError;
use hawser_net::tun::{SteeringError, TunError};

use super::control::{EpochsError, KeyLogFileError, TakeoverError};
use super::kill_switch::KillSwitchError;
use crate::api::ServeError;

/// Why a portal did not start, or ended by itself. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The control thread's runtime could not be made.
    #[error("start control thread")]
    Runtime(#[source] io::Error),
    /// The system has no randomness.
    #[error("read random bytes: the system gives none")]
    NoRandomness,
    /// The network configuration could not be read or set.
    #[error(transparent)]
    NetConfig(#[from] NetConfigError),
    /// The way past the tunnel could not be closed, or opened.
    #[error(transparent)]
    KillSwitch(#[from] KillSwitchError),
    /// An address could not be taken over.
    #[error(transparent)]
    Takeover(#[from] TakeoverError),
    /// The TUN device could not be made.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The TUN device's queue could not be set.
    #[error("set queue length of the tun device")]
    TunQueue(#[source] io::Error),
    /// The control socket could not be made.
    #[error(transparent)]
    ControlSocket(#[from] ServeError),
    /// The address of `[metrics]` could not be opened.
    #[error("listen on metrics address {address}")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The key log cannot be written.
    #[error(transparent)]
    KeyLog(#[from] KeyLogFileError),
    /// The epochs of a hub's peer cannot be kept.
    #[error(transparent)]
    Epochs(#[from] EpochsError),
    /// A `listen` address could not be opened.
    #[error("listen")]
    Listen(#[source] LinkError),
    /// Privileges could not be given up.
    #[error("give up privileges")]
    Privileges(#[source] caps::errors::CapsError),
    /// The packet thread could not start, or wait.
    #[error("{step} of the packet thread")]
    Packet {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The TUN device was deleted by somebody else.
    #[error("use tun device: it was deleted")]
    TunGone(#[source] io::Error),
    /// The packet thread panicked; its message was printed.
    #[error("packet thread ended in a panic")]
    Panicked,
}

impl RunError {
    /// What to do about it, where something is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NetConfig(error) => error.hint().map(str::to_owned),
            Self::KillSwitch(error) => error.hint(),
            Self::Takeover(error) => error.hint(),
            Self::Tun(TunError::NotPermitted(_)) => Some("run as root or with CAP_NET_ADMIN".to_owned()),
            Self::Tun(TunError::InUse { .. }) => Some("choose another [tun] name, or delete that device".to_owned()),
            Self::Tun(TunError::Missing { .. }) => Some("modprobe tun".to_owned()),
            Self::Tun(TunError::Steering(error)) => Some(without_marks(error).to_owned()),
            Self::ControlSocket(ServeError::InUse { .. }) => {
                Some("stop the other portal, or give this one another [portal] socket".to_owned())
            }
            Self::KeyLog(error) => error.hint(),
            Self::Epochs(error) => Some(error.hint()),
            Self::Listen(LinkError::Bind { .. }) => Some("does something else listen there? ss -lunp".to_owned()),
            Self::Listen(LinkError::Socket { source, .. }) if source.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
                Some("this kernel has no IPv6: leave [::]:PORT out of `listen`".to_owned())
            }
            Self::Panicked => Some("this is a bug: please report it with the message above".to_owned()),
            _ => None,
        }
    }
}

/// What to do where rules cannot look at marks.
fn without_marks(error: &SteeringError) -> &'static str {
    match error {
        SteeringError::NotPermitted(_) => {
            "a [[rule]] with `mark` needs CAP_BPF at the start; under systemd: CapabilityBoundingSet=CAP_BPF and SystemCallFilter=bpf"
        }
        _ => "leave `mark` out of the [[rule]]: match what the mark was set by, addresses, ports, protocol, or a DSCP",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_on_ipv6_without_it_is_told_what_to_leave_out() {
        let failed = |errno: i32| {
            let source = io::Error::from_raw_os_error(errno);
            RunError::Listen(LinkError::Socket { step: "open socket", source }).hint()
        };
        assert_eq!(
            failed(libc::EAFNOSUPPORT).as_deref(),
            Some("this kernel has no IPv6: leave [::]:PORT out of `listen`")
        );
        assert_eq!(failed(libc::EMFILE), None);
    }
}
