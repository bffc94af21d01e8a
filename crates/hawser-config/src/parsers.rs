//! From a TOML value to a value that is right, or a fault that says how to write it.
//!
//! 1. Values of TOML's kinds, and words. 2. Names and amounts. 3. Addresses and networks. 4. Where portals are reached,
//!    and listen.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ipnet::IpNet;
use toml::de::DeValue;

use super::DEFAULT_PORT;
use super::error::{Fault, Read};
use super::scion::{self, ScionEndpoint};
use super::values::{HostName, InterfaceName, InterfacePattern, LinkName, NameError, PeerName, amount};
use super::words::Keyword;

/// Reads a string.
pub fn string<T>(value: &DeValue<'_>, parse: impl Fn(&str) -> Read<T>) -> Read<T> {
    let fault = || wrong_kind("a string", value).hint("strings stand in quotes");
    match value {
        DeValue::String(text) => parse(text),
        DeValue::Integer(number) => Err(fault().fix(quoted(number.as_str()))),
        _ => Err(fault()),
    }
}

/// Reads a string that `parse` takes; of others the fault is that they are `wrong`, such as "is no host name".
pub fn parsed<T>(value: &DeValue<'_>, parse: impl Fn(&str) -> Option<T>, wrong: &str, hint: &str) -> Read<T> {
    string(value, |text| parse(text).ok_or_else(|| Fault::new(format!("{} {wrong}", quoted(text))).hint(hint)))
}

/// Reads one of the words of `K`.
pub fn keyword<K: Keyword>(value: &DeValue<'_>) -> Read<K> {
    keyword_but(value, &[])
}

/// Reads one of the words of `K`, but for those that this version does not carry out.
pub fn keyword_but<K: Keyword>(value: &DeValue<'_>, later: &[K]) -> Read<K> {
    string(value, |word| {
        let carried = K::WORDS.iter().filter(|(value, _)| !later.contains(value));
        let carried: Vec<&str> = carried.map(|(_, word)| *word).collect();
        match K::from_word(word) {
            Some(keyword) if !later.contains(&keyword) => Ok(keyword),
            Some(_) => Err(not_supported(word).hint(format!("supported: {}", carried.join(", ")))),
            None => {
                let fault = Fault::new(format!("unknown value {}", quoted(word)));
                Err(fault.meant(word, &carried, || format!("one of: {}", carried.join(", "))))
            }
        }
    })
}

/// The fault of something the contract knows and this version does not carry out.
pub(super) fn not_supported(what: &str) -> Fault {
    Fault::new(format!("{what} is not supported in this version"))
}

/// Reads a whole number.
pub fn integer(value: &DeValue<'_>) -> Read<i64> {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| Fault::new(format!("{number} is out of range"))),
        DeValue::String(text) if text.parse::<i64>().is_ok() => {
            Err(wrong_kind("a number", value).hint("numbers stand without quotes").fix(text.as_ref()))
        }
        _ => Err(wrong_kind("a number", value)),
    }
}

/// Reads a whole number of `range`; `more` adds to the fault of one outside.
pub fn within<T: TryFrom<i64>>(
    value: &DeValue<'_>,
    range: RangeInclusive<i64>,
    more: impl Fn(Fault) -> Fault,
) -> Read<T> {
    let number = integer(value)?;
    let fits = T::try_from(number).ok().filter(|_| range.contains(&number));
    let (least, most) = (range.start(), range.end());
    fits.ok_or_else(|| more(Fault::new(format!("{number} is not between {least} and {most}"))))
}

/// Reads true or false.
pub fn boolean(value: &DeValue<'_>) -> Read<bool> {
    match value {
        DeValue::Boolean(flag) => Ok(*flag),
        DeValue::String(text) if text.parse::<bool>().is_ok() => {
            Err(wrong_kind("true or false", value).hint("these stand without quotes").fix(text.as_ref()))
        }
        _ => Err(wrong_kind("true or false", value)),
    }
}

/// The fault of a value of another kind.
pub fn wrong_kind(expected: &str, found: &DeValue<'_>) -> Fault {
    Fault::new(format!("expected {expected}, found {}", kind(found)))
}

/// The fault of a value that is no list.
pub(super) fn not_a_list(value: &DeValue<'_>) -> Fault {
    let fault = wrong_kind("a list", value);
    match value {
        DeValue::String(text) => fault.hint("a list stands in brackets").fix(format!("[{}]", quoted(text))),
        _ => fault.hint("a list stands in brackets: [\"…\", \"…\"]"),
    }
}

