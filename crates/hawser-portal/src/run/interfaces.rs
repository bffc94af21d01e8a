//! What is known of the system's interfaces, and where a socket may be bound now.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use hawser_net::netcfg::{Family, IfIndex, Interface, LinkEvent};
use ipnet::IpNet;

use super::plan::SocketPlan;

/// One interface. Plain data.
#[derive(Debug)]
struct Known {
    name: String,
    up: bool,
    /// One may be there twice, with prefixes of different lengths.
    addresses: BTreeSet<IpNet>,
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
            LinkEvent::AddressAdded(interface, net) => drop(self.entry(interface).addresses.insert(*net)),
            LinkEvent::AddressRemoved(interface, net) => drop(self.entry(interface).addresses.remove(net)),
            LinkEvent::RoutesChanged => {}
        }
    }

    fn entry(&mut self, interface: &Interface) -> &mut Known {
        let new = || Known { name: interface.name.to_string(), up: false, addresses: BTreeSet::new() };
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

    /// Where the socket may be bound now; `None` while its interface or address is missing or down.
    /// `now` is where it is bound: an address stays in use while it is there.
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
        self.addresses.iter().map(IpNet::addr)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.addresses().any(|known| known == address)
    }

    /// The address to send from: the one in use, else the first that is valid beyond the link.
    fn choose(&self, family: Family, now: Option<IpAddr>) -> Option<IpAddr> {
        if let Some(now) = now.filter(|now| self.has(*now)) {
            return Some(now);
        }
        self.addresses().find(|address| Family::of(*address) == family && !is_link_local(address))
    }
}

/// RFC 3927 and RFC 4291 section 2.5.6: no router forwards these.
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
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

    #[test]
    fn a_link_has_a_place_while_its_interface_is_up_and_has_an_address() {
        let (eth, anew) = (interface(3, "eth0"), interface(7, "eth0"));
        let net = |text: &str| text.parse().expect("a network");
        let (first, second) = (net("192.0.2.5/24"), net("192.0.2.9/24"));
        let mut known = Interfaces::default();
        let plan = plan(Some("eth0"), None, 0);
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
        let mut now = None;
        for (event, expect) in steps {
            known.learn(&event);
            let place = known.place(&plan, now.as_ref());
            let seen = place.map(|p| (p.interface.map_or(0, IfIndex::get), p.local.to_string()));
            assert_eq!(seen, expect.map(|(index, local)| (index, local.to_owned())), "{event:?}");
            now = place.or(now);
        }
        assert_eq!(known.named("eth0"), Some(anew.index));
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
