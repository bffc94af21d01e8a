//! Which way this host reaches the world: nothing is sent there, the system is asked for its route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_net::netcfg::{NetConfigError, RouteQuery, Rtnl};

use crate::failure::Failure;

/// Somewhere in the world, of either IP version: the anycast address of 6to4 relays (RFC 7526) and a public resolver.
pub const FAR: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 88, 99, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888))];

/// A way to somewhere. Plain data.
#[derive(Debug)]
pub struct Way {
    /// The interface's name.
    pub interface: String,
    /// The address that it is reached from.
    pub address: IpAddr,
}

/// The ways into the world, in each IP version that has one.
pub fn ways() -> Result<Vec<Way>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async {
        let rtnl = Rtnl::open().map_err(Failure::failed)?;
        let mut ways = Vec::new();
        for far in FAR {
            ways.extend(way(&rtnl, far).await.map_err(Failure::failed)?);
        }
        Ok(ways)
    })
}

/// The way that the system takes to `destination`; none where it has no route, or no address to send from.
///
/// # Errors
/// Where the kernel cannot be asked.
pub async fn way(rtnl: &Rtnl, destination: IpAddr) -> Result<Option<Way>, NetConfigError> {
    let query = RouteQuery { destination, source: None, interface: None, mark: None };
    let Ok(answer) = rtnl.route_get(query).await else { return Ok(None) };
    let link = rtnl.link(answer.interface).await?;
    Ok(link.zip(answer.source).map(|(link, address)| Way { interface: link.name, address }))
}
