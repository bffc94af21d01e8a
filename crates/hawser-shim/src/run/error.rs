//! Why a shim did not start, or ended by itself.

use std::io;

use hawser_net::netcfg::NetConfigError;
use hawser_net::tun::TunError;
use hawser_scion::conn::OpenError;
use hawser_scion::daemon::{DaemonAddr, DaemonError, InvalidAddr};
use hawser_scion::service;

use crate::host::DevicesError;
use crate::packet::PacketError;
use crate::route::{KeeperError, NoAddress};
use crate::status;

/// Why a shim did not start, or ended by itself. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The control thread's runtime could not be made, or it cannot wait.
    #[error("start control thread")]
    Runtime(#[source] io::Error),
    /// The network configuration could not be read or set.
    #[error(transparent)]
    NetConfig(#[from] NetConfigError),
    /// The interfaces could not be made.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// An interface would have no address.
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    /// The environment's address of a daemon is none.
    #[error(transparent)]
    DaemonAddress(#[from] InvalidAddr),
    /// Without the daemon it is not known which AS this is.
    #[error("ask the daemon at {address} which AS this is")]
    Daemon {
        /// Where it should be.
        address: DaemonAddr,
        /// Why it does not say.
        source: DaemonError,
    },
    /// The configuration says another AS than the daemon.
    #[error("start the shim in {configured}: the daemon is in {daemons}")]
    OtherAs {
        /// The configuration's.
        configured: hawser_scion::IsdAs,
        /// The daemon's.
        daemons: hawser_scion::IsdAs,
    },
    /// The SCION socket could not be opened.
    #[error("open the shim's port")]
    Socket(#[from] OpenError),
    /// Paths are not kept.
    #[error(transparent)]
    Service(#[from] service::StartError),
    /// The map could not be read.
    #[error(transparent)]
    Map(#[from] KeeperError),
    /// The control socket could not be made.
    #[error(transparent)]
    ControlSocket(#[from] status::StartError),
    /// Privileges could not be given up.
    #[error("give up privileges")]
    Privileges(#[source] caps::errors::CapsError),
    /// A network namespace could not be entered.
    #[error("enter network namespace {name}")]
    Enter {
        /// Which.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A thread could not start.
    #[error("start thread {name}")]
    Thread {
        /// Which.
        name: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The packet thread did not start, or ended.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

impl RunError {
    /// What to do about it, where something is known.
    pub fn hint(&self) -> Option<String> {
        let said = match self {
            Self::NetConfig(error) | Self::Devices(DevicesError::NetConfig(error)) => return hint_of(error),
            Self::Devices(DevicesError::Tun(error)) => match error {
                TunError::NotPermitted(_) => "run as root or with CAP_NET_ADMIN",
                TunError::InUse { .. } => "choose another [shim] name, or delete that device",
                TunError::Missing { .. } => "modprobe tun",
                _ => return None,
            },
            Self::Devices(DevicesError::Enter { .. }) | Self::Enter { .. } => {
                "mode = \"namespaces\" needs root, or CAP_SYS_ADMIN beside CAP_NET_ADMIN"
            }
            Self::Daemon { .. } => {
                "is the SCION daemon running? [shim] daemon says where; with its ISD-AS in [shim] local the shim starts without"
            }
            Self::OtherAs { .. } => "leave the ISD-AS out of [shim] local, or ask another daemon",
            Self::NoAddress(_) => "[shim] ipv4 gives it addresses that the map must have at the other side",
            Self::Socket(_) => "is [shim] local an address of this host, and its port free? ss -lunp",
            Self::ControlSocket(_) => "stop the other shim, or give this one another [shim] name and control",
            Self::Packet(PacketError::Panicked) => "this is a bug: please report it with the message above",
            _ => return None,
        };
        Some(said.to_owned())
    }
}

fn hint_of(error: &NetConfigError) -> Option<String> {
    error.hint().map(str::to_owned)
}
