//! The protocol's times, each with its source.

use std::time::Duration;

/// How long things take: the lease at a member, the others at a peer, and `retransmit` at both. Begins with
/// [`Timing::DEFAULT`]. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Timing {
    /// The owner is silent after this long without a datagram, once something was sent to it. The driver follows its
    /// paths with it, (`pair`).
    pub silence: Duration,
    /// Both members are asked after this much of it. Follows the paths too: the first of them has waited for its
    /// probe timeout.
    pub ask: Duration,
    /// The owner is told the claim this often, so that its lease lasts.
    pub refresh: Duration,
    /// The other one is told it this often, so that it is known to be there.
    pub standby_refresh: Duration,
    /// A claim that its member has not answered is said this often, a probe timeout apart.
    pub retransmit: Duration,
    /// How long a member owns after it wrote the stamp that was echoed, by its own clock.
    pub lease: Duration,
    /// A peer that is called later than it asked for by more than this did not run: what it did not hear meanwhile is
    /// nobody's silence.
    pub late: Duration,
}

impl Timing {
    /// Of a peer that is not idle.
    pub const DEFAULT: Timing = Timing {
        // The least time after which a silent peer is sent a new initiation (hawser-core, SILENCE_LEAST).
        silence: Duration::from_millis(350),
        // So that the answer comes before it is needed.
        ask: Duration::from_millis(175),
        // A stamp comes back at most a refresh and a round trip later: the claim after the one that brings it is there
        // 0.6 s before the lease ends.
        refresh: Duration::from_millis(1700),
        // With the owner's, at most 5 % of the packets of a member that serves 10,000 busy peers (hawser-sim, `million`).
        standby_refresh: Duration::from_secs(17),
        // Between a fast path's probe timeout and a slow one's (RFC 9002 section 6.2).
        retransmit: Duration::from_millis(100),
        // Two refreshes, and what a claim that was lost takes to be said again.
        lease: Duration::from_secs(4),
        // What a busy machine may be late by (hawser-core, ASLEEP, beyond the second that it asks for).
        late: Duration::from_millis(250),
    };
}
