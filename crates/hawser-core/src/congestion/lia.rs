//! LIA, the linked increases of RFC 6356: together the paths take what one flow would on the best of them.
//!
//! ```text
//! alpha = w_total · max(w_i / rtt_i²) / (Σ w_i / rtt_i)²            (section 4, equation 2)
//! each acknowledged byte adds  min(alpha · mss / w_total, mss / w)   (section 3)
//! ```
//!
//! A loss halves the path's own window.

use super::PathSnapshot;
use super::aimd::Law;
use super::coupled::{all, greatest, rtt, speed};
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
        let sum: f64 = paths.clone().map(speed).sum();
        let best = greatest(paths.map(|path| speed(path) / rtt(path)));
        self.gain = (own.window.0 as f64 * best / (sum * sum)).min(1.0);
    }

    fn gain(&self) -> f64 {
        self.gain
    }

    fn leaves(&self) -> f64 {
        LOSS_FACTOR
    }
}
