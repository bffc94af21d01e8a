//! What nftables does for rules that look at more than packets: `via = "direct"`, `mac`, `interface`, `domains`.
//!
//! ```text
//!   prerouting, of served interfaces   output, but the links' own          in one table, hawser_hawser0_rules
//!        |                                  |
//!        v                                  v
//!   flow is DIRECT? ------------------- mark of direct: an ip rule looks up table main for it
//!        | no
//!        v
//!   the rules, in their order: the first that matches decides
//!        direct:  a flow that is new is DIRECT (ct mark) from now on; one that has begun in the tunnel stays there
//!        class:   the packet's mark gets the class, by which the portal knows the rule
//!        other:   nothing
//! ```
//! 1. [`is_needed`] says whether a configuration has such rules. 2. [`table`] writes the table. 3. [`set_name`] is
//!    where the addresses of a rule's domains are.

use hawser_config::{CLASS_MASK, Config, Domain, MarkMatch, Ports, Rule, class_bits};
use hawser_net::netcfg::{Family, NftChain, NftError, NftName, NftSet, NftTable, quoted};
use ipnet::IpNet;

use crate::run::own;

/// The bits of a flow's mark (`ct mark`) that say how it goes, and what they say. Others are left as they are.
const WAY: u32 = 0xc000_0000;
const DIRECT: u32 = 0x4000_0000;
const TUNNEL: u32 = 0x8000_0000;
/// After who sets marks where packets are mangled (nft(8), chain types and priorities), before anybody routes.
const PREROUTING: &str = "type filter hook prerouting priority mangle + 1";
const OUTPUT: &str = "type route hook output priority mangle + 1";
const FORWARD: &str = "type filter hook forward priority mangle";
const POSTROUTING: &str = "type nat hook postrouting priority srcnat";
/// Answers of name servers to who asked: nobody else teaches (RFC 1035 section 4.2.1).
const ANSWERS: &str = "udp sport 53 ct state established ct direction reply";
/// The protocols that have ports (IANA): TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: &str = "{ 6, 17, 33, 132, 136 }";
/// What others than the portal put into a set stays for so long, in seconds: dnsmasq(8) tells no time.
const OTHERS_STAY_S: u32 = 3_600;

/// Step 1.
pub fn is_needed(config: &Config) -> bool {
    config.rules.iter().any(asks)
}

fn asks(rule: &Rule) -> bool {
    rule.direct || rule.class.is_some()
}

/// Whether anything has to be learned of names.
pub fn learns(config: &Config) -> bool {
    config.rules.iter().any(|rule| !rule.domains.is_empty())
}

/// Step 2. It may stand without such rules: flows that began past the tunnel end there.
///
/// # Errors
/// Where the name of an interface cannot stand in a rule.
pub fn table(config: &Config) -> Result<NftTable, NftError> {
    let tun = config.tun.name.as_str();
    let direct = own::direct_mark(tun).0;
    let served: Vec<String> =
        config.gateway.serve.iter().map(|name| quoted(name.as_str())).collect::<Result<_, _>>()?;
    let inside = [quoted("lo")?, quoted(tun)?].into_iter().chain(served.clone()).collect::<Vec<_>>().join(", ");
    let learns = learns(config);
    let logs =
        |which: &str| learns.then(|| format!("{which}{ANSWERS} log group {} queue-threshold 1", own::log_group(tun)));
    let mut chains = vec![
        chain("direct", None, decide(direct)),
        chain("rules_served", None, rules(config, true)?),
        chain("rules_own", None, rules(config, false)?),
        chain("served", None, flow(direct, "rules_served")),
        chain("own", None, flow(direct, "rules_own")),
    ];
    let arriving = (!served.is_empty()).then(|| format!("iifname {{ {} }} jump served", served.join(", ")));
    chains.push(chain("prerouting", Some(PREROUTING), logs("").into_iter().chain(arriving).collect()));
    let mut leaving: Vec<String> = logs("oifname != \"lo\" ").into_iter().collect();
    leaving.push(format!("meta mark {:#x} return", own::mark(tun).0));
    leaving.push("oifname != \"lo\" jump own".to_owned());
    chains.push(chain("output", Some(OUTPUT), leaving));
    chains.push(chain("forward", Some(FORWARD), guard(config, &inside)?.into_iter().collect()));
    let hidden = format!("meta mark {direct:#x} oifname != {{ {inside} }} masquerade");
    chains.push(chain("postrouting", Some(POSTROUTING), vec![hidden]));
    Ok(NftTable { name: NftName::of_rules(tun), sets: sets(config), chains })
}

fn chain(name: &str, hook: Option<&str>, rules: Vec<String>) -> NftChain {
    NftChain { name: name.to_owned(), hook: hook.map(str::to_owned), rules }
}

/// A flow that a direct rule matches; only its first packet decides.
fn decide(direct: u32) -> Vec<String> {
    vec![
        format!("ct mark & {WAY:#x} != 0 return"),
        "ct state != new return".to_owned(),
        // A connection from before anybody tracked connections here is new in the middle: only its first segment begins
        // one.
        "tcp flags & (syn | ack) != syn return".to_owned(),
        format!("ct mark set ct mark | {DIRECT:#x}"),
        format!("meta mark set {direct:#x}"),
    ]
}

/// Who was called answers by the way that he was called by.
fn flow(direct: u32, rules: &str) -> Vec<String> {
    vec![
        "ct direction reply return".to_owned(),
        format!("ct mark & {WAY:#x} == {DIRECT:#x} meta mark set {direct:#x} return"),
        format!("jump {rules}"),
        format!("ct mark & {WAY:#x} == 0 ct mark set ct mark | {TUNNEL:#x}"),
    ]
}

