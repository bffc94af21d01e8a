//! Interfaces, addresses and routes inside a namespace, by rtnetlink.
//!
//! 1. Every operation runs on a thread inside the namespace, with a netlink socket of its own.
//! 2. Interfaces are looked up by name each time, so that one made anew is found.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use futures_util::TryStreamExt;
use ipnet::IpNet;
use netlink_packet_route::address::{AddressAttribute, AddressFlags};
use netlink_packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkMessage};
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol};
use rtnetlink::{AddressMessageBuilder, Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};

use crate::error::WireError;
use crate::namespace::Namespace;

/// One end of a link: the namespace it lies in, the interface's name and its addresses.
/// Plain data; clones name the same namespace.
#[derive(Clone, Debug)]
pub struct End {
    /// The namespace.
    pub namespace: Namespace,
    /// The interface's name, at most 15 bytes.
    pub interface: String,
    /// The interface's addresses with their prefixes.
    pub addresses: Vec<IpNet>,
}

impl End {
    /// An end with addresses written as `10.0.0.1/24`.
    ///
    /// # Panics
    /// Where an address does not parse: it is written in the program's source.
    #[must_use]
    pub fn new(namespace: &Namespace, interface: &str, addresses: &[&str]) -> Self {
        let parse = |text: &&str| text.parse().unwrap_or_else(|_| panic!("{text} is no address with a prefix"));
        Self {
            namespace: namespace.clone(),
            interface: interface.to_owned(),
            addresses: addresses.iter().map(parse).collect(),
        }
    }
}

/// Joins two namespaces with a veth pair, up and addressed.
///
/// # Errors
/// Where a name is taken, or the kernel refuses.
pub fn veth(a: &End, b: &End, mtu: u32) -> Result<(), WireError> {
    let far = b.namespace.as_fd().as_raw_fd();
    let action = format!("make veth {} to {}", a.interface, b.interface);
    a.namespace.netlink(&action, async |handle| {
        let mut peer = LinkMessage::default();
        peer.attributes =
            vec![LinkAttribute::IfName(b.interface.clone()), LinkAttribute::Mtu(mtu), LinkAttribute::NetNsFd(far)];
        let pair = LinkVeth::new(&a.interface, &b.interface)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .mtu(mtu)
            .build();
        Ok(handle.link().add(pair).execute().await?)
    })?;
    [a, b].into_iter().try_for_each(End::configure)
}

impl End {
    /// Gives the interface its addresses and brings it up.
    pub(crate) fn configure(&self) -> Result<(), WireError> {
        let namespace = &self.namespace;
        namespace.quiet_ipv6(&self.interface)?;
        for address in &self.addresses {
            namespace.add_address(&self.interface, *address)?;
        }
        namespace.set_up(&self.interface)
    }
}

impl Namespace {
    /// Gives an interface an address. IPv6 addresses are usable at once (no duplicate address detection).
    ///
    /// # Errors
    /// Where there is no such interface, or it has the address.
    pub fn add_address(&self, interface: &str, address: IpNet) -> Result<(), WireError> {
        let action = format!("add address {address} to {interface}");
        self.with_index(&action, interface, async |handle, index| {
            let mut request = handle.address().add(index, address.addr(), address.prefix_len());
            if address.addr().is_ipv6() {
                let flags = AddressAttribute::Flags(AddressFlags::Nodad);
                request.message_mut().attributes.push(flags);
            }
            request.execute().await
        })
    }

    /// Takes an address from an interface.
    ///
    /// # Errors
    /// Where there is no such interface, or it does not have the address.
    pub fn remove_address(&self, interface: &str, address: IpNet) -> Result<(), WireError> {
        let action = format!("remove address {address} from {interface}");
        self.with_index(&action, interface, async |handle, index| {
            let message = match address {
                IpNet::V4(net) => {
                    AddressMessageBuilder::<Ipv4Addr>::new().index(index).address(net.addr(), net.prefix_len()).build()
                }
                IpNet::V6(net) => {
                    AddressMessageBuilder::<Ipv6Addr>::new().index(index).address(net.addr(), net.prefix_len()).build()
                }
            };
            handle.address().del(message).execute().await
        })
    }

    /// Brings an interface up.
    ///
    /// # Errors
    /// Where there is no such interface.
    pub fn set_up(&self, interface: &str) -> Result<(), WireError> {
        self.change(interface, "bring up", LinkMessageBuilder::up)
    }

    /// Takes an interface down, as `ip link set down` does.
    ///
    /// # Errors
    /// Where there is no such interface.
    pub fn set_down(&self, interface: &str) -> Result<(), WireError> {
        self.change(interface, "take down", LinkMessageBuilder::down)
    }

    /// Sets an interface's MTU in bytes.
    ///
    /// # Errors
    /// Where there is no such interface, or it cannot carry that much.
    pub fn set_mtu(&self, interface: &str, mtu: u32) -> Result<(), WireError> {
        self.change(interface, "set mtu of", |link| link.mtu(mtu))
    }

    /// Sets how many packets an interface's own queue holds (txqueuelen).
    pub(crate) fn set_queue(&self, interface: &str, packets: u32) -> Result<(), WireError> {
        self.change(interface, "set queue of", |link| link.txqueuelen(packets))
    }

    /// Removes an interface; of a veth pair, both ends.
    ///
    /// # Errors
    /// Where there is no such interface.
    pub fn delete_interface(&self, interface: &str) -> Result<(), WireError> {
        let action = format!("delete {interface}");
        self.with_index(&action, interface, async |handle, index| handle.link().del(index).execute().await)
    }

