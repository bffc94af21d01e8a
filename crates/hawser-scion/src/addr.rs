//! SCION addresses and how they are written (draft-dekater-scion-controlplane, "Addressing").

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Bits of an AS number.
const ASN_BITS: u32 = 48;

/// AS numbers up to this one are those of BGP and written in decimal; others are three groups of four hex digits.
const LAST_BGP_ASN: u64 = u32::MAX as u64;

/// An isolation domain. 0 is the wildcard and the default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isd(pub u16);

/// An AS number, of 48 bits. 0 is the wildcard and the default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asn(u64);

/// An isolation domain and an AS in it. `0-0` by default, which is every AS. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IsdAs(u64);

/// A host's port in an AS: `1-ff00:0:110,10.0.0.1:443` or `[1-ff00:0:110,fd00::1]:443`.
/// There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointAddr {
    /// The AS.
    pub isd_as: IsdAs,
    /// The host in it, and the port of SCION/UDP.
    pub host: SocketAddr,
}

/// Why text is no SCION address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddrError {
    /// Not `ISD-AS`.
    #[error("read \"{text}\": an AS is written ISD-AS, like 1-ff00:0:110")]
    IsdAs {
        /// What was read.
        text: String,
    },
    /// No ISD.
    #[error("read \"{text}\": an ISD is a number up to 65535")]
    Isd {
        /// What was read.
        text: String,
    },
    /// No AS number.
    #[error(
        "read \"{text}\": an AS number is decimal up to 4294967295, or three groups of hex digits, like ff00:0:110"
    )]
    Asn {
        /// What was read.
        text: String,
    },
    /// No endpoint.
    #[error("read \"{text}\": a SCION endpoint is written ISD-AS,HOST:PORT, like 1-ff00:0:110,10.0.0.1:4920")]
    Endpoint {
        /// What was read.
        text: String,
    },
}

impl Asn {
    /// The wildcard.
    pub const WILDCARD: Asn = Asn(0);

    /// An AS number, unless it needs more than 48 bits.
    pub const fn new(number: u64) -> Option<Asn> {
        if number >> ASN_BITS == 0 { Some(Asn(number)) } else { None }
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl IsdAs {
    /// Bytes of it in a header.
    pub const BYTES: usize = 8;

    /// An AS in an ISD.
    pub const fn new(isd: Isd, asn: Asn) -> IsdAs {
        IsdAs((isd.0 as u64) << ASN_BITS | asn.0)
    }

    /// As in a header: 16 bits ISD, 48 bits AS.
    pub const fn from_bits(bits: u64) -> IsdAs {
        IsdAs(bits)
    }

    /// As in a header: 16 bits ISD, 48 bits AS.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The ISD.
    pub const fn isd(self) -> Isd {
        Isd((self.0 >> ASN_BITS) as u16)
    }

    /// The AS.
    pub const fn asn(self) -> Asn {
        Asn(self.0 & ((1 << ASN_BITS) - 1))
    }

    /// Whether ISD or AS is 0, and so stands for several.
    pub const fn is_wildcard(self) -> bool {
        self.isd().0 == 0 || self.asn().0 == 0
    }

    /// Whether it is this AS, where 0 is any.
    pub fn covers(self, other: IsdAs) -> bool {
        (self.isd().0 == 0 || self.isd() == other.isd()) && (self.asn().0 == 0 || self.asn() == other.asn())
    }
}

impl EndpointAddr {
    /// A host's port in an AS.
    pub const fn new(isd_as: IsdAs, host: SocketAddr) -> EndpointAddr {
        EndpointAddr { isd_as, host }
    }
}

impl fmt::Display for Isd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= LAST_BGP_ASN {
            return self.0.fmt(f);
        }
        write!(f, "{:x}:{:x}:{:x}", self.0 >> 32, self.0 >> 16 & 0xffff, self.0 & 0xffff)
    }
}

impl fmt::Display for IsdAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.isd(), self.asn())
    }
}

impl fmt::Display for EndpointAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.ip() {
            IpAddr::V4(host) => write!(f, "{},{host}:{}", self.isd_as, self.host.port()),
            IpAddr::V6(host) => write!(f, "[{},{host}]:{}", self.isd_as, self.host.port()),
        }
    }
}

impl FromStr for Isd {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<Isd, AddrError> {
        digits(text).and_then(|text| text.parse().ok()).map(Isd).ok_or_else(|| AddrError::Isd { text: text.to_owned() })
    }
}

