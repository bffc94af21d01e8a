//! What a `[[rule]]` compares packets with.
//!
//! 1. Classes and protocols by name, ports, devices, domains.
//! 2. `mark`: what nftables wrote on a packet, and what the rules tell apart by it. Rules that ask for a device or a name
//!    have a class, a mark that nftables writes for them (docs/schedulers.md, "Past the tunnel").

use std::cmp::Reverse;
use std::fmt;

use toml::de::DeValue;

use super::error::{Fault, Faults, Read};
use super::parsers::{integer, parsed, quoted, string, within, wrong_kind};
use super::reading::Sited;
use super::rules::Rule;
use super::values::HostName;

/// Classes by name (RFC 2474, 2597, 3246, 5865, 8622), with their numbers.
#[rustfmt::skip]
pub(super) const CLASSES: [(&str, u8); 23] = [
    ("cs0", 0), ("cs1", 8), ("cs2", 16), ("cs3", 24), ("cs4", 32), ("cs5", 40), ("cs6", 48), ("cs7", 56),
    ("af11", 10), ("af12", 12), ("af13", 14), ("af21", 18), ("af22", 20), ("af23", 22), ("af31", 26), ("af32", 28),
    ("af33", 30), ("af41", 34), ("af42", 36), ("af43", 38), ("ef", 46), ("va", 44), ("le", 1),
];
/// The highest class: six bits (RFC 2474 section 3).
pub(super) const CLASS_MAX: u8 = 63;
/// Protocols by name (IANA, assigned internet protocol numbers).
#[rustfmt::skip]
pub(super) const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", 1), ("tcp", 6), ("udp", 17), ("gre", 47), ("esp", 50), ("icmpv6", 58), ("sctp", 132), ("udplite", 136),
    ("dccp", 33),
];
/// The octets of an Ethernet address (IEEE 802, EUI-48).
const MAC_OCTETS: usize = 6;
/// The bit of the first octet by which an address is a group's (IEEE 802): nobody sends from one.
const GROUP_BIT: u8 = 1;

/// Ports from the first to the last. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last, not below the first.
    pub last: u16,
}

impl PortRange {
    /// Whether this port is of it.
    pub fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { first.fmt(f) } else { write!(f, "{first}-{last}") }
    }
}

/// The Ethernet address of a device. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac([u8; MAC_OCTETS]);

