//! The name servers of `[tun] dns`: what is set of them, and whom the portal itself must not ask.
//!
//! 1. [`change`] is what is to be set, with whoever keeps the system's name servers. 2. [`warn_unless_asked`] looks
//!    whether libc asks them then. 3. [`inner`] are those that only the tunnel leads to: what the tunnel leads to is
//!    not found out by asking them.

use std::net::IpAddr;

use hawser_config::{Config, DnsDomain, NameServerKeys};
use hawser_net::netcfg::{Change, IfIndex, NameServers, NameServersError, Resolver, asked_servers};
use ipnet::IpNet;

use crate::api::DnsStatus;

/// Step 1; none without the key. Who has been asked to set them before goes on doing so.
///
/// # Errors
/// Where nobody can set them.
pub fn change(
    config: &Config,
    interface: IfIndex,
    before: Option<&NameServers>,
) -> Result<Option<Change>, NameServersError> {
    let NameServerKeys { servers, domains } = &config.tun.dns;
    if servers.is_empty() {
        return Ok(None);
    }
    let by = before.map_or_else(Resolver::here, |before| Ok(before.by))?;
    let domains = domains.iter().map(DnsDomain::to_string).collect();
    let new = NameServers::new((interface, config.tun.name.as_str()), servers.clone(), domains, by)?;
    Ok(Some(Change::NameServers(new)))
}

/// The name servers among changes.
pub fn among(changes: &[Change]) -> Option<&NameServers> {
    changes.iter().find_map(|change| match change {
        Change::NameServers(set) => Some(set),
        _ => None,
    })
}

/// Step 2. A server on this host asks whom it is told to, as systemd-resolved's does.
pub fn warn_unless_asked(set: &NameServers) {
    let first = asked_servers().into_iter().next();
    if !first.is_some_and(|first| first.is_loopback() || set.servers.contains(&first)) {
        let first = first.map_or_else(|| "nobody".to_owned(), |first| first.to_string());
        tracing::warn!(by = %set.by, first, "name servers set, and /etc/resolv.conf has others asked first");
    }
}

/// Step 3: in the device's own networks, or in a peer's that is not the world.
pub fn inner(config: &Config) -> Vec<IpAddr> {
    let peers = config.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|net| net.prefix_len() > 0);
    let nets: Vec<&IpNet> = config.tun.addresses.iter().chain(peers).collect();
    let is_inner = |server: &&IpAddr| nets.iter().any(|net| net.contains(*server));
    config.tun.dns.servers.iter().filter(is_inner).copied().collect()
}

/// What is set, for the status.
pub fn status(set: &NameServers) -> DnsStatus {
    DnsStatus { servers: set.servers.clone(), domains: set.domains.clone(), set_by: set.by.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_in_the_tunnels_networks_are_inner_and_those_of_the_world_are_not() {
        let text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.2/24\"]\n\
             dns = [\"10.77.0.1\", \"192.168.8.1\", \"9.9.9.9\"]\n[[peer]]\nname = \"home\"\n\
             public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nallowed_ips = [\"192.168.8.0/24\", \"0.0.0.0/0\"]\n";
        let config = Config::parse(text, "t.toml").expect("a right configuration");
        assert_eq!(inner(&config), ["10.77.0.1", "192.168.8.1"].map(|server| server.parse::<IpAddr>().expect("one")));
    }
}