impl FromStr for Asn {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<Asn, AddrError> {
        let error = || AddrError::Asn { text: text.to_owned() };
        if !text.contains(':') {
            let number: u32 = digits(text).and_then(|text| text.parse().ok()).ok_or_else(error)?;
            return Ok(Asn(number.into()));
        }
        let groups: Vec<u16> = text.split(':').map_while(group).collect();
        match groups[..] {
            [a, b, c] if text.split(':').count() == 3 => {
                Ok(Asn(u64::from(a) << 32 | u64::from(b) << 16 | u64::from(c)))
            }
            _ => Err(error()),
        }
    }
}

impl FromStr for IsdAs {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<IsdAs, AddrError> {
        let (isd, asn) = text.split_once('-').ok_or_else(|| AddrError::IsdAs { text: text.to_owned() })?;
        Ok(IsdAs::new(isd.parse()?, asn.parse()?))
    }
}

impl FromStr for EndpointAddr {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<EndpointAddr, AddrError> {
        let error = || AddrError::Endpoint { text: text.to_owned() };
        let bracketed = text.strip_prefix('[').and_then(|text| text.rsplit_once("]:"));
        let (isd_as, host) = match bracketed {
            Some((inner, port)) => {
                let (isd_as, host) = inner.split_once(',').ok_or_else(error)?;
                let host: IpAddr = host.parse().map_err(|_| error())?;
                let port = digits(port).and_then(|port| port.parse().ok()).ok_or_else(error)?;
                (isd_as, SocketAddr::new(host, port))
            }
            None => {
                let (isd_as, host) = text.split_once(',').ok_or_else(error)?;
                (isd_as, host.parse().map_err(|_| error())?)
            }
        };
        Ok(EndpointAddr { isd_as: isd_as.parse()?, host })
    }
}

/// The text, if it is digits and nothing else (`parse` takes a sign too).
fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// Four hex digits at most.
fn group(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["0-0", "1-ff00:0:110", "65535-ffff:ffff:ffff", "64-2:0:9", "1-64512", "1-4294967295", "2-1:0:0"] {
            assert_eq!(text.parse::<IsdAs>().expect(text).to_string(), text);
        }
        for text in ["1-ff00:0:110,10.0.0.1:443", "[1-ff00:0:110,fd00::1]:443", "[2-64512,::1]:65535"] {
            assert_eq!(text.parse::<EndpointAddr>().expect(text).to_string(), text);
        }
        let other = "1-ff00:0:110,[fd00::1]:443".parse::<EndpointAddr>().expect("another way to write it");
        assert_eq!(other.to_string(), "[1-ff00:0:110,fd00::1]:443");
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for text in [
            "",
            "1",
            "1-",
            "-1",
            "65536-1",
            "+1-2",
            "1-4294967296",
            "1-ff00:0",
            "1-ff00:0:0:1",
            "1-fffff:0:1",
            "1-:0:1",
            "1-+1:0:1",
        ] {
            let error = text.parse::<IsdAs>().expect_err(text).to_string();
            assert!(error.starts_with("read \""), "{error}");
        }
        for text in ["1-2", "1-2,host:1", "1-2,10.0.0.1", "1-2,10.0.0.1:65536", "[1-2,::1]", "[1-2,::1]:+1", "[1-2]:1"]
        {
            let error = text.parse::<EndpointAddr>().expect_err(text).to_string();
            assert!(error.contains("1-ff00:0:110,10.0.0.1:4920"), "{text}: {error}");
        }
    }

    #[test]
    fn a_wildcard_covers_what_it_leaves_open() {
        let as_110: IsdAs = "1-ff00:0:110".parse().expect("it is one");
        for (pattern, covers) in
            [("0-0", true), ("1-0", true), ("2-0", false), ("0-ff00:0:110", true), ("0-ff00:0:111", false)]
        {
            assert_eq!(pattern.parse::<IsdAs>().expect("it is one").covers(as_110), covers, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn any_address_survives_being_written(bits: u64, host: SocketAddr) {
            // Scopes and flow labels are no part of a SCION address.
            let endpoint = EndpointAddr::new(IsdAs::from_bits(bits), SocketAddr::new(host.ip(), host.port()));
            prop_assert_eq!(endpoint.to_string().parse::<EndpointAddr>(), Ok(endpoint));
        }
    }
}
