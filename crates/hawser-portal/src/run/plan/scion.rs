//! Sockets for SCION packets: one for each link, whatever the number of its paths and endpoints, and one where it
//! listens.

use hawser_config::{Link, Peer, ScionEndpoint, ScionPaths};
use hawser_core::units::{LinkGroup, LinkId};
use hawser_net::netcfg::{Family, Mark};

use super::{Carriage, ScionRole, SocketPlan};

/// The socket of a link, if there is an endpoint for it. Border routers are reached by IPv4, unless the link's own
/// address is of IPv6.
pub(super) fn for_link(link: &Link, group: LinkGroup, paths: &ScionPaths, peers: &[Peer]) -> Option<SocketPlan> {
    let endpoints: Vec<ScionEndpoint> = peers.iter().flat_map(|peer| &peer.scion_endpoints).copied().collect();
    let role = ScionRole::Calls { endpoints, paths: paths.clone() };
    let any = matches!(&role, ScionRole::Calls { endpoints, .. } if !endpoints.is_empty());
    any.then(|| SocketPlan {
        id: LinkId::default(),
        group,
        name: link.name.to_string(),
        interface: link.interface.as_ref().map(ToString::to_string),
        address: link.address,
        port: paths.port,
        carriage: Carriage::Scion(role),
        family: link.address.map_or(Family::V4, Family::of),
        preference: 0,
        metric: link.metric,
        mark: Mark(0),
        endpoints: Vec::new(),
    })
}

/// The socket of a place to listen at.
pub(super) fn for_listen(endpoint: &ScionEndpoint, group: LinkGroup) -> SocketPlan {
    SocketPlan {
        id: LinkId::default(),
        group,
        name: endpoint.to_string(),
        interface: None,
        address: Some(endpoint.host.ip()),
        port: endpoint.host.port(),
        carriage: Carriage::Scion(ScionRole::Listens(*endpoint)),
        family: Family::of(endpoint.host.ip()),
        preference: 0,
        metric: 0,
        mark: Mark(0),
        endpoints: Vec::new(),
    }
}
