//! What an engine is made with.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hawser_scion::select::Criterion;
use hawser_scion::{EndpointAddr, Path};

use crate::route::{Addresses, InterfaceIndex};
use crate::translate::Layer4;

/// How an engine chooses. There is no default. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineOpts {
    /// This host's shim.
    pub local: EndpointAddr,
    /// What makes a path the best.
    pub select: Criterion,
    /// Egress interfaces, and so paths of one connection.
    pub egress: u8,
    /// What carries the segments of flows that this host begins; segments without datagrams are taken with TCP alone.
    pub layer4: Layer4,
}

/// This host's addresses. None by default. Plain data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnAddresses {
    all: BTreeMap<IpAddr, Own>,
    /// Those of the shim's ingress, IPv6 and IPv4.
    ingress: [Option<IpAddr>; 2],
}

/// One of them. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Own {
    /// What comes for it goes in by this.
    interface: InterfaceIndex,
    /// The shim gave it to the host: nobody reaches it but through the shim.
    is_the_shims: bool,
}

/// What was found of paths to an AS. There is no default. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// These, as [`super::ranked`] puts them in order.
    Paths(Vec<Path>),
    /// Nobody could be asked: what was known is left as it is.
    Failed,
}

impl OwnAddresses {
    /// Adds those of one of the shim's interfaces.
    #[must_use]
    pub fn with_interface(mut self, interface: InterfaceIndex, addresses: Addresses) -> Self {
        let own = Own { interface, is_the_shims: true };
        self.all.extend(addresses.iter().map(|address| (address, own)));
        if interface.is_ingress() {
            self.ingress = [addresses.ipv6.map(IpAddr::V6), addresses.ipv4.map(IpAddr::V4)];
        }
        self
    }

    /// Adds one that the host has otherwise, which peers reach by the ingress, or not through the shim at all: main
    /// flows may come to it that no shim sees.
    #[must_use]
    pub fn with(mut self, address: IpAddr) -> Self {
        self.all.entry(address).or_insert(Own { interface: InterfaceIndex::INGRESS, is_the_shims: false });
        self
    }

    /// The interface of an address; none where it is not this host's.
    pub fn interface(&self, address: IpAddr) -> Option<InterfaceIndex> {
        self.all.get(&address).map(|own| own.interface)
    }

    /// Where servers here are reached, by IPv6 or IPv4.
    pub fn ingress(&self, v6: bool) -> Option<IpAddr> {
        self.ingress[usize::from(!v6)]
    }

    /// Whether what comes for an address comes through the shim, and no other way.
    pub fn is_the_shims(&self, address: IpAddr) -> bool {
        self.all.get(&address).is_some_and(|own| own.is_the_shims)
    }
}
