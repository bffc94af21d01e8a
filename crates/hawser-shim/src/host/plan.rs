//! What the system is to have, as changes: a pure function of the layout and the map.
//!
//! 1. Interfaces: IPv6 without addresses of the kernel's own, up, and their addresses.
//! 2. Routes: a table for each interface, by which everything goes out of it, and nowhere once it is gone.
//! 3. Rules: which table a packet looks up ([`super`] has their order).
//! 4. Rules that the map asks for: these change with it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_net::netcfg::{
    Change, Family, IfIndex, IpProtocol, MarkMatch, Metric, NetConfigError, RouteKind, RouteSpec, RuleSpec, SysctlKey,
    TableId,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::numbers::{Numbers, Place};
use crate::route::{Addresses, Destination, InterfaceIndex, SURROGATES, Side};

/// What comes last in a table: any other route is better.
const LAST: Metric = Metric(u32::MAX);
/// All of an address counts.
const WHOLE_V4: u8 = 32;
const WHOLE_V6: u8 = 128;
/// Settings of an interface by which the kernel gives it no IPv6 address of its own accord and asks nobody for one
/// (Documentation/networking/ip-sysctl: `addr_gen_mode` 1 is none), on hosts too that have IPv6 switched off for new
/// ones.
const NO_AUTOCONFIGURATION: [(&str, &str); 4] =
    [("disable_ipv6", "0"), ("addr_gen_mode", "1"), ("accept_ra", "0"), ("autoconf", "0")];

/// All addresses of IPv6, as rules can only say "has a source" by two networks.
const HALVES: [Ipv6Net; 2] =
    [Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 1), Ipv6Net::new_assert(Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0), 1)];

/// An interface of the shim. There is no default. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Which.
    pub index: InterfaceIndex,
    /// Its name.
    pub name: String,
    /// The kernel's index.
    pub interface: IfIndex,
    /// Its addresses.
    pub addresses: Addresses,
}

/// The interfaces of a shim that share a network namespace. There is no default. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of which shim.
    pub numbers: Numbers,
    /// Loopback, whose life routes share that lead nowhere.
    pub loopback: IfIndex,
    /// The interfaces, the ingress first where it is among them.
    pub interfaces: Vec<Interface>,
    /// Where IPv4 addresses are derived.
    pub ipv4: Option<Ipv4Net>,
}

impl Layout {
    /// Steps 1 to 3.
    ///
    /// # Errors
    /// Where an interface has a name that no sysctl can have.
    pub fn changes(&self) -> Result<Vec<Change>, NetConfigError> {
        let mut changes = Vec::new();
        for interface in &self.interfaces {
            changes.extend(self.interface(interface)?);
        }
        for family in self.families() {
            changes.push(self.nowhere(family, self.numbers.closed(), RouteKind::Blackhole));
            changes.extend(self.rules(family));
        }
        Ok(changes)
    }

    /// All that leaves a namespace of its own goes by the shim: its main table has no other route.
    pub fn default_routes(&self) -> Vec<Change> {
        let Some(first) = self.interfaces.first() else { return Vec::new() };
        let route = |address: IpAddr| {
            let source = Some(address);
            Change::Route(RouteSpec { source, ..RouteSpec::to(everywhere(Family::of(address)), first.interface) })
        };
        first.addresses.iter().map(route).collect()
    }

    /// Step 4: clients that have no source address yet. A server's answers, and what is bound to another address, go as
    /// ever. With [`Side::Subflows`] the main flow keeps the host's own route.
    pub fn for_map(&self, destinations: impl Iterator<Item = Destination>) -> Vec<Change> {
        let Some(client) = self.interfaces.iter().find(|one| !one.index.is_ingress()) else { return Vec::new() };
        let families = self.families();
        let table = self.numbers.table(client.index);
        let mut rules: Vec<RuleSpec> = Vec::new();
        for to in destinations.filter(|one| one.side != Side::Subflows) {
            let family = Family::of(to.network.addr());
            if !families.contains(&family) {
                continue;
            }
            if to.side == Side::Main {
                rules.push(self.question(family));
            }
            match family {
                Family::V4 => {
                    rules.push(to_destination(&to, Place::Map, table, Some(alone(Ipv4Addr::UNSPECIFIED.into()))))
                }
                Family::V6 => {
                    let bound = HALVES.map(|half| to_destination(&to, Place::Bound, TableId::MAIN, Some(half.into())));
                    rules.extend(bound);
                    rules.push(to_destination(&to, Place::Map, table, None));
                }
            }
        }
        let mut once: Vec<RuleSpec> = Vec::with_capacity(rules.len());
        for rule in rules {
            if !once.contains(&rule) {
                once.push(rule);
            }
        }
        once.into_iter().map(Change::Rule).collect()
    }

