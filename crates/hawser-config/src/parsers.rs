//! From a TOML value to a value that is right, or a fault that says how to write it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use toml::de::DeValue;

use super::DEFAULT_PORT;
use super::error::Fault;
use super::key::PublicKey;
use super::pattern::InterfacePattern;
use super::reader::{Spelled, integer, quoted, string};
use super::reading::no_such_word;
use super::scion::{self, ScionEndpoint};
use super::supported;
use super::values::{
    HostName, InterfaceName, Keyword, LinkName, METRIC_RANGE, MTU_MIN, Metric, Mtu, NameError, PeerName,
};

/// One of the words of `K`, which this version carries out; `key` is `section.key`.
pub(super) fn keyword<K: Keyword>(key: &str, value: &DeValue<'_>) -> Result<K, Fault> {
    string(value, |word| {
        let known: Vec<&str> = K::WORDS.iter().map(|(_, w)| *w).collect();
        let carried: Vec<&str> = known.iter().copied().filter(|w| supported::value(key, w)).collect();
        match K::from_word(word) {
            Some(keyword) if carried.contains(&word) => Ok(keyword),
            Some(_) => Err(not_supported(word).hint(format!("supported: {}", carried.join(", ")))),
            None => Err(no_such_word(word, &carried)),
        }
    })
}

/// The fault of something the contract knows and this version does not carry out.
pub(super) fn not_supported(what: &str) -> Fault {
    Fault::new(format!("{what} is not supported in this version"))
}

pub(super) fn link_name(value: &DeValue<'_>) -> Result<LinkName, Fault> {
    string(value, |text| LinkName::parse(text).map_err(|e| bad_name(text, e)))
}

pub(super) fn peer_name(value: &DeValue<'_>) -> Result<PeerName, Fault> {
    string(value, |text| PeerName::parse(text).map_err(|e| bad_name(text, e)))
}

pub(super) fn interface_name(value: &DeValue<'_>) -> Result<InterfaceName, Fault> {
    string(value, |text| {
        InterfaceName::parse(text).map_err(|e| Fault::new(e.to_string()).hint("`ip link` lists the interfaces"))
    })
}

/// Interfaces, by a name or a pattern.
pub(super) fn interface_pattern(value: &DeValue<'_>) -> Result<InterfacePattern, Fault> {
    string(value, |text| {
        InterfacePattern::parse(text).map_err(|e| Fault::new(e.to_string()).hint("such as \"docker*\""))
    })
}

fn bad_name(text: &str, error: NameError) -> Fault {
    let fault = Fault::new(error.to_string()).hint("letters, digits, `.`, `_` and `-`");
    match error {
        NameError::Character(_) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
            fault.fix(quoted(&text.chars().map(plain).collect::<String>()))
        }
        _ => fault,
    }
}

pub(super) fn path(value: &DeValue<'_>) -> Result<PathBuf, Fault> {
    string(value, |text| match text {
        "" => Err(Fault::new("a path must not be empty")),
        _ => Ok(PathBuf::from(text)),
    })
}

pub(super) fn public_key(value: &DeValue<'_>) -> Result<PublicKey, Fault> {
    string(value, |text| {
        PublicKey::parse(text).map_err(|e| {
            Fault::new(e.to_string())
                .hint("44 characters, as printed on the other side by: hawser pubkey < private.key")
        })
    })
}

pub(super) fn metric(value: &DeValue<'_>) -> Result<Metric, Fault> {
    let number = integer(value)?;
    let metric = u16::try_from(number).map_err(|_| {
        Fault::new(format!("{number} is not between {} and {}", METRIC_RANGE.start(), METRIC_RANGE.end()))
    })?;
    Ok(Metric(metric))
}

pub(super) fn weight(value: &DeValue<'_>) -> Result<u8, Fault> {
    let number = integer(value)?;
    let parts = u8::try_from(number).ok().filter(|parts| *parts > 0);
    parts.ok_or_else(|| {
        Fault::new(format!("{number} is not between 1 and {}", u8::MAX))
            .hint("a link with twice the weight carries twice as much")
    })
}

/// The word for what the smallest path carries.
const MTU_AUTO: &str = "auto";

