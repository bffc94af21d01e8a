//! The status for people: a line for the portal, a line for each peer, a table of its paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hawser_net::netcfg::EVERY_NAME;
use hawser_portal::api::{
    DnsStatus, FecStatus, LinkStatus, NameStatus, PathStatus, PeerStatus, RuleStatus, ScionStatus, Status,
};

use super::refusal;
use crate::cmd::table::{Align, aligned, bytes, duration};

/// Of more addresses of a rule than this only the number is told.
const ADDRESSES_SHOWN: usize = 4;
/// Headings of the paths' table. Text columns are flush left, numbers flush right.
const HEADINGS: [(&str, Align); 11] = [
    ("path", Align::Left),
    ("transport", Align::Left),
    ("state", Align::Left),
    ("metric", Align::Right),
    ("rtt", Align::Right),
    ("rate", Align::Right),
    ("loss", Align::Right),
    ("window", Align::Right),
    ("mtu", Align::Right),
    ("received", Align::Right),
    ("sent", Align::Right),
];

/// The whole status as text, lines ended.
pub fn render(status: &Status) -> String {
    let mut text = format!("hawser {}, up {}\n", status.version, duration(status.uptime_s));
    if status.draining {
        text.push_str("draining: its peers go to the hub's other members\n");
    }
    // The usual one needs no word.
    if !matches!(status.scheduler.as_str(), "" | "adaptive") {
        let _ = writeln!(text, "scheduler {}", status.scheduler);
    }
    status.dns.iter().for_each(|dns| text.push_str(&render_dns(dns)));
    status.links.iter().filter_map(terms).for_each(|line| text.push_str(&line));
    status.rules.iter().for_each(|rule| text.push_str(&render_rule(rule)));
    if status.peers.is_empty() {
        text.push_str("no peers\n");
    }
    for peer in &status.peers {
        render_peer(&mut text, peer, &status.protocol);
    }
    let drops: Vec<String> = status.drops.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    if !drops.is_empty() {
        let _ = writeln!(text, "\ndropped: {}", drops.join(", "));
    }
    text
}

/// The name servers that are set, and for which names.
fn render_dns(dns: &DnsStatus) -> String {
    let servers: Vec<String> = dns.servers.iter().map(ToString::to_string).collect();
    let every = dns.domains.iter().any(|domain| domain == EVERY_NAME);
    let names = if every { "every name".to_owned() } else { dns.domains.join(", ") };
    format!("name servers {} for {names}, set by {}\n", servers.join(", "), dns.set_by)
}

/// What is asked of a link, if anything is.
fn terms(link: &LinkStatus) -> Option<String> {
    let weight = (link.weight != 1).then(|| format!("weight {}", link.weight));
    let rate = link.max_rate_mbps.map(|mbps| format!("at most {mbps} Mbit/s"));
    let cap = link.data_cap.map(|cap| {
        let reached = if cap.reached { ", reached: no traffic until the month ends" } else { "" };
        format!("{} of {} this month{reached}", bytes(cap.used_bytes), bytes(cap.cap_bytes))
    });
    let words: Vec<String> = [weight, rate, cap].into_iter().flatten().collect();
    (!words.is_empty()).then(|| format!("link {}: {}\n", link.name, words.join(", ")))
}

