//! What a peer knows of one of its members.

use crate::units::{Epoch, MemberId, Stamp};
use hawser_core::units::Time;
use std::time::Duration;

/// What is known of one member. Nothing at first; the claimant owns it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Contact {
    /// Who it is.
    pub id: MemberId,
    /// Since when something was sent to it and nothing came.
    pub unanswered_since: Option<Time>,
    /// When it was last told the claim.
    pub told_at: Option<Time>,
    /// No CLAIM_ACK came since.
    pub unacked: bool,
    /// Its newest stamp of the present session.
    pub stamp: Option<Stamp>,
    /// The highest epoch that it said it knows, in the present session.
    pub knows: Option<Epoch>,
    /// It asks its peers to move.
    pub draining: bool,
    /// It is to be told the claim at once.
    pub urgent: bool,
}

impl Contact {
    pub fn new(id: MemberId) -> Self {
        Contact {
            id,
            unanswered_since: None,
            told_at: None,
            unacked: false,
            stamp: None,
            knows: None,
            draining: false,
            urgent: true,
        }
    }

    /// Whether something was sent to it, and for so long nothing came.
    pub fn is_silent(&self, now: Time, silence: Duration) -> bool {
        self.unanswered_since.is_some_and(|since| now.since(since) >= silence)
    }
}
