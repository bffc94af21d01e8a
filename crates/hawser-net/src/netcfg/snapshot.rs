//! The interfaces and addresses known, and what changes between two moments.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ipnet::IpNet;

use super::types::IfIndex;

/// An interface: its index and name; one made anew under the same name has another index.
/// There is no default. Cheap to clone, and crosses threads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface {
    /// The kernel's index.
    pub index: IfIndex,
    /// The name it has now.
    pub name: Arc<str>,
}

/// Something that came or went. There is no default. Cheap to clone, and crosses threads.
///
/// ```text
///              Appeared           Up
///   (unknown) ---------> down ----------> up       AddressAdded … AddressPreferred in both
///        ^                | ^              |
///        |     Gone       | |     Down     |
///        +----------------+ +--------------+       a rename is Gone and Appeared
/// ```
/// An interface that goes while it is up goes down first, and loses its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// An interface exists now, down and without address for all that was said so far.
    Appeared(Interface),
    /// It is set up, has a carrier, and can send.
    Up(Interface),
    /// It cannot send any more.
    Down(Interface),
    /// It exists no more under this index and name.
    Gone(Interface),
    /// It has an address that can be sent from, a preferred one for all that was said so far.
    AddressAdded(Interface, IpNet),
    /// It has an address no more.
    AddressRemoved(Interface, IpNet),
    /// An address of it is deprecated: it works, and what is new is to take another (RFC 4862 section 5.5.4).
    AddressDeprecated(Interface, IpNet),
    /// A deprecated address of it is preferred again.
    AddressPreferred(Interface, IpNet),
    /// Routes or rules have changed, one or many: ask again.
    RoutesChanged,
}

/// Addresses, each with whether it is deprecated.
type Addresses = BTreeMap<IpNet, bool>;

/// One interface's state as the kernel tells it. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LinkState {
    name: Arc<str>,
    up: bool,
    addresses: Addresses,
}

/// One thing the kernel said. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    /// An interface is like this.
    Link { index: IfIndex, name: String, up: bool },
    /// An interface is gone.
    LinkGone { index: IfIndex },
    /// An interface has an address.
    Address { index: IfIndex, address: IpNet, deprecated: bool },
    /// An interface has an address no more, or not yet one to send from.
    AddressGone { index: IfIndex, address: IpNet },
}

/// All interfaces at one moment. Initially none. Plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    links: BTreeMap<IfIndex, LinkState>,
}

impl Snapshot {
    /// Takes in one fact, and appends what it changes.
    pub fn learn(&mut self, fact: Fact, events: &mut Vec<LinkEvent>) {
        let index = match &fact {
            Fact::Link { index, .. }
            | Fact::LinkGone { index }
            | Fact::Address { index, .. }
            | Fact::AddressGone { index, .. } => *index,
        };
        let old = self.links.get(&index).cloned();
        match (fact, self.links.get_mut(&index)) {
            (Fact::Link { name, up, .. }, Some(link)) => {
                link.name = name.into();
                link.up = up;
            }
            (Fact::Link { name, up, .. }, None) => {
                let link = LinkState { name: name.into(), up, addresses: Addresses::new() };
                self.links.insert(index, link);
            }
            (Fact::LinkGone { .. }, _) => drop(self.links.remove(&index)),
            (Fact::Address { address, deprecated, .. }, Some(link)) => {
                link.addresses.insert(address, deprecated);
            }
            (Fact::AddressGone { address, .. }, Some(link)) => {
                link.addresses.remove(&address);
            }
            // The kernel names an interface before its addresses: this one has gone since.
            (Fact::Address { .. } | Fact::AddressGone { .. }, None) => {}
        }
        changes(index, old.as_ref(), self.links.get(&index), events);
    }

    /// Puts `new` in the place of this, and appends what differs.
    pub fn replace(&mut self, new: Self, events: &mut Vec<LinkEvent>) {
        let old = std::mem::replace(self, new);
        let indexes: BTreeSet<IfIndex> = old.links.keys().chain(self.links.keys()).copied().collect();
        // Interfaces that went come first, so that a name is never taken twice.
        let (stay, went): (Vec<IfIndex>, Vec<IfIndex>) =
            indexes.into_iter().partition(|index| self.links.contains_key(index));
        for index in went.into_iter().chain(stay) {
            changes(index, old.links.get(&index), self.links.get(&index), events);
        }
    }
}

/// What leads from one state of an interface to another.
fn changes(index: IfIndex, old: Option<&LinkState>, new: Option<&LinkState>, events: &mut Vec<LinkEvent>) {
    let renamed = matches!((old, new), (Some(old), Some(new)) if old.name != new.name);
    if renamed {
        changes(index, old, None, events);
        return changes(index, None, new, events);
    }
    let Some(name) = new.or(old).map(|link| Arc::clone(&link.name)) else {
        return;
    };
    let interface = Interface { index, name };
    let none = Addresses::new();
    let (had, has) = (old.map_or(&none, |link| &link.addresses), new.map_or(&none, |link| &link.addresses));
    let (was_up, is_up) = (old.is_some_and(|link| link.up), new.is_some_and(|link| link.up));
    if old.is_none() {
        events.push(LinkEvent::Appeared(interface.clone()));
    }
    if was_up && !is_up {
        events.push(LinkEvent::Down(interface.clone()));
    }
    address_changes(&interface, had, has, events);
    if is_up && !was_up {
        events.push(LinkEvent::Up(interface.clone()));
    }
    if new.is_none() {
        events.push(LinkEvent::Gone(interface));
    }
}

/// The same for the addresses alone.
fn address_changes(interface: &Interface, had: &Addresses, has: &Addresses, events: &mut Vec<LinkEvent>) {
    let removed = had.keys().filter(|net| !has.contains_key(*net));
    events.extend(removed.map(|net| LinkEvent::AddressRemoved(interface.clone(), *net)));
    for (net, deprecated) in has {
        let was_deprecated = had.get(net);
        if was_deprecated.is_none() {
            events.push(LinkEvent::AddressAdded(interface.clone(), *net));
        }
        match (was_deprecated.is_some_and(|was| *was), *deprecated) {
            (false, true) => events.push(LinkEvent::AddressDeprecated(interface.clone(), *net)),
            (true, false) => events.push(LinkEvent::AddressPreferred(interface.clone(), *net)),
            (true, true) | (false, false) => {}
        }
    }
}

#[cfg(test)]
mod tests;
