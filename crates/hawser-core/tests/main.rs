//! Two portals or more, in one process and in virtual time. One executable: what all of them use is linked once.

#[path = "support/allocations.rs"]
mod allocator;
mod support;

mod adversity;
mod aliases;
mod allocations;
mod beside;
mod dual_stack;
mod enrolment;
mod fallback;
mod far_away;
mod flows;
mod idle;
mod imports;
mod initiations;
mod key_end;
mod key_log;
mod memory;
mod nonces;
mod path_life;
mod reload;
mod replayed_initiations;
mod security;
mod session_end;
mod several_peers;
mod slow_start;
mod speed;
mod streams;
mod suspicion;
mod too_big;
mod trains;
mod two_portals;
mod versions;
