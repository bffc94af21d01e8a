//! How each change is set and undone, over netlink and /proc/sys.
//!
//! 1. `before`: what is there now, or that nothing need be done.
//! 2. `set`: sets it. Routes and rules carry Hawser's protocol number, so that undoing never hits those of others.
//! 3. `undo`: goes back, unless it is gone or no longer ours.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::{
    AddressFamily,
    address::{AddressAttribute, AddressFlags, AddressMessage},
    route::{RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType},
    rule::{RuleAction, RuleAttribute, RuleFlags, RuleHeader, RuleMessage, RulePortRange},
};
use rtnetlink::{AddressMessageBuilder, LinkUnspec};

use super::{
    change::{Change, IpProtocol, RouteKind, RouteSpec, RuleSpec},
    error::NetConfigError,
    features::Feature,
    journal::{Before, Entry},
    mptcp::{MptcpLimits, PathManager},
    name_servers, namespace, nft,
    rtnl::{LinkInfo, Rtnl},
    sysctl::{SysctlKey, words},
    types::{Family, IfIndex, Mtu, TableId},
};

/// Marks routes and rules as Hawser's (`proto 72` in `ip route`): an 'H', given to nobody in linux/rtnetlink.h or
/// iproute2's rt_protos.
const PROTOCOL: RouteProtocol = RouteProtocol::Other(72);

/// How undoing went, if it did not fail. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undone {
    /// It was there and is no more.
    Undone,
    /// It was gone already, or somebody else has set something else since.
    Gone,
}

impl Rtnl {
    /// What is to be gone back to after `change`; none if the system is that way already.
    pub(super) async fn before(&self, change: &Change) -> Result<Option<Before>, NetConfigError> {
        Ok(match change {
            Change::Address { interface, address } => {
                let there = self.addresses(Some(*interface)).await?;
                (!there.iter().any(|one| one.address == *address)).then_some(Before::Absent)
            }
            Change::Mtu { interface, mtu } => {
                let now = self.existing("set mtu", *interface).await?.mtu;
                (now != *mtu).then_some(Before::Mtu(now))
            }
            Change::LinkUp { interface } => {
                let link = self.existing("set up", *interface).await?;
                (!link.administratively_up).then_some(Before::Down)
            }
            // The kernel itself refuses what is there already, and undoing minds the protocol number.
            Change::Route(_) | Change::Rule(_) => Some(Before::Absent),
            Change::LocalRule { family, .. } => self.local_rule_is_first(*family).await?.then_some(Before::Absent),
            // Its name makes it Hawser's own, whoever is before: it is replaced.
            Change::Nft(_) => Some(Before::Absent),
            Change::MptcpEndpoint(endpoint) => {
                let there = PathManager::open()?.endpoints()?;
                (!there.iter().any(|(_, one)| one == endpoint)).then_some(Before::Absent)
            }
            Change::MptcpLimits(limits) => {
                let now = PathManager::open()?.limits()?;
                (now != *limits).then_some(Before::MptcpLimits(now))
            }
            Change::Sysctl { key, value } => {
                let now = key.read()?;
                (now != words(value)).then_some(Before::Value(now))
            }
            // One of somebody else's is never taken for ours.
            Change::Namespace(name) if name.exists() => {
                return Err(NetConfigError::refused("set", change.to_string(), rustix::io::Errno::EXIST));
            }
            Change::Namespace(_) => Some(Before::Absent),
            // The entry's name, or the device, makes them Hawser's own.
            Change::NameServers(_) => Some(Before::Absent),
        })
    }

