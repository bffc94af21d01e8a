//! A folder of recordings, read.

use hawser_sim::family::folder;
use hawser_sim::family::recorded::Draw;
use hawser_sim::judge::Network;
use std::path::Path;

/// All that is drawn of it; no folder, no network.
pub fn networks(folder: &str, draw: Draw) -> Vec<Network> {
    if folder.is_empty() {
        return Vec::new();
    }
    folder::networks(Path::new(folder), draw).unwrap_or_else(|error| panic!("{error}: {}", error.hint()))
}
