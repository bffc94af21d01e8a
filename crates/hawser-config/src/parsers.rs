//! From a TOML value to a value that is right, or a fault that says how to write it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use toml::de::DeValue;

use super::DEFAULT_PORT;
use super::error::Fault;
use super::kinds::{kind, not_supported, parsed, quoted, string, within};
use super::scion::{self, ScionEndpoint};
use super::values::{HostName, InterfaceName, InterfacePattern, LinkName, NameError, PeerName, amount};

pub(super) fn link_name(value: &DeValue<'_>) -> Result<LinkName, Fault> {
    string(value, |text| LinkName::parse(text).map_err(|e| bad_name(text, e)))
}

pub(super) fn peer_name(value: &DeValue<'_>) -> Result<PeerName, Fault> {
    string(value, |text| PeerName::parse(text).map_err(|e| bad_name(text, e)))
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

pub(super) fn interface_name(value: &DeValue<'_>) -> Result<InterfaceName, Fault> {
    let fault = |error: NameError| Fault::new(error.to_string()).hint("`ip link` lists the interfaces");
    string(value, |text| InterfaceName::parse(text).map_err(fault))
}

/// Interfaces, by a name or a pattern.
pub(super) fn interface_pattern(value: &DeValue<'_>) -> Result<InterfacePattern, Fault> {
    let fault = |error: NameError| Fault::new(error.to_string()).hint("such as \"docker*\"");
    string(value, |text| InterfacePattern::parse(text).map_err(fault))
}

/// A file, or a folder.
///
/// # Errors
/// It is no text, or empty.
pub fn path(value: &DeValue<'_>) -> Result<PathBuf, Fault> {
    string(value, |text| match text {
        "" => Err(Fault::new("a path must not be empty")),
        _ => Ok(PathBuf::from(text)),
    })
}

/// A part of what links carry.
pub(super) fn weight(value: &DeValue<'_>) -> Result<u8, Fault> {
    within(value, 1..=u8::MAX.into(), |fault| fault.hint("a link with twice the weight carries twice as much"))
}

/// An amount of `what` with its unit, such as `example`.
pub(super) fn at_least(value: &DeValue<'_>, least: u64, what: &str, example: &str) -> Result<u64, Fault> {
    let hint = format!("a number with a unit (k, M, G, T), such as {example}");
    let text = match value {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) => return Err(Fault::new(format!("{number} has no unit")).hint(hint)),
        _ => return Err(Fault::new(format!("expected a string, found {}", kind(value))).hint(hint)),
    };
    match amount(text) {
        Some(amount) if amount < least => Err(Fault::new(format!("{} is less than {least} {what}", quoted(text)))),
        Some(amount) => Ok(amount),
        None => Err(Fault::new(format!("{} is no amount", quoted(text))).hint(hint)),
    }
}

