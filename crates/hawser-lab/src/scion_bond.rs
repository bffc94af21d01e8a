//! Two portals on hosts of a SCION network, bonded over its paths.
//!
//! ```text
//!   host ── AS ═════ SCION links, each shaped ═════ AS ── host
//!     └─────────── beside: a plain link, if asked ─────────┘
//! ```
//!
//! 1. The network comes up, with the reference implementation's routers. 2. A plain link is put beside it, where asked.
//! 3. A portal starts on a host of either AS; traffic goes between their tunnel addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_portal::api::{PathState, PathStatus};
use hawser_scion::EndpointAddr;
use hawser_wire::traffic::{Congestion, Ping, TcpTransfer};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec};

use crate::cleanup;
use crate::error::LabError;
use crate::localnet::{Host, Localnet, Topology};
use crate::portals::{LOCAL_TUN, Portals, REMOTE_TUN, Site, link_section, parsed};
use crate::topology::Flow;

/// The remote portal's SCION port: one that routers send to (`dispatched_ports`).
const PORT: u16 = 31_000;
/// The port of transfers.
const TRANSFER_PORT: u16 = 5001;
/// The plain link, and its addresses: RFC 5737.
const BESIDE: &str = "beside";
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

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
    local: Host,
    remote: Host,
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
        let [local, remote] = [net.host(plan.ends[0])?.clone(), net.host(plan.ends[1])?.clone()];
        let making = cleanup::making();
        let beside = plan.beside.as_ref().map(|way| beside(&local, &remote, way)).transpose()?;
        drop(making);
        let scion_lines = format!("daemon = \"{}\"\npaths = {}\n{}", local.daemon, plan.paths, plan.link);
        let mut links = link_section("eth0", "scion", &scion_lines);
        links += &beside.as_ref().map(|_| link_section(BESIDE, "udp", "")).unwrap_or_default();
        let scion = Some(EndpointAddr::new(remote.isd_as, SocketAddr::new(remote.address, PORT)));
        let paths = plan.paths + usize::from(beside.is_some());
        let plain = Site::plain(&local.namespace, &remote.namespace, FAR.into(), links, paths);
        let portals = Portals::join(program, &Site { scion, traffic: plan.traffic, ..plain })?;
        Ok(Self { portals, _beside: beside, local, remote, net })
    }

    /// A CUBIC transfer from the local portal's host to the remote one's, or back, in the tunnel.
    #[must_use]
    pub fn transfer(&self, flow: Flow, duration: Duration) -> TcpTransfer {
        let (near, far) = ((&self.local, tunnel_address(LOCAL_TUN)), (&self.remote, tunnel_address(REMOTE_TUN)));
        let (from, to) = match flow {
            Flow::Up => (near, far),
            Flow::Down => (far, near),
        };
        TcpTransfer {
            from: from.0.namespace.clone(),
            to: to.0.namespace.clone(),
            destination: SocketAddr::new(to.1, TRANSFER_PORT),
            source: Some(from.1),
            congestion: Congestion::Cubic,
            duration,
        }
    }

    /// A ping in the tunnel, from the local portal's host.
    #[must_use]
    pub fn ping(&self, interval: Duration, duration: Duration) -> Ping {
        Ping { from: self.local.namespace.clone(), destination: tunnel_address(REMOTE_TUN), interval, duration }
    }

    /// The local portal's paths that are active now.
    #[must_use]
    pub fn active_paths(&self) -> Vec<PathStatus> {
        let peers = self.portals.local_status().map(|status| status.peers).unwrap_or_default();
        peers.into_iter().flat_map(|peer| peer.paths).filter(|path| path.state == PathState::Active).collect()
    }

    /// The two portals.
    #[must_use]
    pub fn portals(&self) -> &Portals {
        &self.portals
    }
}

/// Step 2.
fn beside(local: &Host, remote: &Host, way: &Direction) -> Result<EmulatedLink, LabError> {
    let end = |host: &Host, address: Ipv4Addr| End::new(&host.namespace, BESIDE, &[&format!("{address}/24")]);
    let spec = LinkSpec::symmetric(BESIDE, end(local, NEAR), end(remote, FAR), way);
    Ok(EmulatedLink::new(spec)?)
}

fn tunnel_address(network: &str) -> IpAddr {
    parsed(network).addr()
}
