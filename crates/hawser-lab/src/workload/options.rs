//! Options that several workloads have.

use hawser_wire::traffic::{Congestion, Towards};

use crate::error::LabError;
pub(super) use crate::options::Options;

/// In which directions bytes go. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    Up,
    Down,
    Both,
}

impl Ways {
    pub(super) const fn all(self) -> &'static [Towards] {
        match self {
            Self::Up => &[Towards::Server],
            Self::Down => &[Towards::Client],
            Self::Both => &[Towards::Server, Towards::Client],
        }
    }
}

impl Options {
    pub(super) fn congestion(&mut self) -> Result<Congestion, LabError> {
        let all = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr].map(|each| (each.name(), each));
        self.choice("congestion", &all, Congestion::Cubic)
    }

    pub(super) fn ways(&mut self, default: Ways) -> Result<Ways, LabError> {
        self.choice("direction", &[("up", Ways::Up), ("down", Ways::Down), ("both", Ways::Both)], default)
    }
}
