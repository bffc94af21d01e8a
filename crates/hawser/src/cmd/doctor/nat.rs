//! Beside the other steps: whether a NAT forgets a flow that is quiet for a few seconds, which a quiet path is between
//! its keepalives.
//!
//! 1. `begin`: for each link with a path by UDP from a private address, three sockets ask the portal there (`probe`),
//!    and again once NATs take a flow for a stream (conntrack of Linux: two seconds).
//! 2. Two of them are silent, each for its time, and ask once more: seen at another port, their mapping was forgotten
//!    meanwhile.
//! 3. The third is never silent. Where it is seen at another port, too, it was not the silence, and nothing is known.
//!
//! A NAT that gives the same port again cannot be told from one that remembers. That of this host's own firewall is
//! looked up.

use std::net::{IpAddr, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hawser_config::PublicKey;
use hawser_net::netcfg::{NetConfigError, Rtnl, SysctlKey};
use hawser_portal::api::Status;
use hawser_portal::probe::{Probe, Seen};

use super::by_link::ByLink;
use super::finding::Finding;
use super::links::OneLink;

/// From then on a flow that was answered is a stream for conntrack, with a margin.
const STREAM: Duration = Duration::from_millis(2_200);
/// The silences, ascending. What is longer would keep the doctor for too long.
const SILENCES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(7)];
/// The one that is never silent asks this often.
const AWAKE: Duration = Duration::from_secs(1);
/// No silence ends later after the beginning: the doctor is done within 15 s.
const LONGEST: Duration = Duration::from_millis(11_500);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// A path of a quiet bond says something this often, in seconds (docs/wire.md).
const KEEPALIVE_S: u64 = 29;
/// How long this host's conntrack remembers a stream, and how many flows it knows: none where nothing asks it to look.
const REMEMBERED: &str = "net/netfilter/nf_conntrack_udp_timeout_stream";
const KNOWN: &str = "net/netfilter/nf_conntrack_count";

/// What is asked of a link. Plain data.
struct Question {
    link: String,
    by: ByLink,
    endpoint: SocketAddr,
    key: PublicKey,
}

/// Questions that are under way. Begun once; whoever began them waits for them.
pub struct Asked(Vec<JoinHandle<Option<Finding>>>);

/// Step 1 of links that work and may be behind a NAT.
pub async fn begin(rtnl: &Rtnl, links: &[OneLink], status: &Status) -> Result<Asked, NetConfigError> {
    let mut asked = Vec::new();
    for link in links {
        let addresses = rtnl.interface_addresses(link.interface.as_str()).await?.unwrap_or_default();
        if !addresses.iter().any(|one| is_private(one.address.addr())) {
            continue;
        }
        let paths = status.peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.name == link.name.as_str());
        let works = paths.filter(|path| path.transport == "udp" && path.state.works());
        let leads = works.filter_map(|path| path.endpoint.as_ref()?.parse().ok()).find(SocketAddr::is_ipv4);
        let keys = || link.endpoints.iter().zip(&link.keys);
        let Some((endpoint, key)) = leads.and_then(|to| keys().find(|(endpoint, _)| **endpoint == to)) else {
            continue;
        };
        let (name, by) = (link.name.to_string(), link.by.clone());
        let question = Question { link: name, by, endpoint: *endpoint, key: *key };
        asked.push(thread::spawn(move || ask(&question)));
    }
    Ok(Asked(asked))
}

impl Asked {
    /// What they found, once they are done.
    pub fn wait(self) -> impl Iterator<Item = Finding> {
        self.0.into_iter().filter_map(|asked| asked.join().ok().flatten())
    }
}

/// Addresses that no provider routes (RFC 1918, RFC 6598).
fn is_private(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    address.is_private() || address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64
}

fn ask(question: &Question) -> Option<Finding> {
    let start = Instant::now();
    let open = || Probe::by(question.by.udp(question.endpoint).ok()?, &question.key).ok();
    let (mut awake, mut silent) = (open()?, [open()?, open()?]);
    // Whom nothing answers now is not answered later either.
    awake.ask(PATIENCE)?;
    for probe in &mut silent {
        probe.ask(PATIENCE)?;
    }
    thread::sleep(STREAM);
    let stays = awake.ask(PATIENCE)?;
    let before = silent.each_mut().map(|probe| probe.ask(PATIENCE));
    let quiet_since = Instant::now();
    for ((probe, before), silence) in silent.iter_mut().zip(before).zip(SILENCES) {
        let left = silence.saturating_sub(quiet_since.elapsed());
        if start.elapsed() + left > LONGEST || !stays_for(&mut awake, stays, left) {
            return None;
        }
        let after = probe.ask(PATIENCE)?;
        if after != before? {
            return stays_for(&mut awake, stays, Duration::ZERO).then(|| forgets(&question.link, silence));
        }
    }
    None
}

/// Step 3: whether the socket that is never silent is seen as before for that time.
fn stays_for(awake: &mut Probe, before: Seen, time: Duration) -> bool {
    let start = Instant::now();
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        thread::sleep(left.min(AWAKE));
        if awake.ask(PATIENCE) != Some(before) {
            return false;
        }
    }
    awake.ask(PATIENCE) == Some(before)
}

fn forgets(link: &str, silence: Duration) -> Finding {
    let text = format!(
        "link {link}: a NAT on the way forgets a flow that is quiet for {} s; a quiet bond says something every {KEEPALIVE_S} s, and \
         what comes for it in between is lost",
        silence.as_secs()
    );
    let cure = format!("raise the UDP timeout of the router there; or in [[link]] \"{link}\": transport = \"tcp\"");
    Finding::notice("nat-memory", link, text, cure)
}

/// The same of this host's own conntrack, which every datagram passes where a firewall here asks for states.
pub fn of_this_host() -> Option<Finding> {
    let number = |key| SysctlKey::new(key).ok()?.read().ok()?.trim().parse::<u64>().ok();
    remembers(number(KNOWN)?, number(REMEMBERED)?)
}

fn remembers(known: u64, seconds: u64) -> Option<Finding> {
    (known > 0 && seconds <= KEEPALIVE_S).then(|| {
        let text = format!(
            "this host's firewall forgets a flow that is quiet for {seconds} s; a quiet bond says something every {KEEPALIVE_S} s"
        );
        Finding::notice("nat-memory", "", text, "sudo sysctl -w net.netfilter.nf_conntrack_udp_timeout_stream=120")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_homes_and_of_carriers_are_behind_a_nat() {
        for (address, expect) in [
            ("192.168.1.2", true),
            ("10.0.0.1", true),
            ("172.16.0.1", true),
            ("100.64.0.1", true),
            ("100.127.255.254", true),
            ("100.128.0.1", false),
            ("198.51.100.7", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_private(address.parse().expect("an address")), expect, "{address}");
        }
    }

    #[test]
    fn a_firewall_of_this_host_that_forgets_within_a_keepalive_is_found_where_it_looks_at_flows() {
        for (known, seconds, expect) in [(3, 120, false), (3, 30, false), (3, 29, true), (3, 5, true), (0, 5, false)] {
            assert_eq!(remembers(known, seconds).is_some(), expect, "{known} flows, {seconds} s");
        }
    }
}
