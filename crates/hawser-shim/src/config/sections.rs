//! One reader for each section, and for the values in it: addresses of the shim, those of routes, and where routes
//! lead.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use hawser_config::Keyword;
use hawser_config::reading::{
    Fault, Table, Unique, daemon, integer, keyword, parsed, path, quoted, string, within, zero_host_bits,
};
use hawser_scion::select::{Criterion, Policy};
use hawser_scion::{EndpointAddr, IsdAs};
use ipnet::{IpNet, Ipv4Net};
use toml::de::DeValue;

use super::types::{Config, EgressCount, HostName, Local, Prefix, Protocols, Route, To};
use super::{DEFAULT_CONTROL, DEFAULT_PORT};
use crate::flow::Protocol;
use crate::route::{Addresses, DEFAULT_RANGE, InterfaceIndex, LONGEST_RANGE, MAX_EGRESS, Port, SURROGATES, Side};
use crate::translate::Layer4;

/// What `[shim]` must have.
const LOCAL: &str = "local = \"1-ff00:0:110,10.110.0.10:31000\"";
/// How a SCION end is written.
const END: &str = "such as \"1-ff00:0:120,10.120.0.10:31000\"";
/// How a route's addresses are written.
const TO: &str = "such as \"192.0.2.10:443\", \"192.0.2.0/24\", \"[2001:db8::10]:443\" or \"www.example.com:443\"";

impl Keyword for Layer4 {
    const WORDS: &'static [(Self, &'static str)] = &[(Layer4::Udp, "udp"), (Layer4::Tcp, "tcp")];
}

/// As the values of `side_by_side`: without the key all goes over SCION.
impl Keyword for Side {
    const WORDS: &'static [(Self, &'static str)] = &[(Side::Subflows, "subflows"), (Side::Main, "main")];
}

/// Whether names may lead to what their TXT records say. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dns(pub(super) bool);

/// What must be there once in a file. Starts empty; used by one thread.
#[derive(Default)]
pub(super) struct Claims {
    destinations: Unique<(To, Protocol)>,
}

/// `[shim]`, without the routes and the policy.
pub(super) fn shim(table: &mut Table<'_, '_, '_>) -> Option<Config> {
    let local = table.required("local", LOCAL, local).map(|local| local.value);
    let daemon = table.get("daemon", daemon);
    let egress = table.get("egress", egress).unwrap_or_default();
    let select = table.get("select", keyword).unwrap_or(Criterion::Sharability);
    let mode = table.get("mode", keyword).unwrap_or_default();
    let path_manager = table.get("path_manager", keyword).unwrap_or_default();
    let ipv4 = table.get("ipv4", ipv4).unwrap_or(Some(DEFAULT_RANGE));
    let prefix = |text: &DeValue<'_>| {
        let hint = format!("1 to {} letters, digits, `_` and `-`", Prefix::MAX);
        parsed(text, Prefix::parse, "is no beginning of interface names", &hint)
    };
    let name = table.get("name", prefix).unwrap_or_default();
    let map = table.get("map", path);
    let dns = table.is("dns");
    let control = table.get("control", path);
    let layer4 = table.get("layer4", keyword::<Layer4>);
    let server_ports = table.list("server_ports", port).unwrap_or_default();
    if let Some(first) = server_ports.first()
        && (layer4 == Some(Layer4::Udp) || !table.has("layer4"))
    {
        let fault = Fault::new("`server_ports`: with layer4 = \"udp\" everything comes to the port of `local`");
        table.fault(first.span.clone(), fault.hint("add: layer4 = \"tcp\", or leave it out"));
    }
    if let Some(Local { isd_as, host }) = local
        && Addresses::of(
            EndpointAddr::new(isd_as.unwrap_or(IsdAs::from_bits(u64::MAX)), host),
            ipv4,
            InterfaceIndex::INGRESS,
        )
        .is_err()
    {
        let fault = Fault::new("`local`: an IPv6 host of SCION has no addresses but derived IPv4 ones");
        table.fault_at("local", fault.hint("leave out ipv4 = false, or write an IPv4 address"));
    }
    Some(Config {
        local: local?,
        daemon,
        egress,
        select,
        mode,
        path_manager,
        ipv4,
        control: control.unwrap_or_else(|| DEFAULT_CONTROL.replace("shim", name.as_str()).into()),
        name,
        map,
        dns,
        layer4: layer4.unwrap_or_default(),
        server_ports: server_ports.into_iter().map(|port| port.value).collect(),
        policy: Policy::default(),
        routes: Vec::new(),
    })
}

