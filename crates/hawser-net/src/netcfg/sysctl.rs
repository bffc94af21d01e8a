//! Kernel settings under /proc/sys/net, of the calling thread's network namespace.

use std::{fmt, fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Where the kernel shows its settings; /proc/sys/net follows the reading thread's namespace (sysctl(5),
/// network_namespaces(7)).
const ROOT: &str = "/proc/sys";
/// The only tree Hawser has business in; a journal that names another is not obeyed.
const TREE: &str = "net/";

/// The path of a network setting below /proc/sys, e.g. `net/ipv4/conf/eth0/rp_filter`.
/// There is no default. Slashes separate, because interface names may hold dots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SysctlKey(String);

impl SysctlKey {
    /// Checks a key in slash form; only `net/…` without empty or dotted steps is one.
    pub fn new(key: &str) -> Result<Self, SysctlError> {
        let whole =
            key.starts_with(TREE) && !key.contains('\0') && key.split('/').all(|step| !matches!(step, "" | "." | ".."));
        if whole { Ok(Self(key.to_owned())) } else { Err(SysctlError::BadKey { key: key.to_owned() }) }
    }

    /// Reverse path filter of an interface; the greater of this and `all` rules (ip-sysctl), so 2 (loose) beats an
    /// `all` of 1.
    pub fn rp_filter(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv4/conf/{interface}/rp_filter"))
    }

    /// Whether the reverse path check takes the packet's mark into account (ip-sysctl).
    pub fn src_valid_mark(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv4/conf/{interface}/src_valid_mark"))
    }

    /// Whether IPv4 packets are taken in by an interface from addresses of this host.
    pub fn accept_local(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv4/conf/{interface}/accept_local"))
    }

    /// Whether IPv4 packets that come in by an interface are forwarded.
    pub fn forwarding_v4(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv4/conf/{interface}/forwarding"))
    }

    /// Whether the host is an IPv6 router on an interface; of `all`, whether it forwards IPv6 packets at all.
    pub fn forwarding_v6(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv6/conf/{interface}/forwarding"))
    }

    /// Whether IPv6 packets that come in by an interface are forwarded, whatever `all` says (linux 6.17).
    pub fn force_forwarding(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv6/conf/{interface}/force_forwarding"))
    }

    /// Whether a host listens to router advertisements (1), or even a router does (2).
    pub fn accept_ra(interface: &str) -> Result<Self, SysctlError> {
        Self::new(&format!("net/ipv6/conf/{interface}/accept_ra"))
    }

    /// Whether the kernel has the setting now.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// The interfaces that have IPv6 settings, `all` and `default` among them; none without IPv6.
    pub fn ipv6_interfaces() -> Vec<String> {
        let Ok(directory) = fs::read_dir(PathBuf::from(ROOT).join("net/ipv6/conf")) else { return Vec::new() };
        directory.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// The value now, its words parted by single spaces (the kernel shows tabs between several numbers).
    pub fn read(&self) -> Result<String, SysctlError> {
        fs::read_to_string(self.path()).map(|text| words(&text)).map_err(|source| SysctlError::Io {
            operation: "read",
            key: self.clone(),
            source,
        })
    }

    /// Sets the value.
    pub fn write(&self, value: &str) -> Result<(), SysctlError> {
        fs::OpenOptions::new()
            .write(true)
            .open(self.path())
            .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
            .map_err(|source| SysctlError::Io { operation: "set", key: self.clone(), source })
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(ROOT).join(&self.0)
    }
}

/// A value in the form in which two can be compared.
pub(super) fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for SysctlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SysctlKey {
    type Error = SysctlError;

    fn try_from(key: String) -> Result<Self, SysctlError> {
        Self::new(&key)
    }
}

impl From<SysctlKey> for String {
    fn from(key: SysctlKey) -> Self {
        key.0
    }
}

/// Why a setting could not be read or set.
/// There is no default. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SysctlError {
    /// Not the path of a network setting.
    #[error("parse sysctl {key:?}: not a path below net/")]
    BadKey {
        /// What was given.
        key: String,
    },
    /// The kernel refused.
    #[error("{operation} sysctl {key}: {source}")]
    Io {
        /// `read` or `set`.
        operation: &'static str,
        /// Which setting.
        key: SysctlKey,
        /// Why not.
        source: io::Error,
    },
}

impl SysctlError {
    /// True if the setting does not exist (any more), e.g. because its interface is gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(libc::ENODEV))
    }

    /// What a user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::BadKey { .. } => Some("write it with slashes, e.g. net/ipv4/conf/eth0/rp_filter"),
            Self::Io { source, .. } => match source.raw_os_error()? {
                libc::ENOENT => Some("is the interface there, and has the kernel this setting?"),
                libc::EROFS => {
                    Some("/proc/sys is read-only, as in many containers: set it on the host, or mount it writable")
                }
                libc::EACCES | libc::EPERM => Some("run as root, in the network namespace that owns the setting"),
                libc::EINVAL => Some("the kernel does not take this value"),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_below_net() {
        for (key, good) in [
            ("net/ipv4/conf/eth0/rp_filter", true),
            ("net/ipv4/conf/eth0.100/rp_filter", true),
            ("net/../kernel/core_pattern", false),
            ("net/./ipv4", false),
            ("kernel/core_pattern", false),
            ("/net/ipv4/ip_forward", false),
            ("net//ipv4", false),
            ("net/", false),
            ("", false),
        ] {
            assert_eq!(SysctlKey::new(key).is_ok(), good, "{key:?}");
            let json = serde_json::to_string(key).unwrap();
            assert_eq!(serde_json::from_str::<SysctlKey>(&json).is_ok(), good, "{key:?}");
        }
    }

    #[test]
    fn an_interface_name_cannot_leave_its_place() {
        assert!(SysctlKey::rp_filter("../../kernel").is_err());
        assert!(SysctlKey::rp_filter("").is_err());
        assert!(SysctlKey::src_valid_mark("eth0.7").is_ok());
    }

    #[test]
    fn values_are_compared_word_by_word() {
        for (value, want) in [("1\n", "1"), ("32768\t60999\n", "32768 60999"), ("", ""), (" a  b ", "a b")] {
            assert_eq!(words(value), want);
        }
    }

    #[test]
    fn a_missing_setting_is_gone_and_has_a_hint() {
        let error = SysctlKey::rp_filter("no-such-interface").unwrap().read().unwrap_err();
        assert!(error.is_gone());
        assert!(error.hint().unwrap().contains("interface"));
        assert!(error.to_string().starts_with("read sysctl net/ipv4/conf/no-such-interface"));
    }
}
