//! Peers and links that change while the portal runs.
//!
//! A peer keeps its id; one that goes leaves its place to the next that comes. Call `dismiss_peer` and let its
//! CLOSE out by `poll_transmit` before a peer is removed.

use super::peer::{Peer, Preferred};
use super::{Endpoint, Link, PeerConfig};
use crate::alias::Alias;
use crate::handshake::PublicKey;
use crate::rules::Rules;
use crate::session::Terms;
use crate::units::{LinkGroup, LinkId, PeerId, Time};
use crate::wire::InstanceId;
use std::net::{IpAddr, SocketAddr};

impl Endpoint {
    /// Closes the session with a peer, by the next datagram of every path that works.
    pub fn dismiss_peer(&mut self, PeerId(id): PeerId) {
        if let Some(session) = self.peers.get_mut(id as usize).and_then(|peer| peer.session.as_mut()) {
            session.close();
        }
    }

    /// Forgets a peer: its session, its keys, what waits for it, and what is yet to be told of it, which would be told of
    /// whoever has its place next.
    pub fn remove_peer(&mut self, now: Time, PeerId(id): PeerId) {
        if let Some(peer) = self.peers.get_mut(id as usize) {
            peer.retire(now, &mut self.labels, &mut self.store, &mut self.drops);
            self.flows.forget(PeerId(id));
            self.leave_hub(PeerId(id));
            self.route_anew();
            self.events.retain(|event| event.peer() != Some(PeerId(id)));
        }
    }

    /// The key of a peer; none where the place is free.
    pub fn key_of(&self, PeerId(id): PeerId) -> Option<PublicKey> {
        let peer = self.peers.get(id as usize)?;
        (!peer.gone).then_some(peer.config.public_key)
    }

    /// A new peer, in the place of one that was removed, or behind the last.
    pub fn add_peer(&mut self, now: Time, config: PeerConfig) -> PeerId {
        let told = InstanceId(self.rng.next_u64());
        let peer = Peer::new(config, &self.identity.public(), told);
        let free = self.peers.iter().position(|peer| peer.gone);
        let place = free.unwrap_or(self.peers.len());
        if place == self.peers.len() {
            self.peers.push(peer)
        } else {
            self.peers[place] = peer
        }
        self.route_anew();
        let id = PeerId(place as u32);
        self.initiate_at(now, id);
        id
    }

    /// Other endpoints and networks of a peer whose keys stay: its session goes on.
    pub fn change_peer(&mut self, now: Time, PeerId(id): PeerId, config: PeerConfig) {
        let Some(peer) = self.peers.get_mut(id as usize) else { return };
        // Aliases are no configuration's.
        let aliases = peer.config.endpoints.iter().filter(|endpoint| Alias::of(endpoint).is_some());
        let endpoints: Vec<_> = config.endpoints.iter().chain(aliases).copied().collect();
        let moved = peer.config.endpoints != endpoints;
        // Keys make the peer: other ones are another peer.
        peer.config = PeerConfig { psk: peer.config.psk.clone(), endpoints, ..config };
        if let Some(session) = &mut peer.session {
            // A peer that moved is at an address of no configuration.
            if moved {
                let of_links = |endpoint| self.links.iter().map(move |link: &Link| link.address_of(endpoint));
                let addresses: Vec<_> = peer.config.endpoints.iter().flat_map(of_links).collect();
                session.keep_endpoints(now, &addresses);
            }
        } else {
            peer.initiate_at = Some(now);
        }
        self.route_anew();
        self.reopen_paths(now);
    }

