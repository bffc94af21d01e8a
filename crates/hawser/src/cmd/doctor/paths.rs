//! Step 3: what the portal says of its peers, paths and links.

use hawser_portal::api::{NAMESAKE_HINT, NameStatus, PathState, PathStatus, PeerStatus, Status};
use hawser_portal::limits::{Cause, LOSS_PCT};

use super::finding::Finding;
use crate::cmd::status::refusal;

/// A round trip from which on the queue of a line is too long, in ms: more than a geostationary satellite's.
const SLOW_MS: f64 = 800.0;
/// Bytes of a datagram that IPv6 asks of every link, less the largest headers (RFC 8200 section 5).
const SMALL_MTU: u16 = 1232;
/// Drops of a kind from which on they are no accident.
const MANY: u64 = 20;

/// Whether a link carries packets.
pub fn carries(status: &Status, link: &str) -> bool {
    let paths = status.peers.iter().flat_map(|peer| &peer.paths);
    paths.filter(|path| path.name == link).any(|path| path.state.works())
}

/// All of it.
pub fn look(status: &Status, findings: &mut Vec<Finding>) {
    findings.extend(status.etcd.as_ref().and_then(|etcd| etcd.namesake.as_ref()).map(|other| {
        let text = format!("this portal is not among its hub's members in etcd: {other}");
        Finding::fault("name-taken", "", text, NAMESAKE_HINT)
    }));
    for peer in &status.peers {
        findings.extend(refused(peer));
        findings.extend(other_version(peer, &status.protocol));
        findings.extend(peer.paths.iter().filter(|path| path.state == PathState::Active).filter_map(degraded));
        findings.extend(peer.paths.iter().filter(|path| path.without_gso).map(without_gso));
        findings.extend(peer.paths.iter().filter_map(fallen_back));
        findings.extend(peer.names.iter().filter_map(|name| unresolved(peer, name)));
        findings.extend(limit(peer));
    }
    for link in &status.links {
        if link.data_cap.is_some_and(|cap| cap.reached) {
            let text =
                format!("link {}: its data cap is reached, and it carries nothing until its month ends", link.name);
            findings.push(Finding::fault(
                "data-cap",
                &link.name,
                text,
                "raise `data_cap`, or wait for `data_cap_reset`",
            ));
        }
    }
    findings.extend(DROPS.iter().filter_map(|(reason, text, cure)| {
        let count = status.drops.get(*reason).copied().unwrap_or(0);
        let said = format!("{count} packets {text}");
        (count >= MANY).then(|| Finding::notice("drops", *reason, said, *cure))
    }));
}

/// Drops that a configuration brings, with what mends it.
const DROPS: [(&str, &str, &str); 3] = [
    (
        "no_peer",
        "were for nobody: no peer's `allowed_ips` hold their destination",
        "add the network to the peer's `allowed_ips`",
    ),
    (
        "wrong_source",
        "came from a peer that may not send from their address",
        "add the network to that peer's `allowed_ips`, or have it masquerade: [gateway] masquerade = true",
    ),
    ("between_peers", "were from one peer to another, which may not talk to each other", "[portal] relay = true"),
];

fn refused(peer: &PeerStatus) -> Option<Finding> {
    let (name, word) = (&peer.name, peer.refused.as_deref()?);
    let [why, cure] = refusal(word)?;
    let id = if word == "unknown_key" { "unknown-key" } else { "preshared-key" };
    Some(Finding::fault(id, name, format!("peer {name} answers, and {why}"), cure))
}

fn fallen_back(path: &PathStatus) -> Option<Finding> {
    let (name, best) = (&path.name, path.instead_of.as_ref().filter(|_| path.state == PathState::Active)?);
    let text = format!("link {name} goes by {}: {best} does not pass", path.transport);
    let cure = format!("let {best} pass on the way; the link goes back to it by itself");
    Some(Finding::notice("fallen-back", name, text, cure))
}

/// A name without an answer; without addresses of before the peer is not reached by it.
fn unresolved(peer: &PeerStatus, name: &NameStatus) -> Option<Finding> {
    let (NameStatus { endpoint, addresses, error }, peer) = (name, &peer.name);
    let text = format!("peer {peer}: {endpoint} is not resolved: {}", error.as_ref()?);
    let cure = "is the name right? has this host DNS? getent ahosts NAME; cat /etc/resolv.conf";
    Some(match addresses.is_empty() {
        true => Finding::fault("name-unknown", peer, text, cure),
        false => Finding::notice("name-unknown", peer, text, cure),
    })
}

/// What limits what is sent; faults and notices may say the same of a link.
fn limit(peer: &PeerStatus) -> Option<Finding> {
    let limit = peer.limit.as_ref().filter(|limit| limit.cause != Cause::Nothing && limit.rate_mbps > 0.0)?;
    let text = format!("what limits what is sent to {}: {}", peer.name, limit.text);
    if limit.cause == Cause::Processor {
        let cure = "what else takes it? top; AES in hardware is the cheapest cipher; a faster processor carries more";
        return Some(Finding::notice("processor", &peer.name, text, cure));
    }
    Some(Finding::info("limit", &peer.name, text))
}

fn other_version(peer: &PeerStatus, ours: &str) -> Option<Finding> {
    let theirs = peer.protocol.as_deref().filter(|theirs| *theirs != ours)?;
    let text =
        format!("peer {} speaks protocol {theirs}, this portal {ours}: what one alone knows is not used", peer.name);
    Some(Finding::notice("other-version", &peer.name, text, "install the same version of hawser on both sides"))
}

fn degraded(path: &PathStatus) -> Option<Finding> {
    let name = &path.name;
    if path.loss_pct >= LOSS_PCT {
        let text = format!("link {name} loses {:.0} % of its packets", path.loss_pct);
        return Some(Finding::notice(
            "loss",
            name,
            text,
            "look at its signal or line; fec = \"auto\" in a [[rule]] repairs calls",
        ));
    }
    if let Some(rtt) = path.rtt_ms.filter(|rtt| *rtt >= SLOW_MS) {
        let text = format!("link {name} has a round trip of {rtt:.0} ms");
        return Some(Finding::notice(
            "slow",
            name,
            text,
            "a queue on the way is too long: `max_rate` a little below the line's keeps it empty",
        ));
    }
    if path.mtu > 0 && path.mtu < SMALL_MTU {
        let text = format!("link {name} carries datagrams of {} bytes at most", path.mtu);
        return Some(Finding::notice(
            "small-mtu",
            name,
            text,
            "another tunnel is on the way, or an interface with a small MTU: ip link",
        ));
    }
    None
}

fn without_gso(path: &PathStatus) -> Finding {
    let text = format!("link {} goes without UDP GSO: trains do not arrive, single datagrams do", path.name);
    Finding::notice(
        "gso",
        &path.name,
        text,
        "a NAT on this host changes ports: leave Hawser's port out of masquerade … random",
    )
}
