//! OLIA, the opportunistic linked increases of draft-khalili-mptcp-congestion-control-05.
//!
//! ```text
//! each acknowledged byte adds  mss · ( (w / rtt²) / (Σ w_i / rtt_i)² + alpha / w )        (section 3)
//!
//!   best      the paths with the most  l² / rtt,  l: bytes delivered between losses
//!   largest   the paths with the largest window
//!   collected the best that are not among the largest, out of n paths
//!
//!   alpha     + 1 / (n · |collected|)   of a collected path
//!             - 1 / (n · |largest|)     of a largest one, where any is collected
//!               0                       else
//! ```
//!
//! So windows move to paths that lose less but are small. A loss halves the path's own window.

use super::PathSnapshot;
use super::aimd::Law;
use super::coupled::{all, greatest, rtt, speed};
use super::newreno::LOSS_FACTOR;

/// OLIA's law. At first that of a path alone; its controller owns it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Olia {
    gain: f64,
}

impl Olia {
    pub(super) fn new() -> Self {
        Olia { gain: 1.0 }
    }
}

/// How good a path is, whatever its window.
fn quality(path: &PathSnapshot) -> f64 {
    let delivered = path.between_losses.0 as f64;
    delivered * delivered / rtt(path)
}

/// What a path gets from the others, or gives them.
fn alpha(own: &PathSnapshot, siblings: &[PathSnapshot]) -> f64 {
    let paths = all(own, siblings);
    let most = greatest(paths.clone().map(quality));
    let widest = paths.clone().map(|path| path.window).max();
    let is_largest = |path: &PathSnapshot| Some(path.window) == widest;
    let is_collected = |path: &PathSnapshot| quality(path) >= most && !is_largest(path);
    let count = paths.clone().count() as f64;
    let collected = paths.clone().filter(|path| is_collected(path)).count() as f64;
    if collected == 0.0 {
        0.0
    } else if is_collected(own) {
        1.0 / (count * collected)
    } else if is_largest(own) {
        -1.0 / (count * paths.filter(|path| is_largest(path)).count() as f64)
    } else {
        0.0
    }
}

impl Law for Olia {
    const NAME: &'static str = "olia";
    const COUPLED: bool = true;

    fn observe(&mut self, own: &PathSnapshot, siblings: &[PathSnapshot]) {
        let sum: f64 = all(own, siblings).map(speed).sum();
        let share = speed(own) / sum;
        self.gain = share * share + alpha(own, siblings);
    }

    fn gain(&self) -> f64 {
        self.gain
    }

    fn leaves(&self) -> f64 {
        LOSS_FACTOR
    }
}
