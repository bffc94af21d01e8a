//! Kernel features whose absence a user must be told by name.

use std::{fmt, path::Path};

/// Is there where the kernel has IPv6.
const IPV6: &str = "/proc/sys/net/ipv6";

/// What the kernel must have been built or booted with.
/// There is no default. Plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Policy rules for IPv4 (`CONFIG_IP_MULTIPLE_TABLES`).
    Ipv4Rules,
    /// Policy rules for IPv6 (`CONFIG_IPV6_MULTIPLE_TABLES`).
    Ipv6Rules,
    /// IPv6 itself (`CONFIG_IPV6`, not `ipv6.disable=1`).
    Ipv6,
    /// Network namespaces that can be told from earlier ones (`SO_NETNS_COOKIE`).
    NetnsCookie,
    /// nftables with address translation in tables of both IP versions (`CONFIG_NF_TABLES_INET`, `CONFIG_NFT_NAT`).
    Nftables,
    /// IPv6 forwarding of single interfaces (`force_forwarding`).
    ForceForwarding,
    /// Multipath TCP with its path manager (`CONFIG_MPTCP`).
    Mptcp,
    /// Endpoints whose flags can be changed.
    MptcpEndpointChanges,
    /// Events of the path manager.
    MptcpEvents,
    /// Endpoints that reach every address of the peer.
    MptcpFullmesh,
    /// A path manager in user space: subflows one by one.
    MptcpUserspace,
    /// Endpoints for addresses that the peer tells of.
    MptcpLaminar,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4Rules => "ipv4 policy routing (linux 2.2 with CONFIG_IP_MULTIPLE_TABLES)",
            Self::Ipv6Rules => "ipv6 policy routing (linux 2.6.19 with CONFIG_IPV6_MULTIPLE_TABLES)",
            Self::Ipv6 => "ipv6 (linux with CONFIG_IPV6, booted without ipv6.disable=1)",
            Self::NetnsCookie => "cookies of network namespaces (linux 5.14)",
            Self::ForceForwarding => "ipv6 forwarding of single interfaces (linux 6.17)",
            Self::Mptcp => "mptcp (linux 5.6 with CONFIG_MPTCP)",
            Self::MptcpEndpointChanges => "changes to mptcp endpoints (linux 5.12)",
            Self::MptcpEvents => "events of mptcp's path manager (linux 5.12)",
            Self::MptcpFullmesh => "mptcp endpoints of type fullmesh (linux 5.15)",
            Self::MptcpUserspace => "mptcp's path manager in user space (linux 5.19)",
            Self::MptcpLaminar => "mptcp endpoints of type laminar (linux 6.18)",
            Self::Nftables => {
                "nftables with nat in inet tables (linux 5.2 with CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT, CONFIG_NFT_MASQ)"
            }
        })
    }
}

/// Whether the kernel has IPv6 (`CONFIG_IPV6`, not `ipv6.disable=1`): without, no socket of it can be opened.
pub fn has_ipv6() -> bool {
    Path::new(IPV6).exists()
}
