//! Cryptokey routing: which peer an inner address belongs to.
//!
//! Longest prefix over all peers' `allowed_ips`, both ways: the destination of a packet from TUN
//! names the peer it goes to, the source of a packet from a peer must name that same peer.

use crate::units::PeerId;
use ip_network_table::IpNetworkTable;
use ipnet::IpNet;
use std::net::IpAddr;

/// Prefixes to peers. Empty at first; the endpoint owns it. The last answer is kept, because
/// packets come in trains.
#[derive(Default)]
pub struct Routing {
    table: IpNetworkTable<PeerId>,
    last: Option<(IpAddr, Option<PeerId>)>,
}

impl Routing {
    /// Gives `net` to `peer`, taking it from whoever had exactly this prefix.
    pub fn insert(&mut self, net: IpNet, peer: PeerId) {
        let network = ip_network::IpNetwork::new_truncate(net.addr(), net.prefix_len());
        if let Ok(network) = network {
            self.table.insert(network, peer);
            self.last = None;
        }
    }

    /// The peer whose longest prefix holds `address`.
    pub fn peer_of(&mut self, address: IpAddr) -> Option<PeerId> {
        if let Some((known, peer)) = self.last
            && known == address
        {
            return peer;
        }
        let peer = self.table.longest_match(address).map(|(_, &peer)| peer);
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
}
