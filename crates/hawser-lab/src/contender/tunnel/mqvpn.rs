//! mqvpn: IP over multipath QUIC (MASQUE, RFC 9484). Its configuration: the project's guide.
//!
//! The remote end gives addresses out of its pool, the first to us; it takes packets from nobody else, so that hosts of
//! a LAN cannot use it. Its TCP lane (`hybrid`) is for what lies behind the remote end: the server has an address
//! beside the pool, which the remote end's policy has to allow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

use super::{Adapter, Ends, Family, Ground, LOCAL, LabError, Options, Pair, REMOTE, family, tun_ends};
use crate::portals::new_key;

/// The device, and where the remote end listens. Source: the project's guide.
const DEVICE: &str = "mqvpn0";
const PORT: u16 = 443;
/// Its pools: the remote end has their first address, the local one the second.
const POOL_V4: &str = "10.78.0.0/24";
const POOL_V6: &str = "fd78::/112";
const CLIENT_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2));
const CLIENT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2));
/// Inner packets that its reorder buffer is for. Source: the project's guide, `[ReorderRule]`.
const REORDER_PROFILES: [&str; 4] = ["off", "cellular_bond", "fiber_lte", "quic_bulk"];
/// HTTP/3, which the reorder rule is for unless told.
const REORDER_PORT: u32 = 443;

/// Its settings. Plain data.
pub(super) struct Mqvpn {
    scheduler: &'static str,
    congestion: &'static str,
    reorder: &'static str,
    reorder_port: u32,
    hybrid: bool,
}

impl Mqvpn {
    fn remote_text(&self, endpoint: IpAddr, server: IpAddr, key: &str, [certificate, private]: &[String; 2]) -> String {
        let listen = SocketAddr::new(endpoint, PORT);
        let egress = if self.hybrid { format!("EgressAllow = {}\n", IpNet::from(server)) } else { String::new() };
        format!(
            "[Interface]\nTunName = {DEVICE}\nListen = {listen}\nSubnet = {POOL_V4}\nSubnet6 = {POOL_V6}\n\n\
             [TLS]\nCert = {certificate}\nKey = {private}\n\n[Auth]\nKey = {key}\n\n{}{egress}",
            self.multipath("")
        )
    }

    fn local_text(&self, endpoint: IpAddr, key: &str, links: &[&str]) -> String {
        let address = SocketAddr::new(endpoint, PORT);
        let paths: String = links.iter().map(|link| format!("Path = {link}\n")).collect();
        format!(
            "[Server]\nAddress = {address}\nInsecure = true\n\n[Auth]\nKey = {key}\n\n\
             [Interface]\nTunName = {DEVICE}\nManageRoutes = false\n\n{}",
            self.multipath(&paths)
        )
    }

    /// The section of the paths, and what both ends must agree on; `[Hybrid]` comes last.
    fn multipath(&self, paths: &str) -> String {
        let Self { scheduler, congestion, reorder, reorder_port, .. } = self;
        let mut text = format!("[Multipath]\nScheduler = {scheduler}\nCC = {congestion}\n{paths}");
        if *reorder != "off" {
            text += "\n[Reorder]\nEnabled = on\n";
            text += &format!("\n[ReorderRule]\nProto = udp\nPort = {reorder_port}\nProfile = {reorder}\n");
        }
        if self.hybrid {
            text += "\n[Hybrid]\nEnabled = true\n";
        }
        text
    }
}

impl Adapter for Mqvpn {
    const KIND: &'static str = "mqvpn";
    const PROGRAM: Option<&'static str> = Some("mqvpn");

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            scheduler: options.word("scheduler", &["wlb", "minrtt", "wlb_udp_pin", "backup_fec"])?,
            congestion: options.word("congestion", &["bbr2", "bbr", "cubic", "none"])?,
            reorder: options.word("reorder", &REORDER_PROFILES)?,
            reorder_port: options.up_to("reorder-port", u16::MAX.into())?.unwrap_or(REORDER_PORT),
            hybrid: options.yes("hybrid", false)?,
        })
    }

    /// The client has the pool's address, the server ours.
    fn ends(&self, inner: Family) -> Ends {
        let client = if inner == Family::V4 { CLIENT_V4 } else { CLIENT_V6 };
        Ends { client, ..tun_ends(inner) }
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        if ground.hosts.is_some() {
            let what = "a way through mqvpn for hosts behind its ends";
            return Err(LabError::missing(what, "compare mqvpn in a network without `lan`"));
        }
        let (key, endpoint, files) = (new_key()?.to_base64(), ground.stage.endpoint, pair.certify(REMOTE)?.files);
        let links: Vec<_> = ground.stage.links.iter().map(|link| link.name.as_str()).collect();
        let remote = self.remote_text(endpoint, ground.tun.server, &key, &files);
        for (role, text) in [(REMOTE, remote), (LOCAL, self.local_text(endpoint, &key, &links))] {
            let file = pair.write(&format!("{role}.conf"), &text)?;
            pair.start(role, ground.namespace(role), &ground.program, ["--config", file.as_str()])?;
            pair.bring_up(role, ground.namespace(role), DEVICE)?;
        }
        let (family, server) = (family(ground.tun.server), IpNet::from(ground.tun.server));
        pair.undo.ip_add(ground.namespace(REMOTE), &format!("{family} address add {server} dev lo"))?;
        pair.undo.ip_add(ground.namespace(LOCAL), &format!("{family} route add {server} dev {DEVICE}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed;
    use super::*;

    #[test]
    fn configurations_are_those_of_its_guide() {
        let endpoint = [198, 51, 100, 7].into();
        let options = "scheduler = \"minrtt\"\nreorder = \"cellular_bond\"\nhybrid = true";
        let mqvpn: Mqvpn = parsed(options);
        let remote = mqvpn.remote_text(endpoint, [10, 77, 0, 1].into(), "a2V5", &["/cert", "/key"].map(str::to_owned));
        assert_eq!(remote, include_str!("golden/mqvpn-remote.conf"));
        let mqvpn: Mqvpn = parsed("");
        assert_eq!(mqvpn.local_text(endpoint, "a2V5", &["wifi", "eth"]), include_str!("golden/mqvpn-local.conf"));
    }
}
