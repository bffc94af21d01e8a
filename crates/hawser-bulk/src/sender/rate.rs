//! How fast a path sends: its controller, and what paces it.

use hawser_core::congestion::pacer::{Pacer, initial_rate};
use hawser_core::congestion::{Controller, Departures, Kind, RttSnapshot, build};
use hawser_core::units::{ByteCount, Time};
use std::time::Duration;

/// What leaves at once when the pacer has held a path back: a train's worth at most, half a millisecond's at least.
const QUANTUM: ByteCount = ByteCount(64 * 1024);
/// See [`QUANTUM`].
const QUANTUM_TIME: Duration = Duration::from_micros(500);

/// A path's law (README.md, "The sender"). A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Law {
    /// Fills the path: BBR (draft-ietf-ccwg-bbr) of each path, with the core's departures. Loss by chance does not slow
    /// it.
    #[default]
    Fill,
    /// As one flow of TCP would: CUBIC (RFC 9438) with HyStart++ (RFC 9406), paced (RFC 9002 section 7.7).
    Fair,
}

/// A path's rate. Begins with the law's initial window; its path owns it.
pub(super) struct PathRate {
    pub(super) controller: Box<dyn Controller>,
    pacer: Pacer,
    datagram: ByteCount,
}

impl PathRate {
    /// For datagrams of this many bytes.
    pub(super) fn new(law: Law, datagram: ByteCount, seed: u64) -> PathRate {
        let kind = match law {
            Law::Fill => Kind::Bbr,
            Law::Fair => Kind::Cubic,
        };
        let controller = build(kind, datagram, seed, Departures::default());
        PathRate { controller, pacer: Pacer::new(datagram), datagram }
    }

    /// Paces at what the controller says now.
    pub(super) fn follow(&mut self, rtt: &RttSnapshot) {
        let rate = self.controller.pacing_rate();
        self.pacer.set_rate(rate.unwrap_or_else(|| initial_rate(self.controller.window(), rtt.smoothed)));
    }

    /// When a datagram may go: now, or as soon as a quantum may. `going`: others went just now.
    pub(super) fn ready_at(&mut self, now: Time, going: bool) -> Time {
        let rate = self.controller.pacing_rate().unwrap_or_default();
        let quantum = if going { self.datagram } else { rate.bytes_in(QUANTUM_TIME).min(QUANTUM).max(self.datagram) };
        self.pacer.ready_at(now, quantum)
    }

    /// Whether the window has room beside what is in flight.
    pub(super) fn has_room(&self, in_flight: ByteCount) -> bool {
        in_flight + self.datagram <= self.controller.window()
    }

    /// A datagram went.
    pub(super) fn on_sent(&mut self, now: Time, bytes: ByteCount, in_flight: ByteCount, limited: bool) {
        self.pacer.on_sent(now, bytes);
        self.controller.on_sent(now, bytes, in_flight, limited);
    }
}

impl std::fmt::Debug for PathRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PathRate").field("law", &self.controller.name()).field("pacer", &self.pacer).finish()
    }
}
