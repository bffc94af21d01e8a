//! The one error of network configuration: operation, subject, source.

use std::io;

use super::{
    features::Feature, journal::JournalError, name_servers::NameServersError, nft::NftError, sysctl::SysctlError,
    types::IfIndex,
};

/// Why the system's network configuration could not be read or set.
/// There is no default. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetConfigError {
    /// The kernel refused or the netlink socket failed.
    #[error("{operation} {subject}: {source}")]
    Kernel {
        /// What was attempted, e.g. `add route`.
        operation: &'static str,
        /// To what, e.g. `10.0.0.0/8 dev 3`.
        subject: String,
        /// The kernel's errno.
        source: io::Error,
    },
    /// The kernel answered something that is no answer to the question.
    #[error("{operation} {subject}: unexpected netlink answer: {what}")]
    Protocol {
        /// What was attempted.
        operation: &'static str,
        /// To what.
        subject: String,
        /// The answer.
        what: String,
    },
    /// The kernel was built or booted without something needed.
    #[error("{operation} {subject}: the kernel lacks {feature}")]
    MissingFeature {
        /// What was attempted.
        operation: &'static str,
        /// To what.
        subject: String,
        /// What is missing, with version and option.
        feature: Feature,
    },
    /// No interface has this index (any more).
    #[error("{operation} on interface {interface}: no such interface")]
    NoSuchInterface {
        /// What was attempted.
        operation: &'static str,
        /// The index that nobody has.
        interface: IfIndex,
    },
    /// A call outside a tokio runtime with I/O enabled.
    #[error("open netlink socket: not called from a tokio runtime")]
    NoRuntime,
    /// Leftovers of a killed predecessor are still in the journal.
    #[error("apply {subject}: leftovers of an earlier run are not cleaned yet")]
    NotRecovered {
        /// The change that was asked for.
        subject: String,
    },
    /// The journal could not be taken, read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A sysctl could not be read or written.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A table of nftables could not be set or deleted.
    #[error(transparent)]
    Nft(#[from] NftError),
    /// Name servers could not be set or taken away.
    #[error(transparent)]
    NameServers(#[from] NameServersError),
}

impl NetConfigError {
    /// The errno below, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// What a user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Sysctl(error) => error.hint(),
            Self::Journal(error) => error.hint(),
            Self::Nft(error) => error.hint(),
            Self::NameServers(error) => error.hint(),
            Self::NotRecovered { .. } => Some("call recover() first"),
            _ => match self.errno()? {
                libc::EPERM => Some("run as root or with CAP_NET_ADMIN"),
                libc::EACCES => Some("is IPv6 disabled on the interface (net.ipv6.conf.*.disable_ipv6)?"),
                libc::EEXIST => Some("something else has set the same already; remove it or choose another"),
                _ => None,
            },
        }
    }

    /// What a kernel without `feature` cannot do.
    pub fn lacking(operation: &'static str, subject: impl Into<String>, feature: Feature) -> Self {
        Self::MissingFeature { operation, subject: subject.into(), feature }
    }

    /// Wraps an errno of the kernel's.
    pub fn refused(operation: &'static str, subject: impl Into<String>, errno: rustix::io::Errno) -> Self {
        Self::Kernel { operation, subject: subject.into(), source: errno.into() }
    }

    /// Wraps what rtnetlink says; errno that mean a missing feature get its name.
    pub(super) fn netlink(
        operation: &'static str,
        subject: impl Into<String>,
        missing: Option<Feature>,
        error: rtnetlink::Error,
    ) -> Self {
        let subject = subject.into();
        let source = match error {
            rtnetlink::Error::NetlinkError(message) => message.to_io(),
            rtnetlink::Error::RequestFailed => io::Error::from(io::ErrorKind::BrokenPipe),
            other => {
                return Self::Protocol { operation, subject, what: other.to_string() };
            }
        };
        Self::kernel(operation, subject, missing, source)
    }

    /// The same of what the kernel itself says.
    pub(super) fn kernel(
        operation: &'static str,
        subject: String,
        missing: Option<Feature>,
        source: io::Error,
    ) -> Self {
        match (source.raw_os_error(), missing) {
            (Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT), Some(feature)) => {
                Self::MissingFeature { operation, subject, feature }
            }
            _ => Self::Kernel { operation, subject, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroI32;

    use rtnetlink::packet_core::ErrorMessage;

    use super::*;

    fn refused(errno: i32) -> rtnetlink::Error {
        let mut message = ErrorMessage::default();
        message.code = NonZeroI32::new(-errno);
        rtnetlink::Error::NetlinkError(message)
    }

    #[test]
    fn errors_name_operation_subject_and_what_the_kernel_lacks() {
        let rules = Some(Feature::Ipv4Rules);
        // errno, feature, text, hint
        for (errno, feature, want, hint) in [
            (libc::EPERM, None, "set x: Operation not permitted", true),
            (libc::EEXIST, rules, "set x: File exists", true),
            (libc::EOPNOTSUPP, None, "set x: Operation not supported", false),
            (libc::EOPNOTSUPP, rules, "set x: the kernel lacks ipv4 policy routing (linux 2.2", false),
            (libc::EAFNOSUPPORT, Some(Feature::Ipv6), "set x: the kernel lacks ipv6 (linux with", false),
        ] {
            let error = NetConfigError::netlink("set", "x", feature, refused(errno));
            assert!(error.to_string().starts_with(want), "{error}");
            assert_eq!(error.hint().is_some(), hint, "{error}");
        }
    }
}
