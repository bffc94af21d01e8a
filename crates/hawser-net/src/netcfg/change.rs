//! What Hawser may set in the system, as data: it is journalled as it stands here.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{
    mptcp::{MptcpEndpoint, MptcpLimits},
    name_servers::{NameServers, Resolver},
    namespace::NamespaceName,
    nft::{NftName, NftTable},
    sysctl::SysctlKey,
    types::{Family, IfIndex, Mark, Metric, Mtu, RulePriority, TableId},
};

/// One thing set in the system that can be undone.
/// There is no default. Plain data; setting and undoing it is [`super::NetConfig`]'s.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// An address with its prefix on an interface.
    Address {
        /// On which interface.
        interface: IfIndex,
        /// Address and prefix length; host bits stay.
        address: IpNet,
    },
    /// An interface's MTU; a later one for the same interface takes the earlier one's place.
    Mtu {
        /// Of which interface.
        interface: IfIndex,
        /// In bytes.
        mtu: Mtu,
    },
    /// An interface set up (`ip link set up`).
    LinkUp {
        /// Which interface.
        interface: IfIndex,
    },
    /// A route out of an interface.
    Route(RouteSpec),
    /// A policy rule.
    Rule(RuleSpec),
    /// The rule that looks up table `local`, moved from the first place of all to a later one.
    LocalRule {
        /// Of which IP version.
        family: Family,
        /// Where to.
        priority: RulePriority,
    },
    /// A kernel setting; a later one for the same key takes the earlier one's place.
    Sysctl {
        /// Which setting.
        key: SysctlKey,
        /// Its new value.
        value: String,
    },
    /// A table of nftables; a later one of the same name takes the earlier one's place, at once and as a whole.
    Nft(NftTable),
    /// An address that connections of MPTCP may use.
    MptcpEndpoint(MptcpEndpoint),
    /// How many subflows connections of MPTCP may have; later ones take the earlier ones' place.
    MptcpLimits(MptcpLimits),
    /// A network namespace of this name, as `ip netns add` makes it.
    Namespace(NamespaceName),
    /// Name servers of a device; later ones of the same device and resolver take the earlier ones' place.
    NameServers(NameServers),
}

/// What a change is about: of two with the same place the later one takes the earlier one's, whose old value is then
/// the one to go back to. Plain data, to be looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// The MTU of an interface.
    Mtu(IfIndex),
    /// A kernel setting.
    Sysctl(SysctlKey),
    /// A route, whatever its MTU.
    Route(RouteSpec),
    /// A table of nftables.
    Nft(NftName),
    /// The limits of MPTCP.
    MptcpLimits,
    /// The name servers of the device of this name, at this resolver.
    NameServers(String, Resolver),
    /// What is there or not.
    Whole(Change),
}

/// A route out of one interface; [`RouteSpec::to`] begins one. Gateway `None` is on the link, table `None` main, metric
/// `None` the family's default, source `None` the kernel's choice. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RouteSpec {
    /// Where to; host bits are cleared when it is set.
    pub destination: IpNet,
    /// Out of which interface.
    pub interface: IfIndex,
    /// In which table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableId>,
    /// With which priority among routes to the same destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// The preferred source address of what is sent by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// By which router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The most bytes that packets by it may have; none leaves it to the interface. A later one takes the earlier one's
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// What becomes of the packets.
    #[serde(default, skip_serializing_if = "RouteKind::is_unicast")]
    pub kind: RouteKind,
}

/// What becomes of packets that take a route. They are sent, by default. Plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteKind {
    /// They are sent out of the interface.
    #[default]
    Unicast,
    /// They are this host's own.
    Local,
    /// They are refused; the route's interface only says whose life it shares (loopback's is the host's).
    Unreachable,
    /// They are thrown away, and nobody is told; the route's interface means as much as for [`RouteKind::Unreachable`].
    Blackhole,
}

/// A policy rule: packets that match look up a table; [`RuleSpec::at`] begins one.
/// What is `None` matches everything. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RuleSpec {
    /// For which IP version.
    pub family: Family,
    /// Its place among the rules.
    pub priority: RulePriority,
    /// Matches packets with this mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<MarkMatch>,
    /// Matches packets that came in by the interface of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Matches packets of sockets bound to the interface of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Matches packets from this network; host bits are cleared when it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpNet>,
    /// Matches packets to this network; host bits are cleared when it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpNet>,
    /// Matches packets of this protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_protocol: Option<IpProtocol>,
    /// Matches packets to this port (linux 4.17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// Matches the packets that the rest does not match (`ip rule add not …`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert: bool,
    /// The table to look up.
    pub table: TableId,
    /// Passes over answers with a prefix this long or shorter; 0 passes over default routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_prefix_length: Option<u32>,
}

/// The number of a protocol over IP, as 6 for TCP (the IANA's registry).
/// Zero is IPv6's hop-by-hop options. Plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IpProtocol(pub u8);

