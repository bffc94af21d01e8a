//! How long packets to peers may be: the TUN device's MTU, and those of routes to peers that take less.
//!
//! One peer behind a narrow path makes nobody else's packets smaller:
//! 1. A peer whose networks all have routes of this portal's own is told apart by these.
//! 2. What is left, a default route or the device's own network, has the device's MTU: such a peer bounds it.
//! 3. Within that bound the device has the largest that any peer takes, and routes to those that take less say so.

use std::collections::BTreeMap;

use hawser_config::{Config, MTU_MIN, Peer};
use hawser_net::netcfg::Mtu;
use ipnet::IpNet;

use super::system::needs_route;

/// What fits to each peer, by its name; bytes of an inner packet. Nothing at first; the control thread owns it.
#[derive(Debug, Default)]
pub struct Mtus(BTreeMap<String, u16>);

impl Mtus {
    /// So much fits to this peer.
    pub fn note(&mut self, peer: &str, mtu: u16) {
        self.0.insert(peer.to_owned(), mtu);
    }

    /// The device's: the one of the configuration, or the largest that helps anybody.
    pub fn of_device(&self, config: &Config) -> Mtu {
        let known = || config.peers.iter().filter_map(|peer| Some((peer, self.of_peer(peer)?)));
        let routed = |peer: &Peer| peer.allowed_ips.iter().all(|net| needs_route(config, net));
        let bound = known().filter(|(peer, _)| !routed(peer)).map(|(_, mtu)| mtu).min();
        let most = known().map(|(_, mtu)| mtu).max().unwrap_or(MTU_MIN);
        let fits = bound.map_or(most, |bound| most.min(bound));
        Mtu(config.tun.mtu.unwrap_or(fits).into())
    }

    /// What fits to a peer, whichever member of its hub it goes to. A standby has no networks of its own.
    fn of_peer(&self, peer: &Peer) -> Option<u16> {
        let members = std::iter::once(&peer.name).chain(&peer.standby);
        members.filter_map(|name| self.0.get(name.as_str())).min().copied().filter(|_| !peer.allowed_ips.is_empty())
    }

    /// What fits beside what the device has: which is found once for all peers, as that looks at each of them.
    pub fn beside(&self, device: Mtu, config: &Config) -> Fit<'_> {
        Fit { mtus: self, device, is_auto: config.tun.mtu.is_none() }
    }
}

/// What fits to whom, beside what the device has. Borrowed for one pass.
pub struct Fit<'m> {
    mtus: &'m Mtus,
    device: Mtu,
    /// It is not the configuration's.
    is_auto: bool,
}

impl Fit<'_> {
    /// The device's.
    pub fn of_device(&self) -> Mtu {
        self.device
    }

    /// That of a route to this peer, where it is less than the device's.
    pub fn of_route(&self, peer: &Peer) -> Option<Mtu> {
        let mtu = Mtu(self.mtus.of_peer(peer)?.into());
        (self.is_auto && mtu.0 < self.device.0).then_some(mtu)
    }

    /// The routes to peers: which networks, and how long packets to them may be.
    pub fn routes<'c>(&'c self, config: &'c Config) -> impl Iterator<Item = (IpNet, Option<Mtu>)> + 'c {
        config.peers.iter().flat_map(move |peer| {
            let mtu = self.of_route(peer);
            let routed = peer.allowed_ips.iter().filter(|net| needs_route(config, net));
            routed.map(move |net| (*net, mtu))
        })
    }
}