impl Mac {
    /// Reads six octets in hexadecimal digits, between colons.
    fn parse(text: &str) -> Option<Self> {
        // What `from_str_radix` takes besides digits is a sign.
        let is_octet = |part: &str| part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        let octet = |part: &str| is_octet(part).then(|| u8::from_str_radix(part, 16).ok()).flatten();
        let octets: Vec<u8> = text.split(':').map(octet).collect::<Option<_>>()?;
        octets.try_into().ok().map(Self)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A name and all below it, or those below it alone. In lower case, without a final dot. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    name: String,
    below: bool,
}

impl Domain {
    /// Reads `example.org`, or `*.example.org`.
    fn parse(text: &str) -> Option<Self> {
        let (name, below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        HostName::parse(&name).map(|_| Self { name, below })
    }

    /// Whether a name is meant; in any case, without a final dot.
    pub fn covers(&self, name: &str) -> bool {
        let Some(rest) = name.len().checked_sub(self.name.len()) else { return false };
        if !name.is_char_boundary(rest) || !name[rest..].eq_ignore_ascii_case(&self.name) {
            return false;
        }
        if rest == 0 { !self.below } else { name[..rest].ends_with('.') }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.below { "*." } else { "" };
        write!(f, "{below}{}", self.name)
    }
}

/// A number up to `max`, or one of the names.
pub(super) fn number_or_name(value: &DeValue<'_>, what: &str, names: &[(&str, u8)], max: u8) -> Read<u8> {
    if value.is_integer() {
        return within(value, 0..=max.into(), |fault| fault);
    }
    string(value, |text| {
        let name = text.to_ascii_lowercase();
        if let Some((_, number)) = names.iter().find(|(known, _)| *known == name) {
            return Ok(*number);
        }
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let fault = Fault::new(format!("unknown {what} {}", quoted(text)));
        Err(fault.meant(&name, &known, || format!("a number up to {max}, or one of: {}", known.join(", "))))
    })
}

/// A port, or a range of them.
pub(super) fn ports(value: &DeValue<'_>) -> Read<PortRange> {
    let hint = "a port such as 443, or a range such as \"5000-5999\"";
    match value {
        DeValue::Integer(_) => {
            let number = integer(value)?;
            let port = u16::try_from(number).map_err(|_| Fault::new(format!("{number} is not a port")).hint(hint))?;
            Ok(PortRange { first: port, last: port })
        }
        DeValue::String(text) => {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
                (Ok(first), Ok(last)) if first <= last => Ok(PortRange { first, last }),
                (Ok(first), Ok(last)) => Err(Fault::new(format!("the range {} ends before it begins", quoted(text)))
                    .fix(quoted(&format!("{last}-{first}")))),
                _ => Err(Fault::new(format!("{} is not a port or a range", quoted(text))).hint(hint)),
            }
        }
        _ => Err(wrong_kind("a port", value).hint(hint)),
    }
}

pub(super) fn mac(value: &DeValue<'_>) -> Read<Mac> {
    let hint = "the device's Ethernet address, as \"3c:22:fb:01:02:03\" (`ip neighbour` lists those nearby)";
    if !value.is_str() {
        return Err(wrong_kind("an Ethernet address", value).hint(hint));
    }
    let mac = parsed(value, Mac::parse, "is no Ethernet address", hint)?;
    if mac.0[0] & GROUP_BIT != 0 {
        return Err(Fault::new(format!("{mac} is the address of a group, from which nobody sends")).hint(hint));
    }
    Ok(mac)
}

pub(super) fn domain(value: &DeValue<'_>) -> Read<Domain> {
    let hint = "a name, with all below it, as \"example.org\"; or those below it alone: \"*.example.org\"";
    parsed(value, Domain::parse, "is no domain name", hint)
}

/// Kinds of packets that rules may tell apart by marks: the TUN device has a queue for each, which the packet thread
/// looks at. There are 64 classes (RFC 2474), for comparison, and the kernel has 255 queues (drivers/net/tun.c,
/// `MAX_TAP_QUEUES`, and that of unmarked packets).
const KINDS_MAX: usize = 64;
/// Rules that stay in the tunnel and look at devices or names are told apart by this many marks at most: five bits,
/// less none.
pub const CLASSES_MAX: u8 = 31;
/// The bits of a packet's mark that hold them, and where they begin.
pub const CLASS_MASK: u32 = 0x1f00_0000;
const CLASS_SHIFT: u32 = 24;

/// A mark, and the bits of it that count; others of `value` are zero. No default; a plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkMatch {
    /// The value to compare with.
    pub value: u32,
    /// The bits that are compared; at least one.
    pub mask: u32,
}

impl MarkMatch {
    /// What fits both, if anything can.
    fn and(self, other: Self) -> Option<Self> {
        let common = self.mask & other.mask;
        let agree = self.value & common == other.value & common;
        agree.then_some(Self { value: self.value | other.value, mask: self.mask | other.mask })
    }
}

/// The kinds of packets that rules tell apart by marks. A packet is of the narrowest kind that it fits, which decides
/// of every rule whether it fits that too. None at first; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkKinds(Vec<MarkMatch>);

impl MarkKinds {
    /// Those of rules.
    pub fn of(rules: &[Rule]) -> Self {
        let mut kinds = Self::default();
        rules.iter().filter_map(Rule::seen_mark).for_each(|mark| kinds.add(mark));
        kinds
    }

    /// The kinds, the narrowest first: the first that a packet fits is its own.
    pub fn narrowest_first(&self) -> &[MarkMatch] {
        &self.0
    }