    /// Another metric of a link, and of the paths on it.
    pub fn set_metric(&mut self, id: LinkId, metric: u16) {
        self.links.iter_mut().filter(|link| link.id == id).for_each(|link| link.metric = metric);
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.set_metric(id, metric);
        }
    }

    /// Other rules for what comes from TUN from now on.
    pub fn set_rules(&mut self, now: Time, rules: Rules) {
        self.rules = rules.following(now, std::mem::take(&mut self.rules));
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.begin_as_told(&self.rules, &[]);
        }
    }

    /// What is asked of the paths of a configured link from now on.
    pub fn set_terms(&mut self, group: LinkGroup, terms: Terms) {
        self.terms.retain(|(known, _)| *known != group);
        self.terms.push((group, terms));
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.set_terms(group, terms);
        }
    }

    /// Keeps peers apart from now on: a packet from one to another is dropped. `own` are the portal's own inner
    /// addresses, which every peer may reach.
    pub fn isolate_peers(&mut self, own: Vec<IpAddr>) {
        (self.isolated, self.own) = (true, own);
        self.route_anew();
    }

    /// Finds anew who is active: when a session begins or ends, or the configuration changes.
    pub(super) fn count_active(&mut self) {
        self.active.clear();
        let active = self.peers.iter().enumerate().filter(|(_, peer)| peer.is_active());
        self.active.extend(active.map(|(index, _)| PeerId(index as u32)));
    }

    /// Forgets a link for good: the paths that we opened on it are closed, and the peers told.
    pub fn remove_link(&mut self, now: Time, id: LinkId) {
        self.links.retain(|link| link.id != id);
        for index in 0..self.peers.len() {
            let of_link = |endpoint: &SocketAddr| Alias::of(endpoint).is_some_and(|alias| alias.link() == id);
            self.peers[index].config.endpoints.retain(|endpoint| !of_link(endpoint));
            if let Some(session) = &mut self.peers[index].session {
                session.on_link_removed(now, id);
            }
            self.settle(now, PeerId(index as u32));
        }
    }

    /// A configured link whose path is down tries all that it has: other endpoints, of either IP version, and sockets
    /// that are not preferred; one whose path works, what would be better. One with aliases keeps a path along each.
    pub(super) fn reopen_paths(&mut self, now: Time) {
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            let falls_back = |link: &Link| self.links.iter().any(|one| one.group == link.group && one.preference > 0);
            let tries = |link: &&Link| {
                let session = peer.session.as_ref();
                session.is_some_and(|session| {
                    let settled =
                        session.hopes_for(link.group, falls_back(link)) && session.best_rank(link.group).is_none();
                    link.transport.has_aliases() || !settled
                })
            };
            let trying: Vec<Link> = self.links.iter().filter(tries).copied().collect();
            trying.iter().for_each(|link| peer.open_paths(now, link, Preferred::MayWork));
            self.settle(now, PeerId(index as u32));
        }
    }

    /// The networks of all peers, and who of them is active.
    pub(super) fn route_anew(&mut self) {
        self.count_active();
        self.routing = std::mem::take(&mut self.routing).emptied();
        if self.isolated && self.peers.len() > 1 {
            self.routing.isolate(self.own.clone());
        }
        for (id, peer) in self.peers.iter().enumerate() {
            peer.config.allowed_ips.iter().for_each(|net| self.routing.insert(*net, PeerId(id as u32)));
        }
        self.route_carriers();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use crate::congestion::Kind;
    use crate::handshake::{Identity, Psk};
    use crate::policy::Tuning;
    use crate::session::Settings;
    use crate::units::Random;
    use crate::wire::{CipherSet, Offer, Protection};

    struct Still;

    impl Random for Still {
        fn fill(&mut self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    fn peer(number: u32, endpoints: &[&str]) -> PeerConfig {
        let mut key = [1; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        PeerConfig {
            public_key: Identity::new(key).public(),
            psk: Psk::default(),
            endpoints: endpoints.iter().map(|text| text.parse().expect("an endpoint")).collect(),
            ranks: Vec::new(),
            allowed_ips: Vec::new(),
        }
    }

    #[test]
    fn peers_that_are_away_are_never_looked_at() {
        let offer =
            Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(true), instance: InstanceId(1) };
        let config = Config {
            identity: Identity::new([9; 32]),
            offer,
            settings: Settings { congestion: Kind::Bbr, max_link_mtu: 1500, tuning: Tuning::default() },
            peers: (0..1000).map(|number| peer(number, &[])).collect(),
        };
        let mut endpoint = Endpoint::new(config, Box::new(Still));
        assert_eq!(endpoint.active, [], "they call, if they want to");
        let called = endpoint.add_peer(Time::ZERO, peer(1000, &["192.0.2.1:1"]));
        assert_eq!(endpoint.active, [called]);
        endpoint.change_peer(Time::ZERO, called, peer(1000, &[]));
        assert_eq!(endpoint.active, []);
    }
}
