//! Keys that nobody told us, of holders of a one-time secret: proven here, decided by whoever drives the core.

use super::{Endpoint, Event};
use crate::drops::DropReason;
use crate::handshake::enrolment::{EnrolmentVerdict, Invitation};
use crate::session::Route;
use crate::units::Time;
use crate::wire::handshake::HandshakeIndex;

impl Endpoint {
    /// These may enrol from now on, and no others.
    pub fn set_invitations(&mut self, invitations: Vec<Invitation>) {
        self.responder.set_invitations(invitations);
    }

    /// An initiation of somebody who does not show that it knows our public key alone. Nothing is kept of it.
    pub(super) fn on_enrolment(&mut self, now: Time, route: Route, bytes: &[u8]) -> Result<(), DropReason> {
        let index = HandshakeIndex(self.rng.next_u64() as u32);
        match self.responder.on_enrolment(now, bytes, route.remote, index, &mut *self.rng) {
            EnrolmentVerdict::Drop(_) => return Err(DropReason::Handshake),
            EnrolmentVerdict::Cookie(cookie) => self.outbox.push(route, &cookie),
            EnrolmentVerdict::Answer(response) => self.outbox.push(route, &response),
            EnrolmentVerdict::Proven(invitation, key) => {
                let event = Event::Enrolment { invitation, key };
                if !self.events.contains(&event) {
                    self.events.push(event);
                }
            }
        }
        Ok(())
    }
}
