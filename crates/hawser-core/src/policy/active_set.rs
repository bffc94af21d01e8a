//! The active set: which paths are worth their delay to a bulk flow.
//!
//! *Principle*: a bulk flow spread over a set of paths gets the sum of their rates and, because its order is restored
//! at the far side, the delay of the slowest. A congestion-controlled sender fills a pipe the later the longer its
//! round trip, so each set is scored
//!
//! ```text
//! score(S) = rate(S) · (round trip(S) / round trip(fastest alone)) ^ -delay_weight
//! ```
//!
//! and the best of the sets "the k paths of least delay" is active. What counts as delay: `delay.rs`. The exponent is
//! measured, not derived. While the fastest path is probed nobody knows what another would add to it: then only
//! those are active that cost next to nothing.

use super::tuning::{ActiveSet, Tuning};
use super::{MAX_PATHS, PathSet, PathView, delay};

/// The paths that bulk flows use. `fastest` is always among them, and so is a path that is probed and delays them
/// little by it.
pub fn choose(tuning: &Tuning, paths: &[PathView], fastest: usize) -> PathSet {
    let Some(first) = paths.get(fastest) else { return PathSet::ALL };
    let cost = |path: &PathView| delay::effective_us(&tuning.delay, path) as f64;
    let longer = longer(&tuning.active_set, first);
    let mut order: Vec<usize> = (0..paths.len().min(MAX_PATHS)).filter(|&i| paths[i].usable).collect();
    order.sort_by(|&a, &b| cost(&paths[a]).total_cmp(&cost(&paths[b])));
    if first.probing {
        order.clear();
    }
    let mut set = PathSet::NONE.with(fastest);
    let mut best = (0.0, set);
    let mut rate = 0.0;
    for index in order {
        let path = &paths[index];
        set = set.with(index);
        rate += path.rate.map_or(0.0, |r| r.0 as f64 * (1.0 - path.loss));
        let score = rate * longer(cost(path));
        if score >= best.0 {
            best = (score, set);
        }
    }
    let probed = |path: &PathView| first.probing || path.probing;
    let cheap = |path: &PathView| longer(cost(path)) >= tuning.active_set.cheap;
    let fed = paths.iter().enumerate().filter(|(_, path)| path.usable && probed(path) && cheap(path));
    fed.fold(best.1, |set, (index, _)| set.with(index))
}

/// By what factor a flow is worse off, 0 to 1, whose packets take this many µs in the place of the fastest path's
/// delay.
fn longer(tuning: &ActiveSet, first: &PathView) -> impl Fn(f64) -> f64 {
    let base = first.floor_us as f64;
    let round_trip = (first.least_rtt.as_micros() as f64).max(tuning.round_trip_min_us);
    let weight = tuning.delay_weight;
    move |delay| ((round_trip + (delay - base).max(0.0)) / round_trip).powf(-weight)
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::super::tests::path;
    use super::*;

    fn active(tuning: &Tuning, paths: &[PathView]) -> Vec<usize> {
        let fastest = super::super::fastest::choose(&tuning.fastest, 0, paths);
        choose(tuning, paths, fastest).iter().filter(|index| *index < paths.len()).collect()
    }

    #[test]
    fn every_path_that_is_worth_its_delay_to_a_bulk_flow_is_active() {
        let nervous = |jitter_ms: i64, p: PathView| PathView { jitter_us: jitter_ms * 1_000, ..p };
        let lossy = |loss, p: PathView| PathView { loss, ..p };
        let table: [(&str, Vec<PathView>, &[usize]); 8] = [
            ("equal", vec![path(50, 10), path(50, 10)], &[0, 1]),
            ("a quarter of the rate at four times the delay", vec![path(40, 10), path(10, 40)], &[0, 1]),
            ("a slow, far and nervous one", vec![path(100, 10), nervous(10, path(5, 75))], &[0]),
            ("a far one that carries more", vec![path(10, 10), path(20, 150)], &[0, 1]),
            ("a near one that carries little", vec![path(1, 1), path(500, 100)], &[0, 1]),
            ("four alike", vec![path(20, 10); 4], &[0, 1, 2, 3]),
            ("equal and lossy", vec![lossy(0.01, path(50, 10)), lossy(0.01, path(50, 10))], &[0, 1]),
            ("a hundred to one", vec![path(500, 10), path(5, 100)], &[0]),
        ];
        let neutral = Tuning::neutral(Law::named("active-set").expect("a law"));
        for (name, paths, expected) in table {
            assert_eq!(active(&Tuning::default(), &paths), expected, "{name}");
            assert_eq!(active(&neutral, &paths).len(), paths.len(), "{name}, without the law");
        }
    }

    #[test]
    fn a_path_that_is_probed_is_active_if_it_costs_little() {
        let probed = |mbit, delay_ms| PathView { probing: true, ..path(mbit, delay_ms) };
        let neutral = Tuning::neutral(Law::named("probe-copies").expect("a law"));
        let far = [path(100, 10), probed(5, 75)];
        assert_eq!(active(&Tuning::default(), &[path(100, 10), probed(1, 12)]), [0, 1]);
        assert_eq!(active(&Tuning::default(), &far), [0], "copies probe this one");
        assert_eq!(active(&neutral, &far), [0, 1]);
    }

    #[test]
    fn while_the_fastest_path_is_probed_what_costs_much_is_not_active() {
        let probed = |mbit, delay_ms| PathView { probing: true, ..path(mbit, delay_ms) };
        let second = |paths: [PathView; 2]| active(&Tuning::default(), &paths).contains(&1);
        assert!(!second([probed(1, 20), probed(1, 40)]), "a rate of what little was sent says nothing");
        assert!(!second([probed(1, 20), path(50, 40)]));
        assert!(second([probed(1, 20), path(50, 22)]));
        assert!(second([path(50, 20), probed(50, 40)]), "it carries at least that");
    }
}
