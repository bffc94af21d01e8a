//! The values of a configuration: each type holds only what is right.

use std::fmt;

pub use hawser_net::link::ip::IpProtocol;

/// Longest name of a link or peer, in characters: a label of metrics and tables, not prose.
const NAME_MAX: usize = 64;
/// Longest interface name in bytes (`IFNAMSIZ` of linux/if.h less the closing zero).
const INTERFACE_NAME_MAX: usize = 15;
/// Longest name of a congestion control in bytes (`TCP_CA_NAME_MAX` of net/tcp.h less the closing zero).
const TCP_CONGESTION_MAX: usize = 15;
/// Least MTU of the TUN device, in bytes: IPv6 demands it (RFC 8200 section 5).
pub const MTU_MIN: u16 = 1280;
/// No inner packet is larger: pieces say where they belong by 15 bits (docs/wire.md, SPLIT).
pub const MTU_MAX: u16 = 32_768;
/// Stands before a domain whose names are asked for there, and which is not searched (resolvectl(1)).
const ROUTED: char = '~';
/// The domain of every name.
pub(crate) const ROOT: &str = ".";
/// Units of amounts and what they stand for: steps of 1000, as providers sell them.
const UNITS: [(char, u64); 4] = [('k', 1_000), ('M', 1_000_000), ('G', 1_000_000_000), ('T', 1_000_000_000_000)];
/// Digits behind the point of an amount that are read: thousandths of the unit.
const DECIMALS: usize = 3;
/// The least volume, bytes.
pub(crate) const VOLUME_MIN: u64 = 1_000_000;

/// Why text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is nothing.
    #[error("a name must not be empty")]
    Empty,
    /// Longer than this limit, in bytes.
    #[error("a name has at most {0} characters")]
    TooLong(usize),
    /// A character that is not allowed.
    #[error("a name must not contain {0:?}")]
    Character(char),
    /// `.` or `..`, which the kernel does not take for an interface.
    #[error("`.` and `..` are no interface names")]
    Dots,
}

/// A type that is a text, and shown as it is written: `as_str`, `Display`, and `Debug`; of a name `parse`, too, by what
/// checks it.
macro_rules! text {
    ($($(#[$doc:meta])* $name:ident $(by $check:ident)?,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) String);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        $(impl $name {
            /// Takes `text` as a name.
            ///
            /// # Errors
            /// [`NameError`] where it is empty, too long, or has a character that is not allowed.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                $check(text).map(|()| Self(text.to_owned()))
            }
        })?

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    )+};
}

text! {
    /// A link's name: letters, digits, `.`, `_` and `-`. Never empty; plain data.
    LinkName by check_name,
    /// A peer's name: letters, digits, `.`, `_` and `-`. Never empty; plain data.
    PeerName by check_name,
    /// A network interface's name, as the kernel takes it. Never empty; plain data.
    InterfaceName by check_interface_name,
    /// A pattern for interface names: `*` stands for any characters, also none. Never empty; plain data.
    InterfacePattern by check_interface_name,
    /// The name of a congestion control of the kernel: letters, digits, `_` and `-`. Never empty; plain data.
    TcpCongestion,
    /// A name that a host could have. Plain data.
    HostName,
    /// A domain of name servers: `example.org`, `~example.org` or `~.`. Plain data.
    DnsDomain,
    /// A name and all below it, as `example.org`, or those below it alone, as `*.example.org`: in lower case, without a
    /// final dot. Plain data.
    Domain,
    /// Where etcd is: `https://host:port`, or `http://` of this host. Plain data.
    EtcdUrl,
}

impl LinkName {
    /// The name of the link that one interface has, of a link that stands for every one: no other has a colon.
    pub fn with_interface(&self, interface: &InterfaceName) -> Self {
        Self(format!("{self}:{interface}"))
    }

    /// The name of the link that stands for every interface, of one that it stands for; of any other its own.
    pub fn without_interface(&self) -> &str {
        self.0.split_once(':').map_or(self.as_str(), |(name, _)| name)
    }
}

