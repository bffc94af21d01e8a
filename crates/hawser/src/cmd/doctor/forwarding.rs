//! Step 4, of a portal with others behind it: whether the system forwards their packets.

use hawser_config::Config;
use hawser_net::netcfg::{ForwardDrop, NetConfigError, NftError, Rtnl, SysctlKey};

use super::finding::Finding;
use crate::cmd::world;
use crate::failure::with_causes;

/// The name of the finding that nothing is forwarded at all.
pub const NO_FORWARDING: &str = "no-forwarding";

/// All of it; nothing where packets of others are none of this portal's business.
pub async fn look(rtnl: &Rtnl, config: &Config, findings: &mut Vec<Finding>) -> Result<(), NetConfigError> {
    let tun = config.tun.name.as_str();
    let masquerade = config.nat.as_ref().map(|name| name.as_str());
    let served = config.gateway.serve.iter().map(|name| name.as_str());
    let interfaces: Vec<&str> = masquerade.into_iter().chain(served).collect();
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
                findings.push(Finding::fault(NO_FORWARDING, name, text, cure));
            }
            Some(_) => {}
        }
    }
    match rtnl.forward_drops(tun).await {
        Ok(drops) => findings.extend(drops.iter().map(|found| dropped(tun, found))),
        // Without nftables nobody drops by it.
        Err(NftError::Missing) => {}
        Err(error) => {
            let text = format!("whether a firewall drops what is forwarded is not known: {}", with_causes(&error));
            findings.push(Finding::notice("firewall-unknown", tun, text, "sudo nft list ruleset"));
        }
    }
    if let Some(masquerade) = masquerade {
        findings.extend(other_world(rtnl, masquerade).await?);
    }
    Ok(())
}

fn dropped(tun: &str, by: &ForwardDrop) -> Finding {
    let text = format!("a firewall drops what is forwarded by {tun}: {by}");
    let ForwardDrop { table, chain } = by;
    let cure = format!("sudo nft insert rule {table} {chain} iifname {tun} accept; the same with oifname");
    Finding::fault("forward-firewall", tun, text, cure)
}

fn forwards(interface: &str) -> bool {
    let key = SysctlKey::forwarding_v4(interface);
    key.and_then(|key| key.read()).map_or(true, |value| value.trim() == "1")
}

/// The internet is by another interface than the one that translates.
async fn other_world(rtnl: &Rtnl, masquerade: &str) -> Result<Option<Finding>, NetConfigError> {
    let way = world::way(rtnl, world::FAR[0]).await?;
    Ok(way.map(|way| way.interface).filter(|name| name != masquerade).map(|name| {
        let text = format!("[nat] masquerade is {masquerade}, and the internet is by {name}");
        Finding::fault("other-masquerade", masquerade, text, format!("in [nat]: masquerade = \"{name}\""))
    }))
}
