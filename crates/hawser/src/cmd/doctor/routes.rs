//! Step 4: whether packets for the tunnel go by it, and others that should.

use std::net::IpAddr;

use hawser_config::Config;
use hawser_net::netcfg::{NetConfigError, Rtnl};

use super::finding::Finding;
use crate::cmd::world;

/// All of it, and whether the way of names is still to be looked at: not where they go the way of all else.
pub async fn look(rtnl: &Rtnl, config: &Config, findings: &mut Vec<Finding>) -> Result<bool, NetConfigError> {
    let tun = config.tun.name.as_str();
    let Some(device) = rtnl.link_named(tun).await? else {
        let text = format!("the portal runs, and there is no device {tun}");
        findings.push(Finding::fault("no-device", tun, text, "sudo systemctl restart hawser"));
        return Ok(false);
    };
    for address in &config.tun.addresses {
        let same = rtnl.interface_with(address.addr()).await?;
        if let Some(other) = same.filter(|other| other.index != device.index) {
            let text = format!("the inner address {address} is an address of {}, too", other.name);
            findings.push(Finding::fault("address-twice", tun, text, "take another one in [tun] addresses"));
        }
    }
    for net in config.peers.iter().flat_map(|peer| &peer.allowed_ips) {
        // A default route by the tunnel is looked at below; it is there by a rule, not for every host. A member of a
        // hub has routes to those whom it owns.
        if net.prefix_len() == 0 || config.hub.is_some() {
            continue;
        }
        if let Some(other) = goes_by(rtnl, net.addr(), tun).await? {
            let text = format!("packets for {net}, which is a peer's, go by {other}");
            let cure = format!("another route or tunnel takes them: ip route get {}; ip rule", net.addr());
            findings.push(Finding::fault("other-route", net, text, cure));
        }
    }
    Ok(!(config.tun.default_route && internet(rtnl, config, findings).await?))
}

/// By which other interface than the tunnel packets leave; none where they go by it, or nowhere.
pub(super) async fn goes_by(rtnl: &Rtnl, destination: IpAddr, tun: &str) -> Result<Option<String>, NetConfigError> {
    let way = world::way(rtnl, destination).await?;
    Ok(way.map(|way| way.interface).filter(|name| name != tun && name != "lo"))
}

/// Whether what is for the internet goes past the tunnel, for all that the tunnel has an address of its IP version.
async fn internet(rtnl: &Rtnl, config: &Config, findings: &mut Vec<Finding>) -> Result<bool, NetConfigError> {
    let tun = config.tun.name.as_str();
    for far in world::FAR {
        let Some(other) = goes_by(rtnl, far, tun).await? else { continue };
        let has = config.tun.addresses.iter().any(|address| address.addr().is_ipv4() == far.is_ipv4());
        if has {
            let text = format!("the internet goes by {other}, past the tunnel");
            let cure = "another tunnel's rules or routes come first: ip rule; ip route show table all";
            findings.push(Finding::fault("internet-outside", other, text, cure));
            return Ok(true);
        }
        let version = if far.is_ipv4() { "IPv4" } else { "IPv6" };
        let text = format!("{version} goes by {other}, past the tunnel: the tunnel has no {version} address");
        let cure = format!("give [tun] an {version} address, and the peer the default route of {version}");
        findings.push(Finding::notice("leak", other, text, cure));
    }
    Ok(false)
}
