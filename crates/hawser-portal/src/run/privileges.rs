//! Giving up what a running portal does not need.
//!
//! 1. [`Powers::of`] reads from the configuration what will still be needed.
//! 2. The control thread keeps that, and gives up the rest ([`Powers::reduce`]): its own and that of all it starts, by
//!    every way to get any of it back. Then it starts the packet thread,
//! 3. which keeps what sockets need at hand without having it in force ([`at_rest`]), but for the moment in which one
//!    is opened (`hawser_net::powers`): a packet that finds a flaw in what handles it has to bring code of its own to
//!    gain by it.
//! 4. The control thread drops what only the packet thread needs ([`Powers::keep_own`]).

use caps::{Capability, CapsHashSet};
use hawser_config::{Config, Transport};
use hawser_net::powers;

use super::RunError;

/// Ports below this are for whoever has CAP_NET_BIND_SERVICE (ip_unprivileged_port_start's default, capabilities(7)).
const PORTS_FREE_FROM: u16 = 1024;

/// What stays, per thread. Decided once; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Powers {
    control: CapsHashSet,
    packet: CapsHashSet,
}

impl Powers {
    /// Addresses, routes, sysctls and nftables until the end are CAP_NET_ADMIN's, and so are buffers beyond the
    /// system's limit, marks and binding a socket to another interface. Raw sockets and low ports have capabilities of
    /// their own.
    pub fn of(config: &Config) -> Self {
        let mut packet = CapsHashSet::from([Capability::CAP_NET_ADMIN]);
        let uses = |transport| {
            let listens = !config.portal.listen.is_empty() && config.portal.transports.contains(&transport);
            listens || config.links.iter().any(|link| link.transport == transport)
        };
        if uses(Transport::Ip) {
            packet.insert(Capability::CAP_NET_RAW);
        }
        let mut listening = config.portal.listen.iter().copied().chain(config.portal.scion_sockets());
        if listening.any(|address| address.port() < PORTS_FREE_FROM) {
            packet.insert(Capability::CAP_NET_BIND_SERVICE);
        }
        Self { control: [Capability::CAP_NET_ADMIN].into(), packet }
    }

    /// Whether a configuration needs no more than these.
    pub fn suffice(&self, config: &Config) -> bool {
        let needed = Self::of(config);
        needed.control.is_subset(&self.control) && needed.packet.is_subset(&self.packet)
    }

    /// Step 2, for the calling thread and those it starts from now on.
    pub fn reduce(&self) -> Result<(), RunError> {
        let kept = self.control.union(&self.packet).copied().collect();
        powers::give_up_all_but(&kept).map_err(RunError::Privileges)
    }

    /// Step 4.
    pub fn keep_own(&self) -> Result<(), RunError> {
        powers::keep(&self.control).map_err(RunError::Privileges)
    }
}

/// Step 3: the calling thread's capabilities are at hand, and not in force.
pub fn at_rest(kept: &Powers) -> Result<(), RunError> {
    powers::at_rest(&kept.packet).map_err(RunError::Privileges)
}

#[cfg(test)]
mod tests;
