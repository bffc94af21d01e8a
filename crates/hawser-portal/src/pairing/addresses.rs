//! Inner addresses for the next peer: the first that nobody has, in each network of the TUN device.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_config::{Config, PeerName};
use ipnet::IpNet;

/// Hosts that are tried in a network: no portal has more peers.
const HOSTS_TRIED: u32 = 65_536;

/// A network of the TUN device is full. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("find an inner address: {0} has none left")]
pub struct NoRoom(pub IpNet);

/// Which addresses of a network are looked at first: every `of`th, from the `nth` on. Two members of a hub that promise
/// an address at the same time promise different ones. All by default; plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// From 0 on.
    pub nth: usize,
    /// At least 1.
    pub of: usize,
}

impl Turn {
    /// That of a member of this name, by its place among the names of all.
    pub fn among<'n>(name: &PeerName, others: impl IntoIterator<Item = &'n PeerName>) -> Self {
        let mut turn = Self::default();
        for other in others {
            (turn.nth, turn.of) = (turn.nth + usize::from(other < name), turn.of + 1);
        }
        turn
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self { nth: 0, of: 1 }
    }
}

/// Addresses for one more peer, with the prefix of their networks; `others` are networks of peers that the
/// configuration does not have.
///
/// # Errors
/// [`NoRoom`].
pub fn inner_addresses(config: &Config, others: &[IpNet], turn: Turn) -> Result<Vec<IpNet>, NoRoom> {
    let own: Vec<IpAddr> = config.tun.addresses.iter().map(IpNet::addr).collect();
    let allowed = config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    let taken: Vec<&IpNet> = allowed.chain(others).collect();
    // A peer that takes everything has no claim to the device's own network.
    let is_free = |address: &IpAddr| {
        !own.contains(address) && !taken.iter().any(|net| net.prefix_len() > 0 && net.contains(address))
    };
    let free = |net: &IpNet| {
        let in_turn = hosts(*net).skip(turn.nth).step_by(turn.of).find(is_free);
        let free = in_turn.or_else(|| hosts(*net).find(is_free));
        free.map(|address| with_prefix(address, *net)).ok_or(NoRoom(*net))
    };
    config.tun.addresses.iter().map(free).collect()
}

/// The addresses of a network, from the second on: the first is the network's own, or every router's (RFC 4291
/// section 2.6.1).
fn hosts(net: IpNet) -> impl Iterator<Item = IpAddr> {
    let nth = move |n: u32| match net.network() {
        IpAddr::V4(first) => first.to_bits().checked_add(n).map(Ipv4Addr::from_bits).map(IpAddr::from),
        IpAddr::V6(first) => first.to_bits().checked_add(n.into()).map(Ipv6Addr::from_bits).map(IpAddr::from),
    };
    // The last is the broadcast address in IPv4; nobody misses one in IPv6.
    (1..HOSTS_TRIED).map_while(nth).take_while(move |address| net.contains(address) && *address != net.broadcast())
}

fn with_prefix(address: IpAddr, net: IpNet) -> IpNet {
    IpNet::new(address, net.prefix_len()).expect("the length of a network of the same IP version")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(addresses: &str, allowed: &str) -> Result<Vec<String>, NoRoom> {
        next_beside(addresses, allowed, &[], Turn::default())
    }

    fn next_beside(addresses: &str, allowed: &str, others: &[IpNet], turn: Turn) -> Result<Vec<String>, NoRoom> {
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [{addresses}]\n[[peer]]\n\
             name = \"home\"\npublic_key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\nallowed_ips = [{allowed}]\n"
        );
        let config = Config::parse(&text, "test.toml").expect("a right configuration");
        Ok(inner_addresses(&config, others, turn)?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_first_free_address_of_each_network_is_given() {
        let both = "\"10.77.0.1/24\", \"fd77::1/64\"";
        let table = [
            ("\"10.77.0.2/32\", \"fd77::2/128\"", ["10.77.0.3/24", "fd77::3/64"]),
            ("\"10.77.0.3/32\", \"192.168.8.0/24\"", ["10.77.0.2/24", "fd77::2/64"]),
            ("\"10.77.0.0/29\", \"0.0.0.0/0\"", ["10.77.0.8/24", "fd77::2/64"]),
        ];
        for (allowed, expect) in table {
            assert_eq!(next(both, allowed).expect("there is room"), expect, "{allowed}");
        }
        let others = ["10.77.0.3/32", "fd77::/126"].map(|net| net.parse().expect("a net"));
        let beside = next_beside(both, "\"10.77.0.2/32\"", &others, Turn::default()).expect("there is room");
        assert_eq!(beside, ["10.77.0.4/24", "fd77::4/64"], "peers that the configuration does not have");
        let full = next("\"10.77.0.1/30\"", "\"10.77.0.2/32\"").expect_err("it is full");
        assert_eq!(full.to_string(), "find an inner address: 10.77.0.1/30 has none left");
    }

    #[test]
    fn each_member_has_a_turn_of_its_own_by_its_name() {
        let names = ["basel", "geneva", "zurich"].map(|name| PeerName::parse(name).expect("a name"));
        for (nth, name) in names.iter().enumerate() {
            let others = names.iter().filter(|other| *other != name);
            assert_eq!(Turn::among(name, others), Turn { nth, of: 3 });
        }
    }

    #[test]
    fn members_of_a_hub_promise_different_addresses_while_there_are_enough() {
        let given = |net: &str, nth| next_beside(net, "\"10.77.0.2/32\"", &[], Turn { nth, of: 3 });
        let of = |net| [0, 1, 2].map(|nth| given(net, nth).expect("there is room").concat());
        assert_eq!(of("\"10.77.0.1/24\""), ["10.77.0.4/24", "10.77.0.5/24", "10.77.0.3/24"]);
        assert_eq!(of("\"10.77.0.1/29\""), ["10.77.0.4/29", "10.77.0.5/29", "10.77.0.3/29"]);
        let one_is_left = next_beside("\"10.77.0.1/30\"", "\"10.0.0.0/32\"", &[], Turn { nth: 2, of: 3 });
        assert_eq!(one_is_left.expect("there is room"), ["10.77.0.2/30"], "another's, before none");
    }
}
