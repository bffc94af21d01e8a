//! The TUN devices of a shim: one for what comes to servers, and one for each egress.

use std::io;

use hawser_net::netcfg::{IfIndex, NetConfigError};
use hawser_net::tun::{Tun, TunError, TunOpts};

use super::plan::Interface;
use crate::config::Config;
use crate::route::{Addresses, InterfaceIndex, NoAddress};

/// The devices of a shim, with their addresses. They go when this is dropped. Owned by whoever starts the packet
/// thread.
#[derive(Debug)]
pub struct Devices {
    /// For servers.
    pub ingress: Tun,
    /// For clients: egress 1 and so on.
    pub egress: Vec<Tun>,
}

/// Why there are no devices. Owned data only.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// One could not be made.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// A namespace could not be entered.
    #[error("enter network namespace {name}")]
    Enter {
        /// Which.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The system could not be asked or set.
    #[error(transparent)]
    NetConfig(#[from] NetConfigError),
    /// An interface would have no address.
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
}

impl Devices {
    /// Makes them in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`TunError`].
    pub fn make(config: &Config) -> Result<Self, TunError> {
        Ok(Self { ingress: Self::make_ingress(config)?, egress: Self::make_egress(config)? })
    }

    /// That for servers alone.
    pub(super) fn make_ingress(config: &Config) -> Result<Tun, TunError> {
        make(config, InterfaceIndex::INGRESS)
    }

    /// Those for clients alone.
    pub(super) fn make_egress(config: &Config) -> Result<Vec<Tun>, TunError> {
        config.egress.interfaces().map(|index| make(config, index)).collect()
    }
}

fn make(config: &Config, index: InterfaceIndex) -> Result<Tun, TunError> {
    let tun = Tun::create(&config.interface(index), &TunOpts::default())?;
    for finding in tun.findings() {
        tracing::warn!(tun = tun.name(), %finding, "tun device works, and slower");
    }
    Ok(tun)
}

/// A device as the plan has it.
pub(super) fn interface(tun: &Tun, index: InterfaceIndex, addresses: Addresses) -> Interface {
    let interface = IfIndex::new(tun.index()).expect("a device that was made has an index");
    Interface { index, name: tun.name().to_owned(), interface, addresses }
}
