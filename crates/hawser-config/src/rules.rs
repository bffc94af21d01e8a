//! `[[rule]]`: which packets are treated in another way than `[traffic]` says, and how.
//!
//! [`rule`] reads what packets are compared with (`matching`), and what they get; [`links`] the links that they go by.

use hawser_core::rules::{Dscp, PRIORITY_MOST};
use ipnet::IpNet;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::error::{Fault, Read};
use super::marks::{CLASS_MASK, MarkKinds, MarkMatch, class_bits, mark};
use super::matching::{CLASSES, Mac, PROTOCOLS, Ports, domain, mac, number_or_name, ports};
use super::parsers::{boolean, interface_name, keyword, link_name, network, quoted, weight, within, wrong_kind};
use super::reading::{Document, Sited, Table, raw, values};
use super::values::{Domain, InterfaceName, LinkName};
use super::words::{Fec, Keyword, Scheduler};

/// What `via` says of packets that go past the tunnel.
const DIRECT: &str = "direct";
/// What is no matter past the tunnel.
const OF_THE_TUNNEL: [&str; 7] = ["scheduler", "retransmit", "resend", "fec", "weights", "strict", "priority"];

/// `[[rule]]`. Plain data; what is none or empty matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The class's number.
    pub dscp: Option<u8>,
    /// The protocol's number.
    pub protocol: Option<u8>,
    /// The network that packets come from.
    pub source: Option<IpNet>,
    /// The network that they go to.
    pub destination: Option<IpNet>,
    /// The ports that they come from or go to.
    pub ports: Vec<Ports>,
    /// Their mark.
    pub mark: Option<MarkMatch>,
    /// The device behind the gateway that they come from.
    pub mac: Option<Mac>,
    /// The interface that they come in by, from a network behind the gateway.
    pub interface: Option<InterfaceName>,
    /// The names whose addresses they go to.
    pub domains: Vec<Domain>,
    /// They go past the tunnel.
    pub direct: bool,
    /// By which number nftables tells the portal of them: with a device or names, where they stay in the tunnel.
    pub class: Option<u8>,
    /// The scheduler they get; none: that of `[traffic]`.
    pub scheduler: Option<Scheduler>,
    /// Whether what is lost is retransmitted.
    pub resend: bool,
    /// Whether repairs go along.
    pub fec: bool,
    /// The links that they go by: the first that works.
    pub via: Vec<LinkName>,
    /// Or all of these, by shares.
    pub weights: Vec<(LinkName, u8)>,
    /// By those, or not at all.
    pub strict: bool,
    /// When they leave, against others: higher first.
    pub priority: i8,
}

impl Rule {
    /// Whether a packet itself does not show what it asks for.
    pub fn asks_for_device(&self) -> bool {
        self.mac.is_some() || self.interface.is_some() || !self.domains.is_empty()
    }

    /// The mark by which the portal knows its packets: of its class, or what it asks for.
    pub fn seen_mark(&self) -> Option<MarkMatch> {
        let of_class = |class| MarkMatch { value: class_bits(class), mask: CLASS_MASK };
        self.class.map(of_class).or(self.mark.filter(|_| !self.direct))
    }

    /// What matches, in a few words.
    pub fn matches(&self) -> String {
        let named = |names: &[(&str, u8)], number: u8| {
            let name = names.iter().find(|(_, known)| *known == number);
            name.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
        };
        let listed =
            |what: &str, items: Vec<String>| (!items.is_empty()).then(|| format!("{what} {}", items.join(" ")));
        let words = [
            self.dscp.map(|class| named(&CLASSES, class)),
            self.protocol.map(|protocol| named(&PROTOCOLS, protocol)),
            self.source.map(|net| format!("from {net}")),
            self.destination.map(|net| format!("to {net}")),
            listed("ports", self.ports.iter().map(Ports::to_string).collect()),
            self.mark.map(|mark| format!("mark {:#x}/{:#x}", mark.value, mark.mask)),
            self.mac.map(|mac| format!("mac {mac}")),
            self.interface.as_ref().map(|interface| format!("interface {interface}")),
            listed("domains", self.domains.iter().map(Domain::to_string).collect()),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if words.is_empty() { "everything".to_owned() } else { words.join(", ") }
    }
}

/// The links that rules may name, right or wrong; none: any, for peers call this portal by links of theirs.
pub(super) fn known_links<'a>(file: &Document<'a, '_, '_>) -> Option<Vec<&'a str>> {
    let listen = file.value("portal", "listen").and_then(|listen| listen.get_ref().as_array());
    let is_called = listen.is_some_and(|listen| !listen.is_empty());
    (!is_called).then(|| raw(file.tree, "link", "name").filter_map(DeValue::as_str).collect())
}

/// Why no packet can go by this link.
fn lacks(known: Option<&[&str]>, name: &LinkName) -> Option<Fault> {
    let known = known.filter(|known| !known.contains(&name.as_str()))?;
    let fault = Fault::new(format!("no [[link]] is called {}", quoted(name.as_str())));
    Some(fault.meant(name.as_str(), known, || match known.is_empty() {
        true => "add a [[link]] of that name".to_owned(),
        false => format!("links of this file: {}", known.join(", ")),
    }))
}