    /// Steps 1 and 2 for one.
    fn interface(&self, of: &Interface) -> Result<Vec<Change>, NetConfigError> {
        let interface = of.interface;
        let mut changes = Vec::new();
        if of.addresses.ipv6.is_some() {
            for (setting, value) in NO_AUTOCONFIGURATION {
                let key = SysctlKey::new(&format!("net/ipv6/conf/{}/{setting}", of.name))?;
                changes.push(Change::Sysctl { key, value: value.to_owned() });
            }
        }
        changes.push(Change::LinkUp { interface });
        changes.extend(of.addresses.iter().map(|address| Change::Address { interface, address: alone(address) }));
        let table = self.numbers.table(of.index);
        for address in of.addresses.iter() {
            let family = Family::of(address);
            let route = RouteSpec::to(everywhere(family), interface);
            changes.push(Change::Route(RouteSpec { table: Some(table), source: Some(address), ..route }));
            changes.push(self.nowhere(family, table, RouteKind::Unreachable));
        }
        Ok(changes)
    }

    /// Step 3.
    fn rules(&self, family: Family) -> Vec<Change> {
        let numbers = self.numbers;
        let mut rules = Vec::new();
        for of in &self.interfaces {
            let at = RuleSpec::at(family, Place::Closed.priority(), numbers.closed());
            rules.push(RuleSpec { input: Some(of.name.clone()), ..at });
            let own = of.addresses.iter().filter(|address| Family::of(*address) == family);
            let table = numbers.table(of.index);
            rules.extend(own.map(|address| RuleSpec {
                source: Some(alone(address)),
                ..RuleSpec::at(family, Place::Source.priority(), table)
            }));
        }
        rules.extend(self.between_shims(family));
        rules.into_iter().map(Change::Rule).collect()
    }

    /// To surrogate and derived addresses. The kernel asks for a client's route without a source first; IPv6 passes
    /// over rules with a source then, IPv4 takes it for 0.0.0.0.
    fn between_shims(&self, family: Family) -> Vec<RuleSpec> {
        let table = |wanted: fn(&Interface) -> bool| {
            self.interfaces.iter().find(|one| wanted(one)).map(|one| self.numbers.table(one.index))
        };
        let (Some(ingress), Some(client)) = (table(|one| one.index.is_ingress()), table(|one| !one.index.is_ingress()))
        else {
            return Vec::new();
        };
        let range = match family {
            Family::V6 => Some(IpNet::V6(SURROGATES)),
            Family::V4 => self.ipv4.map(IpNet::V4),
        };
        let Some(range) = range else { return Vec::new() };
        let to = |place: Place, table, source| RuleSpec {
            source,
            destination: Some(range),
            ..RuleSpec::at(family, place.priority(), table)
        };
        // A network of the host's own within the range, as behind an operator's NAT, stays what it is.
        let particular = RuleSpec {
            suppress_prefix_length: Some(range.prefix_len().into()),
            ..to(Place::Particular, TableId::MAIN, None)
        };
        let mut rules = vec![particular];
        match family {
            Family::V4 => {
                let unspecified = alone(Ipv4Addr::UNSPECIFIED.into());
                rules.push(to(Place::Narrow, client, Some(unspecified)));
                rules.push(to(Place::Wide, ingress, None));
            }
            Family::V6 => {
                rules.extend(HALVES.map(|half| to(Place::Narrow, ingress, Some(half.into()))));
                rules.push(to(Place::Wide, client, None));
            }
        }
        rules
    }

    /// Nothing is sent with this mark: by it the kernel is asked for the route that the map hides.
    fn question(&self, family: Family) -> RuleSpec {
        let mark = Some(MarkMatch { mark: self.numbers.mark(), mask: u32::MAX });
        RuleSpec { mark, ..RuleSpec::at(family, Place::Question.priority(), TableId::MAIN) }
    }

    fn nowhere(&self, family: Family, table: TableId, kind: RouteKind) -> Change {
        let route = RouteSpec::to(everywhere(family), self.loopback);
        Change::Route(RouteSpec { table: Some(table), metric: Some(LAST), kind, ..route })
    }

    /// The IP versions in which the shim's interfaces have addresses.
    fn families(&self) -> Vec<Family> {
        let has = |family: &Family| {
            self.interfaces.iter().flat_map(|one| one.addresses.iter()).any(|address| Family::of(address) == *family)
        };
        [Family::V6, Family::V4].into_iter().filter(has).collect()
    }
}

fn to_destination(to: &Destination, place: Place, table: TableId, source: Option<IpNet>) -> RuleSpec {
    RuleSpec {
        source,
        destination: Some(to.network),
        ip_protocol: Some(IpProtocol(to.protocol.number())),
        destination_port: to.port.map(|port| port.0.get()),
        ..RuleSpec::at(Family::of(to.network.addr()), place.priority(), table)
    }
}

fn everywhere(family: Family) -> IpNet {
    match family {
        Family::V4 => IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)),
        Family::V6 => IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// The network of one address.
fn alone(address: IpAddr) -> IpNet {
    match address {
        IpAddr::V4(ip) => IpNet::V4(Ipv4Net::new_assert(ip, WHOLE_V4)),
        IpAddr::V6(ip) => IpNet::V6(Ipv6Net::new_assert(ip, WHOLE_V6)),
    }
}