fn check_name(text: &str) -> Result<(), NameError> {
    check_characters(text, NAME_MAX, |c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// The kernel's rule (`dev_valid_name` in net/core/dev.c), with `%` refused too: it would make a name template.
fn check_interface_name(text: &str) -> Result<(), NameError> {
    if text == "." || text == ".." {
        return Err(NameError::Dots);
    }
    check_characters(text, INTERFACE_NAME_MAX, |c| !(c.is_whitespace() || c.is_control() || "/:%".contains(c)))
}

fn check_characters(text: &str, max: usize, may_be: impl Fn(char) -> bool) -> Result<(), NameError> {
    match text.chars().find(|c| !may_be(*c)) {
        _ if text.is_empty() => Err(NameError::Empty),
        _ if text.len() > max => Err(NameError::TooLong(max)),
        Some(odd) => Err(NameError::Character(odd)),
        None => Ok(()),
    }
}

impl InterfacePattern {
    /// Whether the interface called `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return name == self.0 };
        let Some(mut left) = name.strip_prefix(first) else { return false };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            let Some(at) = left.find(part) else { return false };
            left = &left[at + part.len()..];
        }
        left.ends_with(last)
    }
}

impl TcpCongestion {
    /// Takes `name` where the kernel could have it.
    pub fn parse(name: &str) -> Option<Self> {
        let fits = (1..=TCP_CONGESTION_MAX).contains(&name.len());
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        (fits && plain).then(|| Self(name.to_owned()))
    }
}

impl HostName {
    /// Takes `name` where a host could have it (RFC 1123 section 2.1, lengths of RFC 1035 section 2.3.4).
    pub fn parse(name: &str) -> Option<Self> {
        let label = |label: &str| {
            let plain = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            (1..=63).contains(&label.len()) && plain && !label.starts_with('-') && !label.ends_with('-')
        };
        let address = name.parse::<std::net::IpAddr>().is_ok();
        (name.len() <= 253 && name.split('.').all(label) && !address).then(|| Self(name.to_owned()))
    }
}

impl DnsDomain {
    /// Takes a domain in the words of resolvectl(1).
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix(ROUTED);
        let is_domain = name == Some(ROOT) || HostName::parse(name.unwrap_or(text)).is_some();
        is_domain.then(|| Self(text.to_owned()))
    }
}

impl Domain {
    /// Reads it, in any case, with or without a final dot.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        HostName::parse(text.strip_prefix("*.").unwrap_or(&text)).map(|_| Self(text))
    }

    /// Whether a name is meant; in any case, without a final dot.
    pub fn covers(&self, name: &str) -> bool {
        let (own, below) = self.0.strip_prefix("*.").map_or((self.as_str(), false), |own| (own, true));
        let Some(rest) = name.len().checked_sub(own.len()) else { return false };
        if !name.is_char_boundary(rest) || !name[rest..].eq_ignore_ascii_case(own) {
            return false;
        }
        if rest == 0 { !below } else { name[..rest].ends_with('.') }
    }
}

impl EtcdUrl {
    /// Whether it is called by TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

/// The name that a link's TLS asks for; none by default. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsName(Option<HostName>);

impl TlsName {
    /// Takes `name` where a host could have it.
    pub fn parse(name: &str) -> Option<Self> {
        HostName::parse(name).map(|name| Self(Some(name)))
    }

    /// The name itself, if one is asked for.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_ref().map(HostName::as_str)
    }
}

/// An amount of a command line, at least a million.
///
/// # Errors
/// How it is written, where `text` is none.
pub fn amount_arg(text: &str) -> Result<u64, &'static str> {
    let wrong = "read amount: expected a number with a unit (k, M, G, T), 1M at least, such as 500M";
    amount(text).filter(|amount| *amount >= VOLUME_MIN).ok_or(wrong)
}

