//! What the coupled laws reckon with: the paths of a session as `x = window / round trip`.
//!
//! A window grows by `gain` packets while one window is acknowledged: a formula's increase for each acknowledged
//! byte, times the window. So written, the formulas of LIA, OLIA and BALIA need shares and ratios alone.

use super::PathSnapshot;

/// The least round trip reckoned with, seconds: the clock's grain.
const LEAST_RTT: f64 = 1e-6;

/// A path's round trip in seconds.
pub(super) fn rtt(path: &PathSnapshot) -> f64 {
    path.rtt.as_secs_f64().max(LEAST_RTT)
}

/// A path's window per round trip, bytes a second.
pub(super) fn speed(path: &PathSnapshot) -> f64 {
    path.window.0 as f64 / rtt(path)
}

/// A path and those beside it.
pub(super) fn all<'a>(
    own: &'a PathSnapshot,
    siblings: &'a [PathSnapshot],
) -> impl Iterator<Item = &'a PathSnapshot> + Clone {
    std::iter::once(own).chain(siblings)
}

/// The greatest of some numbers, none of which is negative.
pub(super) fn greatest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, f64::max)
}
