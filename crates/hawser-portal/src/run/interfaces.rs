//! What is known of the system's interfaces, and where a socket may be bound now.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hawser_net::netcfg::{Family, IfIndex, Interface, LinkEvent};
use ipnet::IpNet;

use super::plan::SocketPlan;

/// One interface. Plain data.
#[derive(Debug)]
struct Known {
    name: String,
    up: bool,
    /// Each with whether it is deprecated. One may be there twice, with prefixes of different lengths.
    addresses: BTreeMap<IpNet, bool>,
}

/// All interfaces, as the link watch told of them. At first none; one thread owns it.
#[derive(Debug, Default)]
pub struct Interfaces(BTreeMap<IfIndex, Known>);

/// Where a socket is to be bound. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The interface, where the socket is bound to one: one made anew has another.
    pub interface: Option<IfIndex>,
    /// Address and port.
    pub local: SocketAddr,
}

impl Interfaces {
    /// Takes in what the watch said.
    pub fn learn(&mut self, event: &LinkEvent) {
        match event {
            LinkEvent::Appeared(interface) => drop(self.entry(interface)),
            LinkEvent::Up(interface) => self.entry(interface).up = true,
            LinkEvent::Down(interface) => self.entry(interface).up = false,
            LinkEvent::Gone(interface) => drop(self.0.remove(&interface.index)),
            LinkEvent::AddressAdded(interface, net) | LinkEvent::AddressPreferred(interface, net) => {
                self.entry(interface).addresses.insert(*net, false);
            }
            LinkEvent::AddressDeprecated(interface, net) => {
                self.entry(interface).addresses.insert(*net, true);
            }
            LinkEvent::AddressRemoved(interface, net) => drop(self.entry(interface).addresses.remove(net)),
            LinkEvent::RoutesChanged => {}
        }
    }

    fn entry(&mut self, interface: &Interface) -> &mut Known {
        let new = || Known { name: interface.name.to_string(), up: false, addresses: BTreeMap::new() };
        self.0.entry(interface.index).or_insert_with(new)
    }

    /// The interface of that name.
    pub fn named(&self, name: &str) -> Option<IfIndex> {
        self.0.iter().find(|(_, known)| known.name == name).map(|(index, _)| *index)
    }

    /// The names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|known| known.name.as_str())
    }

    /// The interface that a socket uses, where there is one.
    pub fn of(&self, plan: &SocketPlan) -> Option<&str> {
        let has = |known: &&Known| match (&plan.interface, plan.address) {
            (Some(name), _) => known.name == *name,
            (None, Some(address)) => known.has(address),
            (None, None) => false,
        };
        self.0.values().find(has).map(|known| known.name.as_str())
    }

    /// The addresses of an interface that are valid beyond its link.
    pub fn addresses(&self, name: &str) -> impl Iterator<Item = IpAddr> + '_ {
        let known = self.0.values().find(|known| known.name == name);
        known.into_iter().flat_map(Known::addresses).filter(|address| !is_link_local(address))
    }

    /// The addresses of all of them.
    pub fn all_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.values().flat_map(Known::addresses)
    }

    /// Where the socket may be bound now; `None` while its interface or address is missing or down.
    /// `now` is where it is bound: an address stays in use while it is there and no other is better.
    pub fn place(&self, plan: &SocketPlan, now: Option<&Place>) -> Option<Place> {
        if let (None, Some(address)) = (&plan.interface, plan.address.filter(IpAddr::is_unspecified)) {
            return Some(Place { interface: None, local: SocketAddr::new(address, plan.port) });
        }
        let mine = |known: &Known| known.up && plan.interface.as_ref().is_none_or(|name| *name == known.name);
        let (index, address) = self.0.iter().filter(|(_, known)| mine(known)).find_map(|(index, known)| {
            let address = match plan.address {
                Some(address) => known.has(address).then_some(address),
                None => known.choose(plan.family, now.map(|place| place.local.ip())),
            };
            Some((*index, address?))
        })?;
        let interface = plan.interface.is_some().then_some(index);
        Some(Place { interface, local: SocketAddr::new(address, plan.port) })
    }
}