/// Reads one. `marks` is what the rules before it tell apart, `known` the links that it may name, where not any.
pub(super) fn rule(table: &mut Table<'_, '_, '_>, marks: &mut MarkKinds, known: Option<&[&str]>) -> Rule {
    let mut rule = Rule {
        dscp: table.get("dscp", |value| number_or_name(value, "class", &CLASSES, Dscp::MAX)),
        protocol: table.get("protocol", |value| number_or_name(value, "protocol", &PROTOCOLS, u8::MAX)),
        source: table.get("source", network),
        destination: table.get("destination", network),
        ports: values(table.list("ports", ports).unwrap_or_default()),
        mark: table.get("mark", mark),
        mac: table.get("mac", mac),
        interface: table.get("interface", interface_name),
        domains: table.set("domains", "the name is there twice", domain).unwrap_or_default(),
        scheduler: table.get("scheduler", keyword),
        resend: table.renamed("retransmit", "resend", boolean).unwrap_or(true),
        fec: table.get("fec", keyword) == Some(Fec::Auto),
        ..Rule::default()
    };
    if let Some(fault) = rule.mark.and_then(|mark| marks.claim(mark).err()) {
        table.fault_at("mark", fault);
    }
    table.not_empty("domains", "write: domains = [\"example.org\"], or leave it out");
    links(table, known, &mut rule);
    let higher = |fault: Fault| fault.hint("higher goes first; all other traffic has 0");
    let most = i64::from(PRIORITY_MOST);
    rule.priority = table.get("priority", |value| within(value, -most..=most, higher)).unwrap_or(0);
    check_acts(table);
    if rule.source.zip(rule.destination).is_some_and(|(from, to)| from.addr().is_ipv4() != to.addr().is_ipv4()) {
        let fault = Fault::new("no packet goes from an IPv4 address to an IPv6 one, or back");
        let hint = "leave `source` or `destination` out, or write one rule for each";
        table.fault_at("destination", fault.hint(hint));
    }
    rule
}

/// Notes a fault where a rule says nothing of what its packets get.
fn check_acts(table: &mut Table<'_, '_, '_>) {
    let acts = ["scheduler", "retransmit", "resend", "fec", "via", "weights", "priority"];
    if !acts.iter().any(|key| table.has(key)) {
        let hint = "add what its packets get: via = [\"dsl\"], scheduler = \"redundant\", retransmit = false, or fec = \"auto\"";
        table.here(Fault::new("a [[rule]] that changes nothing").hint(hint));
    }
}

/// Reads the links that it names: `via`, in order, or `weights`, by shares; `strict`, and nowhere else.
fn links(table: &mut Table<'_, '_, '_>, known: Option<&[&str]>, rule: &mut Rule) {
    if table.raw("via").and_then(DeValue::as_str) == Some(DIRECT) {
        return direct(table, rule);
    }
    let via = table.list("via", link_name);
    let weights = table.get("weights", weights);
    rule.strict = table.is("strict");
    table.not_empty("via", "write: via = [\"dsl\", \"lte\"], or leave it out");
    let shared = weights.iter().flatten().map(|(link, _)| link);
    for link in via.iter().flatten().chain(shared) {
        if let Some(fault) = lacks(known, &link.value) {
            table.fault(link.span.clone(), fault);
        }
    }
    if via.is_some() && weights.is_some() {
        let fault = Fault::new("`via` and `weights` in one [[rule]]");
        let hint = "`via` takes one link after the other, `weights` all of them by shares: leave one out";
        table.fault_at("weights", fault.hint(hint));
    }
    if let (Some(_), Some(other)) = (&weights, rule.scheduler.filter(|other| *other != Scheduler::Weighted)) {
        let fault = Fault::new(format!("`weights` are no matter to the scheduler {}", other.word()));
        table.fault_at("scheduler", fault.fix("\"weighted\""));
    }
    if rule.strict && via.is_none() && weights.is_none() {
        let fault = Fault::new("`strict`, and no link that it is about");
        table.fault_at("strict", fault.hint("add: via = [\"dsl\"]"));
    }
    rule.via = table.distinct(via.unwrap_or_default(), "the link is there twice", LinkName::clone);
    rule.weights = weights.into_iter().flatten().map(|(link, part)| (link.value, part)).collect();
    if !rule.weights.is_empty() {
        rule.scheduler = rule.scheduler.or(Some(Scheduler::Weighted));
    }
}

/// Nothing that the portal does with packets holds for these.
fn direct(table: &mut Table<'_, '_, '_>, rule: &mut Rule) {
    rule.direct = true;
    table.get("via", |_| Ok(()));
    table.get("weights", weights);
    table.is("strict");
    if let Some(key) = OF_THE_TUNNEL.into_iter().find(|key| table.has(key)) {
        let fault =
            Fault::new(format!("`{key}` beside `via = \"direct\"`: what goes past the tunnel is no matter to it"));
        table.here(fault.hint(format!("leave `{key}` out, or name links: via = [\"dsl\"]")));
    }
}

/// A part for each link.
fn weights(value: &DeValue<'_>) -> Read<Vec<(Sited<LinkName>, u8)>> {
    let hint = "write: weights = { dsl = 3, lte = 1 }";
    let DeValue::Table(parts) = value else {
        return Err(wrong_kind("a part for each link", value).hint(hint));
    };
    if parts.is_empty() {
        return Err(Fault::new("no link has a part").hint(hint));
    }
    let part = |(name, part): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let value = LinkName::parse(name.get_ref()).map_err(|error| Fault::new(error.to_string()))?;
        Ok((Sited { value, span: name.span() }, weight(part.get_ref())?))
    };
    parts.iter().map(part).collect()
}
