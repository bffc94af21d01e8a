//! The path that sparse flows go by: the one of least delay.
//!
//! *Principle*: what is sent seldom has no window that hides a delay, so it takes the path that brings it home soonest
//! (least one-way delay first). A sparse flow that hops between two paths is reordered, so the present one keeps its
//! place against small differences (hysteresis; mean deviation as in RFC 6298 section 2).

use super::PathView;
use super::tuning::Fastest;

/// The usable path with the least delay; the present one keeps the place unless beaten clearly.
pub fn choose(tuning: &Fastest, present: usize, paths: &[PathView]) -> usize {
    let least = paths.iter().enumerate().filter(|(_, p)| p.usable).min_by_key(|(_, p)| p.delay_us);
    let Some((best, view)) = least else { return 0 };
    match paths.get(present) {
        Some(p) if p.usable && p.delay_us - view.delay_us < margin(tuning, p) => present,
        _ => best,
    }
}

fn margin(tuning: &Fastest, path: &PathView) -> i64 {
    tuning.margin_us.max(path.jitter_us.saturating_mul(tuning.margin_jitters))
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
    fn a_path_that_is_not_usable_is_never_the_fastest() {
        let mut paths = [path(50, 10), path(50, 90)];
        paths[0].usable = false;
        assert_eq!(choose(&Fastest::default(), 0, &paths), 1);
        paths[1].usable = false;
        assert_eq!(choose(&Fastest::default(), 1, &paths), 0, "there is none");
    }
}
