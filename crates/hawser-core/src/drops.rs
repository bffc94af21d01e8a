//! Why something was dropped, counted in one place.

use crate::queue;

/// The reasons; each has one counter per portal. The order is that of `NAMES`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum DropReason {
    /// Too short, an unknown type, or reserved bits set.
    Malformed,
    /// No session has this label.
    UnknownLabel,
    /// The authentication tag is wrong.
    Forged,
    /// The packet number was seen before, or is older than the window.
    Replayed,
    /// A frame inside an authentic datagram makes no sense.
    BadFrame,
    /// A handshake message that is not for us, not authentic, or not wanted.
    Handshake,
    /// An inner packet that is no IP packet.
    BadInner,
    /// No peer's `allowed_ips` hold the inner destination.
    NoPeer,
    /// The inner source is not among the sender's `allowed_ips`.
    WrongSource,
    /// The peer has no session yet and its queue is full.
    NoSession,
    /// The ingress queue was full.
    QueueFull,
    /// The ingress queue's CoDel shortened the queue.
    Codel,
    /// An inner packet was delivered already.
    Duplicate,
    /// No path delivered it in time; the far side was told.
    GaveUp,
    /// An inner packet from one peer to another, where they may not talk to each other.
    BetweenPeers,
    /// An acknowledgement of TCP that waited while a newer one of its flow came: nothing is lost by it.
    AckFiltered,
    /// It came under keys that are beyond their end.
    KeyExpired,
    /// It waited too long for a path.
    TooOld,
    /// Trains hold as many bytes as they may.
    StoreFull,
    /// The peer's trains hold as many bytes as they may beside those of others.
    StoreShare,
    /// The peer's datagrams took as much of the packet thread's time as they may, while those of others are dropped
    /// unseen.
    TimeShare,
    /// No link of its rule, which is strict, works.
    NoLink,
    /// It waited, or was under way without an acknowledgement, when its session ended or gave way to another.
    SessionEnded,
    /// An inner packet from or for a peer that another member of the hub owns, or nobody.
    NotOwner,
    /// A CLAIM or CLAIM_ACK to a portal that is no member of a hub, and has none.
    NoHub,
}

impl From<queue::DropReason> for DropReason {
    fn from(reason: queue::DropReason) -> DropReason {
        match reason {
            queue::DropReason::Overflow => DropReason::QueueFull,
            queue::DropReason::Codel => DropReason::Codel,
            queue::DropReason::AckFiltered => DropReason::AckFiltered,
            queue::DropReason::Old => DropReason::TooOld,
            queue::DropReason::Discarded => DropReason::NoLink,
        }
    }
}

/// The names under which status and metrics show the reasons.
pub const NAMES: [&str; 25] = [
    "malformed",
    "unknown_label",
    "forged",
    "replayed",
    "bad_frame",
    "handshake",
    "bad_inner",
    "no_peer",
    "wrong_source",
    "no_session",
    "queue_full",
    "codel",
    "duplicate",
    "gave_up",
    "between_peers",
    "ack_filtered",
    "key_expired",
    "too_old",
    "store_full",
    "store_share",
    "time_share",
    "no_link",
    "session_ended",
    "not_owner",
    "no_hub",
];

/// Counters by reason. Zero at first; one portal owns it.
#[derive(Clone, Debug, Default)]
pub struct Drops([u64; NAMES.len()]);

impl Drops {
    /// Counts one.
    pub fn count(&mut self, reason: DropReason) {
        self.add(reason, 1);
    }

    /// Counts several.
    pub fn add(&mut self, reason: DropReason, count: u64) {
        self.0[reason as usize] += count;
    }

    /// How many were dropped for `reason`.
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().copied().zip(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reason_has_the_last_name() {
        assert_eq!(NAMES[DropReason::AckFiltered as usize], "ack_filtered");
        assert_eq!(NAMES[DropReason::TimeShare as usize], "time_share");
        assert_eq!(NAMES[DropReason::SessionEnded as usize], "session_ended");
        assert_eq!(NAMES[DropReason::NoHub as usize], "no_hub");
        assert_eq!(NAMES[DropReason::Malformed as usize], "malformed");
    }
}