/// A number with a unit.
pub(crate) fn amount(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let (_, factor) = UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&unit))?;
    let number = text[..text.len() - unit.len_utf8()].trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.is_empty() || part.len() > DECIMALS {
        return None;
    }
    let thousandths: u64 = format!("{part:0<DECIMALS$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(*factor)?.checked_add(thousandths * (factor / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain_and_those_of_interfaces_follow_the_kernel() {
        let odd = |c| Err(NameError::Character(c));
        let table = [
            ("dsl-1.home_x", Ok(()), Ok(())),
            ("", Err(NameError::Empty), Err(NameError::Empty)),
            ("my link", odd(' '), odd(' ')),
            ("döner", odd('ö'), Ok(())),
            ("eth0.100", Ok(()), Ok(())),
            ("wg@x", odd('@'), Ok(())),
            ("a23456789012345", Ok(()), Ok(())),
            ("a234567890123456", Ok(()), Err(NameError::TooLong(15))),
            ("..", Ok(()), Err(NameError::Dots)),
            ("eth0/1", odd('/'), odd('/')),
            ("hawser%d", odd('%'), odd('%')),
        ];
        for (text, link, interface) in table {
            assert_eq!(LinkName::parse(text).map(|_| ()), link, "{text:?}");
            assert_eq!(InterfaceName::parse(text).map(|_| ()), interface, "{text:?}");
        }
        assert_eq!(PeerName::parse(&"x".repeat(65)).map(|_| ()), Err(NameError::TooLong(64)));
    }

    #[test]
    fn names_of_the_kernel_and_of_hosts_are_plain() {
        let names = ["cubic", "www.example.com", "a-b_c", "", "-x.example", "192.0.2.1", "sixteen-letters-"];
        let fitting = |fits: fn(&str) -> bool| names.into_iter().filter(|name| fits(name)).collect::<Vec<_>>();
        assert_eq!(fitting(|name| TlsName::parse(name).is_some()), ["cubic", "www.example.com"]);
        assert_eq!(fitting(|name| TcpCongestion::parse(name).is_some()), ["cubic", "a-b_c"]);
        let domains = ["~.", "a.test", "~b.test", ".", "~~."].map(|name| DnsDomain::parse(name).is_some());
        assert_eq!(domains, [true, true, true, false, false]);
    }

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
    fn an_amount_has_a_unit_and_at_most_three_decimals() {
        let right = [("20M", 20e6), ("1.5 G", 1.5e9), ("64k", 64e3), ("0.125m", 125e3), ("2T", 2e12)];
        for (text, expect) in right {
            assert_eq!(amount(text), Some(expect as u64), "{text:?}");
        }
        for wrong in ["20", "M", "-1M", "1.2345M", "1.M5", "99999999999T", ""] {
            assert_eq!(amount(wrong), None, "{wrong:?}");
        }
        assert_eq!((amount_arg("500M"), amount_arg("999k").is_err()), (Ok(500_000_000), true));
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, fits, fails) in [
            ("lo", &["lo"][..], &["lo0", "l", ""][..]),
            ("docker*", &["docker", "docker0"], &["dockr", "xdocker0"]),
            ("*", &["", "eth0"], &[]),
            ("*.100", &["eth0.100", ".100"], &["eth0.1001", "100"]),
            ("br-*-x", &["br-1-x", "br--x"], &["br-x", "br-1-y"]),
            ("v*e*h", &["veth", "vxexh"], &["vhe", "veh1"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
        ] {
            let pattern = InterfacePattern::parse(pattern).expect("a pattern");
            assert!(fits.iter().all(|name| pattern.matches(name)), "{pattern:?} {fits:?}");
            assert!(!fails.iter().any(|name| pattern.matches(name)), "{pattern:?} {fails:?}");
        }
        assert_eq!(InterfacePattern::parse(""), Err(NameError::Empty));
        assert!(InterfacePattern::parse("eth/0").is_err());
    }
}
