//! Capabilities given up for good, and lent or raised for a moment.
//!
//! 1. [`give_up_all_but`] keeps what a program will still need, for the calling thread and those it starts.
//! 2. [`at_rest`] has it at hand without its being in force, but for the moment of [`raised`].
//! 3. [`lending`] lets a program that configures the network for us have what it needs.
//!
//! Beside that, [`hide_memory`] keeps what the process knows from other processes and from the disk.

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use rustix::thread::CapabilitiesSecureBits;

/// What they get.
const LENT: Capability = Capability::CAP_NET_ADMIN;

/// Step 1: keeps these, and closes every way to get more.
///
/// # Errors
/// What the kernel says.
pub fn give_up_all_but(kept: &CapsHashSet) -> Result<(), CapsError> {
    close_ways_back().and_then(|()| keep(kept))
}

/// Nothing that is executed gets more: not by being root's, not by a set-user-ID bit, not by a file's capabilities.
/// Bounding set and securebits are CAP_SETPCAP's; without it (in a container, say) `no_new_privs` does the same for
/// programs.
fn close_ways_back() -> Result<(), CapsError> {
    caps::clear(None, CapSet::Ambient)?;
    // What may be lent to a program later has to be here, and gives nobody anything by itself. It comes first: nothing
    // is inheritable anew that is not in the bounding set.
    let lendable = caps::read(None, CapSet::Permitted)?.into_iter().filter(|power| *power == LENT).collect();
    caps::set(None, CapSet::Inheritable, &lendable)?;
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        for capability in caps::read(None, CapSet::Bounding)? {
            caps::drop(None, CapSet::Bounding, capability)?;
        }
        let bits = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
        if let Err(error) = rustix::thread::set_capabilities_secure_bits(bits) {
            tracing::debug!(%error, "securebits not set");
        }
    }
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        tracing::debug!(%error, "no_new_privs not set");
    }
    Ok(())
}

/// Keeps these of what the calling thread is permitted, and has them in force.
///
/// # Errors
/// What the kernel says.
pub fn keep(kept: &CapsHashSet) -> Result<(), CapsError> {
    let kept = caps::read(None, CapSet::Permitted)?.intersection(kept).copied().collect();
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Permitted, &kept)
}

/// Step 2: these are at hand for the calling thread, and not in force.
///
/// # Errors
/// What the kernel says.
pub fn at_rest(kept: &CapsHashSet) -> Result<(), CapsError> {
    caps::clear(None, CapSet::Inheritable)?;
    keep(kept)?;
    caps::clear(None, CapSet::Effective)
}

/// No core dump of this process is written, and no other process without CAP_SYS_PTRACE looks into its memory: it holds
/// keys.
///
/// # Errors
/// What the kernel says.
pub fn hide_memory() -> std::io::Result<()> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).map_err(Into::into)
}

/// Does `work`; a program that it starts on this thread gets CAP_NET_ADMIN, where the thread has it permitted and
/// inheritable. Where it has not, the program gets what it would get anyway, and says itself what it lacks.
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

/// Does `work` with all the capabilities in force that the calling thread is permitted, and puts back what was before.
/// Where they cannot be raised the work fails by itself, and says what it lacked.
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