/// A mark, and the bits of it that are compared.
/// There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MarkMatch {
    /// The value to compare with.
    pub mark: Mark,
    /// The bits that count.
    pub mask: u32,
}

impl RouteSpec {
    /// The plain route to `destination` out of `interface`, in the main table.
    pub fn to(destination: IpNet, interface: IfIndex) -> Self {
        let (table, metric, source, gateway, mtu) = (None, None, None, None, None);
        Self { destination, interface, table, metric, source, gateway, mtu, kind: RouteKind::Unicast }
    }
}

impl RouteKind {
    fn is_unicast(&self) -> bool {
        *self == Self::Unicast
    }
}

impl RuleSpec {
    /// The rule at `priority` by which everything looks up `table`.
    pub fn at(family: Family, priority: RulePriority, table: TableId) -> Self {
        Self {
            family,
            priority,
            mark: None,
            input: None,
            output: None,
            source: None,
            destination: None,
            ip_protocol: None,
            destination_port: None,
            invert: false,
            table,
            suppress_prefix_length: None,
        }
    }
}

impl Change {
    /// The interface that this is set on; a rule or setting is on none, or names it itself.
    pub(super) fn interface(&self) -> Option<IfIndex> {
        match self {
            Self::Address { interface, .. } | Self::Mtu { interface, .. } | Self::LinkUp { interface } => {
                Some(*interface)
            }
            Self::Route(route) => Some(route.interface),
            // systemd-resolved forgets a device that goes; an entry of resolvconf outlives it.
            Self::NameServers(new) => (new.by == Resolver::Resolved).then_some(new.interface),
            // An endpoint outlives its interface, and is removed all the same.
            Self::Rule(_) | Self::LocalRule { .. } | Self::Sysctl { .. } | Self::Nft(_) => None,
            Self::MptcpEndpoint(_) | Self::MptcpLimits(_) | Self::Namespace(_) => None,
        }
    }

    /// What it is about.
    pub fn place(&self) -> Place {
        match self {
            Self::Mtu { interface, .. } => Place::Mtu(*interface),
            Self::Sysctl { key, .. } => Place::Sysctl(key.clone()),
            Self::Route(route) => Place::Route(RouteSpec { mtu: None, ..route.clone() }),
            Self::Nft(table) => Place::Nft(table.name.clone()),
            Self::MptcpLimits(_) => Place::MptcpLimits,
            Self::NameServers(new) => Place::NameServers(new.device.clone(), new.by),
            whole => Place::Whole(whole.clone()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { interface, address } => {
                write!(f, "address {address} on interface {interface}")
            }
            Self::Mtu { interface, mtu } => write!(f, "mtu {mtu} on interface {interface}"),
            Self::LinkUp { interface } => write!(f, "interface {interface} up"),
            Self::Route(route) => route.fmt(f),
            Self::Rule(rule) => rule.fmt(f),
            Self::LocalRule { family, priority } => write!(f, "{family} rule for table local at {priority}"),
            Self::Sysctl { key, value } => write!(f, "sysctl {key} = {value}"),
            Self::Nft(table) => write!(f, "nftables table inet {}", table.name),
            Self::MptcpEndpoint(endpoint) => endpoint.fmt(f),
            Self::MptcpLimits(limits) => limits.fmt(f),
            Self::Namespace(name) => write!(f, "network namespace {name}"),
            Self::NameServers(new) => new.fmt(f),
        }
    }
}

impl fmt::Display for RouteSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RouteKind::Unicast => {}
            RouteKind::Local => f.write_str("local ")?,
            RouteKind::Unreachable => f.write_str("unreachable ")?,
            RouteKind::Blackhole => f.write_str("blackhole ")?,
        }
        write!(f, "route {} out of interface {}", self.destination.trunc(), self.interface)?;
        if let Some(gateway) = self.gateway {
            write!(f, " by {gateway}")?;
        }
        if let Some(table) = self.table {
            write!(f, " table {table}")?;
        }
        if let Some(metric) = self.metric {
            write!(f, " metric {metric}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        self.source.map_or(Ok(()), |source| write!(f, " source {source}"))
    }
}

impl fmt::Display for RuleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rule {}:", self.family, self.priority)?;
        if self.invert {
            f.write_str(" not")?;
        }
        if let Some(MarkMatch { mark, mask }) = self.mark {
            write!(f, " mark {:#x}/{mask:#x}", mark.0)?;
        }
        if let Some(input) = &self.input {
            write!(f, " from interface {input}")?;
        }
        if let Some(output) = &self.output {
            write!(f, " bound to interface {output}")?;
        }
        if let Some(source) = &self.source {
            write!(f, " from {source}")?;
        }
        if let Some(destination) = &self.destination {
            write!(f, " to {destination}")?;
        }
        if let Some(IpProtocol(number)) = self.ip_protocol {
            write!(f, " protocol {number}")?;
        }
        if let Some(port) = self.destination_port {
            write!(f, " to port {port}")?;
        }
        write!(f, " to table {}", self.table)
    }
}
