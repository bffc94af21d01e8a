//! Tokens at a member whose peers are in etcd: who enrols is written there, so that all members know it at once.
//!
//! 1. The token's holder has shown its key: etcd is asked, beside the control thread. 2. Once this member knows the
//!    peer by etcd, the token is bound, and the holder answered. Where etcd takes nothing the token stays: the holder
//!    asks twice a second.

use std::collections::{BTreeMap, BTreeSet};

use hawser_config::PublicKey;
use hawser_core::handshake::PublicKey as CoreKey;
use hawser_core::handshake::enrolment::InvitationId;
use hawser_etcd::roster::HubPeer;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::super::serve::Serving;
use super::serving::WRITTEN_WITHIN;
use crate::pairing::Invitation;
use crate::run::messages::Command;

/// What came of a token. Owned data.
pub struct Admitted {
    id: InvitationId,
    key: CoreKey,
    peer: HubPeer,
    outcome: Result<(), String>,
}

/// Who waits for etcd. Nobody at first; the store owns it.
pub struct Desk {
    waiting: BTreeSet<InvitationId>,
    /// Why each was not written, the last time: told once.
    told: BTreeMap<InvitationId, String>,
    done: (UnboundedSender<Admitted>, UnboundedReceiver<Admitted>),
}

impl Default for Desk {
    fn default() -> Self {
        Self { waiting: BTreeSet::new(), told: BTreeMap::new(), done: unbounded_channel() }
    }
}

impl Desk {
    /// The next of them.
    pub async fn next(&mut self) -> Admitted {
        let Some(admitted) = self.done.1.recv().await else { unreachable!("the desk has a sender itself") };
        self.waiting.remove(&admitted.id);
        admitted
    }
}

impl Serving<'_> {
    /// Step 1; false where peers of tokens are in this member's files.
    pub(in crate::run::control) fn enrols_in_etcd(
        &mut self,
        id: InvitationId,
        key: CoreKey,
        invitation: &Invitation,
        public: PublicKey,
    ) -> bool {
        let Some(store) = &mut self.store else { return false };
        if !store.enrolling.waiting.insert(id) {
            return true;
        }
        let peer = HubPeer { name: invitation.name.clone(), key: public, allowed_ips: invitation.allowed_ips.clone() };
        let (view, mut views, done) = (store.view.clone(), store.handle.views(), store.enrolling.done.0.clone());
        tokio::spawn(async move {
            let is_there = view.state.key_of(&peer.name) == Some(peer.key);
            let mut outcome = if is_there { Ok(()) } else { view.add(&peer).await };
            if outcome.is_ok() {
                let known = views.wait_for(|view| view.roster.peers.iter().any(|known| known.key == peer.key));
                let known = timeout(WRITTEN_WITHIN, known).await.is_ok_and(|seen| seen.is_ok());
                outcome = known.then_some(()).ok_or_else(|| "etcd has it, and does not say so".to_owned());
            }
            // The portal may have ended.
            let _ = done.send(Admitted { id, key, peer, outcome });
        });
        true
    }

    /// Step 2.
    pub(super) async fn on_admitted(&mut self, Admitted { id, key, peer, outcome }: Admitted) {
        let Some(store) = &mut self.store else { return };
        if let Err(why) = outcome {
            let before = store.enrolling.told.insert(id, why.clone());
            if before.as_ref() != Some(&why) {
                tracing::warn!(token = %peer.name, error = why, "token not taken: the peer is not in etcd");
            }
            return;
        }
        store.enrolling.told.remove(&id);
        // Answered as bound once the peer is known: this view may not have been heard yet.
        let view = store.handle.view();
        self.on_view(view).await;
        if self.enrolments.bind(id, key) {
            self.enrolments.settle(id, true);
            self.command([Command::Invitations(self.enrolments.core())]);
        }
    }
}
