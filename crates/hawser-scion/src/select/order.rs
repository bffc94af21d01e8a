//! The best paths by one criterion.
//!
//! Every order is total and depends on nothing but the paths: what is equal by the criterion is taken in the order of
//! `scion showpaths`, which is shorter paths first, then smaller interfaces. What is not announced comes after all that
//! is.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use super::health::{Health, HealthTable};
use super::sharability::least_shared;
use crate::path::{Fingerprint, Path};

/// What makes a path, or a set of paths, the best. [`Criterion::Length`] by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Criterion {
    /// The largest packets.
    Mtu,
    /// The fewest ASes.
    #[default]
    Length,
    /// The least latency, as announced: all of it must be.
    Latency,
    /// The most bandwidth, as announced.
    Bandwidth,
    /// The fewest interfaces in common.
    Sharability,
    /// The least loss, then the shortest round trip, as measured.
    Health,
}

/// A word that is no criterion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read \"{0}\": paths are chosen by mtu, length, latency, bandwidth, sharability or health")]
pub struct UnknownCriterion(pub String);

impl Criterion {
    /// All of them.
    pub const ALL: [Criterion; 6] = [
        Criterion::Mtu,
        Criterion::Length,
        Criterion::Latency,
        Criterion::Bandwidth,
        Criterion::Sharability,
        Criterion::Health,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Criterion::Mtu => "mtu",
            Criterion::Length => "length",
            Criterion::Latency => "latency",
            Criterion::Bandwidth => "bandwidth",
            Criterion::Sharability => "sharability",
            Criterion::Health => "health",
        }
    }
}

/// The paths as they are listed: in the order of `scion showpaths`, each way once, by the path that lasts longest.
/// Says where each stands among those given.
pub fn listed(paths: &[Path]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..paths.len()).collect();
    order.sort_by_key(|&index| {
        let path = &paths[index];
        // What is equal so far may be announced to be faster: the order they came in must not choose between them.
        let announced = (&path.latency, &path.bandwidth);
        (place(path), Reverse(path.expiry), Reverse(path.mtu), path.dataplane.as_bytes(), announced)
    });
    order.dedup_by_key(|index| &paths[*index].interfaces);
    order
}

/// The best paths by a criterion, the best first, where each stands among those given; fewer if there are not this
/// many.
pub fn choose(paths: &[Path], criterion: Criterion, count: usize, health: &HealthTable) -> Vec<usize> {
    let unknown = Health::default();
    let health = |index: usize| health.get(&paths[index].interfaces).unwrap_or(&unknown);
    let (mut failed, fine): (Vec<usize>, Vec<usize>) =
        listed(paths).into_iter().partition(|&index| health(index).failed_lately());
    let mut chosen = match criterion {
        Criterion::Sharability => {
            let ways: Vec<&Fingerprint> = fine.iter().map(|&index| &paths[index].interfaces).collect();
            least_shared(&ways, count).chosen.into_iter().map(|at| fine[at]).collect()
        }
        criterion => ranked(paths, fine, criterion, health),
    };
    // A way that failed long ago may work again.
    failed.sort_by_key(|&index| Reverse(health(index).since_failure));
    chosen.extend(failed);
    chosen.truncate(count);
    chosen
}

/// All of them, the best first. They come as they are listed, and what is equal stays so.
fn ranked<'h>(
    paths: &[Path],
    mut order: Vec<usize>,
    criterion: Criterion,
    health: impl Fn(usize) -> &'h Health,
) -> Vec<usize> {
    match criterion {
        Criterion::Length | Criterion::Sharability => {}
        Criterion::Mtu => order.sort_by_key(|&index| Reverse(paths[index].mtu)),
        Criterion::Bandwidth => order.sort_by_key(|&index| Reverse(paths[index].announced_bandwidth())),
        Criterion::Latency => order.sort_by_key(|&index| {
            let latency = paths[index].announced_latency();
            (latency.is_none(), latency)
        }),
        Criterion::Health => order.sort_by_key(|&index| health(index).rank()),
    }
    order
}

/// Where a path stands in the list.
fn place(path: &Path) -> (usize, &Fingerprint) {
    (path.interfaces.interfaces().len(), &path.interfaces)
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Criterion {
    type Err = UnknownCriterion;

    fn from_str(text: &str) -> Result<Criterion, UnknownCriterion> {
        Criterion::ALL
            .into_iter()
            .find(|criterion| criterion.name() == text)
            .ok_or_else(|| UnknownCriterion(text.to_owned()))
    }
}
