//! NewReno as RFC 9002 section 7 has it: a packet a window, half after a loss, whatever goes on beside.

use super::PathSnapshot;
use super::aimd::Law;

/// What a loss leaves of the window (RFC 9002 section 7.3.2, kLossReductionFactor).
pub(super) const LOSS_FACTOR: f64 = 0.5;

/// NewReno's law. Nothing to begin with; its controller owns it.
#[derive(Copy, Clone, Debug)]
pub(super) struct NewReno;

impl Law for NewReno {
    const NAME: &'static str = "newreno";
    const COUPLED: bool = false;

    fn observe(&mut self, _own: &PathSnapshot, _siblings: &[PathSnapshot]) {}

    fn gain(&self) -> f64 {
        1.0
    }

    fn leaves(&self) -> f64 {
        LOSS_FACTOR
    }
}
