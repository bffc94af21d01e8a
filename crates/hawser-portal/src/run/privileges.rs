//! Giving up what a running portal does not need.
//!
//! 1. [`Powers::of`] reads from the configuration what will still be needed.
//! 2. The control thread keeps that, and gives up the rest ([`Powers::reduce`]): its own and that of all it starts, by every
//!    way to get any of it back. Then it starts the packet thread,
//! 3. which keeps what sockets need at hand without having it in force ([`at_rest`]), but for the moment in which one is opened
//!    (`hawser_net::powers`): a packet that finds a flaw in what handles it has to bring code of its own to gain by it.
//! 4. The control thread drops what only the packet thread needs ([`Powers::keep_own`]).

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use rustix::thread::CapabilitiesSecureBits;

use super::RunError;
use crate::config::{Config, Transport};

/// Ports below this are for whoever has CAP_NET_BIND_SERVICE (ip_unprivileged_port_start's default, capabilities(7)).
const PORTS_FREE_FROM: u16 = 1024;

/// What programs get that the control thread runs: `nft`.
const LENT: Capability = Capability::CAP_NET_ADMIN;

/// What stays, per thread. Decided once; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Powers {
    control: CapsHashSet,
    packet: CapsHashSet,
}

impl Powers {
    /// Addresses, routes, sysctls and nftables until the end are CAP_NET_ADMIN's, and so are buffers beyond the system's
    /// limit, marks and binding a socket to another interface. Raw sockets and low ports have capabilities of their own.
    pub fn of(config: &Config) -> Self {
        let mut packet = CapsHashSet::from([Capability::CAP_NET_ADMIN]);
        let uses = |transport| {
            let listens = !config.portal.listen.is_empty() && config.portal.transports.contains(&transport);
            listens || config.links.iter().any(|link| link.transport == transport)
        };
        if uses(Transport::Ip) {
            packet.insert(Capability::CAP_NET_RAW);
        }
        if config.portal.listen.iter().any(|address| address.port() < PORTS_FREE_FROM) {
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
        close_ways_back().and_then(|()| keep(&kept)).map_err(RunError::Privileges)
    }

    /// Step 4.
    pub fn keep_own(&self) -> Result<(), RunError> {
        keep(&self.control).map_err(RunError::Privileges)
    }
}

/// Nothing that is executed gets more: not by being root's, not by a set-user-ID bit, not by a file's capabilities. Bounding
/// set and securebits are CAP_SETPCAP's; without it (in a container, say) `no_new_privs` does the same for programs.
fn close_ways_back() -> Result<(), CapsError> {
    caps::clear(None, CapSet::Ambient)?;
    // What may be lent to a program later (`hawser_net::powers::lending`) has to be here, and gives nobody anything by itself.
    // It comes first: nothing is inheritable anew that is not in the bounding set.
    let lendable = caps::read(None, CapSet::Permitted)?.into_iter().filter(|power| *power == LENT).collect();
    caps::set(None, CapSet::Inheritable, &lendable)?;
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        for capability in caps::read(None, CapSet::Bounding)? {
            caps::drop(None, CapSet::Bounding, capability)?;
        }
        let bits = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
        if let Err(error) = rustix::thread::set_capabilities_secure_bits(bits) {
            tracing::debug!(%error, "securebits not set");
        }
    }
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        tracing::debug!(%error, "no_new_privs not set");
    }
    Ok(())
}

fn keep(kept: &CapsHashSet) -> Result<(), CapsError> {
    let kept = caps::read(None, CapSet::Permitted)?.intersection(kept).copied().collect();
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Permitted, &kept)
}

/// Step 3: the calling thread's capabilities are at hand, and not in force.
pub fn at_rest(powers: &Powers) -> Result<(), RunError> {
    let rest = || {
        caps::clear(None, CapSet::Inheritable)?;
        keep(&powers.packet)?;
        caps::clear(None, CapSet::Effective)
    };
    rest().map_err(RunError::Privileges)
}

#[cfg(test)]
mod tests;