/// What a value is, in words.
pub fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// `text` as a TOML string.
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

pub(super) fn link_name(value: &DeValue<'_>) -> Read<LinkName> {
    string(value, |text| LinkName::parse(text).map_err(|error| bad_name(text, error)))
}

pub(super) fn peer_name(value: &DeValue<'_>) -> Read<PeerName> {
    string(value, |text| PeerName::parse(text).map_err(|error| bad_name(text, error)))
}

fn bad_name(text: &str, error: NameError) -> Fault {
    let fault = Fault::new(error.to_string()).hint("letters, digits, `.`, `_` and `-`");
    if !matches!(error, NameError::Character(_)) {
        return fault;
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    fault.fix(quoted(&text.chars().map(plain).collect::<String>()))
}

pub(super) fn interface_name(value: &DeValue<'_>) -> Read<InterfaceName> {
    let fault = |error: NameError| Fault::new(error.to_string()).hint("`ip link` lists the interfaces");
    string(value, |text| InterfaceName::parse(text).map_err(fault))
}

pub(super) fn interface_pattern(value: &DeValue<'_>) -> Read<InterfacePattern> {
    let fault = |error: NameError| Fault::new(error.to_string()).hint("such as \"docker*\"");
    string(value, |text| InterfacePattern::parse(text).map_err(fault))
}

/// A file, or a folder: a string that is not empty.
pub fn path(value: &DeValue<'_>) -> Read<PathBuf> {
    string(value, |text| match text {
        "" => Err(Fault::new("a path must not be empty")),
        _ => Ok(PathBuf::from(text)),
    })
}

/// A part of what links carry.
pub(super) fn weight(value: &DeValue<'_>) -> Read<u8> {
    within(value, 1..=u8::MAX.into(), |fault| fault.hint("a link with twice the weight carries twice as much"))
}

/// An amount of `what` with its unit, such as `example`.
pub(super) fn at_least(value: &DeValue<'_>, least: u64, what: &str, example: &str) -> Read<u64> {
    let hint = format!("a number with a unit (k, M, G, T), such as {example}");
    match value {
        DeValue::String(text) => match amount(text) {
            Some(amount) if amount < least => Err(Fault::new(format!("{} is less than {least} {what}", quoted(text)))),
            Some(amount) => Ok(amount),
            None => Err(Fault::new(format!("{} is no amount", quoted(text))).hint(hint)),
        },
        DeValue::Integer(number) => Err(Fault::new(format!("{number} has no unit")).hint(hint)),
        _ => Err(wrong_kind("a string", value).hint(hint)),
    }
}

pub(super) fn ip_address(value: &DeValue<'_>) -> Read<IpAddr> {
    string(value, |text| match (text.parse::<IpAddr>(), text.parse::<IpNet>()) {
        (Ok(address), _) if is_nobody(address) => Err(Fault::new(format!("{text} is not an address of this host"))),
        (Ok(address), _) => Ok(address),
        (_, net) => {
            let fault = Fault::new(format!("{} is not an IP address", quoted(text)));
            Err(match net {
                Ok(net) => fault.hint("without a prefix").fix(quoted(&net.addr().to_string())),
                Err(_) => fault.hint("an address such as \"192.0.2.10\" or \"2001:db8::10\""),
            })
        }
    })
}

/// Whether no single host has it.
fn is_nobody(address: IpAddr) -> bool {
    address.is_unspecified() || address.is_multicast()
}

/// An address of the TUN device with the prefix of its network; host bits are kept.
pub(super) fn interface_address(value: &DeValue<'_>) -> Read<IpNet> {
    string(value, |text| match prefixed(text, 24, 64)? {
        net if is_nobody(net.addr()) => Err(Fault::new(format!("{text} is not an address a device can have"))),
        net => Ok(net),
    })
}

/// A network; its host bits are zero.
pub(super) fn network(value: &DeValue<'_>) -> Read<IpNet> {
    string(value, |text| {
        let net = prefixed(text, 32, 128)?;
        zero_host_bits(net, IpNet::from(net.addr())).map_err(|fault| fault.fix(quoted(&net.trunc().to_string())))
    })
}

/// A network without host bits, or the fault that it has some; `one` is how its address alone is written.
pub fn zero_host_bits(net: IpNet, one: impl fmt::Display) -> Read<IpNet> {
    let network = net.trunc();
    if network == net {
        return Ok(net);
    }
    Err(Fault::new(format!("{net} is an address inside the network {network}"))
        .hint(format!("for the network write \"{network}\", for the one address \"{one}\"")))
}

/// `v4` and `v6` are the prefixes that are meant mostly.
fn prefixed(text: &str, v4: u8, v6: u8) -> Read<IpNet> {
    text.parse::<IpNet>().map_err(|_| match text.parse::<IpAddr>() {
        Ok(address) => Fault::new(format!("{text} has no prefix"))
            .hint("add the network's length")
            .fix(quoted(&format!("{address}/{}", if address.is_ipv4() { v4 } else { v6 }))),
        Err(_) => Fault::new(format!("{} is not an address with a prefix", quoted(text)))
            .hint("such as \"10.77.0.2/24\" or \"fd77::2/64\""),
    })
}

/// Where the page listens: what serves it has no power to take a low port.
pub(super) fn web_address(value: &DeValue<'_>) -> Read<SocketAddr> {
    let hint = "such as \"127.0.0.1:4921\"";
    if cfg!(not(feature = "web")) {
        return Err(not_supported("a page"));
    }
    let address: SocketAddr = parsed(value, |text| text.parse().ok(), "is not an address and port", hint)?;
    match address.port() {
        port @ ..1024 => Err(Fault::new(format!("port {port} is below 1024")).hint(hint)),
        _ => Ok(address),
    }
}

/// Where Prometheus scrapes the portal.
pub(super) fn metrics_address(value: &DeValue<'_>) -> Read<SocketAddr> {
    string(value, |_| match cfg!(feature = "metrics") {
        true => Ok(()),
        false => Err(not_supported("[metrics]").hint("this program was built without it: leave the section out")),
    })?;
    let address = |text: &str| text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    let hint = "an address and a port, such as \"127.0.0.1:9492\" or \"[::1]:9492\"";
    parsed(value, address, "is not an address with a port", hint)
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

/// Where a peer is reached.
pub(super) fn endpoint(value: &DeValue<'_>) -> Read<Endpoint> {
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
        if is_nobody(host) {
            let fault = Fault::new(format!("no single host is reached at {text}"));
            return Err(fault.hint("write the address of the peer"));
        }
        Ok(endpoint)
    })
}

