//! Giving up what a running portal does not need.

use caps::{CapSet, Capability, CapsHashSet};

use super::RunError;

/// What stays: sockets are opened, and the network configured, until the end.
const KEPT: Capability = Capability::CAP_NET_ADMIN;

/// Gives up every capability but [`KEPT`] for the calling thread and those it starts from now on, and for what these
/// execute (bounding set, where CAP_SETPCAP permits it). These have it too, whoever the user is (ambient set): `nft` needs it.
pub fn reduce() -> Result<(), RunError> {
    let bounding = caps::read(None, CapSet::Bounding).map_err(RunError::Privileges)?;
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(RunError::Privileges)? {
        for capability in bounding.into_iter().filter(|c| *c != KEPT) {
            caps::drop(None, CapSet::Bounding, capability).map_err(RunError::Privileges)?;
        }
    }
    let permitted = caps::read(None, CapSet::Permitted).map_err(RunError::Privileges)?;
    let kept: CapsHashSet = permitted.into_iter().filter(|c| *c == KEPT).collect();
    // The ambient set is part of the inheritable one, which is part of the permitted one.
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted, CapSet::Ambient] {
        caps::set(None, set, &kept).map_err(RunError::Privileges)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only CAP_NET_ADMIN, as /proc/PID/status shows it (linux/capability.h: number 12).
    const NET_ADMIN_ONLY: &str = "0000000000001000";

    #[test]
    fn one_capability_is_left_and_none_comes_back() {
        // Capabilities belong to a thread: this one is given up with them.
        let thread = std::thread::spawn(|| {
            reduce().expect("privileges can be given up");
            let left = |set| caps::read(None, set).expect("they can be read");
            let only: CapsHashSet = [KEPT].into();
            assert_eq!(left(CapSet::Effective), only, "this test needs root");
            assert_eq!(left(CapSet::Permitted), only);
            assert_eq!(left(CapSet::Bounding), only);
            let child = std::process::Command::new("grep").args(["Cap", "/proc/self/status"]).output();
            let child = String::from_utf8(child.expect("grep runs").stdout).expect("it is text");
            for set in ["CapEff", "CapBnd", "CapAmb"] {
                assert!(child.contains(&format!("{set}:\t{NET_ADMIN_ONLY}")), "{child}");
            }
            assert!(caps::raise(None, CapSet::Effective, Capability::CAP_NET_RAW).is_err());
        });
        thread.join().expect("no panic");
    }
}
