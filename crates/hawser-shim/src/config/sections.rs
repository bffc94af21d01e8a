//! One reader for each section. Each asks for its keys, lets the table find unknown ones, and gives a value only where
//! everything in it is right.

use hawser_config::reading::{Fault, Table, Unique, boolean, daemon, keyword};
use hawser_scion::select::{Criterion, Policy};
use hawser_scion::{EndpointAddr, IsdAs};

use super::ends::{local, scion, to};
use super::types::{Config, Local, Prefix, Protocols, Route, To};
use super::values::{egress, ipv4, path, port, prefix};
use super::{DEFAULT_CONTROL, DEFAULT_PORT};
use crate::flow::Protocol;
use crate::route::{Addresses, DEFAULT_RANGE, InterfaceIndex, Side};
use crate::translate::Layer4;

/// What `[shim]` must have.
const LOCAL: &str = "local = \"1-ff00:0:110,10.110.0.10:31000\"";

/// Whether names may lead to what their TXT records say. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dns(pub(super) bool);

/// What must be there once in a file. Starts empty; used by one thread.
#[derive(Default)]
pub(super) struct Claims {
    destinations: Unique<(To, Protocol)>,
}

/// `[shim]`, without the routes and the policy.
pub(super) fn shim(mut table: Table<'_, '_, '_>) -> Option<Config> {
    let local = table.required("local", LOCAL, local);
    let daemon = table.optional("daemon", daemon);
    let egress = table.optional("egress", egress);
    let select = table.optional("select", keyword::<Criterion>);
    let mode = table.optional("mode", keyword);
    let path_manager = table.optional("path_manager", keyword);
    let range = table.optional("ipv4", ipv4);
    let name = table.optional("name", prefix);
    let map = table.optional("map", path);
    let dns = table.optional("dns", boolean);
    let control = table.optional("control", path);
    let layer4 = table.optional("layer4", keyword::<Layer4>);
    let server_ports = table.list("server_ports", port).unwrap_or_default();
    if let Some(first) = server_ports.first()
        && (layer4.as_ref().is_some_and(|layer4| layer4.value == Layer4::Udp) || !table.has("layer4"))
    {
        let fault = Fault::new("`server_ports`: with layer4 = \"udp\" everything comes to the port of `local`");
        table.fault(first.span.clone(), fault.hint("add: layer4 = \"tcp\", or leave it out"));
    }
    let range = range.map_or(Some(DEFAULT_RANGE), |range| range.value);
    if let Some(local) = &local {
        let Local { isd_as, host } = local.value;
        let end = EndpointAddr::new(isd_as.unwrap_or(IsdAs::from_bits(u64::MAX)), host);
        if Addresses::of(end, range, InterfaceIndex::INGRESS).is_err() {
            let fault = Fault::new("`local`: an IPv6 host of SCION has no addresses but derived IPv4 ones");
            table.fault(local.span.clone(), fault.hint("leave out ipv4 = false, or write an IPv4 address"));
        }
    }
    table.finish();
    let name = name.map_or_else(Prefix::default, |name| name.value);
    Some(Config {
        local: local?.value,
        daemon: daemon.map(|daemon| daemon.value),
        egress: egress.map(|egress| egress.value).unwrap_or_default(),
        select: select.map_or(Criterion::Sharability, |select| select.value),
        mode: mode.map(|mode| mode.value).unwrap_or_default(),
        path_manager: path_manager.map(|manager| manager.value).unwrap_or_default(),
        ipv4: range,
        control: control.map_or_else(|| DEFAULT_CONTROL.replace("shim", name.as_str()).into(), |path| path.value),
        name,
        map: map.map(|map| map.value),
        dns: dns.is_some_and(|dns| dns.value),
        layer4: layer4.map(|layer4| layer4.value).unwrap_or_default(),
        server_ports: server_ports.into_iter().map(|port| port.value).collect(),
        policy: Policy::default(),
        routes: Vec::new(),
    })
}

/// `[policy]`.
pub(super) fn policy(mut table: Table<'_, '_, '_>) -> Policy {
    let policy = hawser_config::reading::policy(&mut table);
    table.finish();
    policy
}

/// A `[[route]]`.
pub(super) fn route(mut table: Table<'_, '_, '_>, dns: Dns, claims: &mut Claims) -> Option<Route> {
    let to = table.optional("to", to);
    let scion = table.optional("scion", scion);
    let protocols = table.optional("protocol", keyword::<Protocols>);
    let side = table.optional("side_by_side", keyword::<Side>);
    let protocol = protocols.as_ref().map(|protocols| protocols.value).unwrap_or_default();
    if let Some(to) = &to {
        for spoken in protocol.each() {
            let claimed = (to.value.clone(), *spoken);
            claims.destinations.claim(&mut table, claimed, to.span.clone(), "the route is there twice");
        }
    }
    if let Some(protocols) = &protocols
        && !table.has("to")
    {
        let fault = Fault::new("`protocol`: derived addresses lead there for TCP and UDP");
        table.fault(protocols.span.clone(), fault.hint("leave it out, or add: to = \"192.0.2.10:53\""));
    }
    if let Some(side) = &side
        && protocol != Protocols::Tcp
    {
        let fault = Fault::new("`side_by_side`: UDP has no subflows");
        table.fault(side.span.clone(), fault.hint("a route for TCP with it, and another for UDP without"));
    }
    if !table.has("scion") && to.is_some() == table.has("to") {
        let name = to.as_ref().is_some_and(|to| matches!(to.value, To::Name(..)));
        if !(name && dns.0) {
            let fault = Fault::new("missing key `scion` in [[route]]");
            let add = format!("add: scion = \"1-ff00:0:120,10.120.0.10:{DEFAULT_PORT}\"");
            let hint = if name { format!("{add}, or dns = true to [shim]") } else { add };
            table.fault(table.header(), fault.hint(hint));
        }
    }
    if let Some(side) = &side
        && !table.has("to")
    {
        let fault = Fault::new("`side_by_side`: this route has no address in the ordinary internet");
        table.fault(side.span.clone(), fault.hint("add: to = \"192.0.2.10:443\""));
    }
    table.finish();
    Some(Route {
        to: to.map(|to| to.value),
        scion: scion.map(|scion| scion.value),
        side: side.map(|side| side.value).unwrap_or_default(),
        protocol,
    })
}