impl Known {
    fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.addresses.keys().map(IpNet::addr)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.addresses().any(|known| known == address)
    }

    /// The address to send from, of those that are valid beyond the link: one that is not deprecated before one that is
    /// (RFC 6724 section 5, rule 3), then one that is not unique local; of equal ones that in use, else the first.
    ///
    /// An old prefix of the provider's is deprecated long before it is gone, and carries nothing by then. A temporary
    /// address (RFC 8981) is left so for its successor.
    fn choose(&self, family: Family, now: Option<IpAddr>) -> Option<IpAddr> {
        let all = self.addresses.iter().map(|(net, deprecated)| (net.addr(), *deprecated));
        let fits = |(address, _): &(IpAddr, bool)| Family::of(*address) == family && !is_link_local(address);
        let rank = |(address, deprecated): &(IpAddr, bool)| {
            let is_another = now.is_none_or(|now| now != *address);
            (*deprecated, is_unique_local(address), is_another)
        };
        all.filter(fits).min_by_key(rank).map(|(address, _)| address)
    }
}

/// RFC 3927 and RFC 4291 section 2.5.6: no router forwards these.
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// RFC 4193: no provider routes these.
fn is_unique_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unique_local())
}

#[cfg(test)]
mod tests {
    use hawser_core::units::{LinkGroup, LinkId};
    use hawser_net::netcfg::Mark;

    use super::*;
    use crate::run::plan::Carriage;

    fn interface(index: u32, name: &str) -> Interface {
        Interface { index: IfIndex::new(index).expect("not zero"), name: name.into() }
    }

    fn plan(interface: Option<&str>, address: Option<&str>, port: u16) -> SocketPlan {
        let address = address.map(|text| text.parse().expect("an address"));
        SocketPlan {
            id: LinkId(0),
            group: LinkGroup(0),
            name: "dsl".into(),
            interface: interface.map(Into::into),
            address,
            port,
            carriage: Carriage::Udp,
            family: address.map_or(Family::V4, Family::of),
            preference: 0,
            metric: 0,
            mark: Mark(0),
            endpoints: Vec::new(),
        }
    }

