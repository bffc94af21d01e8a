//! Capabilities for a moment: of programs that configure the network for us, and of a thread that has its own at hand only.

use caps::{CapSet, Capability};

/// What they get.
const LENT: Capability = Capability::CAP_NET_ADMIN;

/// Does `work`; a program that it starts on this thread gets CAP_NET_ADMIN, where the thread has it permitted and inheritable.
/// Where it has not, the program gets what it would get anyway, and says itself what it lacks.
pub fn lending<T>(work: impl FnOnce() -> T) -> T {
    let before = caps::has_cap(None, CapSet::Ambient, LENT).unwrap_or(false);
    let lent = caps::raise(None, CapSet::Ambient, LENT).is_ok();
    let done = work();
    if lent
        && !before
        && let Err(error) = caps::drop(None, CapSet::Ambient, LENT)
    {
        tracing::warn!(%error, "CAP_NET_ADMIN stays lent to programs");
    }
    done
}

/// Does `work` with all the capabilities in force that the calling thread is permitted, and puts back what was before. Where
/// they cannot be raised the work fails by itself, and says what it lacked.
pub fn raised<T>(work: impl FnOnce() -> T) -> T {
    let before = caps::read(None, CapSet::Effective).unwrap_or_default();
    let permitted = caps::read(None, CapSet::Permitted).unwrap_or_default();
    if before == permitted {
        return work();
    }
    let _ = caps::set(None, CapSet::Effective, &permitted);
    let done = work();
    if let Err(error) = caps::set(None, CapSet::Effective, &before) {
        tracing::warn!(%error, "capabilities stay in force");
    }
    done
}
