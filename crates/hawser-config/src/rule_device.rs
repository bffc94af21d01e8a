//! What of a `[[rule]]` only the system can tell: the device behind the gateway that packets come from (`mac`, `interface`),
//! and the name that it resolved before (`domains`). nftables looks at these (docs/schedulers.md, "Past the tunnel").

use std::fmt;

use toml::de::DeValue;

use super::error::{Fault, Faults};
use super::marks::{MarkKinds, MarkMatch};
use super::parsers::interface_name;
use super::reader::{Sited, Table, kind, quoted, string};
use super::rules::Rule;
use super::unique::Unique;
use super::values::{HostName, InterfaceName};
use super::{Gateway, Tun};

/// The octets of an Ethernet address (IEEE 802, EUI-48).
const MAC_OCTETS: usize = 6;
/// The bit of the first octet by which an address is a group's (IEEE 802): nobody sends from one.
const GROUP_BIT: u8 = 1;
/// Rules that stay in the tunnel and look at devices or names are told apart by this many marks at most: five bits, less none.
pub const CLASSES_MAX: u8 = 31;
/// The bits of a packet's mark that hold them, and where they begin.
pub const CLASS_MASK: u32 = 0x1f00_0000;
const CLASS_SHIFT: u32 = 24;

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

/// The keys that this file reads. Plain data.
#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    pub mac: Option<Mac>,
    pub interface: Option<InterfaceName>,
    pub domains: Vec<Domain>,
}

/// Reads them.
pub(super) fn read(table: &mut Table<'_, '_, '_>) -> Device {
    let mac = table.optional("mac", mac);
    let interface = table.optional("interface", interface_name);
    let domains = table.list("domains", domain);
    if domains.as_ref().is_some_and(Vec::is_empty) {
        let fault = Fault::new("`domains` is empty").hint("write: domains = [\"example.org\"], or leave it out");
        table.fault(table.header(), fault);
    }
    let mut seen: Unique<String> = Unique::default();
    for domain in domains.iter().flatten() {
        seen.claim(table, domain.value.to_string(), domain.span.clone(), "the name is there twice");
    }
    Device {
        mac: mac.map(|mac| mac.value),
        interface: interface.map(|interface| interface.value),
        domains: domains.into_iter().flatten().map(|domain| domain.value).collect(),
    }
}

fn mac(value: &DeValue<'_>) -> Result<Mac, Fault> {
    let hint = "the device's Ethernet address, as \"3c:22:fb:01:02:03\" (`ip neighbour` lists those nearby)";
    if !value.is_str() {
        return Err(Fault::new(format!("expected an Ethernet address, found {}", kind(value))).hint(hint));
    }
    string(value, |text| {
        let mac = Mac::parse(text);
        let mac = mac.ok_or_else(|| Fault::new(format!("{} is no Ethernet address", quoted(text))).hint(hint))?;
        if mac.0[0] & GROUP_BIT != 0 {
            return Err(Fault::new(format!("{mac} is the address of a group, from which nobody sends")).hint(hint));
        }
        Ok(mac)
    })
}

fn domain(value: &DeValue<'_>) -> Result<Domain, Fault> {
    string(value, |text| {
        let hint = "a name, with all below it, as \"example.org\"; or those below it alone: \"*.example.org\"";
        Domain::parse(text).ok_or_else(|| Fault::new(format!("{} is no domain name", quoted(text))).hint(hint))
    })
}

/// Gives each rule that stays in the tunnel, and asks for a device or a name, a class of its own: the number of its mark.
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

/// Notes a fault for every rule that no packet can fit.
pub(super) fn check(rules: &[Sited<Rule>], tun: &Tun, gateway: Option<&Gateway>, faults: &mut Faults<'_>) {
    let served = gateway.map_or(&[][..], |gateway| &gateway.serve);
    for Sited { value: rule, span } in rules {
        if rule.direct && !tun.default_route {
            let fault =
                Fault::new("`via = \"direct\"` without a `default_route`: other packets go past the tunnel anyway");
            faults.add(span.clone(), fault.hint("leave the rule out, or add to [tun]: default_route = true"));
        }
        if rule.mac.is_some() && served.is_empty() {
            let fault = Fault::new("`mac`, and no network behind this portal whose devices could be known by it");
            faults.add(span.clone(), fault.hint("add to [gateway]: serve = [\"lan0\"]"));
        }
        if let Some(interface) = rule.interface.as_ref().filter(|interface| !served.contains(interface)) {
            let fault = Fault::new(format!("`interface`: no network behind this portal is at {interface}"));
            faults.add(span.clone(), fault.hint(format!("add to [gateway]: serve = [\"{interface}\"]")));
        }
    }
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
}