    fn net(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    /// Learns one event after the other: where the socket of the plan is then to be bound.
    fn assert_places(plan: &SocketPlan, steps: &[(LinkEvent, Option<(u32, &str)>)]) -> Interfaces {
        let (mut known, mut now) = (Interfaces::default(), None);
        for (event, expect) in steps {
            known.learn(event);
            let place = known.place(plan, now.as_ref());
            let seen = place.map(|p| (p.interface.map_or(0, IfIndex::get), p.local.to_string()));
            assert_eq!(seen, expect.map(|(index, local)| (index, local.to_owned())), "{event:?}");
            now = place.or(now);
        }
        known
    }

    #[test]
    fn a_link_has_a_place_while_its_interface_is_up_and_has_an_address() {
        let (eth, anew) = (interface(3, "eth0"), interface(7, "eth0"));
        let (first, second) = (net("192.0.2.5/24"), net("192.0.2.9/24"));
        let steps = [
            (LinkEvent::Appeared(eth.clone()), None),
            (LinkEvent::Up(eth.clone()), None),
            (LinkEvent::AddressAdded(eth.clone(), net("fe80::1/64")), None),
            (LinkEvent::AddressAdded(eth.clone(), net("169.254.3.4/16")), None),
            (LinkEvent::AddressAdded(eth.clone(), second), Some((3, "192.0.2.9:0"))),
            // It stays where it is, though this one comes first.
            (LinkEvent::AddressAdded(eth.clone(), first), Some((3, "192.0.2.9:0"))),
            // Another prefix of the same address comes and goes.
            (LinkEvent::AddressAdded(eth.clone(), net("192.0.2.9/32")), Some((3, "192.0.2.9:0"))),
            (LinkEvent::AddressRemoved(eth.clone(), second), Some((3, "192.0.2.9:0"))),
            (LinkEvent::AddressRemoved(eth.clone(), net("192.0.2.9/32")), Some((3, "192.0.2.5:0"))),
            (LinkEvent::Down(eth.clone()), None),
            (LinkEvent::Up(eth.clone()), Some((3, "192.0.2.5:0"))),
            (LinkEvent::Gone(eth.clone()), None),
            (LinkEvent::Appeared(anew.clone()), None),
            (LinkEvent::AddressAdded(anew.clone(), first), None),
            (LinkEvent::Up(anew.clone()), Some((7, "192.0.2.5:0"))),
        ];
        let known = assert_places(&plan(Some("eth0"), None, 0), &steps);
        assert_eq!(known.named("eth0"), Some(anew.index));
    }

    #[test]
    fn a_link_leaves_an_address_for_a_better_one_and_not_for_one_as_good() {
        let eth = interface(3, "eth0");
        let added = |text: &str| LinkEvent::AddressAdded(eth.clone(), net(text));
        let removed = |text: &str| LinkEvent::AddressRemoved(eth.clone(), net(text));
        let deprecated = |text: &str| LinkEvent::AddressDeprecated(eth.clone(), net(text));
        let preferred = |text: &str| LinkEvent::AddressPreferred(eth.clone(), net(text));
        let (ula, old, new) = ("fd08::5/64", "2001:db8:1::5/64", "2001:db8::9/64");
        let (at_ula, at_old, at_new) =
            (Some((3, "[fd08::5]:0")), Some((3, "[2001:db8:1::5]:0")), Some((3, "[2001:db8::9]:0")));
        let steps = [
            (LinkEvent::Up(eth.clone()), None),
            (added(ula), at_ula),
            (added(old), at_old),
            // First in order, and as good.
            (added(new), at_old),
            (deprecated(old), at_new),
            (preferred(old), at_new),
            (deprecated(new), at_old),
            // A router that lost its provider: its own network still has addresses.
            (deprecated(old), at_ula),
            (preferred(new), at_new),
            (removed(ula), at_new),
            // Nothing better is there.
            (deprecated(new), at_new),
            (removed(new), at_old),
            (added(new), at_new),
        ];
        assert_places(&SocketPlan { family: Family::V6, ..plan(Some("eth0"), None, 0) }, &steps);
    }

    #[test]
    fn an_address_of_two_prefixes_is_deprecated_once_both_are() {
        let eth = interface(3, "eth0");
        let (one, two) = (net("192.0.2.5/24"), net("192.0.2.5/32"));
        let at_it = Some((3, "192.0.2.5:0"));
        let steps = [
            (LinkEvent::Up(eth.clone()), None),
            (LinkEvent::AddressAdded(eth.clone(), one), at_it),
            (LinkEvent::AddressAdded(eth.clone(), two), at_it),
            (LinkEvent::AddressAdded(eth.clone(), net("192.0.2.9/24")), at_it),
            (LinkEvent::AddressDeprecated(eth.clone(), one), at_it),
            (LinkEvent::AddressDeprecated(eth.clone(), two), Some((3, "192.0.2.9:0"))),
        ];
        assert_places(&plan(Some("eth0"), None, 0), &steps);
    }

    #[test]
    fn an_address_alone_is_looked_for_on_every_interface() {
        let mut known = Interfaces::default();
        let wanted = plan(None, Some("192.0.2.5"), 4920);
        assert_eq!(known.place(&wanted, None), None);
        let eth = interface(3, "eth0");
        known.learn(&LinkEvent::Up(eth.clone()));
        known.learn(&LinkEvent::AddressAdded(eth, "192.0.2.5/24".parse().expect("a network")));
        let place = known.place(&wanted, None).map(|p| (p.interface, p.local.to_string()));
        assert_eq!(place, Some((None, "192.0.2.5:4920".to_owned())));
        let all = Interfaces::default().place(&plan(None, Some("::"), 4920), None);
        assert_eq!(all.map(|p| p.local.to_string()), Some("[::]:4920".to_owned()));
    }
}
