//! Cryptokey routing: which peer an inner address belongs to.
//!
//! Longest prefix over all peers' `allowed_ips`, both ways: the destination of a packet from TUN
//! names the peer it goes to, the source of a packet from a peer must name that same peer.
//!
//! Peers are isolated unless told otherwise. Where the system forwards, a packet from one peer to another leaves by TUN
//! and comes back, so that it is looked at twice: when it comes from its peer, and when it comes from TUN. A default
//! route names nobody in particular (`0.0.0.0/0` holds the portal's own networks too), and so counts neither as the
//! destination the first time, nor as the source the second: no two peers have the same, and one of the two looks finds
//! it.
//!
//! Of a hub (`endpoint/hub.rs`): both members of a pair may send what is of the one that the networks are given to, and
//! the networks of a peer that is not served are nobody's. Both show only where a packet would be dropped, so that
//! nobody else pays for it.

use super::hub::Standing;
use crate::drops::DropReason;
use crate::units::PeerId;
use ipnet::IpNet;
use prefix_trie::joint::JointPrefixMap;
use std::net::IpAddr;

/// Prefixes to peers. Empty at first; the endpoint owns it. The last answer is kept, because
/// packets come in trains.
#[derive(Default)]
pub struct Routing {
    table: JointPrefixMap<IpNet, PeerId>,
    last: Option<(IpAddr, Option<PeerId>)>,
    /// Peers may not talk to each other, and there are several.
    isolates: bool,
    /// The portal's own inner addresses, which may lie in a peer's network.
    own: Vec<IpAddr>,
    /// The last question whether a packet is for another peer: who sends it, where to, the answer.
    last_foreign: Option<(PeerId, IpAddr, bool)>,
    /// The same of whether it comes from another.
    last_stranger: Option<(PeerId, IpAddr, bool)>,
    /// Two peers that are members of one hub.
    pairs: Vec<[PeerId; 2]>,
    /// By peer: whether it is served. Empty where this portal is no member.
    standings: Vec<Standing>,
}

impl Routing {
    /// Gives `net` to `peer`, taking it from whoever had exactly this prefix.
    pub fn insert(&mut self, net: IpNet, peer: PeerId) {
        self.table.insert(net.trunc(), peer);
        self.last = None;
    }

    /// The same without networks; whether peers are kept apart is to be said anew.
    pub fn emptied(self) -> Self {
        Routing { pairs: self.pairs, standings: self.standings, ..Routing::default() }
    }

    /// Two peers are members of one hub from now on.
    pub fn pair(&mut self, members: [PeerId; 2]) {
        self.pairs.retain(|pair| !pair.iter().any(|peer| members.contains(peer)));
        self.pairs.push(members);
        self.forget();
    }

    /// The other member of a peer's hub.
    pub fn twin(&self, peer: PeerId) -> Option<PeerId> {
        let pair = self.pairs.iter().find(|pair| pair.contains(&peer))?;
        pair.iter().copied().find(|member| *member != peer)
    }

    /// A peer is of no hub any more.
    pub fn leave_hub(&mut self, peer: PeerId) {
        self.pairs.retain(|pair| !pair.contains(&peer));
        if self.standing(peer) != Standing::Served {
            self.set_standing(peer, Standing::Served);
        }
    }

    /// Whether a peer is served from now on.
    pub fn set_standing(&mut self, PeerId(peer): PeerId, standing: Standing) {
        let place = peer as usize;
        if self.standings.len() <= place {
            self.standings.resize(place + 1, Standing::Served);
        }
        self.standings[place] = standing;
        self.forget();
    }

    /// The peer whose longest prefix holds `address`, where it is not served.
    #[cold]
    pub fn unserved(&self, address: IpAddr) -> Option<(PeerId, Standing)> {
        // Without a hub there is none.
        let (_, &peer) = self.standings.first().and_then(|_| self.table.get_lpm(&address.into()))?;
        Some((peer, self.standing(peer))).filter(|(_, standing)| *standing != Standing::Served)
    }

    /// Whether a peer is served.
    pub fn standing(&self, PeerId(peer): PeerId) -> Standing {
        self.standings.get(peer as usize).copied().unwrap_or_default()
    }

    /// Whether what comes from `peer` may be of `owner`'s networks though they are not its own: they are members of one
    /// hub.
    #[cold]
    pub fn are_twins(&self, peer: PeerId, owner: Option<PeerId>) -> bool {
        owner.is_some() && self.twin(peer) == owner
    }

    fn forget(&mut self) {
        (self.last, self.last_foreign, self.last_stranger) = (None, None, None);
    }

    /// Keeps peers apart; `own` are the portal's own inner addresses.
    pub fn isolate(&mut self, own: Vec<IpAddr>) {
        (self.isolates, self.own) = (true, own);
    }