    /// Whether what these rules tell apart is told apart.
    pub fn suffice(&self, rules: &[Rule]) -> bool {
        rules.iter().filter_map(Rule::seen_mark).all(|mark| self.0.contains(&mark))
    }

    /// One more mark of a rule: itself, and what fits it and another.
    fn add(&mut self, mark: MarkMatch) {
        let both: Vec<_> = self.0.iter().filter_map(|known| known.and(mark)).chain([mark]).collect();
        for kind in both {
            if !self.0.contains(&kind) {
                self.0.push(kind);
            }
        }
        self.0.sort_by_key(|kind| Reverse(kind.mask.count_ones()));
    }

    /// The same while a file is read, where there may be too many.
    pub(super) fn claim(&mut self, mark: MarkMatch) -> Read<()> {
        let mut more = self.clone();
        more.add(mark);
        if more.0.len() > KINDS_MAX {
            let fault = Fault::new(format!("by this mark the rules tell more than {KINDS_MAX} kinds of packets apart"));
            return Err(fault.hint("name fewer marks, or masks of which no two fit one packet"));
        }
        *self = more;
        Ok(())
    }
}

/// A mark: a number, or a string with a mask.
pub(super) fn mark(value: &DeValue<'_>) -> Read<MarkMatch> {
    let hint = "a mark such as 0x10, or with a mask: \"0x10/0xff\"";
    match value {
        DeValue::Integer(_) => {
            let value = within(value, 0..=u32::MAX.into(), |fault| fault)?;
            Ok(MarkMatch { value, mask: u32::MAX })
        }
        DeValue::String(text) => {
            let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
            match (number(value), number(mask)) {
                (Some(value), Some(mask)) => fitting(value, mask),
                _ => Err(Fault::new(format!("{} is not a mark", quoted(text))).hint(hint)),
            }
        }
        _ => Err(wrong_kind("a mark", value).hint(hint)),
    }
}

/// As nft and ip write it.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

/// A value that some packet's mark can have under the mask.
fn fitting(value: u32, mask: u32) -> Read<MarkMatch> {
    if mask == 0 {
        return Err(Fault::new("a mask of 0 compares nothing").hint("leave `mark` out: every packet fits then"));
    }
    if value & !mask != 0 {
        let fault = Fault::new(format!("no packet fits: {value:#x} has bits outside of its mask {mask:#x}"));
        return Err(fault.fix(quoted(&format!("{:#x}/{mask:#x}", value & mask))));
    }
    Ok(MarkMatch { value, mask })
}

/// Gives each rule that stays in the tunnel, and asks for a device or a name, a class of its own: the number of its
/// mark.
pub(super) fn classify(rules: &mut [Sited<Rule>], marks: &mut MarkKinds, faults: &mut Faults<'_>) {
    let mut last = 0;
    for rule in rules.iter_mut().filter(|rule| rule.value.asks_for_device() && !rule.value.direct) {
        if last == CLASSES_MAX {
            let fault = Fault::new(format!("more than {CLASSES_MAX} rules with `mac`, `interface` or `domains`"));
            faults.add(rule.span.clone(), fault.hint("name several domains in one rule, or use via = \"direct\""));
            return;
        }
        last += 1;
        rule.value.class = Some(last);
        if let Err(fault) = marks.claim(MarkMatch { value: class_bits(last), mask: CLASS_MASK }) {
            faults.add(rule.span.clone(), fault);
        }
    }
}

