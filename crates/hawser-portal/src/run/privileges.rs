//! Giving up what a running portal does not need.

use caps::{CapSet, Capability, CapsHashSet};

use super::RunError;

/// What stays: sockets are opened, and the network configured, until the end.
const KEPT: Capability = Capability::CAP_NET_ADMIN;
/// What stays too where raw sockets are opened.
const KEPT_FOR_RAW: Capability = Capability::CAP_NET_RAW;

/// Gives up every capability but [`KEPT`], with `raw` sockets also [`KEPT_FOR_RAW`], for the calling thread and those it starts from now on, and for what these
/// execute (bounding set, where CAP_SETPCAP permits it).
pub fn reduce(raw: bool) -> Result<(), RunError> {
    let keeps = |capability: &Capability| *capability == KEPT || raw && *capability == KEPT_FOR_RAW;
    let bounding = caps::read(None, CapSet::Bounding).map_err(RunError::Privileges)?;
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(RunError::Privileges)? {
        for capability in bounding.into_iter().filter(|c| !keeps(c)) {
            caps::drop(None, CapSet::Bounding, capability).map_err(RunError::Privileges)?;
        }
    }
    let permitted = caps::read(None, CapSet::Permitted).map_err(RunError::Privileges)?;
    let kept: CapsHashSet = permitted.into_iter().filter(keeps).collect();
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
    fn one_capability_is_left_and_another_for_raw_sockets_and_none_comes_back() {
        for raw in [false, true] {
            let kept = if raw { vec![KEPT, KEPT_FOR_RAW] } else { vec![KEPT] };
            leaves(raw, kept.into_iter().collect());
        }
    }

    fn leaves(raw: bool, only: CapsHashSet) {
        // Capabilities belong to a thread: this one is given up with them.
        let thread = std::thread::spawn(move || {
            reduce(raw).expect("privileges can be given up");
            let left = |set| caps::read(None, set).expect("they can be read");
            assert_eq!(left(CapSet::Effective), only, "this test needs root");
            assert_eq!(left(CapSet::Permitted), only);
            assert_eq!(left(CapSet::Bounding), only);
            let child = std::process::Command::new("grep").args(["Cap", "/proc/self/status"]).output();
            let child = String::from_utf8(child.expect("grep runs").stdout).expect("it is text");
            for set in ["CapEff", "CapBnd", "CapAmb"] {
                assert!(child.contains(&format!("{set}:\t{NET_ADMIN_ONLY}")), "{child}");
            }
            assert!(caps::raise(None, CapSet::Effective, Capability::CAP_NET_RAW).is_err());
            assert!(caps::raise(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).is_err());
        });
        thread.join().expect("no panic");
    }
}
