//! Which interfaces lead to the server, and which have a network behind this host.
//!
//! An uplink is up, has an address that is valid beyond its link, and a route of its own to an endpoint: by a router,
//! or because the endpoint is on the link.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::net::SocketAddr;

use hawser_config::{DEFAULT_TUN_NAME, InterfaceName};
use hawser_net::netcfg::{RouteQuery, Rtnl};
use hawser_portal::pairing::Uplink;

use crate::failure::Failure;

/// Where the system lists the interfaces of this network namespace: a line each behind two of titles (proc_pid_net(5)).
const INTERFACES: &str = "/proc/self/net/dev";
const TITLES: usize = 2;
const LOOPBACK: &str = "lo";

/// The uplinks: those that are named, else all that are found.
pub fn find(named: &[InterfaceName], endpoints: &[SocketAddr]) -> Result<Vec<Uplink>, Failure> {
    let candidates = if named.is_empty() { interfaces()? } else { named.to_vec() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let found: Result<Vec<Uplink>, Failure> = runtime.block_on(async {
        let rtnl = Rtnl::open().map_err(Failure::failed)?;
        let mut found = Vec::new();
        for interface in candidates {
            if leads_there(&rtnl, &interface, endpoints).await? {
                found.push(Uplink { interface });
            } else if !named.is_empty() {
                let failure = Failure::failed(format!("use uplink {interface}: it has no route to the server"));
                return Err(failure.hint(format!("ip route get {} oif {interface}", endpoints[0].ip())));
            }
        }
        Ok(found)
    });
    let found = found?;
    if found.is_empty() {
        let failure = Failure::failed("find uplinks: no interface is up, has an address and a route to the server");
        return Err(failure.hint("each uplink needs a default route of its own, as DHCP gives it: ip route; ip addr"));
    }
    Ok(found)
}

fn interfaces() -> Result<Vec<InterfaceName>, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("list interfaces in {INTERFACES}: {error}"));
    let text = std::fs::read_to_string(INTERFACES).map_err(failed)?;
    let names = text.lines().skip(TITLES).filter_map(|line| line.split(':').next());
    let mut names: Vec<InterfaceName> = names.filter_map(|name| InterfaceName::parse(name.trim()).ok()).collect();
    names.retain(|name| name.as_str() != LOOPBACK && name.as_str() != DEFAULT_TUN_NAME);
    names.sort();
    Ok(names)
}

async fn leads_there(rtnl: &Rtnl, interface: &InterfaceName, endpoints: &[SocketAddr]) -> Result<bool, Failure> {
    let name = interface.as_str();
    let Some(link) = rtnl.link_named(name).await.map_err(Failure::failed)?.filter(|link| link.up) else {
        return Ok(false);
    };
    let addresses = rtnl.interface_addresses(name).await.map_err(Failure::failed)?.unwrap_or_default();
    for endpoint in endpoints {
        let is_v4 = endpoint.is_ipv4();
        let own = |one: &&hawser_net::netcfg::InterfaceAddress| one.global && one.address.addr().is_ipv4() == is_v4;
        if !addresses.iter().any(|one| own(&one)) {
            continue;
        }
        let query = RouteQuery { destination: endpoint.ip(), source: None, interface: Some(link.index), mark: None };
        if rtnl.route_get(query).await.is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The networks that are to go by the tunnel: those named, else what a user at a terminal answers, else none.
pub fn served(named: &[InterfaceName], links: &[Uplink]) -> Result<Vec<InterfaceName>, Failure> {
    if let Some(both) = named.iter().find(|name| links.iter().any(|link| link.interface == **name)) {
        return Err(Failure::wrong(format!("serve {both}: it is an uplink")));
    }
    if !named.is_empty() || !io::stdin().is_terminal() {
        return Ok(named.to_vec());
    }
    let mut others = interfaces()?;
    others.retain(|name| links.iter().all(|link| link.interface != *name));
    let mut served = Vec::new();
    for name in others {
        if !is_up(&name)? {
            continue;
        }
        eprint!("{name}: is there a network behind it that is to go by the tunnel? [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.map_err(|error| Failure::failed(format!("read answer: {error}")))?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            served.push(name);
        }
    }
    Ok(served)
}

fn is_up(name: &InterfaceName) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async {
        let link = Rtnl::open().map_err(Failure::failed)?.link_named(name.as_str()).await.map_err(Failure::failed)?;
        Ok(link.is_some_and(|link| link.up))
    })
}
