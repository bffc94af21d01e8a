//! Who owns a peer: forwards its packets, and announces its prefixes.
//!
//! 1. The peer ([`Claimant`]) has a session with two members at once, and decides: it makes an [`Epoch`], gives it to
//!    one member, and says so to both (CLAIM), again and again.
//! 2. A member ([`Ownership`]) owns while the highest epoch that it heard of is its own, and its lease lasts. It
//!    answers with what it knows and its own clock (CLAIM_ACK), which the peer's next CLAIM echoes.
//! 3. The owner falls silent or drains: the peer raises the epoch and claims the other member.
//!
//! # What holds
//!
//! - **One owner of an epoch**, whatever is lost, duplicated, reordered, delayed, partitioned, stopped or restarted: an
//!   epoch has one writer, which names the member in it. It needs that the peer never makes an epoch twice:
//!   [`Claimant::new`].
//! - **A fenced member forwards nothing**: who hears of a higher epoch, from the peer at once, from anybody else once it
//!   has no lease, stops until the peer claims it in an epoch at least as high.
//! - **A stale owner is bounded.** A member cut off or stopped (SIGSTOP, a hypervisor's pause) cannot know that
//!   somebody else was claimed; no message tells it in time. So it owns for [`Timing::lease`] only, *from when it wrote
//!   the stamp that was echoed*, by its own clock (Gray and Cheriton, "Leases", SOSP 1989, there from the request). A
//!   CLAIM that waited in a socket while the process did not run therefore renews nothing. That clock must count while
//!   the machine sleeps: CLOCK_BOOTTIME. A driver that sees that it did not run for long ends its leases before it
//!   reads a socket: [`Ownership::handle_resumed`].
//! - **A live peer comes to an owner** where one of its two members lives and answers within half a lease.
//!
//! # What does not
//!
//! - Until its lease ends, the old owner may forward beside the new one (of the next epoch). Waiting for the lease
//!   would make every move as slow as the lease. Upstream sees packets twice at worst, which TCP and QUIC bear. In a
//!   planned move it is to: nothing of what it has may be lost, and so etcd's word for the new owner does not end it.
//! - What is in hand: the clock is read before a packet is forwarded, and a process may stop between the two. One
//!   packet, or one train, goes out when it is let go on (`gate`).
//! - A clock that runs at another rate makes the lease as much longer or shorter; one that jumps back, which
//!   CLOCK_BOOTTIME never does, breaks it.
//! - A peer that lies gives one epoch to two members: it harms its own prefixes alone.
//! - A compromised member can answer with an epoch near the last one: no peer follows it higher, but that peer cannot
//!   claim again.

mod contact;
mod member;
mod message;
mod peer;
mod timing;

#[cfg(test)]
mod member_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod peer_tests;

pub use member::{Announcement, Forwarding, Ownership, Verdict};
pub use message::{Claim, ClaimAck, ClaimFrame, ClaimMessage, Role};
pub use peer::{Claimant, Phase};
pub use timing::Timing;

#[cfg(doc)]
use crate::units::Epoch;
