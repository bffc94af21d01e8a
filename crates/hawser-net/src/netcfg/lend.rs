//! Programs that configure the network for us.

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