    /// Whether a packet that came from `peer` is for another, and may not be.
    pub fn is_for_another(&mut self, peer: PeerId, destination: IpAddr) -> bool {
        if !self.isolates {
            return false;
        }
        match self.last_foreign {
            Some((who, address, answer)) if (who, address) == (peer, destination) => answer,
            _ => {
                let answer = self.belongs_to_another(peer, destination);
                self.last_foreign = Some((peer, destination, answer));
                answer
            }
        }
    }

    /// Whose a packet from TUN is to be.
    pub fn peer_for(&mut self, source: IpAddr, destination: IpAddr) -> Result<PeerId, DropReason> {
        match self.peer_of(destination) {
            Some(peer) if self.is_from_another(peer, source) => Err(DropReason::BetweenPeers),
            other => other.ok_or(DropReason::NoPeer),
        }
    }

    /// Whether a packet for `peer` that came from TUN is another peer's, and may not be.
    pub fn is_from_another(&mut self, peer: PeerId, source: IpAddr) -> bool {
        if !self.isolates {
            return false;
        }
        match self.last_stranger {
            Some((who, address, answer)) if (who, address) == (peer, source) => answer,
            _ => {
                let answer = self.belongs_to_another(peer, source);
                self.last_stranger = Some((peer, source, answer));
                answer
            }
        }
    }

    /// Whether a network, not a default route, of another peer holds `address`.
    pub fn belongs_to_another(&self, peer: PeerId, address: IpAddr) -> bool {
        let owner = self.table.get_lpm(&address.into()).filter(|(network, _)| network.prefix_len() > 0);
        let another = |owner: PeerId| owner != peer && !self.are_twins(peer, Some(owner));
        owner.is_some_and(|(_, owner)| another(*owner)) && !self.own.contains(&address)
    }

    /// The peer whose longest prefix holds `address`.
    pub fn peer_of(&mut self, address: IpAddr) -> Option<PeerId> {
        if let Some((known, peer)) = self.last
            && known == address
        {
            return peer;
        }
        let found = self.table.get_lpm(&address.into()).map(|(_, &peer)| peer);
        let peer = found.filter(|peer| self.standing(*peer) == Standing::Served);
        self.last = Some((address, peer));
        peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let mut routing = Routing::default();
        for (net, peer) in [("0.0.0.0/0", 0), ("10.0.0.0/8", 1), ("10.1.2.0/24", 2), ("fd00::/8", 3)] {
            routing.insert(net.parse().expect("a prefix"), PeerId(peer));
        }
        let cases = [
            ("192.0.2.1", Some(0)),
            ("10.9.9.9", Some(1)),
            ("10.1.2.3", Some(2)),
            ("fd00::1", Some(3)),
            ("2001:db8::1", None),
        ];
        for (address, peer) in cases {
            for _ in 0..2 {
                assert_eq!(routing.peer_of(address.parse().expect("an address")), peer.map(PeerId), "{address}");
            }
        }
    }

    #[test]
    fn two_looks_keep_peers_apart_and_nobody_else() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        // A hub that is the way to everywhere, and two branches; our own address lies in the hub's network.
        let nets = [("0.0.0.0/0", 0), ("10.77.0.0/24", 0), ("10.5.0.0/16", 1), ("10.6.0.0/16", 2)];
        let mut routing = Routing::default();
        nets.iter().for_each(|(net, peer)| routing.insert(net.parse().expect("a prefix"), PeerId(*peer)));
        assert!(!routing.is_for_another(PeerId(1), ip("10.6.0.1")), "nobody asked for it");
        routing.isolate(vec![ip("10.77.0.2")]);
        // Who sends, source, destination, who owns the destination: dropped when it comes, when it comes back.
        let table = [
            (1, "10.5.0.1", "10.6.0.1", 2, [true, true], "branch to branch"),
            (0, "192.0.2.1", "10.6.0.1", 2, [true, false], "the world by the hub to a branch"),
            (1, "10.5.0.1", "192.0.2.1", 0, [false, true], "a branch to the world by the hub"),
            (1, "10.5.0.1", "10.77.0.1", 0, [true, true], "a branch to the hub itself"),
            (1, "10.5.0.1", "10.77.0.2", 0, [false, true], "a branch to us: the system does not send it back"),
            (1, "10.5.0.1", "10.5.9.9", 1, [false, false], "within a branch"),
        ];
        for (from, source, destination, to, dropped, what) in table {
            for _ in 0..2 {
                let looks = [
                    routing.is_for_another(PeerId(from), ip(destination)),
                    routing.is_from_another(PeerId(to), ip(source)),
                ];
                assert_eq!(looks, dropped, "{what}");
            }
        }
        for own in ["192.168.8.5", "10.77.0.2"] {
            assert!(!routing.is_from_another(PeerId(2), ip(own)), "our own {own} to a branch");
        }
    }
}
