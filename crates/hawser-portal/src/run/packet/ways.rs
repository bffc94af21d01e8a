//! The SCION paths of a link, as the control thread chose them.
//!
//! 1. [`bind`] opens the link; it has no path yet. 2. [`take`]: paths come; the link uses them, and the core opens a
//!    path of the session along each. 3. [`lay`]: a link that was opened anew, perhaps at another address, uses the
//!    same ones.

use hawser_core::units::{LinkId, Time};
use hawser_net::link::udp::UdpOpts;
use hawser_net::link::{Link, LinkError, LinkFinding};
use hawser_scion::daemon::PortRange;
use hawser_scion::link::{ScionLink, ScionOpts, Way};

use super::Parts;
use super::any_link::AnyLink;
use super::socket::LinkSocket;
use crate::run::messages;
use crate::run::plan::ScionRole;

/// What a link over SCION goes by. Nothing at first; its socket owns it.
#[derive(Debug, Default)]
pub struct Ways {
    ways: Vec<Way>,
    ports: Option<PortRange>,
    /// The port that was found to be none that routers send to.
    told_of: Option<u16>,
}

/// Step 1.
pub fn bind(udp: UdpOpts, link: LinkId, role: &ScionRole) -> Result<AnyLink, LinkError> {
    let listens = match role {
        ScionRole::Calls { .. } => None,
        ScionRole::Listens(endpoint) => Some(endpoint.isd_as),
    };
    ScionLink::bind(ScionOpts { udp, link, listens }).map(AnyLink::Scion)
}

/// Step 2. The link comes first: the core may speak at once.
pub fn take(parts: &mut Parts, told: messages::Ways, now: Time) {
    let messages::Ways { link, ways, peers, ports } = told;
    let Some(socket) = parts.sockets.get_mut(usize::from(link.0)) else { return };
    socket.ways.ways = ways;
    socket.ways.ports = ports.or(socket.ways.ports);
    lay(socket);
    for (peer, aliases) in peers {
        parts.endpoint.set_aliases(now, peer, link, &aliases);
    }
}

/// Step 3.
pub fn lay(socket: &mut LinkSocket) {
    let Some(AnyLink::Scion(link)) = &mut socket.link else { return };
    if let Err(error) = link.set_ways(&socket.ways.ways) {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::warn!(link = socket.plan.name, %error, cause, "path not used");
    }
    let port = link.local_addr().port();
    if let Some(ports) = socket.ways.ports.filter(|ports| !ports.contains(port))
        && socket.ways.told_of.replace(port) != Some(port)
    {
        let finding = LinkFinding::PortNotDispatched { port, ports: format!("{}-{}", ports.first, ports.last) };
        tracing::warn!(link = socket.plan.name, %finding, "link works, and worse");
    }
}