/// A line for a rule: what it matches, what it does, and what it did.
fn render_rule(rule: &RuleStatus) -> String {
    let known = if rule.sets.is_empty() { String::new() } else { format!("; {}", render_addresses(&rule.addresses)) };
    if rule.direct {
        return format!("rule {}: past the tunnel{known}\n", rule.matches);
    }
    let shares: Vec<String> = rule.weights.iter().map(|(link, parts)| format!("{link} {parts}")).collect();
    let words = [
        Some(rule.scheduler.clone()),
        (!rule.via.is_empty()).then(|| format!("via {}", rule.via.join(", "))),
        (!shares.is_empty()).then(|| format!("weights {}", shares.join(", "))),
        rule.strict.then(|| "strict".to_owned()),
        (rule.priority != 0).then(|| format!("priority {}", rule.priority)),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let sent: Vec<String> = rule.sent_bytes.iter().map(|(link, sent)| format!("{} by {link}", bytes(*sent))).collect();
    let sent = if sent.is_empty() { "nothing yet".to_owned() } else { sent.join(", ") };
    format!("rule {}: {}; sent {sent}{known}\n", rule.matches, words.join(", "))
}

/// What is known of a rule's domains.
fn render_addresses(addresses: &BTreeMap<String, u64>) -> String {
    match addresses.len() {
        0 => "no address known".to_owned(),
        count if count > ADDRESSES_SHOWN => format!("{count} addresses known"),
        _ => {
            let shown = addresses.iter().map(|(address, left)| format!("{address} for {left} s"));
            shown.collect::<Vec<_>>().join(", ")
        }
    }
}

fn render_peer(text: &mut String, peer: &PeerStatus, ours: &str) {
    let handshake = match peer.handshake_age_s {
        Some(age) => format!("handshake {} ago", duration(age)),
        None => "no handshake yet".to_owned(),
    };
    let (received, sent) = (bytes(peer.rx_bytes), bytes(peer.tx_bytes));
    let _ = writeln!(text, "\npeer {}: {handshake}, received {received}, sent {sent}", peer.name);
    if let Some(hub) = &peer.hub {
        let _ = writeln!(text, "  {} in epoch {} for {}", hub.role, hub.epoch, duration(hub.since_s));
    }
    if let Some([why, cure]) = peer.refused.as_deref().and_then(refusal) {
        let _ = writeln!(text, "  it answers, and {why}: {cure}");
    }
    if let Some(theirs) = peer.protocol.as_deref().filter(|theirs| *theirs != ours) {
        let _ =
            writeln!(text, "  speaks protocol {theirs}, this portal {ours}: what one of them alone knows is not used");
    }
    if peer.paths.is_empty() {
        text.push_str("  no paths\n");
        return;
    }
    let mut rows = vec![HEADINGS.map(|(heading, _)| heading.to_owned())];
    rows.extend(peer.paths.iter().map(cells));
    aligned(text, HEADINGS.map(|(_, align)| align), &rows);
    render_ways(text, &peer.paths);
    render_scion(text, &peer.paths);
    render_gso(text, &peer.paths);
    render_names(text, &peer.names);
    render_fec(text, &peer.fec);
    if let Some(limit) = &peer.limit {
        let _ = writeln!(text, "  what limits what is sent: {}", limit.text);
    }
}

/// A line for each path: by which interface and where to, and why it carries nothing.
fn render_ways(text: &mut String, paths: &[PathStatus]) {
    for PathStatus { name, interface, endpoint, reason, instead_of, .. } in paths {
        let by = interface.iter().map(|interface| format!(" by {interface}"));
        let to = endpoint.iter().map(|endpoint| format!(" to {endpoint}"));
        let instead = instead_of.iter().map(|best| format!(", as {best} does not pass"));
        let way: String = by.chain(to).chain(instead).collect();
        let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        if !way.is_empty() || !why.is_empty() {
            let _ = writeln!(text, "  {name}{way}{why}");
        }
    }
}

/// A line for each SCION path, in the order of the table.
fn render_scion(text: &mut String, paths: &[PathStatus]) {
    for PathStatus { name, scion, .. } in paths {
        let Some(ScionStatus { endpoint, path, hops, mtu }) = scion else { continue };
        let path = if path.is_empty() { "within the AS" } else { path };
        let _ = writeln!(text, "  {name} to {endpoint}: {hops} hops, mtu {mtu}: {path}");
    }
}

/// A line for each path that goes without trains.
fn render_gso(text: &mut String, paths: &[PathStatus]) {
    for PathStatus { name, .. } in paths.iter().filter(|path| path.without_gso) {
        let _ = writeln!(text, "  {name} sends without udp gso: trains do not arrive, single datagrams do");
    }
}

/// A line for each name that the peer is reached by.
fn render_names(text: &mut String, names: &[NameStatus]) {
    for NameStatus { endpoint, addresses, error } in names {
        let known: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let known = if known.is_empty() { "not known yet".to_owned() } else { known.join(", ") };
        let error = error.as_ref().map_or_else(String::new, |error| format!("; {error}"));
        let _ = writeln!(text, "  {endpoint} is {known}{error}");
    }
}

/// A line for repairs, where there are any.
fn render_fec(text: &mut String, fec: &FecStatus) {
    let FecStatus { protected_packets, repairs, overhead_pct, repaired_packets, .. } = *fec;
    if protected_packets > 0 || repaired_packets > 0 {
        let _ = writeln!(
            text,
            "  repairs: {repaired_packets} packets came back; {repairs} sent for {protected_packets} packets, now {overhead_pct:.0} %"
        );
    }
}

fn cells(path: &PathStatus) -> [String; HEADINGS.len()] {
    [
        path.name.clone(),
        path.transport.clone(),
        path.state.to_string(),
        path.metric.to_string(),
        path.rtt_ms.map_or_else(|| "-".to_owned(), |rtt| format!("{rtt:.1} ms")),
        format!("{:.1} Mbit/s", path.rate_mbps),
        format!("{:.1} %", path.loss_pct),
        bytes(path.cwnd_bytes),
        path.mtu.to_string(),
        bytes(path.rx_bytes),
        bytes(path.tx_bytes),
    ]
}
