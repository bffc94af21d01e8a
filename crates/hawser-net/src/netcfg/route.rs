//! Which way a packet would go: the kernel's routing asked, with "no route" as an answer.
//!
//! 1. A source address of another family, or that no interface has, is told apart first: the kernel's errno would not.
//! 2. RTM_GETROUTE with `RTM_F_FIB_MATCH`: is there a route at all? Bound to an interface, IPv4 otherwise
//!    takes any destination for a neighbour on the link when there is none (`ip_route_output_key_hash_rcu`).
//! 3. RTM_GETROUTE without it: interface, source, gateway and path MTU for this destination.
//! 4. Without an MTU of its own a route has that of its interface.

use std::net::IpAddr;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use netlink_packet_route::{
    AddressFamily,
    route::{RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteType, RouteVia},
};

use super::{
    error::NetConfigError,
    rtnl::Rtnl,
    types::{IfIndex, Mark, Mtu},
};

/// A question for a route. Source, interface and mark `None` leave the choice to the kernel. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteQuery {
    /// Where to.
    pub destination: IpAddr,
    /// From which local address.
    pub source: Option<IpAddr>,
    /// Out of which interface, as of a socket bound to it.
    pub interface: Option<IfIndex>,
    /// With which mark, as of a socket with `SO_MARK`.
    pub mark: Option<Mark>,
}

/// The way a packet would go. There is no default. Plain data, as of the moment it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteAnswer {
    /// Out of which interface.
    pub interface: IfIndex,
    /// From which source address, if the kernel named one.
    pub source: Option<IpAddr>,
    /// By which gateway; none if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The largest packet this way carries, as far as the kernel knows.
    pub mtu: Mtu,
}

/// Why a packet would not leave: a state for users to read. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRoute {
    /// No table that was asked has a route for it.
    #[error("no route to the destination")]
    Unreachable,
    /// The interface does not exist (any more).
    #[error("the interface is gone")]
    InterfaceGone,
    /// The interface is down.
    #[error("the interface is down")]
    InterfaceDown,
    /// Source and destination are of different IP versions.
    #[error("source and destination are of different ip versions")]
    OtherFamily,
    /// No interface has the source address.
    #[error("no interface has the source address")]
    SourceNotLocal,
    /// The route leads out of another interface than the one asked for.
    #[error("the route leads out of interface {interface}")]
    OtherInterface {
        /// Where it leads.
        interface: IfIndex,
    },
    /// A route or rule of type `prohibit` matches.
    #[error("prohibited by a route or rule")]
    Prohibited,
    /// A route or rule of type `blackhole` matches.
    #[error("dropped by a blackhole route or rule")]
    Blackhole,
}

/// No route, or no answer. There is no default. Owned data only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The kernel's answer is that there is none.
    #[error("find route to {destination}: {reason}")]
    NoRoute {
        /// Where to.
        destination: IpAddr,
        /// Why not.
        reason: NoRoute,
    },
    /// The question could not be asked.
    #[error(transparent)]
    NetConfig(#[from] NetConfigError),
}

impl RouteError {
    /// The state to show a user, if the kernel answered.
    pub fn no_route(&self) -> Option<NoRoute> {
        match self {
            Self::NoRoute { reason, .. } => Some(*reason),
            Self::NetConfig(_) => None,
        }
    }
}

/// An address of an interface. There is no default. Plain data, as of the moment it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Whose it is.
    pub interface: IfIndex,
    /// Address and prefix length.
    pub address: IpNet,
    /// Valid beyond the link (scope global).
    pub global: bool,
    /// Can be sent from: not waiting for or failed in duplicate address detection (RFC 4862 section 5.4).
    pub usable: bool,
    /// Works still, and what is new is to take another (RFC 4862 section 5.5.4).
    pub deprecated: bool,
}

impl Rtnl {
    /// Which way a packet would go, or why it would not.
    pub async fn route_get(&self, query: RouteQuery) -> Result<RouteAnswer, RouteError> {
        if let Some(source) = query.source {
            if source.is_ipv4() != query.destination.is_ipv4() {
                return Err(no_route(&query, NoRoute::OtherFamily));
            }
            let local = self.addresses(None).await?;
            if !local.iter().any(|one| one.address.addr() == source) {
                return Err(no_route(&query, NoRoute::SourceNotLocal));
            }
        }
        let answer = match self.decide(&query).await {
            // Asked with a source, IPv6 is not strict about the interface, as it is for a socket bound to it
            // (ip6_route_output_flags: RT6_LOOKUP_F_IFACE); without one it is.
            Err(error) if query.source.is_some() && query.destination.is_ipv6() => match error.no_route() {
                Some(NoRoute::OtherInterface { .. }) => {
                    let strict = RouteQuery { source: None, ..query };
                    self.decide(&strict).await?
                }
                _ => return Err(error),
            },
            other => other?,
        };
        Ok(RouteAnswer {
            // The kernel does not repeat a source that was given.
            source: query.source.or(answer.source),
            ..answer
        })
    }

    /// Both questions, one after the other.
    async fn decide(&self, query: &RouteQuery) -> Result<RouteAnswer, RouteError> {
        self.ask(query, RouteFlags::FibMatch).await?;
        let message = self.ask(query, RouteFlags::empty()).await?;
        self.answer(query, &message).await
    }