    /// Sets `change`, which may take the place of an `earlier` one.
    pub(super) async fn set(&self, change: &Change, earlier: Option<&Change>) -> Result<(), NetConfigError> {
        let handle = &self.handle;
        let subject = change.to_string();
        let (done, missing) = match change {
            Change::Address { interface, address } => {
                let (ip, length) = (address.addr(), address.prefix_len());
                let mut request = handle.address().add(interface.get(), ip, length);
                // Only TUN devices get addresses: nobody else is on their link to ask, and until the kernel has seen
                // that, in its own time, no route could name such an address as its source.
                if ip.is_ipv6() {
                    request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
                }
                (request.execute().await, ip.is_ipv6().then_some(Feature::Ipv6))
            }
            Change::Mtu { interface, mtu } => return self.set_mtu(*interface, *mtu).await,
            Change::LinkUp { interface } => {
                let message = LinkUnspec::new_with_index(interface.get()).up().build();
                (handle.link().set(message).execute().await, None)
            }
            Change::Route(route) => {
                let request = handle.route().add(new_route(route));
                let request = if earlier.is_some() { request.replace() } else { request };
                (request.execute().await, route_feature(route))
            }
            Change::Rule(rule) => {
                let mut request = handle.rule().add();
                *request.message_mut() = rule_message(rule);
                (request.execute().await, Some(rule_feature(rule.family)))
            }
            Change::LocalRule { family, priority } => return self.move_local_rule(*family, *priority).await,
            Change::Sysctl { key, value } => return Ok(key.write(value)?),
            Change::Nft(table) => return Ok(nft::load(table).await?),
            Change::MptcpEndpoint(endpoint) => return PathManager::open()?.add(endpoint),
            Change::MptcpLimits(limits) => return PathManager::open()?.set_limits(*limits),
            Change::Namespace(name) => return namespace::make(name),
            Change::NameServers(new) => return Ok(name_servers::set(new).await?),
        };
        done.map_err(|error| NetConfigError::netlink("set", subject, missing, error))
    }

    /// The name of the interface that `change` is set on, if it is on one that exists.
    pub(super) async fn interface_name(&self, change: &Change) -> Result<Option<String>, NetConfigError> {
        let Some(interface) = change.interface() else { return Ok(None) };
        Ok(self.link(interface).await?.map(|link| link.name))
    }

    /// Undoes what `entry` says. What is gone, or not ours any more, is left as it is: an index may be given again.
    pub(super) async fn undo(&self, entry: &Entry) -> Result<Undone, NetConfigError> {
        if self.interface_name(&entry.change).await? != entry.interface {
            return Ok(Undone::Gone);
        }
        let handle = &self.handle;
        let done = match (&entry.change, &entry.before) {
            (Change::Address { interface, address }, _) => {
                let message = address_message(*interface, address.addr(), address.prefix_len());
                handle.address().del(message).execute().await
            }
            (Change::LinkUp { interface }, _) => {
                let message = LinkUnspec::new_with_index(interface.get()).down().build();
                handle.link().set(message).execute().await
            }
            (Change::Route(route), _) => handle.route().del(route_message(route)).execute().await,
            (Change::Rule(rule), _) => handle.rule().del(rule_message(rule)).execute().await,
            (Change::LocalRule { family, priority }, _) => return self.restore_local_rule(*family, *priority).await,
            (Change::Nft(table), _) => {
                return Ok(if nft::delete(&table.name).await? { Undone::Undone } else { Undone::Gone });
            }
            (Change::MptcpEndpoint(endpoint), _) => {
                return Ok(if PathManager::open()?.remove(endpoint)? { Undone::Undone } else { Undone::Gone });
            }
            (Change::Namespace(name), _) => {
                return Ok(if namespace::remove(name)? { Undone::Undone } else { Undone::Gone });
            }
            (Change::NameServers(old), _) => {
                return Ok(if name_servers::unset(old).await? { Undone::Undone } else { Undone::Gone });
            }
            (Change::MptcpLimits(_), Before::MptcpLimits(old)) => {
                return undo_limits(entry, *old);
            }
            (Change::Mtu { interface, .. }, Before::Mtu(old)) => {
                return self.undo_mtu(entry, *interface, *old).await;
            }
            (Change::Sysctl { key, .. }, Before::Value(old)) => {
                return undo_sysctl(entry, key, old);
            }
            // A journal that does not say what was before leaves nothing to go back to.
            (Change::Mtu { .. } | Change::Sysctl { .. } | Change::MptcpLimits(_), _) => return Ok(Undone::Gone),
        };
        match done {
            Ok(()) => Ok(Undone::Undone),
            Err(error) => {
                let error = NetConfigError::netlink("undo", entry.change.to_string(), None, error);
                if is_gone(&error) { Ok(Undone::Gone) } else { Err(error) }
            }
        }
    }