/// The bits of the mark of a class.
pub fn class_bits(class: u8) -> u32 {
    u32::from(class) << CLASS_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_covers_itself_and_all_below_unless_it_says_otherwise() {
        let table = [
            ("example.org", "example.org", true),
            ("example.org", "www.Example.ORG", true),
            ("Example.org.", "a.b.example.org", true),
            ("example.org", "badexample.org", false),
            ("example.org", "example.org.evil.net", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", "www.example.org", true),
            ("example.org", "ö.example.org", true),
            ("example.org", "org", false),
        ];
        for (domain, name, covered) in table {
            assert_eq!(Domain::parse(domain).expect("a domain").covers(name), covered, "{domain} and {name}");
        }
        for wrong in ["", "*", "*.", "exa mple.org", "a..b", "192.0.2.1", "**.org", "a;b"] {
            assert_eq!(Domain::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn an_ethernet_address_is_six_octets_in_digits() {
        assert_eq!(Mac::parse("3C:22:fb:01:02:03").expect("one").to_string(), "3c:22:fb:01:02:03");
        for wrong in
            ["", "3c:22:fb:01:02", "3c:22:fb:01:02:03:04", "3c-22-fb-01-02-03", "3c:22:fb:01:02:+3", "3:c:2:2:f:b"]
        {
            assert_eq!(Mac::parse(wrong), None, "{wrong:?}");
        }
    }

    const ALL: u32 = u32::MAX;

    /// Values with their masks.
    type Marks = &'static [(u32, u32)];

    fn kinds(marks: &[(u32, u32)]) -> MarkKinds {
        let rule = |&(value, mask): &(u32, u32)| Rule { mark: Some(MarkMatch { value, mask }), ..Rule::default() };
        MarkKinds::of(&marks.iter().map(rule).collect::<Vec<_>>())
    }

    #[test]
    fn what_fits_two_marks_is_a_kind_of_its_own_and_comes_before_both() {
        let table: [(Marks, Marks); 6] = [
            (&[], &[]),
            (&[(7, ALL), (8, ALL), (7, ALL)], &[(7, ALL), (8, ALL)]),
            // One lies within the other.
            (&[(0x10, 0xf0), (0x17, ALL)], &[(0x17, ALL), (0x10, 0xf0)]),
            // They cross.
            (&[(0x10, 0xf0), (0x07, 0x0f)], &[(0x17, 0xff), (0x10, 0xf0), (0x07, 0x0f)]),
            // They exclude each other.
            (&[(0x10, 0xf0), (0x20, 0xf0)], &[(0x10, 0xf0), (0x20, 0xf0)]),
            (&[(1, 1), (2, 2), (4, 4)], &[(7, 7), (3, 3), (5, 5), (6, 6), (1, 1), (2, 2), (4, 4)]),
        ];
        for (marks, expected) in table {
            let expected: Vec<_> = expected.iter().map(|&(value, mask)| MarkMatch { value, mask }).collect();
            assert_eq!(kinds(marks).narrowest_first(), expected, "{marks:x?}");
        }
    }

    #[test]
    fn a_packets_kind_decides_of_every_rule() {
        let marks = [(0x10, 0xf0), (0x01, 0x0f), (0x11, 0xfff), (0x100, 0x100), (0x123, ALL), (0, ALL)];
        let kinds = kinds(&marks);
        for mark in 0..0x800_u32 {
            let fits = |value: u32, mask: u32| mark & mask == value;
            let own = kinds.narrowest_first().iter().find(|kind| fits(kind.value, kind.mask));
            for (value, mask) in marks {
                let decided = own.is_some_and(|own| mask & !own.mask == 0 && own.value & mask == value);
                assert_eq!(decided, fits(value, mask), "mark {mark:#x}, rule {value:#x}/{mask:#x}, kind {own:x?}");
            }
        }
    }

    #[test]
    fn rules_that_know_no_other_mark_are_told_apart_as_before() {
        let rule = |value, mask| [Rule { mark: Some(MarkMatch { value, mask }), ..Rule::default() }];
        let kinds = kinds(&[(0x10, 0xf0), (0x07, 0x0f)]);
        assert!(kinds.suffice(&[]) && kinds.suffice(&[Rule::default()]));
        assert!(kinds.suffice(&rule(0x10, 0xf0)) && kinds.suffice(&rule(0x17, 0xff)));
        assert!(!kinds.suffice(&rule(0x10, ALL)) && !MarkKinds::default().suffice(&rule(0x10, 0xf0)));
    }
}
