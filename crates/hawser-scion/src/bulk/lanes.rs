//! A sender's sockets: one for each path.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hawser_bulk::sender::{MOST_PATHS, Sender};

use super::order::{PathProgress, SendError, SendOrder};
use super::send::system;
use crate::addr::EndpointAddr;
use crate::conn::{ConnOpts, PathTable, ScionConn};
use crate::path::{Fingerprint, Path};

/// A socket for a path.
pub(super) struct Lane {
    pub(super) conn: ScionConn,
    pub(super) path: Fingerprint,
    /// The socket is full: a part of the last batch waits.
    pub(super) full: bool,
}

/// Opens them; one of the own AS needs no path.
pub(super) fn lanes(order: &SendOrder) -> Result<Vec<Lane>, SendError> {
    let opts = |host: IpAddr| {
        let local = EndpointAddr::new(order.local.isd_as, SocketAddr::new(host, order.local.host.port()));
        let plain = ConnOpts::new(local);
        // What opens is right: the cipher's tag says more than a checksum.
        ConnOpts { dispatched: order.dispatched, verify: false, mtu: order.mtu.unwrap_or(plain.mtu), ..plain }
    };
    if order.destination.isd_as == order.local.isd_as {
        let table = Arc::new(PathTable::default());
        let conn = ScionConn::open(opts(order.local.host.ip()), order.destination, table)?;
        return Ok(vec![Lane { conn, path: Fingerprint::default(), full: false }]);
    }
    let lane = |path: &Path| {
        let towards = path.next_hop.unwrap_or(order.destination.host);
        let host = crate::probe::host_towards(towards).map_err(|error| system("find the way to the router", error))?;
        let conn = ScionConn::along(opts(host), order.destination, path)?;
        Ok(Lane { conn, path: path.interfaces.clone(), full: false })
    };
    order.paths.iter().take(MOST_PATHS).map(lane).collect()
}

/// Sends along the paths that were renewed.
pub(super) fn follow(lanes: &[Lane], renewed: &[Path]) {
    for lane in lanes {
        if let Some(path) = renewed.iter().find(|path| path.interfaces == lane.path) {
            // One that makes no header changes nothing.
            let _ = lane.conn.follow(path);
        }
    }
}

/// How each path does now.
pub(super) fn progress(lanes: &[Lane], sender: &Sender) -> Vec<PathProgress> {
    let each = lanes.iter().zip(sender.paths());
    each.map(|(lane, (state, round_trip, bandwidth, counts))| PathProgress {
        path: lane.path.clone(),
        state,
        round_trip,
        bandwidth,
        counts,
    })
    .collect()
}
