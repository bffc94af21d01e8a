//! Two portals on hosts of a SCION network, bonded over its paths.
//!
//! ```text
//!   host ── AS ═════ SCION links, each shaped ═════ AS ── host
//!     └─────────── beside: a plain link, if asked ─────────┘
//! ```
//!
//! 1. The network comes up, with the reference implementation's routers. 2. A plain link is put beside it, where asked.
//! 3. A portal starts on a host of either AS; traffic goes between their tunnel addresses.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use hawser_portal::api::PathStatus;
use hawser_wire::traffic::{Ping, TcpTransfer, Towards};
use hawser_wire::{Direction, EmulatedLink, LinkSpec};

use crate::cleanup;
use crate::error::LabError;
use crate::localnet::{Host, Localnet, Topology};
use crate::portals::{LOCAL_TUN, Portals, REMOTE_TUN, Site, active, link_section, parsed};
use crate::topology::{cubic, end_at};

/// The remote portal's SCION port: one that routers send to (`dispatched_ports`).
const PORT: u16 = 31_000;
/// The plain link, and its addresses: RFC 5737.
const BESIDE: &str = "beside";
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// What is to be bonded. Plain data.
#[derive(Clone, Debug)]
pub struct ScionPlan<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// The ASes of the local and the remote portal.
    pub ends: [&'a str; 2],
    /// SCION paths used at once, which must become active.
    pub paths: usize,
    /// More lines of the SCION link's section.
    pub link: &'a str,
    /// A plain UDP link beside it.
    pub beside: Option<Direction>,
    /// Lines of the section `[traffic]`.
    pub traffic: &'a str,
}

/// Network and portals, running. It starts with every path active; all is removed on drop.
#[derive(Debug)]
pub struct ScionBond {
    // Portals go before the links that they use.
    portals: Portals,
    _beside: Option<EmulatedLink>,
    /// The network; its links may be cut.
    pub net: Localnet,
}

impl ScionBond {
    /// Steps 1 to 3; `program` is the `hawser` executable.
    ///
    /// # Errors
    /// Where there is no root or no Go, the network does not come up, or paths do not become active.
    pub fn start(program: &Path, plan: &ScionPlan<'_>) -> Result<Self, LabError> {
        let net = Localnet::up(plan.topology)?;
        let (local, remote) = (net.host(plan.ends[0])?, net.host(plan.ends[1])?);
        let beside = plan.beside.as_ref().map(|way| beside(local, remote, way)).transpose()?;
        let scion_lines = format!("daemon = \"{}\"\npaths = {}\n{}", local.daemon, plan.paths, plan.link);
        let mut links = link_section("eth0", "scion", &scion_lines);
        links += &beside.as_ref().map(|_| link_section(BESIDE, "udp", "")).unwrap_or_default();
        let scion = Some(remote.endpoint(PORT));
        let paths = plan.paths + usize::from(beside.is_some());
        let more = format!("[traffic]\n{}", plan.traffic);
        let site = Site { scion, more: &more, ..Site::plain(FAR.into(), links, paths) };
        let portals = Portals::join(program, [&local.namespace, &remote.namespace], &site)?;
        Ok(Self { portals, _beside: beside, net })
    }

    /// A CUBIC transfer from the local portal's host to the remote one's, or back, in the tunnel.
    pub fn transfer(&self, towards: Towards, duration: Duration) -> TcpTransfer {
        let ends = [(&self.portals.local.host, LOCAL_TUN), (&self.portals.remote.host, REMOTE_TUN)];
        cubic(towards, ends.map(|(host, address)| (host, parsed(address).addr())), duration)
    }

    /// A ping in the tunnel, from the local portal's host.
    pub fn ping(&self, interval: Duration, duration: Duration) -> Ping {
        Ping { from: self.portals.local.host.clone(), destination: parsed(REMOTE_TUN).addr(), interval, duration }
    }

    /// The local portal's paths that are active now.
    pub fn active_paths(&self) -> Vec<PathStatus> {
        self.portals.local.status().iter().flat_map(active).cloned().collect()
    }
}

/// Step 2.
pub(crate) fn beside(local: &Host, remote: &Host, way: &Direction) -> Result<EmulatedLink, LabError> {
    let _making = cleanup::making();
    let [near, far] = [(local, NEAR), (remote, FAR)].map(|(host, address)| end_at(&host.namespace, BESIDE, address));
    Ok(EmulatedLink::new(LinkSpec::symmetric(BESIDE, near, far, way))?)
}
