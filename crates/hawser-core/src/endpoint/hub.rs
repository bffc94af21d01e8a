//! A hub's portals (`hawser-hub`): a peer that has two members, or a member that serves peers which may be another's.

use super::Endpoint;
use crate::session::{Presence, Reach};
use crate::units::PeerId;
use crate::wire::HubFrame;

impl Endpoint {
    /// Says a CLAIM or CLAIM_ACK to a peer, once. False where it is away, or does not know what that is.
    pub fn say_to_hub(&mut self, PeerId(id): PeerId, frame: HubFrame, reach: Reach) -> bool {
        let session = self.peers.get_mut(id as usize).and_then(|peer| peer.session.as_mut());
        session.is_some_and(|session| session.say_to_hub(frame, reach))
    }

    /// Whether a peer is there.
    pub fn presence(&self, PeerId(id): PeerId) -> Presence {
        let peer = &self.peers[id as usize];
        let away = Presence { unanswered_since: peer.asking_since, heard_at: None, probe_timeouts: None, idle: false };
        peer.session.as_ref().map_or(away, |session| session.presence())
    }

    /// Whether a peer has a session with us, and knows what CLAIM and CLAIM_ACK are about.
    pub fn knows_hub(&self, PeerId(id): PeerId) -> bool {
        self.peers[id as usize].session.as_ref().is_some_and(|session| session.knows_hub())
    }
}
