//! Links of every interface (`interface = "*"`): each interface by which an endpoint can be reached becomes a link of
//! its own.
//!
//! 1. An interface is taken when it is up, has an address of an endpoint's IP version and a route to that endpoint.
//! 2. It stays a link, as any other, while it exists: a carrier or an address that is gone for a moment costs no
//!    session.
//! 3. Never taken are the tunnel itself, the loopback, what `exclude` names, and what another `[[link]]` names.

use std::collections::BTreeSet;

use hawser_config::{Config, InterfaceName, Link, LinkName};
use hawser_net::netcfg::Rtnl;

use super::routes;
use crate::run::interfaces::Interfaces;
use crate::run::plan;

/// The interface by which a host talks to itself.
const LOOPBACK: &str = "lo";

/// The interfaces that were taken. At first none; the control thread owns it.
#[derive(Debug, Default)]
pub struct Taken(BTreeSet<(LinkName, String)>);

impl Taken {
    /// The configuration with a link for each interface in the place of one for all of them.
    pub async fn expand(&mut self, config: &Config, rtnl: &Rtnl, interfaces: &Interfaces) -> Config {
        self.0.retain(|(_, interface)| interfaces.named(interface).is_some());
        let mut links = Vec::new();
        for link in &config.links {
            if !link.is_any() {
                links.push(link.clone());
                continue;
            }
            for interface in interfaces.names().filter(|interface| may_take(config, link, interface)) {
                let Ok(name) = InterfaceName::parse(interface) else { continue };
                let one = link.of_interface(name);
                let key = (link.name.clone(), interface.to_owned());
                if self.0.contains(&key) || leads_somewhere(config, &one, rtnl, interfaces).await {
                    self.0.insert(key);
                    links.push(one);
                }
            }
        }
        Config { links, ..config.clone() }
    }
}

/// Step 3.
fn may_take(config: &Config, link: &Link, interface: &str) -> bool {
    let named = |other: &Link| other.interface.as_ref().is_some_and(|name| name.as_str() == interface);
    let excluded = link.exclude.iter().any(|pattern| pattern.matches(interface));
    !excluded && interface != LOOPBACK && interface != config.tun.name.as_str() && !config.links.iter().any(named)
}

/// Step 1.
async fn leads_somewhere(config: &Config, link: &Link, rtnl: &Rtnl, interfaces: &Interfaces) -> bool {
    let alone = Config { links: vec![link.clone()], ..config.clone() };
    for plan in plan::sockets(&alone).iter().filter(|plan| plan.opens()) {
        if interfaces.place(plan, None).is_some() && matches!(routes::lacks(rtnl, plan, interfaces).await, Ok(None)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_interfaces_are_never_taken() {
        let text = "[portal]\nprivate_key_file = \"key\"\n[tun]\nname = \"tun7\"\naddresses = [\"10.77.0.1/24\"]\n\
                    [[link]]\nname = \"dsl\"\ninterface = \"ppp0\"\n\
                    [[link]]\nname = \"all\"\ninterface = \"*\"\nexclude = [\"docker*\", \"veth*\"]\n[[peer]]\nname = \"hub\"\n\
                    public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nallowed_ips = [\"10.77.0.2/32\"]\n\
                    endpoints = [\"192.0.2.1:4920\"]\n";
        let config = Config::parse(text, "test.toml").expect("a right configuration");
        let table = [
            ("eth0", true),
            ("wwan0", true),
            ("lo", false),
            ("tun7", false),
            ("ppp0", false),
            ("docker0", false),
            ("veth12ab", false),
        ];
        for (interface, may) in table {
            assert_eq!(may_take(&config, &config.links[1], interface), may, "{interface}");
        }
    }
}
