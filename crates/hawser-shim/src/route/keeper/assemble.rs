//! From routes and what names mean to a table.

use ipnet::IpNet;

use super::Source;
use super::names::Names;
use crate::config::{Route, To};
use crate::route::{RouteTable, ScionHost, Target};

/// The table of the configuration's routes and then the map's, with the names that are known.
pub(super) fn assemble(source: &Source, map: &[Route], names: &Names) -> RouteTable {
    let own = ScionHost::from(source.own);
    let all = source.routes.iter().chain(map);
    let mut entries = Vec::new();
    let mut known = Vec::new();
    for Route { to, scion, side, protocol } in all {
        let (networks, port, end) = match to {
            Some(To::Network(network, port)) => (vec![*network], *port, *scion),
            Some(To::Name(name, port)) => {
                let networks = names.addresses(name).iter().copied().map(IpNet::from).collect();
                (networks, *port, scion.or_else(|| names.end(name)))
            }
            None => (Vec::new(), None, *scion),
        };
        let Some(end) = end.filter(|end| ScionHost::from(*end) != own) else { continue };
        known.push(end);
        let spoken = protocol.each().iter();
        let each = |network: IpNet| {
            spoken.clone().map(move |protocol| (network, port, *protocol, Target { end, side: *side }))
        };
        entries.extend(networks.into_iter().flat_map(each));
    }
    let table = RouteTable::new(source.ipv4, entries);
    known.into_iter().fold(table, RouteTable::with_end)
}
