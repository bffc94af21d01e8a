//! What paths are like together, for status and logs.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::path::{Path, PathInterface};

/// A set of paths in figures. That of no paths by default. Plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetMetrics {
    /// How many there are.
    pub paths: usize,
    /// ASes on the way, of all paths together, both ends counted.
    pub hops: usize,
    /// Interfaces that several of them cross.
    pub shared: Vec<Shared>,
    /// The largest packet that goes by each of them.
    pub mtu: Option<u16>,
    /// Their one-way latencies together: `None` unless all are announced.
    pub total_latency: Option<Duration>,
    /// The longest of their one-way latencies: `None` unless all are announced.
    pub longest_latency: Option<Duration>,
    /// When the first of them expires.
    pub expiry: Option<SystemTime>,
}

/// An interface that several paths cross. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Which.
    pub interface: PathInterface,
    /// By how many paths.
    pub paths: usize,
}

impl SetMetrics {
    /// What these paths are like together.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> SetMetrics {
        let paths: Vec<&Path> = paths.into_iter().collect();
        let mut uses = BTreeMap::<PathInterface, usize>::new();
        for interface in paths.iter().flat_map(|path| path.interfaces.interfaces()) {
            *uses.entry(*interface).or_default() += 1;
        }
        let shared = uses.into_iter().filter(|(_, paths)| *paths > 1);
        let latencies: Option<Vec<Duration>> = paths.iter().map(|path| path.announced_latency()).collect();
        SetMetrics {
            paths: paths.len(),
            hops: paths.iter().map(|path| path.hops()).sum(),
            shared: shared.map(|(interface, paths)| Shared { interface, paths }).collect(),
            mtu: paths.iter().map(|path| path.mtu).min(),
            total_latency: latencies.as_ref().map(|latencies| latencies.iter().sum()),
            longest_latency: latencies.and_then(|latencies| latencies.into_iter().max()),
            expiry: paths.iter().map(|path| path.expiry).min(),
        }
    }

    /// How often interfaces are used beyond once: 0 where the paths have none in common.
    pub fn sharability(&self) -> usize {
        self.shared.iter().map(|shared| shared.paths - 1).sum()
    }
}