    /// All addresses of the interface with this name; none if there is no such interface.
    pub async fn interface_addresses(&self, name: &str) -> Result<Option<Vec<InterfaceAddress>>, NetConfigError> {
        match self.link_named(name).await? {
            Some(link) => self.addresses(Some(link.index)).await.map(Some),
            None => Ok(None),
        }
    }

    /// One question; an answer that names a route nobody gets through is none.
    async fn ask(&self, query: &RouteQuery, flags: RouteFlags) -> Result<RouteMessage, RouteError> {
        let answers = self.handle.route().get(question(query, flags)).execute();
        let answers: Result<Vec<RouteMessage>, _> = answers.try_collect().await;
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                let subject = query.destination.to_string();
                let error = NetConfigError::netlink("find route to", subject, None, error);
                return Err(self.explain(query, error).await);
            }
        };
        let message = answers.into_iter().next();
        let message = message.ok_or_else(|| unexpected(query, "no answer"))?;
        match refused(message.header.kind) {
            Some(reason) => Err(no_route(query, reason)),
            None => Ok(message),
        }
    }

    async fn answer(&self, query: &RouteQuery, message: &RouteMessage) -> Result<RouteAnswer, RouteError> {
        let (mut answer, mtu) = read_answer(message).ok_or_else(|| unexpected(query, "an answer without interface"))?;
        let interface = answer.interface;
        if query.interface.is_some_and(|wanted| wanted != interface) {
            return Err(no_route(query, NoRoute::OtherInterface { interface }));
        }
        answer.mtu = match mtu {
            Some(mtu) => mtu,
            None => self.link(answer.interface).await?.ok_or(no_route(query, NoRoute::InterfaceGone))?.mtu,
        };
        Ok(answer)
    }

    /// Turns the kernel's errno into a reason, with a look at the interface where the errno is the same for several.
    async fn explain(&self, query: &RouteQuery, error: NetConfigError) -> RouteError {
        let reason = match error.errno() {
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENODEV | libc::ENETDOWN) => {
                match self.explain_interface(query.interface).await {
                    Ok(reason) => reason,
                    Err(error) => return error.into(),
                }
            }
            Some(libc::EACCES) => NoRoute::Prohibited,
            // The source is known to be local here, so that only a blackhole is left (fib_props, fib_semantics.c).
            Some(libc::EINVAL) => NoRoute::Blackhole,
            _ => return error.into(),
        };
        no_route(query, reason)
    }

    async fn explain_interface(&self, interface: Option<IfIndex>) -> Result<NoRoute, NetConfigError> {
        let Some(interface) = interface else {
            return Ok(NoRoute::Unreachable);
        };
        Ok(match self.link(interface).await? {
            None => NoRoute::InterfaceGone,
            Some(link) if !link.up => NoRoute::InterfaceDown,
            Some(_) => NoRoute::Unreachable,
        })
    }
}

fn no_route(query: &RouteQuery, reason: NoRoute) -> RouteError {
    RouteError::NoRoute { destination: query.destination, reason }
}

fn unexpected(query: &RouteQuery, what: &str) -> NetConfigError {
    NetConfigError::Protocol {
        operation: "find route to",
        subject: query.destination.to_string(),
        what: what.to_owned(),
    }
}

fn question(query: &RouteQuery, flags: RouteFlags) -> RouteMessage {
    let (family, bits) = match query.destination {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family,
        destination_prefix_length: bits,
        source_prefix_length: if query.source.is_some() { bits } else { 0 },
        flags,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Destination(query.destination.into())];
    message.attributes.extend(query.source.map(|source| RouteAttribute::Source(source.into())));
    message.attributes.extend(query.interface.map(|index| RouteAttribute::Oif(index.get())));
    message.attributes.extend(query.mark.map(|mark| RouteAttribute::Mark(mark.0)));
    message
}

/// The answer with an MTU of zero, and the route's own MTU if it has one.
fn read_answer(message: &RouteMessage) -> Option<(RouteAnswer, Option<Mtu>)> {
    let (mut interface, mut source, mut gateway, mut mtu) = (None, None, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = IfIndex::new(*index),
            RouteAttribute::PrefSource(address) => source = ip(address),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            // An IPv6 gateway of an IPv4 route (RFC 5549).
            RouteAttribute::Via(RouteVia::Inet6(address)) => gateway = Some((*address).into()),
            RouteAttribute::Via(RouteVia::Inet(address)) => gateway = Some((*address).into()),
            RouteAttribute::Metrics(metrics) => {
                mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) => Some(Mtu(*mtu)),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    Some((RouteAnswer { interface: interface?, source, gateway, mtu: Mtu(0) }, mtu))
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// The reason in an answer that names a route nobody gets through.
fn refused(kind: RouteType) -> Option<NoRoute> {
    match kind {
        RouteType::Unreachable | RouteType::Throw => Some(NoRoute::Unreachable),
        RouteType::Prohibit => Some(NoRoute::Prohibited),
        RouteType::BlackHole => Some(NoRoute::Blackhole),
        _ => None,
    }
}
