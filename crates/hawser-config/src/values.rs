//! The values of a configuration: each type holds only what is right.

use std::fmt;

pub use hawser_net::link::ip::IpProtocol;

/// Longest name of a link or peer, in characters: a label of metrics and tables, not prose.
const NAME_MAX: usize = 64;
/// Longest interface name in bytes (`IFNAMSIZ` of linux/if.h less the closing zero).
const INTERFACE_NAME_MAX: usize = 15;
/// Least MTU of the TUN device, in bytes: IPv6 demands it (RFC 8200 section 5).
pub const MTU_MIN: u16 = 1280;
/// Least and greatest metric of a link.
pub const METRIC_RANGE: std::ops::RangeInclusive<i64> = 0..=u16::MAX as i64;

/// A value that is one of a few words.
pub trait Keyword: Sized + Copy + 'static {
    /// Every value with its word, in the contract's order.
    const WORDS: &'static [(Self, &'static str)];

    /// The value called `word`.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(v, _)| *v)
    }
}

macro_rules! keyword {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl Keyword for $name {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$variant, $word),)+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)+ })
            }
        }
    };
}

keyword! {
    /// How the log is written.
    LogFormat {
        /// Lines that people read.
        Text = "text",
        /// An object of JSON a line.
        Json = "json",
    }
}

keyword! {
    /// How a path carries packets. Plain data.
    Transport {
        /// UDP datagrams.
        Udp = "udp",
        /// A TCP stream.
        Tcp = "tcp",
        /// A bare IP protocol.
        Ip = "ip",
        /// SCION packets.
        Scion = "scion",
        /// UDP where it passes, else TCP, else TCP inside TLS.
        Auto = "auto",
    }
}

keyword! {
    /// What chooses the path of a packet. Plain data.
    Scheduler {
        /// Earliest completion first, by what is measured.
        Adaptive = "adaptive",
        /// By fixed shares.
        Weighted = "weighted",
        /// A flow keeps one path.
        Flow = "flow",
        /// Every packet by every path.
        Redundant = "redundant",
    }
}

keyword! {
    /// Whether repairs go along. Plain data.
    Fec {
        /// None.
        Off = "off",
        /// As many as the measured loss asks for.
        Auto = "auto",
    }
}

keyword! {
    /// What becomes of the default route's traffic while the tunnel is away. Plain data.
    Fail {
        /// It goes by the links, as before there was a tunnel.
        Open = "open",
        /// It goes nowhere.
        Closed = "closed",
    }
}

keyword! {
    /// A protocol with ports. Plain data.
    Transported {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
}

keyword! {
    /// What decides how much a path may have in flight. Plain data.
    Congestion {
        /// RFC 9002 section 7.
        NewReno = "newreno",
        /// RFC 9438.
        Cubic = "cubic",
        /// The current IETF draft of BBR.
        Bbr = "bbr",
        /// RFC 6356, coupled.
        Lia = "lia",
        /// Coupled.
        Olia = "olia",
        /// Coupled.
        Balia = "balia",
    }
}

keyword! {
    /// What is done to inner packets. Plain data.
    Protection {
        /// Nobody between the portals reads or changes them.
        Encrypt = "encrypt",
        /// Nobody between the portals changes them.
        Authenticate = "authenticate",
    }
}

keyword! {
    /// The cipher of data. Plain data.
    Cipher {
        /// AES where both ends have the instructions, else ChaCha20.
        Auto = "auto",
        /// AES-128-GCM.
        Aes128Gcm = "aes-128-gcm",
        /// ChaCha20-Poly1305.
        ChaCha20Poly1305 = "chacha20-poly1305",
        /// Keyed BLAKE2s-128, authenticates only.
        Blake2s = "blake2s",
    }
}

/// Why text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is nothing.
    #[error("a name must not be empty")]
    Empty,
    /// Longer than allowed, in bytes.
    #[error("a name has at most {max} characters")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// A character that is not allowed.
    #[error("a name must not contain {0:?}")]
    Character(char),
    /// `.` or `..`, which the kernel does not take for an interface.
    #[error("`.` and `..` are no interface names")]
    Dots,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes `text` as a name.
            ///
            /// # Errors
            /// [`NameError`] where it is empty, too long, or has a character that is not allowed.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                $check(text).map(|()| Self(text.to_owned()))
            }

            /// The name itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

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
    };
}

name! {
    /// A link's name: letters, digits, `.`, `_` and `-`. Never empty; plain data.
    LinkName, check_name
}
name! {
    /// A peer's name: letters, digits, `.`, `_` and `-`. Never empty; plain data.
    PeerName, check_name
}
name! {
    /// A network interface's name, as the kernel takes it. Never empty; plain data.
    InterfaceName, check_interface_name
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
    check_length(text, NAME_MAX)?;
    let odd = |c: &char| !(c.is_ascii_alphanumeric() || "._-".contains(*c));
    text.chars().find(odd).map_or(Ok(()), |c| Err(NameError::Character(c)))
}

