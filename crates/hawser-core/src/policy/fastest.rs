//! The path that sparse flows go by: the one of least delay.
//!
//! *Principle*: what is sent seldom has no window that hides a delay, so it takes the path that brings it home soonest
//! (least one-way delay first). A sparse flow that hops between two paths is reordered, so the present one keeps its
//! place against small differences (hysteresis; mean deviation as in RFC 6298 section 2). No difference of more than the
//! other's round trip is small: a link whose rate fell to next to nothing has a deviation of seconds, and kept its place
//! by it when the others were back.

use super::PathView;
use super::delay::micros;
use super::tuning::Fastest;

/// The usable path with the least delay; the present one keeps the place unless beaten clearly.
pub fn choose(tuning: &Fastest, present: usize, paths: &[PathView]) -> usize {
    let least = paths.iter().enumerate().filter(|(_, p)| p.usable).min_by_key(|(_, p)| p.delay_us);
    let Some((best, view)) = least else { return 0 };
    match paths.get(present) {
        Some(p) if p.usable && p.delay_us - view.delay_us < margin(tuning, p, view) => present,
        _ => best,
    }
}

fn margin(tuning: &Fastest, present: &PathView, best: &PathView) -> i64 {
    let deviation = present.jitter_us.saturating_mul(tuning.margin_jitters);
    tuning.margin_us.max(deviation.min(micros(best.least_rtt)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::path;
    use super::super::{Law, Tuning};
    use super::*;

    #[test]
    fn the_fastest_path_keeps_its_place_against_small_differences() {
        let neutral = Tuning::neutral(Law::named("fastest-margin").expect("a law")).fastest;
        // The other path's jitter is its own business.
        for (later_us, jitter_us, kept) in [(0, 0, true), (900, 0, true), (1_000, 0, false), (1_500, 2_000, true)] {
            let mut paths = [path(50, 10), path(50, 10)];
            (paths[1].delay_us, paths[1].jitter_us) = (10_000 + later_us, jitter_us);
            let choose = |tuning: &Fastest| choose(tuning, 1, &paths);
            assert_eq!(choose(&Fastest::default()), usize::from(kept), "{later_us} µs later");
            assert_eq!(choose(&neutral), 0, "without the law");
        }
    }

    #[test]
    fn no_deviation_keeps_a_path_in_place_that_is_a_round_trip_of_another_later() {
        // A round trip of 20 ms, and a path whose rate fell: 2 s, more or less.
        let mut paths = [path(50, 10), path(5, 60)];
        for (later_us, chosen) in [(19_000, 1), (20_000, 0), (1_380_000, 0)] {
            (paths[1].delay_us, paths[1].jitter_us) = (paths[0].delay_us + later_us, 1_593_972);
            assert_eq!(choose(&Fastest::default(), 1, &paths), chosen, "{later_us} µs later");
        }
    }

    #[test]
    fn a_path_that_is_not_usable_is_never_the_fastest() {
        let mut paths = [path(50, 10), path(50, 90)];
        paths[0].usable = false;
        assert_eq!(choose(&Fastest::default(), 0, &paths), 1);
        paths[1].usable = false;
        assert_eq!(choose(&Fastest::default(), 1, &paths), 0, "there is none");
    }
}