/// None for `auto`, which was 0 once.
pub(super) fn mtu(value: &DeValue<'_>) -> Result<Spelled<Option<Mtu>>, Fault> {
    if matches!(value, DeValue::String(text) if text == MTU_AUTO) {
        return Ok(Spelled::new(None));
    }
    match integer(value)? {
        0 => Ok(Spelled::old(None, Fault::new("`mtu`: 0 is written \"auto\" today").fix(quoted(MTU_AUTO)))),
        bytes => Mtu::new(bytes).map(|mtu| Spelled::new(Some(mtu))).ok_or_else(|| {
            Fault::new(format!("{bytes} is not between {MTU_MIN} and {}", u16::MAX))
                .hint("\"auto\" takes what the smallest path carries")
                .fix(quoted(MTU_AUTO))
        }),
    }
}

/// An interface; none for the empty string, which said once that there is none.
pub(super) fn masquerade(value: &DeValue<'_>) -> Result<Spelled<Option<InterfaceName>>, Fault> {
    if matches!(value, DeValue::String(text) if text.is_empty()) {
        let today = Fault::new("`masquerade`: where there is no interface, leave the key out");
        return Ok(Spelled::old(None, today));
    }
    interface_name(value).map(|name| Spelled::new(Some(name)))
}

pub(super) fn ip_address(value: &DeValue<'_>) -> Result<IpAddr, Fault> {
    string(value, |text| {
        if let Ok(address) = text.parse::<IpAddr>() {
            return match address {
                a if a.is_unspecified() || a.is_multicast() => {
                    Err(Fault::new(format!("{text} is not an address of this host")))
                }
                a => Ok(a),
            };
        }
        let fault = Fault::new(format!("{} is not an IP address", quoted(text)));
        Err(match text.parse::<IpNet>() {
            Ok(net) => fault.hint("without a prefix").fix(quoted(&net.addr().to_string())),
            Err(_) => fault.hint("an address such as \"192.0.2.10\" or \"2001:db8::10\""),
        })
    })
}

/// An address of the TUN device with the prefix of its network; host bits are kept.
pub(super) fn interface_address(value: &DeValue<'_>) -> Result<IpNet, Fault> {
    string(value, |text| {
        let net = prefixed(text, |address| if address.is_ipv4() { 24 } else { 64 })?;
        if net.addr().is_unspecified() || net.addr().is_multicast() {
            return Err(Fault::new(format!("{text} is not an address a device can have")));
        }
        Ok(net)
    })
}

/// A network; its host bits are zero.
pub(super) fn network(value: &DeValue<'_>) -> Result<IpNet, Fault> {
    string(value, |text| {
        let net = prefixed(text, |address| if address.is_ipv4() { 32 } else { 128 })?;
        if net.trunc() == net {
            return Ok(net);
        }
        let network = net.trunc();
        Err(Fault::new(format!("{net} is an address inside the network {network}"))
            .hint(format!("for the network write \"{network}\", for the one address \"{}\"", host(net.addr())))
            .fix(quoted(&network.to_string())))
    })
}

fn prefixed(text: &str, usual: impl Fn(IpAddr) -> u8) -> Result<IpNet, Fault> {
    text.parse::<IpNet>().map_err(|_| match text.parse::<IpAddr>() {
        Ok(address) => Fault::new(format!("{text} has no prefix"))
            .hint("add the network's length")
            .fix(quoted(&format!("{address}/{}", usual(address)))),
        Err(_) => Fault::new(format!("{} is not an address with a prefix", quoted(text)))
            .hint("such as \"10.77.0.2/24\" or \"fd77::2/64\""),
    })
}

fn host(address: IpAddr) -> IpNet {
    IpNet::from(address)
}

/// An address of either kind, or a name. Plain data.
pub(super) enum Endpoint {
    Socket(SocketAddr),
    Name(HostName, u16),
    Scion(ScionEndpoint),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Scion(endpoint) => endpoint.fmt(f),
        }
    }
}

/// Where a portal listens: the address may be unspecified.
pub(super) fn listen_address(value: &DeValue<'_>) -> Result<Endpoint, Fault> {
    string(value, any_endpoint)
}

