//! Step 4, of a portal with others behind it: whether the system forwards their packets.

use hawser_net::netcfg::{NetConfigError, RouteQuery, Rtnl, SysctlKey};
use hawser_portal::config::Config;

use super::finding::Finding;

/// Somewhere in the world: the system is asked for its route (RFC 7526).
const FAR: &str = "192.88.99.1";

/// All of it; nothing where packets of others are none of this portal's business.
pub async fn look(rtnl: &Rtnl, config: &Config, findings: &mut Vec<Finding>) -> Result<(), NetConfigError> {
    let tun = config.tun.name.as_str();
    let world = config.nat.masquerade.as_ref().map(|name| name.as_str());
    let served = config.gateway.serve.iter().map(|name| name.as_str());
    let interfaces: Vec<&str> = world.into_iter().chain(served).collect();
    if interfaces.is_empty() {
        return Ok(());
    }
    for name in &interfaces {
        match rtnl.link_named(name).await? {
            None => {
                let text = format!("packets are to be forwarded by {name}, and there is no such interface");
                findings.push(Finding::fault(
                    "no-gateway-interface",
                    name,
                    text,
                    "ip link lists them; correct [nat] or [gateway]",
                ));
            }
            Some(link) if !link.up => {
                let text = format!("packets are to be forwarded by {name}, which is down");
                findings.push(Finding::fault(
                    "gateway-interface-down",
                    name,
                    text,
                    format!("sudo ip link set {name} up"),
                ));
            }
            Some(_) if !forwards(name) || !forwards(tun) => {
                let text = format!("the system does not forward packets between {tun} and {name}");
                let cure = format!("sudo sysctl -w net.ipv4.conf.{name}.forwarding=1 net.ipv4.conf.{tun}.forwarding=1");
                findings.push(Finding::fault("no-forwarding", name, text, cure));
            }
            Some(_) => {}
        }
    }
    // Without nftables nobody drops by it.
    for found in rtnl.forward_drops(tun).await.unwrap_or_default() {
        let text = format!("a firewall drops what is forwarded by {tun}: {found}");
        let chain = found.to_string().replace("table ", "").replace(" chain", "");
        let cure = format!("sudo nft insert rule {chain} iifname {tun} accept; the same with oifname");
        findings.push(Finding::fault("forward-firewall", tun, text, cure));
    }
    if let Some(world) = world {
        findings.extend(other_world(rtnl, world).await?);
    }
    Ok(())
}

fn forwards(interface: &str) -> bool {
    let key = SysctlKey::forwarding_v4(interface);
    key.and_then(|key| key.read()).map_or(true, |value| value.trim() == "1")
}

/// The internet is by another interface than the one that translates.
async fn other_world(rtnl: &Rtnl, world: &str) -> Result<Option<Finding>, NetConfigError> {
    let destination = FAR.parse().expect("the constant is an address");
    let Ok(answer) = rtnl.route_get(RouteQuery { destination, source: None, interface: None, mark: None }).await else {
        return Ok(None);
    };
    let link = rtnl.link(answer.interface).await?.map(|link| link.name);
    Ok(link.filter(|name| name != world).map(|name| {
        let text = format!("[nat] masquerade is {world}, and the internet is by {name}");
        Finding::fault("other-masquerade", world, text, format!("in [nat]: masquerade = \"{name}\""))
    }))
}
