//! Speed tests with a peer: filler by its session's paths (`session/filler.rs`).

use super::Endpoint;
use crate::session::{SpeedError, SpeedRun};
use crate::units::{PeerId, Time};

impl Endpoint {
    /// Begins a run with a peer. What arrives of it, and whether the peer refuses, shows in the snapshot.
    ///
    /// # Errors
    /// [`SpeedError`] where the peer is away or cannot, no path works, or another run is on.
    pub fn measure_speed(&mut self, now: Time, PeerId(id): PeerId, run: SpeedRun) -> Result<(), SpeedError> {
        let session = self.peers.get_mut(id as usize).and_then(|peer| peer.session.as_mut());
        session.ok_or(SpeedError::NoSession)?.measure_speed(now, run)
    }

    /// Ends our run with a peer, if there is one, on both sides.
    pub fn end_speed(&mut self, now: Time, PeerId(id): PeerId) {
        if let Some(session) = self.peers.get_mut(id as usize).and_then(|peer| peer.session.as_mut()) {
            session.end_speed(now);
        }
    }
}