/// All rules up to the last that asks for it. Those that come after it are the portal's alone.
fn rules(config: &Config, is_served: bool) -> Result<Vec<String>, NftError> {
    let last = config.rules.iter().rposition(asks).map_or(0, |last| last + 1);
    let mut written = Vec::new();
    for rule in &config.rules[..last] {
        let done = match (rule.direct, rule.class) {
            (true, _) => "goto direct".to_owned(),
            (_, Some(class)) => {
                format!("meta mark set meta mark & {:#x} | {:#x} return", !CLASS_MASK, class_bits(class))
            }
            _ => "return".to_owned(),
        };
        written
            .extend(matches(rule, is_served)?.into_iter().map(|matched| format!("{matched} {done}").trim().to_owned()));
    }
    Ok(written)
}

/// A rule in the words of nft(8), once for each IP version and end where it needs that. None for what cannot be.
fn matches(rule: &Rule, is_served: bool) -> Result<Vec<String>, NftError> {
    if !is_served && (rule.mac.is_some() || rule.interface.is_some()) {
        return Ok(Vec::new());
    }
    let protocol = rule.protocol.map(|number| format!("meta l4proto {number}"));
    let has_ports = protocol.is_none() && !rule.ports.is_empty();
    let interface = rule.interface.as_ref().map(|name| quoted(name.as_str())).transpose()?;
    let common = [
        rule.mark.map(|MarkMatch { value, mask }| format!("meta mark & {mask:#x} == {value:#x}")),
        interface.map(|name| format!("iifname {name}")),
        rule.mac.map(|mac| format!("ether saddr {mac}")),
        protocol.or_else(|| has_ports.then(|| format!("meta l4proto {WITH_PORTS}"))),
    ];
    let common: Vec<String> = common.into_iter().flatten().collect();
    let by_version = versions(rule);
    let ends = ends(&rule.ports);
    let written = by_version.iter().flat_map(|version| ends.iter().map(move |end| (version, end)));
    let words = written.map(|(version, end)| {
        let words = common.iter().chain(version).chain(end).map(String::as_str);
        words.collect::<Vec<_>>().join(" ")
    });
    Ok(words.collect())
}

/// What is written otherwise for each IP version; one of nothing where both are alike.
fn versions(rule: &Rule) -> Vec<Vec<String>> {
    let alike = rule.dscp.is_none() && rule.source.is_none() && rule.destination.is_none() && rule.domains.is_empty();
    if alike {
        return vec![Vec::new()];
    }
    let fits = |net: &Option<IpNet>, family| net.is_none_or(|net| Family::of(net.addr()) == family);
    let families = [Family::V4, Family::V6].into_iter();
    let families = families.filter(|family| fits(&rule.source, *family) && fits(&rule.destination, *family));
    let words = families.map(|family| {
        let ip = if family == Family::V4 { "ip" } else { "ip6" };
        let words = [
            rule.dscp.map(|class| format!("{ip} dscp {class}")),
            rule.source.map(|net| format!("{ip} saddr {}", net.trunc())),
            rule.destination.map(|net| format!("{ip} daddr {}", net.trunc())),
            (!rule.domains.is_empty()).then(|| format!("{ip} daddr @{}", set_name(&rule.domains, family))),
        ];
        words.into_iter().flatten().collect()
    });
    words.collect()
}

/// Ports of either end.
fn ends(ports: &[Ports]) -> Vec<Option<String>> {
    if ports.is_empty() {
        return vec![None];
    }
    // A set of nftables takes no overlaps, which a rule may have.
    ports.iter().flat_map(|ports| ["sport", "dport"].map(|end| Some(format!("th {end} {ports}")))).collect()
}

/// Links forward answers to what went by them, and nothing else because of that.
fn guard(config: &Config, inside: &str) -> Result<Option<String>, NftError> {
    if !opens_links(config) {
        return Ok(None);
    }
    let refused = "ct state new,invalid ct status ! dnat drop";
    if config.links.iter().any(hawser_config::Link::is_any) {
        return Ok(Some(format!("iifname != {{ {inside} }} {refused}")));
    }
    let links: Vec<String> = link_interfaces(config).map(quoted).collect::<Result<_, _>>()?;
    Ok((!links.is_empty()).then(|| format!("iifname {{ {} }} {refused}", links.join(", "))))
}

/// Whether answers for networks behind the portal come in by links.
pub fn opens_links(config: &Config) -> bool {
    !config.gateway.serve.is_empty() && config.rules.iter().any(|rule| rule.direct)
}

/// The interfaces of links; that of the world has rules of its own.
pub fn link_interfaces(config: &Config) -> impl Iterator<Item = &str> {
    let world = config.nat.as_ref();
    let mut names: Vec<&str> = config
        .links
        .iter()
        .filter(|link| !link.is_any())
        .filter_map(|link| link.interface.as_ref())
        .filter(|name| Some(*name) != world)
        .map(|name| name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

fn sets(config: &Config) -> Vec<NftSet> {
    let mut sets: Vec<NftSet> = Vec::new();
    for rule in config.rules.iter().filter(|rule| !rule.domains.is_empty()) {
        for family in [Family::V4, Family::V6] {
            let set = NftSet { name: set_name(&rule.domains, family), family, timeout_s: OTHERS_STAY_S };
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
    }
    sets
}

/// Step 3: the same for the same domains, whatever else changes.
pub fn set_name(domains: &[Domain], family: Family) -> String {
    let names: Vec<String> = domains.iter().map(ToString::to_string).collect();
    let version = if family == Family::V4 { 4 } else { 6 };
    format!("names_{:08x}_{version}", own::hash(&names.join(" ")))
}

#[cfg(test)]
mod tests;