    /// Routes a prefix by a gateway, an interface or both. An equal route is replaced.
    ///
    /// # Errors
    /// Where there is no such interface, or the gateway cannot be reached.
    pub fn add_route(&self, prefix: IpNet, gateway: Option<IpAddr>, interface: Option<&str>) -> Result<(), WireError> {
        self.add_metric_route(prefix, gateway, interface, 0)
    }

    /// The same beside routes of another metric: the least one wins where nobody asks for an interface. 0 is the
    /// kernel's default.
    ///
    /// # Errors
    /// As [`Namespace::add_route`].
    pub fn add_metric_route(
        &self,
        prefix: IpNet,
        gateway: Option<IpAddr>,
        interface: Option<&str>,
        metric: u32,
    ) -> Result<(), WireError> {
        let action = format!("add route {prefix}");
        self.netlink(&action, async |handle| {
            let mut route = RouteMessageBuilder::<IpAddr>::new()
                .destination_prefix(prefix.network(), prefix.prefix_len())
                .map_err(|error| invalid(&action, &error.to_string()))?
                .priority(metric);
            if let Some(gateway) = gateway {
                route = route.gateway(gateway).map_err(|error| invalid(&action, &error.to_string()))?;
            }
            if let Some(name) = interface {
                route = route.output_interface(index_of(&handle, &action, name).await?);
            }
            Ok(handle.route().add(route.build()).replace().execute().await?)
        })
    }

    /// Routes everything of the gateway's family by this gateway.
    ///
    /// # Errors
    /// Where the gateway cannot be reached.
    pub fn add_default_route(&self, gateway: IpAddr) -> Result<(), WireError> {
        let any = match gateway {
            IpAddr::V4(_) => IpNet::V4(ipnet::Ipv4Net::default()),
            IpAddr::V6(_) => IpNet::V6(ipnet::Ipv6Net::default()),
        };
        self.add_route(any, Some(gateway), None)
    }

    /// The main table's routes by an interface which the kernel did not make itself, nor learnt as exceptions from
    /// ICMP.
    pub(crate) fn routes_of(&self, interface: &str) -> Result<Vec<RouteMessage>, WireError> {
        let action = format!("list routes of {interface}");
        self.with_index(&action, interface, async |handle, index| {
            let mut found = Vec::new();
            for family in [
                RouteMessageBuilder::<std::net::Ipv4Addr>::new().build(),
                RouteMessageBuilder::<std::net::Ipv6Addr>::new().build(),
            ] {
                let routes = handle.route().get(family).execute();
                let all: Vec<RouteMessage> = routes.try_collect().await?;
                found.extend(all.into_iter().filter(|route| is_static_by(route, index)));
            }
            Ok(found)
        })
    }

    /// Puts back what [`Namespace::routes_of`] listed.
    pub(crate) fn put_routes(&self, routes: &[RouteMessage]) -> Result<(), WireError> {
        self.netlink("put routes back", async |handle| {
            for route in routes {
                handle.route().add(route.clone()).replace().execute().await?;
            }
            Ok(())
        })
    }

    fn change(
        &self,
        interface: &str,
        verb: &str,
        change: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec> + Send,
    ) -> Result<(), WireError> {
        let action = format!("{verb} {interface}");
        self.with_index(&action, interface, async |handle, index| {
            let link = change(LinkUnspec::new_with_index(index)).build();
            handle.link().set(link).execute().await
        })
    }

    /// Step 2, for operations on an interface.
    fn with_index<T: Send>(
        &self,
        action: &str,
        interface: &str,
        work: impl AsyncFnOnce(&Handle, u32) -> Result<T, rtnetlink::Error> + Send,
    ) -> Result<T, WireError> {
        self.netlink(action, async |handle| {
            let index = index_of(&handle, action, interface).await?;
            Ok(work(&handle, index).await?)
        })
    }

    /// Step 1: runs requests inside the namespace.
    fn netlink<T: Send>(
        &self,
        action: &str,
        work: impl AsyncFnOnce(Handle) -> Result<T, Failure> + Send,
    ) -> Result<T, WireError> {
        let here = format!("{action} in {}", self.name());
        self.run(|| {
            let system = |error| WireError::system(here.clone(), error);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(system)?;
            runtime.block_on(async {
                let (connection, handle, _) = rtnetlink::new_connection().map_err(system)?;
                tokio::spawn(connection);
                work(handle).await.map_err(|failure| match failure {
                    Failure::Kernel(source) => WireError::Netlink { action: here.clone(), source },
                    Failure::Ours(error) => error,
                })
            })
        })?
    }
}

/// What stops a netlink operation: the kernel's word, or ours.
enum Failure {
    Kernel(rtnetlink::Error),
    Ours(WireError),
}

impl From<rtnetlink::Error> for Failure {
    fn from(error: rtnetlink::Error) -> Self {
        Self::Kernel(error)
    }
}

fn invalid(action: &str, reason: &str) -> Failure {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, reason.to_owned());
    Failure::Ours(WireError::system(action, source))
}

async fn index_of(handle: &Handle, action: &str, interface: &str) -> Result<u32, Failure> {
    let mut links = handle.link().get().match_name(interface).execute();
    match links.try_next().await {
        Ok(Some(link)) => Ok(link.header.index),
        Err(rtnetlink::Error::NetlinkError(message)) if message.raw_code() != -libc::ENODEV => {
            Err(rtnetlink::Error::NetlinkError(message).into())
        }
        Ok(None) | Err(_) => {
            Err(Failure::Ours(WireError::NoInterface { action: action.to_owned(), interface: interface.to_owned() }))
        }
    }
}

fn is_static_by(route: &RouteMessage, index: u32) -> bool {
    route.header.table == RouteHeader::RT_TABLE_MAIN
        && route.header.protocol != RouteProtocol::Kernel
        && !route.header.flags.contains(RouteFlags::Cloned)
        && route.attributes.contains(&RouteAttribute::Oif(index))
}