    async fn existing(&self, operation: &'static str, interface: IfIndex) -> Result<LinkInfo, NetConfigError> {
        let missing = NetConfigError::NoSuchInterface { operation, interface };
        self.link(interface).await?.ok_or(missing)
    }

    async fn set_mtu(&self, interface: IfIndex, mtu: Mtu) -> Result<(), NetConfigError> {
        let message = LinkUnspec::new_with_index(interface.get()).mtu(mtu.0).build();
        self.handle.link().set(message).execute().await.map_err(|error| {
            let subject = format!("{mtu} on interface {interface}");
            NetConfigError::netlink("set mtu", subject, None, error)
        })
    }

    async fn undo_mtu(&self, entry: &Entry, interface: IfIndex, old: Mtu) -> Result<Undone, NetConfigError> {
        let Some(link) = self.link(interface).await? else {
            return Ok(Undone::Gone);
        };
        let now = Change::Mtu { interface, mtu: link.mtu };
        if !is_ours(entry, |change| *change == now) {
            return Ok(Undone::Gone);
        }
        match self.set_mtu(interface, old).await {
            Ok(()) => Ok(Undone::Undone),
            Err(error) if is_gone(&error) => Ok(Undone::Gone),
            Err(error) => Err(error),
        }
    }
}

fn undo_sysctl(entry: &Entry, key: &SysctlKey, old: &str) -> Result<Undone, NetConfigError> {
    let now = match key.read() {
        Ok(now) => now,
        Err(error) if error.is_gone() => return Ok(Undone::Gone),
        Err(error) => return Err(error.into()),
    };
    if !is_ours(entry, |change| matches!(change, Change::Sysctl { value, .. } if words(value) == now)) {
        return Ok(Undone::Gone);
    }
    match key.write(old) {
        Ok(()) => Ok(Undone::Undone),
        Err(error) if error.is_gone() => Ok(Undone::Gone),
        Err(error) => Err(error.into()),
    }
}

fn undo_limits(entry: &Entry, old: MptcpLimits) -> Result<Undone, NetConfigError> {
    let manager = PathManager::open()?;
    let now = Change::MptcpLimits(manager.limits()?);
    if !is_ours(entry, |change| *change == now) {
        return Ok(Undone::Gone);
    }
    manager.set_limits(old).map(|()| Undone::Undone)
}

/// True if what is set now is what we set last, or before it, had we been killed in between.
fn is_ours(entry: &Entry, is_now: impl Fn(&Change) -> bool) -> bool {
    is_now(&entry.change) || entry.earlier.as_ref().is_some_and(is_now)
}

/// True for the errno by which the kernel says that there is nothing to remove.
pub(super) fn is_gone(error: &NetConfigError) -> bool {
    matches!(error.errno(), Some(libc::ENODEV | libc::EADDRNOTAVAIL | libc::ESRCH | libc::ENOENT))
}

pub(super) fn rule_feature(family: Family) -> Feature {
    match family {
        Family::V4 => Feature::Ipv4Rules,
        Family::V6 => Feature::Ipv6Rules,
    }
}

fn address_message(interface: IfIndex, address: IpAddr, length: u8) -> AddressMessage {
    match address {
        IpAddr::V4(address) => {
            AddressMessageBuilder::<std::net::Ipv4Addr>::new().index(interface.get()).address(address, length).build()
        }
        IpAddr::V6(address) => {
            AddressMessageBuilder::<std::net::Ipv6Addr>::new().index(interface.get()).address(address, length).build()
        }
    }
}

/// What the kernel needs for a route.
pub(super) fn route_feature(route: &RouteSpec) -> Option<Feature> {
    route.destination.addr().is_ipv6().then_some(Feature::Ipv6)
}