/// A `[[route]]`.
pub(super) fn route(table: &mut Table<'_, '_, '_>, dns: Dns, claims: &mut Claims) -> Option<Route> {
    let to = table.optional("to", to);
    let scion = table.get("scion", scion);
    let protocols = table.get("protocol", keyword);
    let side = table.get("side_by_side", keyword::<Side>);
    let protocol: Protocols = protocols.unwrap_or_default();
    if let Some(to) = &to {
        for spoken in protocol.each() {
            let claimed = (to.value.clone(), *spoken);
            claims.destinations.claim(table, claimed, to.span.clone(), "the route is there twice");
        }
    }
    if protocols.is_some() && !table.has("to") {
        let fault = Fault::new("`protocol`: derived addresses lead there for TCP and UDP");
        table.fault_at("protocol", fault.hint("leave it out, or add: to = \"192.0.2.10:53\""));
    }
    if side.is_some() && protocol != Protocols::Tcp {
        let fault = Fault::new("`side_by_side`: UDP has no subflows");
        table.fault_at("side_by_side", fault.hint("a route for TCP with it, and another for UDP without"));
    }
    if !table.has("scion") && to.is_some() == table.has("to") {
        let name = to.as_ref().is_some_and(|to| matches!(to.value, To::Name(..)));
        if !(name && dns.0) {
            let fault = Fault::new("missing key `scion` in [[route]]");
            let add = format!("add: scion = \"1-ff00:0:120,10.120.0.10:{DEFAULT_PORT}\"");
            table.here(fault.hint(if name { format!("{add}, or dns = true to [shim]") } else { add }));
        }
    }
    if side.is_some() && !table.has("to") {
        let fault = Fault::new("`side_by_side`: this route has no address in the ordinary internet");
        table.fault_at("side_by_side", fault.hint("add: to = \"192.0.2.10:443\""));
    }
    Some(Route { to: to.map(|to| to.value), scion, side: side.unwrap_or_default(), protocol })
}

fn egress(value: &DeValue<'_>) -> Result<EgressCount, Fault> {
    let number = integer(value)?;
    EgressCount::new(number).ok_or_else(|| {
        Fault::new(format!("{number} is not between 1 and {MAX_EGRESS}"))
            .hint("a kernel's MPTCP has at most this many addresses for subflows")
            .fix(number.clamp(1, MAX_EGRESS.into()).to_string())
    })
}

fn port(value: &DeValue<'_>) -> Result<Port, Fault> {
    let number: u16 = within(value, 1..=u16::MAX.into(), |fault| fault)?;
    Ok(Port(NonZeroU16::new(number).expect("it is of the range")))
}

/// None for `false`.
fn ipv4(value: &DeValue<'_>) -> Result<Option<Ipv4Net>, Fault> {
    match value {
        DeValue::Boolean(false) => Ok(None),
        DeValue::Boolean(true) => Err(Fault::new("expected a network or false, found true")
            .hint("the network in which IPv4 addresses are derived, the same in every shim")
            .fix(quoted(&DEFAULT_RANGE.to_string()))),
        _ => string(value, range).map(Some),
    }
}

fn range(text: &str) -> Result<Ipv4Net, Fault> {
    let network: Ipv4Net = text.parse().map_err(|_| {
        Fault::new(format!("{} is not an IPv4 network", quoted(text)))
            .hint(format!("such as \"{DEFAULT_RANGE}\", or false for no IPv4"))
    })?;
    if network.trunc() != network {
        let network = network.trunc();
        return Err(
            Fault::new(format!("{text} is an address inside the network {network}")).fix(quoted(&network.to_string()))
        );
    }
    if network.prefix_len() > LONGEST_RANGE {
        return Err(Fault::new(format!("{network} is too small: many hosts would have the same addresses"))
            .hint(format!("a prefix of at most /{LONGEST_RANGE}")));
    }
    if network.prefix_len() == 0 || network.addr().is_multicast() || network.addr().is_loopback() {
        return Err(Fault::new(format!("{network} is no network that hosts can have")));
    }
    Ok(network)
}

/// `[shim] local`.
fn local(value: &DeValue<'_>) -> Result<Local, Fault> {
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
fn scion(value: &DeValue<'_>) -> Result<EndpointAddr, Fault> {
    string(value, end)
}

/// What a TXT record says of a name's shim: `scion=ISD-AS,IP:port`, without a port the usual one. None for other
/// records.
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
fn to(value: &DeValue<'_>) -> Result<To, Fault> {
    string(value, |text| {
        let (before, port) = split_port(text)?;
        let to = if let Ok(ip) = before.parse::<IpAddr>() {
            To::Network(IpNet::from(ip), port)
        } else if let Ok(network) = before.parse::<IpNet>() {
            To::Network(zero_host_bits(network, network.addr())?, port)
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
