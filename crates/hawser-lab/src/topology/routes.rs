//! Routes with a metric: several links lead to one address, and each keeps its own way there.

use std::net::{IpAddr, Ipv4Addr};

use hawser_wire::Namespace;
use ipnet::Ipv4Net;
use rtnetlink::RouteMessageBuilder;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::LabError;

/// A route by a gateway on an interface. Plain data.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub prefix: Ipv4Net,
    pub gateway: Ipv4Addr,
    pub interface: String,
    /// The least wins, where nobody asks for an interface.
    pub metric: u32,
}

/// Adds a route in a namespace.
pub(crate) fn add(namespace: &Namespace, route: &Route) -> Result<(), LabError> {
    let action = || format!("add route {} by {} in {}", route.prefix, route.interface, namespace.name());
    let system = |error| LabError::system(action(), error);
    namespace.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(system)?;
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection().map_err(system)?;
            tokio::spawn(connection);
            let index = index_of(&route.interface).map_err(|error| system(error.into()))?;
            let message = RouteMessageBuilder::<IpAddr>::new()
                .destination_prefix(route.prefix.network().into(), route.prefix.prefix_len())
                .and_then(|builder| builder.gateway(route.gateway.into()))
                .map_err(|error| system(std::io::Error::other(error)))?
                .output_interface(index)
                .priority(route.metric);
            let added = handle.route().add(message.build()).execute().await;
            added.map_err(|source| LabError::Route { action: action(), source })
        })
    })?
}

/// The index of an interface in the calling thread's namespace.
fn index_of(interface: &str) -> rustix::io::Result<u32> {
    name_to_index(socket(AddressFamily::INET, SocketType::DGRAM, None)?, interface)
}
