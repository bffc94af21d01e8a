//! What a portal's core tells of itself.

use super::peer::Peer;
use super::{Endpoint, Snapshot};
use crate::flows::{LargestFlows, Look};
use crate::packet::TrainId;
use crate::rules::Mark;
use crate::units::{ByteCount, PeerId, Time};

impl Endpoint {
    /// The present state.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let session = |peer: &Peer| peer.session.as_ref().map(|session| session.snapshot(now));
        Snapshot {
            peers: self.peers.iter().map(session).collect(),
            refusals: self.peers.iter().map(|peer| peer.refused).collect(),
            rules: self.rules.numbers().collect(),
            drops: self.drops.clone(),
            trains: ByteCount(self.store.bytes_held() as u64),
            labels: self.labels.len(),
        }
    }

    /// Counts flows from now on, or no more: while they are not counted, a packet costs one branch for it.
    pub fn watch_flows(&mut self, now: Time, on: bool) {
        if on { self.flows.begin(now, &mut *self.rng) } else { self.flows.end() }
    }

    /// The flows that carried most lately, at most this many; none while they are not counted. Call it once a second.
    pub fn largest_flows(&mut self, now: Time, most: usize) -> Option<LargestFlows> {
        self.flows.largest(now, most)
    }

    /// A train was classified: while flows are counted, its own is to say which rule it matches.
    #[inline]
    pub(super) fn note_flow(&mut self, now: Time, peer: PeerId, train: TrainId, mark: Mark) {
        if self.flows.is_next(Look::Classified) {
            let train = self.store.train(train);
            let rule = self.rules.place(train.inner(), mark);
            self.flows.note_treatment(now, peer, train.inner(), rule, train.treatment());
        }
    }
}
