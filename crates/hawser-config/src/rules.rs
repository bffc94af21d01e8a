//! `[[rule]]`: which packets are treated in another way than `[traffic]` says, and how.

use hawser_core::rules::PRIORITY_MOST;
use ipnet::IpNet;
use toml::de::DeValue;

use super::error::{Fault, did_you_mean};
use super::marks::{self, MarkKinds, MarkMatch};
use super::parsers::{keyword, network};
use super::reader::{Sited, Table, boolean, integer, kind, quoted, string};
use super::rule_device::{self, CLASS_MASK, Domain, Mac, class_bits};
use super::rule_links::{self, Known};
use super::values::{Fec, InterfaceName, LinkName, Scheduler};

/// Classes by name (RFC 2474, 2597, 3246, 5865, 8622), with their numbers.
const CLASSES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
];
/// The highest class: six bits (RFC 2474 section 3).
const CLASS_MAX: u8 = 63;
/// Protocols by name (IANA, assigned internet protocol numbers).
const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("icmpv6", 58),
    ("sctp", 132),
    ("udplite", 136),
    ("dccp", 33),
];

/// Ports from the first to the last. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last, not below the first.
    pub last: u16,
}

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
    pub ports: Vec<PortRange>,
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

/// `marks` is what the rules before it tell apart, `known` the links that it may name.
pub(super) fn rule(mut table: Table<'_, '_, '_>, marks: &mut MarkKinds, known: &Known) -> Sited<Rule> {
    let header = table.header();
    let dscp = table.optional("dscp", |value| number_or_name(value, "class", &CLASSES, CLASS_MAX));
    let protocol = table.optional("protocol", |value| number_or_name(value, "protocol", &PROTOCOLS, u8::MAX));
    let source = table.optional("source", network);
    let destination = table.optional("destination", network);
    let ports = table.list("ports", ports);
    let mark = table.optional("mark", marks::mark);
    if let Some((span, fault)) = mark.as_ref().and_then(|mark| Some((&mark.span, marks.claim(mark.value).err()?))) {
        table.fault(span.clone(), fault);
    }
    let device = rule_device::read(&mut table);
    let scheduler = table.optional("scheduler", |value| keyword::<Scheduler>("rule.scheduler", value));
    let resend = table.renamed("retransmit", "resend", boolean);
    let fec = table.optional("fec", |value| keyword::<Fec>("rule.fec", value));
    let links = rule_links::read(&mut table, known, scheduler.as_ref());
    let priority = table.optional("priority", priority);
    check_acts(&mut table);
    check_versions(&mut table, source.as_ref(), destination.as_ref());
    table.finish();
    let rule = Rule {
        dscp: dscp.map(|d| d.value),
        protocol: protocol.map(|p| p.value),
        source: source.map(|s| s.value),
        destination: destination.map(|d| d.value),
        ports: ports.into_iter().flatten().map(|p| p.value).collect(),
        mark: mark.map(|m| m.value),
        mac: device.mac,
        interface: device.interface,
        domains: device.domains,
        direct: links.direct,
        class: None,
        scheduler: scheduler.map(|s| s.value).or((!links.weights.is_empty()).then_some(Scheduler::Weighted)),
        resend: resend.is_none_or(|r| r.value),
        fec: fec.is_some_and(|f| f.value == Fec::Auto),
        via: links.via,
        weights: links.weights,
        strict: links.strict,
        priority: priority.map_or(0, |p| p.value),
    };
    Sited { value: rule, span: header }
}

/// Notes a fault where a rule says nothing of what its packets get.
fn check_acts(table: &mut Table<'_, '_, '_>) {
    let acts = ["scheduler", "retransmit", "resend", "fec", "via", "weights", "priority"];
    if !acts.iter().any(|key| table.has(key)) {
        let hint = "add what its packets get: via = [\"dsl\"], scheduler = \"redundant\", retransmit = false, or fec = \"auto\"";
        table.fault(table.header(), Fault::new("a [[rule]] that changes nothing").hint(hint));
    }
}

