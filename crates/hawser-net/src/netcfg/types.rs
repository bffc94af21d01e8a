//! Numbers of the kernel's network configuration that must not be mixed.

use std::{fmt, net::IpAddr, num::NonZeroU32};

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// The largest IP packet an interface or route carries, in bytes.
    /// Zero is no valid MTU and the kernel refuses it. Plain value, freely shared.
    Mtu
);
number!(
    /// A routing table's number, as in `ip route show table N`.
    /// Zero means unspecified to the kernel. Plain value, freely shared.
    TableId
);
number!(
    /// A route's priority: the lower one wins.
    /// Zero is the best for IPv4, and means 1024 for IPv6. Plain value, freely shared.
    Metric
);
number!(
    /// A policy rule's place: the lower one is asked first.
    /// Zero is the place of the rule for table `local`. Plain value, freely shared.
    RulePriority
);
number!(
    /// The mark of a socket or packet (`SO_MARK`, nftables `meta mark`).
    /// Zero is an unmarked packet. Plain value, freely shared.
    Mark
);

impl TableId {
    /// The main routing table (`RT_TABLE_MAIN`, linux/rtnetlink.h).
    pub const MAIN: Self = Self(254);
    /// The table that is asked last, and empty unless somebody fills it (`RT_TABLE_DEFAULT`, linux/rtnetlink.h).
    pub const DEFAULT: Self = Self(253);
    /// The table of what is this host's own (`RT_TABLE_LOCAL`, linux/rtnetlink.h).
    pub const LOCAL: Self = Self(255);
}

/// The kernel's index of an interface; an interface made anew gets another one.
/// There is no index zero. Plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IfIndex(NonZeroU32);

impl IfIndex {
    /// The index, or none for zero, which the kernel uses for "no interface".
    pub fn new(index: u32) -> Option<Self> {
        NonZeroU32::new(index).map(Self)
    }

    /// The bare number, for system calls.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for IfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An IP version; rules and tables exist once for each.
/// There is no default. Plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        })
    }
}
