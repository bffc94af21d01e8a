//! A netlink connection to the kernel's routing tables, for questions and changes.

use std::net::IpAddr;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use netlink_packet_route::{
    address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope},
    link::{LinkAttribute, LinkFlags, LinkMessage, State},
    neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState},
};
use rtnetlink::Handle;

use super::{
    error::NetConfigError,
    route::InterfaceAddress,
    types::{IfIndex, Mtu},
};

/// A connection to the kernel's routing tables, in the network namespace of the thread that opened it.
/// There is no default. Clones share one socket; all belong to the runtime that opened it.
#[derive(Debug, Clone)]
pub struct Rtnl {
    pub(super) handle: Handle,
}

/// What the kernel says of an interface.
/// There is no default. Plain data, as of the moment it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its index.
    pub index: IfIndex,
    /// Its name.
    pub name: String,
    /// Its MTU.
    pub mtu: Mtu,
    /// Set up by somebody (`IFF_UP`).
    pub administratively_up: bool,
    /// Set up, with a carrier, and ready to send (`IFF_LOWER_UP`, operational state).
    pub up: bool,
}

impl Rtnl {
    /// Opens a connection; its driver runs as a task of the current tokio runtime.
    pub fn open() -> Result<Self, NetConfigError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| NetConfigError::NoRuntime)?;
        let (connection, handle, _) = rtnetlink::new_connection().map_err(|source| NetConfigError::Kernel {
            operation: "open",
            subject: "netlink socket".into(),
            source,
        })?;
        runtime.spawn(connection);
        Ok(Self { handle })
    }

    /// The interface with this index, if there is one.
    pub async fn link(&self, interface: IfIndex) -> Result<Option<LinkInfo>, NetConfigError> {
        let request = self.handle.link().get().match_index(interface.get());
        one(request.execute(), format!("interface {interface}")).await
    }

    /// The interface with this name, if there is one.
    pub async fn link_named(&self, name: &str) -> Result<Option<LinkInfo>, NetConfigError> {
        let request = self.handle.link().get().match_name(name);
        one(request.execute(), format!("interface {name}")).await
    }

    /// The interface that has this address, if one does.
    pub async fn interface_with(&self, address: IpAddr) -> Result<Option<LinkInfo>, NetConfigError> {
        match self.addresses(None).await?.iter().find(|known| known.address.addr() == address) {
            Some(known) => self.link(known.interface).await,
            None => Ok(None),
        }
    }

    /// The networks that an interface is in by its addresses, link-local ones not among them.
    pub async fn networks_of(&self, interface: IfIndex) -> Result<Vec<IpNet>, NetConfigError> {
        let addresses = self.addresses(Some(interface)).await?;
        let networks = addresses.iter().filter(|known| known.global).map(|known| known.address.trunc());
        let mut networks: Vec<IpNet> = networks.filter(|net| net.prefix_len() < net.max_prefix_len()).collect();
        networks.sort_unstable();
        networks.dedup();
        Ok(networks)
    }

    /// Every address that an interface has now.
    pub async fn all_addresses(&self) -> Result<Vec<IpAddr>, NetConfigError> {
        Ok(self.addresses(None).await?.iter().map(|one| one.address.addr()).collect())
    }

    /// Whether somebody on the link has this address, as far as the kernel knows; none where it did not ask, or knows
    /// none.
    pub async fn neighbour_answers(&self, link: IfIndex, address: IpAddr) -> Result<Option<bool>, NetConfigError> {
        let neighbours: Vec<NeighbourMessage> = self
            .handle
            .neighbours()
            .get()
            .execute()
            .try_collect()
            .await
            .map_err(|error| NetConfigError::netlink("list", "neighbours", None, error))?;
        let is_it = |one: &&NeighbourMessage| {
            one.header.ifindex == link.get() && one.attributes.iter().any(|attribute| has_address(attribute, address))
        };
        Ok(neighbours
            .iter()
            .find(is_it)
            .map(|one| !matches!(one.header.state, NeighbourState::Incomplete | NeighbourState::Failed)))
    }

    /// All addresses, or those of one interface.
    pub(super) async fn addresses(&self, interface: Option<IfIndex>) -> Result<Vec<InterfaceAddress>, NetConfigError> {
        let messages: Vec<AddressMessage> = self
            .handle
            .address()
            .get()
            .execute()
            .try_collect()
            .await
            .map_err(|error| NetConfigError::netlink("list", "addresses", None, error))?;
        let mut addresses: Vec<_> = messages.iter().filter_map(interface_address).collect();
        addresses.retain(|address| interface.is_none_or(|wanted| wanted == address.interface));
        Ok(addresses)
    }
}

