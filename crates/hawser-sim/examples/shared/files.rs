//! A folder of recordings, read.

use hawser_sim::family::recorded::{Draw, Trace, pairs, stretches};
use hawser_sim::judge::Network;
use hawser_sim::net::Recording;
use hawser_sim::recorded;
use std::path::Path;

/// Stretches of `drives.csv`, then pairs of `*.down` with their `*.up`; nothing of what is not there.
pub fn networks(folder: &str, draw: Draw) -> Vec<Network> {
    let mut networks = match std::fs::read_to_string(Path::new(folder).join("drives.csv")) {
        Ok(text) => {
            let (names, drives) = recorded::drives(&text);
            stretches(&names, &drives, draw)
        }
        Err(_) => Vec::new(),
    };
    networks.extend(pairs(&traces(folder), draw));
    networks
}

fn traces(folder: &str) -> Vec<Trace> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut downs: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    downs.retain(|path| path.extension().is_some_and(|extension| extension == "down"));
    downs.sort();
    let trace = |path: &Path| Trace {
        name: path.file_stem().unwrap_or_default().to_string_lossy().replace("-driving", ""),
        down: read(path).unwrap_or_else(|| panic!("{} is no mahimahi trace", path.display())),
        up: read(&path.with_extension("up")),
    };
    downs.iter().map(|path| trace(path)).collect()
}

fn read(path: &Path) -> Option<Recording> {
    recorded::mahimahi(&std::fs::read_to_string(path).ok()?)
}
