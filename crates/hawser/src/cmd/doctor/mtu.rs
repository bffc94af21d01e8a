//! Step 3, of a path that carries less than its interface: whether larger packets vanish on the way without a word.
//!
//! The portal searches what passes, and goes by it (RFC 8899). Others on that link, who wait for ICMP, hang (RFC 2923
//! section 2.1).
//!
//! 1. Echo requests of common sizes go to the endpoint by the link. A router that says what is too big makes it no
//!    black hole.
//! 2. The largest that is answered is what passes, and one that is larger vanishes.
//! 3. Where the endpoint answers none at all, or some that pass are lost, what the portal found counts, once it had the
//!    time to search.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use hawser_net::netcfg::{NetConfigError, Rtnl};
use hawser_portal::api::{Condition, PathStatus, Status};

use super::by_link::ByLink;
use super::finding::Finding;
use super::links::OneLink;
use crate::cmd::ping::{self, Sizes};

/// Sizes of IP packets: the least that every host accepts (RFC 791), IPv6's least, and those of common tunnels and
/// lines.
const SIZES: [u16; 9] = [576, 1000, 1280, 1400, 1420, 1452, 1472, 1480, 1492];
/// The portal takes no link for larger, in bytes.
const LARGEST: u16 = 1500;
/// How long requests are waited for: three times what a satellite needs.
const PATIENCE: Duration = Duration::from_secs(2);
/// The portal's search is over: five sizes, each three times for a second (RFC 8899 section 5.1.1).
const SEARCHED_S: f64 = 15.0;

/// A path that carries less than its interface does. Plain data.
#[derive(Clone, Debug)]
struct Narrow {
    link: String,
    by: ByLink,
    endpoint: SocketAddr,
    /// Bytes of IP packets: what it carries, and what its interface does.
    carries: u16,
    largest: u16,
    searched: bool,
}

/// All links at once.
pub async fn look(rtnl: &Rtnl, links: &[OneLink], status: &Status) -> Result<Vec<Finding>, NetConfigError> {
    let mut narrow = Vec::new();
    for link in links {
        let Some(info) = rtnl.link_named(link.interface.as_str()).await? else { continue };
        let largest = u16::try_from(info.mtu.0).map_or(LARGEST, |mtu| mtu.min(LARGEST));
        let paths = status.peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.name == link.name.as_str());
        narrow.extend(paths.filter_map(|path| narrower(link, path, largest)).next());
    }
    Ok(thread::scope(|scope| {
        let asked: Vec<_> = narrow.iter().map(|narrow| scope.spawn(|| ask(narrow))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect()
    }))
}

/// The path, if its datagrams are smaller than its interface's packets have room for. A stream's say nothing.
fn narrower(link: &OneLink, path: &PathStatus, largest: u16) -> Option<Narrow> {
    let endpoint: SocketAddr = path.endpoint.as_ref()?.parse().ok()?;
    let headers = match (path.transport.as_str(), endpoint.is_ipv4()) {
        ("udp", true) => 28,
        ("udp", false) => 48,
        ("ip", true) => 20,
        ("ip", false) => 40,
        _ => return None,
    };
    let carries = path.mtu.saturating_add(headers);
    let searched = path.live.condition == Condition::Well && path.live.condition_s >= SEARCHED_S;
    let (link, by) = (link.name.to_string(), link.by.clone());
    (path.state.works() && path.mtu > 0 && carries < largest).then_some(Narrow {
        link,
        by,
        endpoint,
        carries,
        largest,
        searched,
    })
}

/// Step 1.
fn ask(narrow: &Narrow) -> Option<Finding> {
    let mut sizes: Vec<u16> = SIZES.into_iter().filter(|size| *size < narrow.largest).collect();
    sizes.push(narrow.largest);
    let socket = narrow.by.icmp(narrow.endpoint.ip());
    let answered = socket.and_then(|socket| ping::sizes_answered(socket, &sizes, PATIENCE));
    match answered {
        Ok(answered) => judge(narrow, &answered),
        // Who could not ask knows nothing: the page's doctor may not.
        Err(error) => {
            eprintln!("warning: link {}: ask which sizes pass: {error}", narrow.link);
            None
        }
    }
}

/// Steps 2 and 3.
fn judge(narrow: &Narrow, sizes: &Sizes) -> Option<Finding> {
    let Narrow { link, by: ByLink { interface, .. }, carries, largest, searched, .. } = narrow;
    let passes = match sizes.answered.last() {
        _ if sizes.told => return None,
        Some(passes) if passes == largest || !sizes.lossy => passes,
        _ if *searched => carries,
        _ => return None,
    };
    (passes < largest).then(|| {
        let text = format!(
            "link {link}: packets of more than about {passes} bytes vanish on the way, and nobody says so; {interface} sends \
             up to {largest}"
        );
        let cure = format!(
            "let ICMP \"fragmentation needed\" pass on the way; or: sudo ip link set {interface} mtu {passes}. The bond goes by \
             what passes"
        );
        Finding::notice("mtu-black-hole", link, text, cure)
    })
}

#[cfg(test)]
mod tests {
    use hawser_net::netcfg::Mark;

    use super::*;

    #[test]
    fn a_black_hole_is_told_from_who_says_what_is_too_big_who_answers_nothing_and_who_loses_some() {
        let narrow = |searched| Narrow {
            link: "dsl".into(),
            by: ByLink { interface: "eth0".into(), mark: Mark(0) },
            endpoint: "198.51.100.7:4920".parse().expect("an address"),
            carries: 1280,
            largest: 1500,
            searched,
        };
        let sizes = |answered: &[u16], told| Sizes { answered: answered.iter().copied().collect(), told, lossy: false };
        let lossy = |answered: &[u16]| Sizes { lossy: true, ..sizes(answered, false) };
        let table = [
            ("larger ones vanish", false, sizes(&[576, 1280, 1400], false), Some("more than about 1400 bytes")),
            ("all pass: the portal still searches", false, sizes(&[576, 1280, 1500], false), None),
            ("a router says so", true, sizes(&[576, 1280], true), None),
            ("no answers, and a search that is over", true, sizes(&[], false), Some("more than about 1280 bytes")),
            ("no answers, and a path that is new", false, sizes(&[], false), None),
            ("the largest may have been lost", false, lossy(&[576, 1280, 1400]), None),
            ("the same, and a search that is over", true, lossy(&[576, 1400]), Some("more than about 1280 bytes")),
            ("some were lost, and the largest passes", true, lossy(&[576, 1500]), None),
        ];
        for (case, searched, sizes, expect) in table {
            let found = judge(&narrow(searched), &sizes);
            assert_eq!(found.is_some(), expect.is_some(), "{case}");
            assert!(found.is_none_or(|found| expect.is_some_and(|words| found.text.contains(words))), "{case}");
        }
    }
}
