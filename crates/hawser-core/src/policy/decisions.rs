//! What was decided: all that the session applies and the scheduler reads.

use super::aqm::Aqm;
use super::overflow::Overflow;
use super::reinjection::Reinjection;
use super::{PathSet, Tuning};
use crate::queue::AckSpacing;

/// Which paths are probed, and how. None by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Probes {
    /// What is known of these is forgotten now: they are probed anew.
    pub restart: PathSet,
    /// These are probed with redundant copies of what others carry.
    pub by_copies: PathSet,
    /// Whether what is sent is kept for such copies.
    pub copies_kept: bool,
}

/// Everything that is decided. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Decisions {
    /// The path that sparse flows go by, and word about the session.
    pub fastest: usize,
    /// The paths that are worth their delay to a bulk flow.
    pub active_set: PathSet,
    /// When slower paths take.
    pub overflow: Overflow,
    /// Which paths are probed.
    pub probes: Probes,
    /// What goes by a second path too.
    pub reinjection: Reinjection,
    /// The ingress queue; `None`: as it is, since no rate is known.
    pub aqm: Option<Aqm>,
    /// How far apart acknowledgements of bulk are.
    pub ack_filter: AckSpacing,
    /// Paths came or went since the last update: fixed shares begin anew.
    pub anew: bool,
}

impl Decisions {
    /// While nothing is known: every path is active.
    pub fn new(tuning: &Tuning) -> Decisions {
        Decisions {
            fastest: 0,
            active_set: PathSet::ALL,
            overflow: Overflow::new(&tuning.overflow),
            probes: Probes::default(),
            reinjection: Reinjection::default(),
            aqm: None,
            ack_filter: AckSpacing::default(),
            anew: false,
        }
    }
}
