//! Addresses: the shim's own, those of routes, and where routes lead.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use hawser_config::reading::{Fault, quoted, string};
use hawser_scion::EndpointAddr;
use ipnet::IpNet;
use toml::de::DeValue;

use super::DEFAULT_PORT;
use super::types::{HostName, Local, To};
use crate::route::{Port, SURROGATES};

/// How a SCION end is written.
const END: &str = "such as \"1-ff00:0:120,10.120.0.10:31000\"";
/// How a route's addresses are written.
const TO: &str = "such as \"192.0.2.10:443\", \"192.0.2.0/24\", \"[2001:db8::10]:443\" or \"www.example.com:443\"";

/// `[shim] local`.
pub(super) fn local(value: &DeValue<'_>) -> Result<Local, Fault> {
    string(value, |text| {
        if let Ok(host) = text.parse::<SocketAddr>() {
            one_port(text, host)?;
            return Ok(Local { isd_as: None, host });
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Err(no_port(text, &SocketAddr::new(ip, DEFAULT_PORT).to_string()));
        }
        end(text).map(|end| Local { isd_as: Some(end.isd_as), host: end.host })
    })
}

/// `[[route]] scion`.
pub(super) fn scion(value: &DeValue<'_>) -> Result<EndpointAddr, Fault> {
    string(value, end)
}

/// What a TXT record says of a name's shim: `scion=ISD-AS,IP:port`, without a port the usual one. None for other records.
pub(crate) fn end_in_txt(record: &str) -> Option<Result<EndpointAddr, String>> {
    let text = record.strip_prefix("scion=")?.trim();
    let with_port = format!("{text}:{DEFAULT_PORT}");
    let found = end(text).or_else(|fault| end(&with_port).map_err(|_| fault));
    Some(found.map_err(|fault| fault.message))
}

/// A shim's place in SCION.
fn end(text: &str) -> Result<EndpointAddr, Fault> {
    let end: EndpointAddr = text.parse().map_err(|error: hawser_scion::addr::AddrError| {
        let with_port = format!("{text}:{DEFAULT_PORT}");
        match with_port.parse::<EndpointAddr>() {
            Ok(_) => no_port(text, &with_port),
            Err(_) => Fault::new(error.to_string()).hint(END),
        }
    })?;
    if end.isd_as.is_wildcard() {
        return Err(Fault::new(format!("{} is no single AS", end.isd_as)).hint(END));
    }
    one_port(text, end.host)?;
    Ok(end)
}

fn no_port(text: &str, with_port: &str) -> Fault {
    Fault::new(format!("{text} has no port")).hint("the UDP port of the shim there").fix(quoted(with_port))
}

/// One host's port.
fn one_port(text: &str, host: SocketAddr) -> Result<(), Fault> {
    if host.port() == 0 {
        return Err(Fault::new("port 0 is no port").hint(format!("shims usually have {DEFAULT_PORT}")));
    }
    if is_nobody(host.ip()) {
        return Err(Fault::new(format!("no single host is reached at {text}")).hint("write the host's own address"));
    }
    Ok(())
}

fn is_nobody(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip.is_multicast() || matches!(ip, IpAddr::V4(ip) if ip.is_broadcast())
}

/// `[[route]] to`: an address, a network or a name, each with a port or without.
pub(super) fn to(value: &DeValue<'_>) -> Result<To, Fault> {
    string(value, |text| {
        let (before, port) = split_port(text)?;
        let to = if let Ok(ip) = before.parse::<IpAddr>() {
            To::Network(IpNet::from(ip), port)
        } else if let Ok(network) = before.parse::<IpNet>() {
            To::Network(zero_host_bits(network)?, port)
        } else if let Some(name) = HostName::parse(before) {
            To::Name(name, port)
        } else {
            return Err(Fault::new(format!("{} is no address, network or name", quoted(text))).hint(TO));
        };
        match to {
            To::Network(network, _) => one_destination(text, network).map(|()| to),
            To::Name(..) => Ok(to),
        }
    })
}

/// The port behind the last colon. Colons of IPv6 addresses stand in brackets where a port follows.
fn split_port(text: &str) -> Result<(&str, Option<Port>), Fault> {
    let (before, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((before, "")) => return Ok((before, None)),
            Some((before, port)) => (before, port.strip_prefix(':').unwrap_or(port)),
            None => return Err(Fault::new(format!("{}: the bracket is not closed", quoted(text))).hint(TO)),
        },
        None => match text.split_once(':') {
            Some((before, port)) if !port.contains(':') => (before, port),
            _ => return Ok((text, None)),
        },
    };
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse::<u16>().ok().filter(|_| digits).and_then(NonZeroU16::new);
    match number {
        Some(number) => Ok((before, Some(Port(number)))),
        None => Err(Fault::new(format!("{} is not a port", quoted(port))).hint("1 to 65535, or none for all of them")),
    }
}

fn zero_host_bits(network: IpNet) -> Result<IpNet, Fault> {
    let zero = network.trunc();
    if zero == network {
        return Ok(network);
    }
    Err(Fault::new(format!("{network} is an address inside the network {zero}"))
        .hint(format!("for the network write \"{zero}\", for the one address \"{}\"", network.addr())))
}

/// What programs can reach, and what the map is asked for.
fn one_destination(text: &str, network: IpNet) -> Result<(), Fault> {
    let ip = network.addr();
    if network.prefix_len() == 0 {
        return Err(Fault::new(format!("{text} is every address there is")).hint("name the networks that are in SCION"));
    }
    if is_nobody(ip) || ip.is_loopback() {
        return Err(Fault::new(format!("no other host is reached at {text}")).hint(TO));
    }
    if IpNet::V6(SURROGATES).contains(&network) {
        return Err(Fault::new(format!("{text} is a surrogate address, which needs no route"))
            .hint("it says itself where it leads"));
    }
    Ok(())
}