/// Where the page listens: what serves it has no power to take a low port.
pub(super) fn web_address(value: &DeValue<'_>) -> Result<SocketAddr, Fault> {
    const EXAMPLE: &str = "such as \"127.0.0.1:4921\"";
    if cfg!(not(feature = "web")) {
        return Err(not_supported("a page"));
    }
    string(value, |text| match text.parse::<SocketAddr>() {
        Ok(address) if address.port() < 1024 => {
            Err(Fault::new(format!("port {} is below 1024", address.port())).hint(EXAMPLE))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(Fault::new(format!("{} is not an address and port", quoted(text))).hint(EXAMPLE)),
    })
}

/// Where a peer is reached.
pub(super) fn endpoint(value: &DeValue<'_>) -> Result<Endpoint, Fault> {
    string(value, |text| {
        if let Some(named) = named_endpoint(text)? {
            return Ok(named);
        }
        let endpoint = any_endpoint(text)?;
        let host = match &endpoint {
            Endpoint::Socket(address) => address.ip(),
            Endpoint::Scion(endpoint) => scion::host(endpoint).ip(),
            Endpoint::Name(..) => return Ok(endpoint),
        };
        if host.is_unspecified() || host.is_multicast() {
            return Err(
                Fault::new(format!("no single host is reached at {text}")).hint("write the address of the peer")
            );
        }
        Ok(endpoint)
    })
}

/// A name and a port; none where it is something else.
fn named_endpoint(text: &str) -> Result<Option<Endpoint>, Fault> {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    // Of numbers alone is a mistyped address.
    let Some(name) = HostName::parse(host).filter(|_| host.chars().any(|c| c.is_ascii_alphabetic())) else {
        return Ok(None);
    };
    let whole = || quoted(&format!("{host}:{DEFAULT_PORT}"));
    match port.map(str::parse) {
        None => Err(Fault::new(format!("{text} has no port")).hint("name and port").fix(whole())),
        Some(Ok(0) | Err(_)) => Err(Fault::new(format!("{text}: its port is none")).hint("1 to 65535").fix(whole())),
        Some(Ok(port)) => Ok(Some(Endpoint::Name(name, port))),
    }
}

fn any_endpoint(text: &str) -> Result<Endpoint, Fault> {
    match text.strip_prefix(scion::SCHEME) {
        Some(rest) => scion::endpoint(rest).map(Endpoint::Scion),
        None if scion::is_bare(text) => {
            let fault = Fault::new(format!("{text} is a SCION endpoint without its scheme"));
            Err(fault.fix(quoted(&format!("{}{text}", scion::SCHEME))))
        }
        None => socket_address(text).map(Endpoint::Socket),
    }
}

fn socket_address(text: &str) -> Result<SocketAddr, Fault> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.port() {
            0 => {
                Err(Fault::new("port 0 is no port")
                    .fix(quoted(&SocketAddr::new(address.ip(), DEFAULT_PORT).to_string())))
            }
            _ => Ok(address),
        };
    }
    let (name, port) = text.rsplit_once(':').unwrap_or((text, ""));
    // `2001:db8::7:4920` is an address without a port too, but that is hardly what was meant.
    let bare = text.parse::<IpAddr>().is_ok();
    if let (Ok(IpAddr::V6(address)), Ok(port)) = (name.parse(), port.parse::<u16>())
        && (!bare || port == DEFAULT_PORT)
    {
        let fault = Fault::new(format!("{text}: an IPv6 address needs brackets before its port"));
        return Err(fault.fix(quoted(&format!("[{address}]:{port}"))));
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let whole = SocketAddr::new(address, DEFAULT_PORT).to_string();
        return Err(Fault::new(format!("{text} has no port")).hint("address and port").fix(quoted(&whole)));
    }
    if let Ok(address) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        let whole = SocketAddr::new(address, DEFAULT_PORT).to_string();
        return Err(Fault::new(format!("{} is not a port", quoted(port))).hint("1 to 65535").fix(quoted(&whole)));
    }
    if name.chars().any(|c| c.is_ascii_alphabetic()) && HostName::parse(name).is_some() {
        return Err(Fault::new(format!("a portal listens on addresses, and {} is a name", quoted(name)))
            .hint(format!("on all of them: \"0.0.0.0:{DEFAULT_PORT}\" and \"[::]:{DEFAULT_PORT}\"")));
    }
    Err(Fault::new(format!("{} is not an address and port", quoted(text)))
        .hint("such as \"198.51.100.7:4920\" or \"[2001:db8::7]:4920\""))
}