pub(super) fn ip_address(value: &DeValue<'_>) -> Result<IpAddr, Fault> {
    string(value, |text| match (text.parse::<IpAddr>(), text.parse::<IpNet>()) {
        (Ok(address), _) if address.is_unspecified() || address.is_multicast() => {
            Err(Fault::new(format!("{text} is not an address of this host")))
        }
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

/// An address of the TUN device with the prefix of its network; host bits are kept.
pub(super) fn interface_address(value: &DeValue<'_>) -> Result<IpNet, Fault> {
    string(value, |text| match prefixed(text, 24, 64)? {
        net if net.addr().is_unspecified() || net.addr().is_multicast() => {
            Err(Fault::new(format!("{text} is not an address a device can have")))
        }
        net => Ok(net),
    })
}

/// A network; its host bits are zero.
pub(super) fn network(value: &DeValue<'_>) -> Result<IpNet, Fault> {
    string(value, |text| {
        let net = prefixed(text, 32, 128)?;
        zero_host_bits(net, IpNet::from(net.addr())).map_err(|fault| fault.fix(quoted(&net.trunc().to_string())))
    })
}

/// A network without host bits; `one` is how its address alone is written.
///
/// # Errors
/// It has some.
pub fn zero_host_bits(net: IpNet, one: impl fmt::Display) -> Result<IpNet, Fault> {
    let network = net.trunc();
    if network == net {
        return Ok(net);
    }
    Err(Fault::new(format!("{net} is an address inside the network {network}"))
        .hint(format!("for the network write \"{network}\", for the one address \"{one}\"")))
}

/// `v4` and `v6` are the prefixes that are meant mostly.
fn prefixed(text: &str, v4: u8, v6: u8) -> Result<IpNet, Fault> {
    text.parse::<IpNet>().map_err(|_| match text.parse::<IpAddr>() {
        Ok(address) => Fault::new(format!("{text} has no prefix"))
            .hint("add the network's length")
            .fix(quoted(&format!("{address}/{}", if address.is_ipv4() { v4 } else { v6 }))),
        Err(_) => Fault::new(format!("{} is not an address with a prefix", quoted(text)))
            .hint("such as \"10.77.0.2/24\" or \"fd77::2/64\""),
    })
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

/// Socket addresses, and SCION's.
pub(super) fn by_kind(endpoints: Vec<Endpoint>) -> (Vec<SocketAddr>, Vec<ScionEndpoint>) {
    let (mut sockets, mut scion) = (Vec::new(), Vec::new());
    for endpoint in endpoints {
        match endpoint {
            Endpoint::Socket(address) => sockets.push(address),
            Endpoint::Scion(endpoint) => scion.push(endpoint),
            Endpoint::Name(..) => {}
        }
    }
    (sockets, scion)
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
    match parsed(value, |text| text.parse::<SocketAddr>().ok(), "is not an address and port", EXAMPLE)? {
        address if address.port() < 1024 => {
            Err(Fault::new(format!("port {} is below 1024", address.port())).hint(EXAMPLE))
        }
        address => Ok(address),
    }
}

/// Where Prometheus scrapes the portal.
pub(super) fn metrics_address(value: &DeValue<'_>) -> Result<SocketAddr, Fault> {
    string(value, |_| match cfg!(feature = "metrics") {
        true => Ok(()),
        false => Err(not_supported("[metrics]").hint("this program was built without it: leave the section out")),
    })?;
    let address = |text: &str| text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    let hint = "an address and a port, such as \"127.0.0.1:9492\" or \"[::1]:9492\"";
    parsed(value, address, "is not an address with a port", hint)
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
            let fault = Fault::new(format!("no single host is reached at {text}"));
            return Err(fault.hint("write the address of the peer"));
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
        None => match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => Ok(Endpoint::Socket(address)),
            Ok(address) => {
                let whole = SocketAddr::new(address.ip(), DEFAULT_PORT).to_string();
                Err(Fault::new("port 0 is no port").fix(quoted(&whole)))
            }
            Err(_) => Err(no_socket_address(text)),
        },
    }
}

/// What was meant by it.
fn no_socket_address(text: &str) -> Fault {
    let (name, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let address = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>();
    let whole = |address: IpAddr| quoted(&SocketAddr::new(address, DEFAULT_PORT).to_string());
    // `2001:db8::7:4920` is an address without a port too, but that is hardly what was meant.
    let bare = text.parse::<IpAddr>().is_ok();
    if let (Ok(IpAddr::V6(address)), Ok(port)) = (name.parse(), port.parse::<u16>())
        && (!bare || port == DEFAULT_PORT)
    {
        let fault = Fault::new(format!("{text}: an IPv6 address needs brackets before its port"));
        return fault.fix(quoted(&format!("[{address}]:{port}")));
    }
    if let Ok(address) = address(text) {
        return Fault::new(format!("{text} has no port")).hint("address and port").fix(whole(address));
    }
    if let Ok(address) = address(name) {
        return Fault::new(format!("{} is not a port", quoted(port))).hint("1 to 65535").fix(whole(address));
    }
    if name.chars().any(|c| c.is_ascii_alphabetic()) && HostName::parse(name).is_some() {
        return Fault::new(format!("a portal listens on addresses, and {} is a name", quoted(name)))
            .hint(format!("on all of them: \"0.0.0.0:{DEFAULT_PORT}\" and \"[::]:{DEFAULT_PORT}\""));
    }
    Fault::new(format!("{} is not an address and port", quoted(text)))
        .hint("such as \"198.51.100.7:4920\" or \"[2001:db8::7]:4920\"")
}
