//! What each link and the bond carry, where it is asked for: `hawser speed` with every peer that has a path.

use std::path::Path;

use hawser_portal::api::{Client, PathState};

use super::finding::Finding;
use crate::cmd::speed::Speed;

/// A finding for each peer. Where the portal cannot be asked other findings say so.
pub fn measure(file: &Path) -> Vec<Finding> {
    let Ok((config, _)) = hawser_config::read(file) else { return Vec::new() };
    let Ok(status) = Client::status(&config.portal.socket) else { return Vec::new() };
    let reached = status.peers.iter().filter(|peer| peer.paths.iter().any(|path| path.state == PathState::Active));
    reached.map(|peer| found(&config.portal.socket, &peer.name)).collect()
}

fn found(socket: &Path, peer: &str) -> Finding {
    match Speed::with(socket, peer).measure() {
        Ok(report) => Finding::info("speed", peer, report.summary()),
        Err(failure) => {
            let text = format!("the links to {peer} were not measured: {}", failure.cause());
            Finding::notice("no-speed", peer, text, "hawser speed says more")
        }
    }
}