/// As it is set.
pub(super) fn new_route(route: &RouteSpec) -> RouteMessage {
    let mut message = route_message(route);
    let mtu = route.mtu.map(|Mtu(mtu)| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]));
    message.attributes.extend(mtu);
    message
}

/// Without its MTU: a route is found, to be removed, whatever it is.
pub(super) fn route_message(route: &RouteSpec) -> RouteMessage {
    let destination = route.destination.trunc();
    let table = route.table.unwrap_or(TableId::MAIN);
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: address_family(Family::of(destination.addr())),
        destination_prefix_length: destination.prefix_len(),
        table: header_table(table),
        protocol: PROTOCOL,
        scope: scope(route),
        kind: match route.kind {
            RouteKind::Unicast => RouteType::Unicast,
            RouteKind::Local => RouteType::Local,
            RouteKind::Unreachable => RouteType::Unreachable,
            RouteKind::Blackhole => RouteType::BlackHole,
        },
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Destination(destination.addr().into()), RouteAttribute::Table(table.0)];
    // The kernel takes no interface for what goes nowhere.
    let goes = !matches!(route.kind, RouteKind::Unreachable | RouteKind::Blackhole);
    message.attributes.extend(goes.then_some(RouteAttribute::Oif(route.interface.get())));
    message.attributes.extend(route.metric.map(|metric| RouteAttribute::Priority(metric.0)));
    message.attributes.extend(route.source.map(|source| RouteAttribute::PrefSource(source.into())));
    message.attributes.extend(route.gateway.map(|gateway| RouteAttribute::Gateway(gateway.into())));
    message
}

/// How far an IPv4 destination is: without a gateway on the link itself; IPv6 takes no notice (rtnetlink(7)).
fn scope(route: &RouteSpec) -> RouteScope {
    match (route.kind, route.gateway) {
        (RouteKind::Local, _) => RouteScope::Host,
        (RouteKind::Unicast, None) => RouteScope::Link,
        (RouteKind::Unicast, Some(_)) | (RouteKind::Unreachable | RouteKind::Blackhole, _) => RouteScope::Universe,
    }
}

fn rule_message(rule: &RuleSpec) -> RuleMessage {
    let mut message = RuleMessage::default();
    let length = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
    message.header = RuleHeader {
        family: address_family(rule.family),
        src_len: length(rule.source),
        dst_len: length(rule.destination),
        table: header_table(rule.table),
        action: RuleAction::ToTable,
        flags: if rule.invert { RuleFlags::Invert } else { RuleFlags::empty() },
        ..RuleHeader::default()
    };
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority.0),
        RuleAttribute::Table(rule.table.0),
        RuleAttribute::Protocol(PROTOCOL),
    ];
    if let Some(matched) = rule.mark {
        message.attributes.push(RuleAttribute::FwMark(matched.mark.0));
        message.attributes.push(RuleAttribute::FwMask(matched.mask));
    }
    message.attributes.extend(rule.input.clone().map(RuleAttribute::Iifname));
    message.attributes.extend(rule.output.clone().map(RuleAttribute::Oifname));
    message.attributes.extend(rule.source.map(|net| RuleAttribute::Source(net.trunc().addr())));
    message.attributes.extend(rule.destination.map(|net| RuleAttribute::Destination(net.trunc().addr())));
    message.attributes.extend(rule.ip_protocol.map(|IpProtocol(number)| RuleAttribute::IpProtocol(number.into())));
    let ports = rule.destination_port.map(|port| RulePortRange { start: port, end: port });
    message.attributes.extend(ports.map(RuleAttribute::DestinationPortRange));
    message.attributes.extend(rule.suppress_prefix_length.map(RuleAttribute::SuppressPrefixLen));
    message
}

pub(super) fn address_family(family: Family) -> AddressFamily {
    match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}

/// The table for the message header, where a greater number than fits is `RT_TABLE_UNSPEC`: the attribute holds it.
fn header_table(table: TableId) -> u8 {
    u8::try_from(table.0).unwrap_or(RouteHeader::RT_TABLE_UNSPEC)
}
