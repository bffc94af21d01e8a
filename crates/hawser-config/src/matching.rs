//! What a `[[rule]]` compares packets with, but for marks: classes and protocols by name, ports, devices, domains.

use std::fmt;

pub use hawser_core::rules::Ports;
use toml::de::DeValue;

use super::error::{Fault, Read};
use super::parsers::{integer, parsed, quoted, string, within, wrong_kind};
use super::values::Domain;

/// Classes by name (RFC 2474, 2597, 3246, 5865, 8622), with their numbers.
#[rustfmt::skip]
pub(super) const CLASSES: [(&str, u8); 23] = [
    ("cs0", 0), ("cs1", 8), ("cs2", 16), ("cs3", 24), ("cs4", 32), ("cs5", 40), ("cs6", 48), ("cs7", 56),
    ("af11", 10), ("af12", 12), ("af13", 14), ("af21", 18), ("af22", 20), ("af23", 22), ("af31", 26), ("af32", 28),
    ("af33", 30), ("af41", 34), ("af42", 36), ("af43", 38), ("ef", 46), ("va", 44), ("le", 1),
];
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
pub(super) fn ports(value: &DeValue<'_>) -> Read<Ports> {
    let hint = "a port such as 443, or a range such as \"5000-5999\"";
    match value {
        DeValue::Integer(_) => {
            let number = integer(value)?;
            let port = u16::try_from(number).map_err(|_| Fault::new(format!("{number} is not a port")).hint(hint))?;
            Ok(Ports { first: port, last: port })
        }
        DeValue::String(text) => {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
                (Ok(first), Ok(last)) if first <= last => Ok(Ports { first, last }),
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

#[cfg(test)]
mod tests {
    use super::*;

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
