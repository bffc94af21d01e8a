//! LIA, the linked increases of RFC 6356: together the paths take what one flow would on the best of them.
//!
//! ```text
//! alpha = w_total · max(w_i / rtt_i²) / (Σ w_i / rtt_i)²            (section 4, equation 2)
//! each acknowledged byte adds  min(alpha · mss / w_total, mss / w)   (section 3)
//! ```
//!
//! A loss halves the path's own window.
//!
//! The derivation has windows in equilibrium (Wischik et al.: Design, implementation and evaluation of congestion
//! control for multipath TCP, NSDI 2011, section 2.5), so alpha is reckoned from averaged ones. Of momentary windows
//! that fall at different times the largest is more than its share, and two paths of one bottleneck took 1.3 of what
//! one flow gets.

use super::PathSnapshot;
use super::aimd::Law;
use super::coupled::{all, greatest, rtt};
use super::newreno::LOSS_FACTOR;

/// LIA's law. At first that of a path alone; its controller owns it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Lia {
    gain: f64,
}

impl Lia {
    pub(super) fn new() -> Self {
        Lia { gain: 1.0 }
    }
}

impl Law for Lia {
    const NAME: &'static str = "lia";
    const COUPLED: bool = true;

    fn observe(&mut self, own: &PathSnapshot, siblings: &[PathSnapshot]) {
        let paths = all(own, siblings);
        let usual = |path: &PathSnapshot| path.usual.0 as f64;
        let total: f64 = paths.clone().map(usual).sum();
        let speeds: f64 = paths.clone().map(|path| usual(path) / rtt(path)).sum();
        let best = greatest(paths.clone().map(|path| usual(path) / rtt(path).powi(2)));
        let alpha = total * best / (speeds * speeds);
        let window: f64 = paths.map(|path| path.window.0 as f64).sum();
        self.gain = (alpha * own.window.0 as f64 / window).min(1.0);
    }

    fn gain(&self) -> f64 {
        self.gain
    }

    fn leaves(&self) -> f64 {
        LOSS_FACTOR
    }
}