fn has_address(attribute: &NeighbourAttribute, address: IpAddr) -> bool {
    match (attribute, address) {
        (NeighbourAttribute::Destination(NeighbourAddress::Inet(one)), IpAddr::V4(other)) => *one == other,
        (NeighbourAttribute::Destination(NeighbourAddress::Inet6(one)), IpAddr::V6(other)) => *one == other,
        _ => false,
    }
}

/// The one answer to a question for a link; a kernel that knows none says ENODEV.
async fn one(
    answers: impl futures_util::Stream<Item = Result<LinkMessage, rtnetlink::Error>>,
    subject: String,
) -> Result<Option<LinkInfo>, NetConfigError> {
    let answers: Result<Vec<_>, _> = answers.try_collect().await;
    match answers {
        Ok(messages) => Ok(messages.iter().find_map(link_info)),
        Err(error) => match NetConfigError::netlink("look up", subject, None, error) {
            error if error.errno() == Some(libc::ENODEV) => Ok(None),
            error => Err(error),
        },
    }
}

/// What a link message says, if it is about an interface as a whole.
pub(super) fn link_info(message: &LinkMessage) -> Option<LinkInfo> {
    let index = IfIndex::new(message.header.index)?;
    let (mut name, mut mtu, mut state) = (None, None, State::Unknown);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(value) => name = Some(value.clone()),
            LinkAttribute::Mtu(value) => mtu = Some(Mtu(*value)),
            LinkAttribute::OperState(value) => state = *value,
            _ => {}
        }
    }
    let flags = message.header.flags;
    // TUN devices and loopback never leave the state unknown (RFC 2863, linux operstates).
    let ready = matches!(state, State::Up | State::Unknown);
    Some(LinkInfo {
        index,
        name: name?,
        mtu: mtu.unwrap_or(Mtu(0)),
        administratively_up: flags.contains(LinkFlags::Up),
        up: flags.contains(LinkFlags::Up | LinkFlags::LowerUp) && ready,
    })
}

/// What an address message says, if it is one of IPv4 or IPv6.
pub(super) fn interface_address(message: &AddressMessage) -> Option<InterfaceAddress> {
    let interface = IfIndex::new(message.header.index)?;
    let mut flags = AddressFlags::from_bits_retain(u32::from(message.header.flags.bits()));
    let (mut local, mut remote): (Option<IpAddr>, Option<IpAddr>) = (None, None);
    let mut preferred_for = u32::MAX;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => remote = Some(*address),
            AddressAttribute::Flags(all) => flags = *all,
            AddressAttribute::CacheInfo(lifetimes) => preferred_for = lifetimes.ifa_preferred,
            _ => {}
        }
    }
    // On a point-to-point interface IFA_ADDRESS is the other end (linux/if_addr.h).
    let address = IpNet::new(local.or(remote)?, message.header.prefix_len).ok()?;
    let unusable = AddressFlags::Dadfailed;
    let waiting = flags.contains(AddressFlags::Tentative) && !flags.contains(AddressFlags::Optimistic);
    Some(InterfaceAddress {
        interface,
        address,
        global: message.header.scope == AddressScope::Universe,
        usable: !flags.intersects(unusable) && !waiting,
        // Each router advertisement that deprecates an address takes the flag away from it for a moment, but leaves it
        // no lifetime (addrconf_prefix_rcv_add_addr, linux ipv6/addrconf.c).
        deprecated: flags.contains(AddressFlags::Deprecated) || preferred_for == 0,
    })
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::address::CacheInfo;

    use super::*;

    #[test]
    fn an_address_is_deprecated_by_its_flag_or_once_its_preferred_lifetime_is_over() {
        let flag = Some(AddressFlags::Deprecated | AddressFlags::Permanent);
        let table = [(None, None, false), (flag, None, true), (None, Some(0), true), (None, Some(1800), false)];
        for (flags, preferred_for, want) in table {
            let mut message = AddressMessage::default();
            message.header.index = 3;
            message.header.prefix_len = 64;
            message.attributes = vec![AddressAttribute::Address("2001:db8::5".parse().unwrap())];
            message.attributes.extend(flags.map(AddressAttribute::Flags));
            message.attributes.extend(preferred_for.map(|seconds| {
                let mut lifetimes = CacheInfo::default();
                lifetimes.ifa_preferred = seconds;
                AddressAttribute::CacheInfo(lifetimes)
            }));
            let address = interface_address(&message).unwrap();
            assert_eq!((address.deprecated, address.usable), (want, true), "{message:?}");
        }
    }
}