/// The kernel's rule (`dev_valid_name` in net/core/dev.c), with `%` refused too: it would make a name template.
fn check_interface_name(text: &str) -> Result<(), NameError> {
    check_length(text, INTERFACE_NAME_MAX)?;
    if text == "." || text == ".." {
        return Err(NameError::Dots);
    }
    let odd = |c: &char| c.is_whitespace() || c.is_control() || "/:%".contains(*c);
    text.chars().find(odd).map_or(Ok(()), |c| Err(NameError::Character(c)))
}

fn check_length(text: &str, max: usize) -> Result<(), NameError> {
    match text.len() {
        0 => Err(NameError::Empty),
        n if n > max => Err(NameError::TooLong { max }),
        _ => Ok(()),
    }
}

/// The tier of a link: less is better. Zero is the best; plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric(pub u16);

/// The greatest inner packet, in bytes. At least [`MTU_MIN`]; plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtu(u16);

impl Mtu {
    /// Takes `bytes` where the TUN device can have it.
    pub fn new(bytes: i64) -> Option<Self> {
        u16::try_from(bytes).ok().filter(|&b| b >= MTU_MIN).map(Self)
    }

    /// In bytes.
    pub fn bytes(self) -> u16 {
        self.0
    }
}

/// Longest name of a congestion control in bytes (`TCP_CA_NAME_MAX` of net/tcp.h less the closing zero).
const TCP_CONGESTION_MAX: usize = 15;

/// The name of a congestion control of the kernel: letters, digits, `_` and `-`. Never empty; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpCongestion(String);

impl TcpCongestion {
    /// Takes `name` where the kernel could have it.
    pub fn parse(name: &str) -> Option<Self> {
        let fits = (1..=TCP_CONGESTION_MAX).contains(&name.len());
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        (fits && plain).then(|| Self(name.to_owned()))
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name that a host could have. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(String);

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

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        let table = [
            ("dsl-1.home_x", Ok(())),
            ("", Err(NameError::Empty)),
            ("my link", Err(NameError::Character(' '))),
            ("döner", Err(NameError::Character('ö'))),
        ];
        for (text, expect) in table {
            assert_eq!(LinkName::parse(text).map(|_| ()), expect, "{text:?}");
        }
        assert_eq!(PeerName::parse(&"x".repeat(65)).map(|_| ()), Err(NameError::TooLong { max: 64 }));
    }

    #[test]
    fn interface_names_follow_the_kernel() {
        let table = [
            ("eth0.100", Ok(())),
            ("wg@x", Ok(())),
            ("a23456789012345", Ok(())),
            ("a234567890123456", Err(NameError::TooLong { max: 15 })),
            ("..", Err(NameError::Dots)),
            ("eth0/1", Err(NameError::Character('/'))),
            ("hawser%d", Err(NameError::Character('%'))),
        ];
        for (text, expect) in table {
            assert_eq!(InterfaceName::parse(text).map(|_| ()), expect, "{text:?}");
        }
    }

    #[test]
    fn an_mtu_carries_ipv6_and_fits_a_packet() {
        for (bytes, expect) in [(1279, false), (1280, true), (65535, true), (65536, false), (-1, false)] {
            assert_eq!(Mtu::new(bytes).is_some(), expect, "{bytes}");
        }
    }

    #[test]
    fn every_word_reads_back_as_itself() {
        fn holds<K: Keyword + fmt::Display + PartialEq + fmt::Debug>() {
            for (value, word) in K::WORDS {
                assert_eq!(value.to_string(), *word);
                assert_eq!(K::from_word(word), Some(*value));
            }
            assert_eq!(K::from_word("UDP"), None);
        }
        holds::<Transport>();
        holds::<Scheduler>();
        holds::<Congestion>();
        holds::<Protection>();
        holds::<Cipher>();
    }

    #[test]
    fn names_of_the_kernel_and_of_hosts_are_plain() {
        for (name, congestion, host) in [
            ("cubic", true, true),
            ("www.example.com", false, true),
            ("a-b_c", true, false),
            ("", false, false),
            ("-x.example", false, false),
            ("192.0.2.1", false, false),
            ("sixteen-letters-", false, false),
        ] {
            assert_eq!(TlsName::parse(name).is_some(), host, "{name}");
            assert_eq!(TcpCongestion::parse(name).is_some(), congestion, "{name}");
        }
    }
}
