//! Hawser's session as the bulk protocol: a portal on each host, and streams of TCP from one end of the tunnel to the
//! other.
//!
//! 1. The sender's portal has a link over SCION for each connection, so that the session has a path for each: a socket
//!    of its own.
//! 2. Both start, and are waited for. What the ends then see as the other host is its address in the tunnel.

use std::net::SocketAddr;
use std::path::Path;

use super::candidate::Way;
use super::ground::{Ground, Host};
use crate::error::LabError;
use crate::portals::{LOCAL_TUN, Portals, REMOTE_TUN, Site, parsed};

/// Both steps; `daemon` is the sender's. The portals, and the ground as it is inside the tunnel.
pub(super) fn up(
    hawser: &Path,
    ground: &Ground,
    daemon: SocketAddr,
    connections: u16,
) -> Result<(Portals, Ground), LabError> {
    let Ground { sender, receiver, interfaces, .. } = ground;
    let links = links(interfaces[0], daemon, connections);
    let plain = Site::plain(&sender.namespace, &receiver.namespace, receiver.address, links, connections.into());
    let site = Site { scion: Some(ground.receiver_end(Way::Straight)), ..plain };
    let portals = Portals::join(hawser, &site)?;
    let inside = |host: &Host, network| Host { address: parsed(network).addr(), ..host.clone() };
    let ground = Ground {
        sender: inside(sender, LOCAL_TUN),
        receiver: inside(receiver, REMOTE_TUN),
        interfaces: *interfaces,
        route: None,
    };
    Ok((portals, ground))
}

/// Step 1.
fn links(interface: &str, daemon: SocketAddr, connections: u16) -> String {
    let section = |number| {
        format!(
            "[[link]]\nname = \"path{number}\"\ninterface = \"{interface}\"\ntransport = \"scion\"\n\
             daemon = \"{daemon}\"\npaths = 1\n\n"
        )
    };
    (1..=connections).map(section).collect()
}
