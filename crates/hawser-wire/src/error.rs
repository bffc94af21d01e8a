//! What may go wrong with namespaces and links.

use std::io;

/// A failed operation on a namespace, an interface or an emulated link.
/// Never partly done: what was made before the failure is removed when its owner drops.
/// Plain data, may cross threads.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// What was being done, and to what.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel refused a netlink request.
    #[error("{action}: {source}")]
    Netlink {
        /// What was being done, and to what.
        action: String,
        /// The kernel's answer.
        source: rtnetlink::Error,
    },
    /// There is no such interface in the namespace.
    #[error("{action}: no interface {interface}")]
    NoInterface {
        /// What was being done.
        action: String,
        /// The name that was looked for.
        interface: String,
    },
    /// The driver does not know an offload of this name.
    #[error("set offloads of {interface}: the driver has no feature {feature}")]
    NoFeature {
        /// The interface that was to change.
        interface: String,
        /// The feature's name, as `ethtool -k` would print it.
        feature: &'static str,
    },
    /// The kernel lacks what `backend = "netem"` needs.
    #[error("set {discipline} by tc: the kernel has no module {module}: {said}")]
    NoDiscipline {
        /// The queueing discipline, as `tc` calls it.
        discipline: &'static str,
        /// The module to load or to build.
        module: &'static str,
        /// What `tc` said.
        said: String,
    },
    /// The `tc` program refused.
    #[error("run {command}: {said}")]
    Tc {
        /// The whole command.
        command: String,
        /// What it said.
        said: String,
    },
    /// The link's settings cannot be carried out together, or not by its backend.
    #[error("make link {link}: {reason}")]
    Unfit {
        /// The link's name.
        link: String,
        /// What does not go.
        reason: &'static str,
    },
    /// The link's thread has ended.
    #[error("control link {link}: its thread has ended")]
    Ended {
        /// The link's name.
        link: String,
    },
}

impl WireError {
    /// A failed system call, with what was being done.
    pub(crate) fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }
}
