//! What a choice of paths costs in the other metrics (Flückiger 2020, table 6.4).
//!
//! 1. The paths in use are in the shim's status: length, MTU, how often they share interfaces.
//! 2. The best that as many paths could have: chosen from all that there are by that metric alone.

use hawser_scion::Path;
use hawser_scion::select::{Criterion, HealthTable, SetMetrics, choose};
use hawser_shim::status::ConnectionStatus;

use crate::experiment::Findings;

/// A set of paths in figures. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Choice {
    /// How many.
    pub paths: f64,
    /// ASes on a path, both ends counted: the mean.
    pub length: f64,
    /// Bytes of a packet: the mean.
    pub mtu: f64,
    /// How often interfaces are used beyond once.
    pub sharability: f64,
}

impl Choice {
    /// Step 1; none where a flow has no path.
    pub fn of(connection: &ConnectionStatus) -> Option<Self> {
        let paths: Vec<_> = connection.flows.iter().filter_map(|flow| flow.path.as_ref()).collect();
        let count = paths.len() as f64;
        let mtu: f64 = paths.iter().filter_map(|path| path.mtu).map(f64::from).sum();
        (!paths.is_empty()).then(|| Self {
            paths: count,
            length: paths.iter().map(|path| path.length as f64).sum::<f64>() / count,
            mtu: mtu / count,
            sharability: connection.sharability as f64,
        })
    }

    /// Step 2: in each metric, what the best set of this many paths has.
    pub fn best(all: &[Path], count: usize) -> Self {
        let chosen = |criterion| -> Vec<&Path> {
            choose(all, criterion, count, &HealthTable::default()).into_iter().map(|index| &all[index]).collect()
        };
        let mean = |paths: &[&Path], of: &dyn Fn(&Path) -> f64| {
            paths.iter().map(|path| of(path)).sum::<f64>() / paths.len().max(1) as f64
        };
        Self {
            paths: count.min(all.len()) as f64,
            length: mean(&chosen(Criterion::Length), &|path| path.hops() as f64),
            mtu: mean(&chosen(Criterion::Mtu), &|path| f64::from(path.mtu)),
            sharability: SetMetrics::of(chosen(Criterion::Sharability)).sharability() as f64,
        }
    }

    /// What it is, and how far it is from the best.
    pub fn findings(self, best: Self) -> Findings {
        Findings::named([
            ("paths", self.paths),
            ("length", self.length),
            ("mtu", self.mtu),
            ("sharability", self.sharability),
            ("length_over_percent", (self.length - best.length) / best.length * 100.0),
            ("mtu_under_percent", (best.mtu - self.mtu) / best.mtu * 100.0),
            ("sharability_over", self.sharability - best.sharability),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_held_against_the_best_in_each_metric() {
        let best = Choice { paths: 4.0, length: 4.0, mtu: 1472.0, sharability: 4.0 };
        let own = Choice { paths: 4.0, length: 5.0, mtu: 1398.4, sharability: 6.0 };
        let found = own.findings(best).metrics;
        for (name, value) in [("length_over_percent", 25.0), ("mtu_under_percent", 5.0), ("sharability_over", 2.0)] {
            assert!((found[name] - value).abs() < 1e-9, "{name}: {}", found[name]);
        }
        assert!(best.findings(best).metrics.iter().all(|(name, value)| !name.contains("_") || *value == 0.0));
    }
}
