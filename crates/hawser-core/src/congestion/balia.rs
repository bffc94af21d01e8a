//! BALIA, the balanced linked adaptation of draft-walid-mptcp-congestion-control-04 (Peng, Walid, Hwang, Low: Multipath
//! TCP: Analysis, Design, and Implementation, IEEE/ACM Transactions on Networking 24(1), 2016).
//!
//! ```text
//! x = w / rtt      alpha = max(x_i) / x
//! each acknowledged byte adds  mss · x / rtt / (Σ x_i)² · (1 + alpha) / 2 · (4 + alpha) / 5
//! a loss takes                 w / 2 · min(alpha, 1.5)
//! ```

use super::PathSnapshot;
use super::aimd::Law;
use super::coupled::{all, greatest, speed};

/// The most that counts of alpha where a loss reduces the window (section 3).
const ALPHA_CAP: f64 = 1.5;

/// BALIA's law. At first that of a path alone; its controller owns it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Balia {
    /// Of the sum of all paths.
    share: f64,
    alpha: f64,
}

impl Balia {
    pub(super) fn new() -> Self {
        Balia { share: 1.0, alpha: 1.0 }
    }
}

impl Law for Balia {
    const NAME: &'static str = "balia";
    const COUPLED: bool = true;

    fn observe(&mut self, own: &PathSnapshot, siblings: &[PathSnapshot]) {
        let speeds = all(own, siblings).map(speed);
        self.share = speed(own) / speeds.clone().sum::<f64>();
        self.alpha = greatest(speeds) / speed(own);
    }

    fn gain(&self) -> f64 {
        self.share * self.share * (1.0 + self.alpha) / 2.0 * (4.0 + self.alpha) / 5.0
    }

    fn leaves(&self) -> f64 {
        1.0 - self.alpha.min(ALPHA_CAP) / 2.0
    }
}
