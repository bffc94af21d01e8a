//! The kernel's path manager of MPTCP: which addresses connections may use beside their first, and how many.
//!
//! 1. An [`MptcpEndpoint`] is an address that the kernel opens subflows from, or tells its peers of.
//! 2. [`MptcpLimits`] say how many subflows there may be, and how many announced addresses are taken.
//! 3. [`PathManager`] asks and tells the kernel, by the generic netlink family `mptcp_pm` (linux/mptcp_pm.h).
//!
//! As [`super::Change`]s, endpoints and limits are journalled like anything else that is set.

mod encode;
mod manager;
#[cfg(test)]
mod tests;

use std::{fmt, net::IpAddr, ops::BitOr};

use serde::{Deserialize, Serialize};

use super::types::IfIndex;

pub use encode::{MPTCP_EVENT_GROUP, MPTCP_FAMILY, MPTCP_VERSION, address_in, encode_address};
pub use manager::PathManager;

/// An address of this host that connections may use. [`MptcpEndpoint::new`] begins one.
/// Interface `None` leaves the choice to routing, port `None` to the connection. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MptcpEndpoint {
    /// The address.
    pub address: IpAddr,
    /// Another port than that of the connection, for a signalled address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The interface that subflows from it are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfIndex>,
    /// What it is for.
    pub flags: EndpointFlags,
}

/// What an endpoint is for. None by default: the kernel only knows of it. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EndpointFlags(u32);

impl EndpointFlags {
    /// Peers are told of it (linux 5.6).
    pub const SIGNAL: Self = Self(1 << 0);
    /// Subflows are opened from it (linux 5.6).
    pub const SUBFLOW: Self = Self(1 << 1);
    /// Its subflows carry data only where no other does (linux 5.6).
    pub const BACKUP: Self = Self(1 << 2);
    /// Subflows are opened from it to every address of the peer (linux 5.15).
    pub const FULLMESH: Self = Self(1 << 3);
    /// The kernel made it of its own accord, for a connection that joined from it (linux 5.18).
    pub const IMPLICIT: Self = Self(1 << 4);
    /// Subflows are opened from it to addresses that the peer tells of (linux 6.18).
    pub const LAMINAR: Self = Self(1 << 5);

    /// True where all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The number, as the kernel has it.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// From the number, as the kernel has it.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl BitOr for EndpointFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for EndpointFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["signal", "subflow", "backup", "fullmesh", "implicit", "laminar"];
        let set: Vec<&str> = (0..).zip(names).filter(|(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name).collect();
        f.write_str(&set.join(" "))
    }
}

/// What the kernel calls an endpoint. Zero is nobody's. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u8);

/// How many subflows a connection may have.
/// Zero and zero leave it at the first. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MptcpLimits {
    /// Beside the first.
    pub subflows: u32,
    /// Addresses of the peer that are taken notice of.
    pub accepted: u32,
}

impl MptcpEndpoint {
    /// An endpoint of this address, for this purpose.
    pub fn new(address: IpAddr, flags: EndpointFlags) -> Self {
        Self { address, port: None, interface: None, flags }
    }

    /// True where the kernel would not have both.
    pub(super) fn is_place_of(&self, other: &Self) -> bool {
        (self.address, self.port) == (other.address, other.port)
    }
}

impl fmt::Display for MptcpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mptcp endpoint {}", self.address)?;
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        if let Some(interface) = self.interface {
            write!(f, " on interface {interface}")?;
        }
        if self.flags == EndpointFlags::default() { Ok(()) } else { write!(f, " {}", self.flags) }
    }
}

impl fmt::Display for MptcpLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mptcp limits: {} subflows, {} addresses", self.subflows, self.accepted)
    }
}