/// Notes a fault where source and destination are of different IP versions.
fn check_versions(table: &mut Table<'_, '_, '_>, source: Option<&Sited<IpNet>>, destination: Option<&Sited<IpNet>>) {
    if let (Some(from), Some(to)) = (source, destination)
        && from.value.addr().is_ipv4() != to.value.addr().is_ipv4()
    {
        let fault = Fault::new("no packet goes from an IPv4 address to an IPv6 one, or back");
        table.fault(to.span.clone(), fault.hint("leave `source` or `destination` out, or write one rule for each"));
    }
}

fn priority(value: &DeValue<'_>) -> Result<i8, Fault> {
    let number = integer(value)?;
    let fits = i8::try_from(number).ok().filter(|number| number.abs() <= PRIORITY_MOST);
    fits.ok_or_else(|| {
        Fault::new(format!("{number} is not between -{PRIORITY_MOST} and {PRIORITY_MOST}"))
            .hint("higher goes first; all other traffic has 0")
    })
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
            names
                .iter()
                .find(|(_, known)| *known == number)
                .map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
        };
        let ports = self.ports.iter().map(|PortRange { first, last }| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let ports = ports.collect::<Vec<_>>().join(" ");
        let words = [
            self.dscp.map(|class| named(&CLASSES, class)),
            self.protocol.map(|protocol| named(&PROTOCOLS, protocol)),
            self.source.map(|net| format!("from {net}")),
            self.destination.map(|net| format!("to {net}")),
            (!ports.is_empty()).then(|| format!("ports {ports}")),
            self.mark.map(|mark| format!("mark {:#x}/{:#x}", mark.value, mark.mask)),
            self.mac.map(|mac| format!("mac {mac}")),
            self.interface.as_ref().map(|interface| format!("interface {interface}")),
            (!self.domains.is_empty()).then(|| {
                format!("domains {}", self.domains.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            }),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if words.is_empty() { "everything".to_owned() } else { words.join(", ") }
    }
}

/// A number up to `max`, or one of the names.
fn number_or_name(value: &DeValue<'_>, what: &str, names: &[(&str, u8)], max: u8) -> Result<u8, Fault> {
    if let DeValue::Integer(_) = value {
        let number = integer(value)?;
        let fits = u8::try_from(number).ok().filter(|number| *number <= max);
        return fits.ok_or_else(|| Fault::new(format!("{number} is not between 0 and {max}")));
    }
    string(value, |text| {
        let name = text.to_ascii_lowercase();
        if let Some((_, number)) = names.iter().find(|(known, _)| *known == name) {
            return Ok(*number);
        }
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let fault = Fault::new(format!("unknown {what} {}", quoted(text)));
        Err(match did_you_mean(&name, &known) {
            Some(meant) => fault.hint(format!("did you mean {}?", quoted(meant))).fix(quoted(meant)),
            None => fault.hint(format!("a number up to {max}, or one of: {}", known.join(", "))),
        })
    })
}

/// A port, or a range of them.
pub(super) fn ports(value: &DeValue<'_>) -> Result<PortRange, Fault> {
    let hint = "a port such as 443, or a range such as \"5000-5999\"";
    match value {
        DeValue::Integer(_) => {
            let number = integer(value)?;
            let port = u16::try_from(number).map_err(|_| Fault::new(format!("{number} is not a port")).hint(hint))?;
            Ok(PortRange { first: port, last: port })
        }
        DeValue::String(text) => {
            let range = text.split_once('-').unwrap_or((text, text));
            let parsed = range.0.trim().parse().ok().zip(range.1.trim().parse().ok());
            match parsed {
                Some((first, last)) if first <= last => Ok(PortRange { first, last }),
                Some((first, last)) => Err(Fault::new(format!("the range {} ends before it begins", quoted(text)))
                    .fix(quoted(&format!("{last}-{first}")))),
                None => Err(Fault::new(format!("{} is not a port or a range", quoted(text))).hint(hint)),
            }
        }
        _ => Err(Fault::new(format!("expected a port, found {}", kind(value))).hint(hint)),
    }
}