/// A name and a port; none where it is something else.
fn named_endpoint(text: &str) -> Read<Option<Endpoint>> {
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

/// An address, which may be unspecified: a portal may listen there.
pub(super) fn any_endpoint(text: &str) -> Read<Endpoint> {
    if let Some(rest) = text.strip_prefix(scion::SCHEME) {
        return scion::endpoint(rest).map(Endpoint::Scion);
    }
    if scion::is_bare(text) {
        let fault = Fault::new(format!("{text} is a SCION endpoint without its scheme"));
        return Err(fault.fix(quoted(&format!("{}{text}", scion::SCHEME))));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(Endpoint::Socket(address)),
        Ok(address) => Err(Fault::new("port 0 is no port").fix(with_default_port(address.ip()))),
        Err(_) => Err(no_socket_address(text)),
    }
}

fn with_default_port(address: IpAddr) -> String {
    quoted(&SocketAddr::new(address, DEFAULT_PORT).to_string())
}

/// What was meant by it.
fn no_socket_address(text: &str) -> Fault {
    let (name, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let address = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>();
    // `2001:db8::7:4920` is an address without a port too, but that is hardly what was meant.
    let bare = text.parse::<IpAddr>().is_ok();
    if let (Ok(IpAddr::V6(address)), Ok(port)) = (name.parse(), port.parse::<u16>())
        && (!bare || port == DEFAULT_PORT)
    {
        let fault = Fault::new(format!("{text}: an IPv6 address needs brackets before its port"));
        return fault.fix(quoted(&format!("[{address}]:{port}")));
    }
    if let Ok(address) = address(text) {
        return Fault::new(format!("{text} has no port")).hint("address and port").fix(with_default_port(address));
    }
    if let Ok(address) = address(name) {
        let fault = Fault::new(format!("{} is not a port", quoted(port)));
        return fault.hint("1 to 65535").fix(with_default_port(address));
    }
    if name.chars().any(|c| c.is_ascii_alphabetic()) && HostName::parse(name).is_some() {
        return Fault::new(format!("a portal listens on addresses, and {} is a name", quoted(name)))
            .hint(format!("on all of them: \"0.0.0.0:{DEFAULT_PORT}\" and \"[::]:{DEFAULT_PORT}\""));
    }
    Fault::new(format!("{} is not an address and port", quoted(text)))
        .hint("such as \"198.51.100.7:4920\" or \"[2001:db8::7]:4920\"")
}
