//! Named network namespaces, as `ip netns` has them: made, entered and removed.
//!
//! 1. [`make`] reserves the name's file below /run/netns, and binds a new namespace to it.
//! 2. [`NamespaceName::run`] works inside, on a thread of its own.
//! 3. [`remove`] takes the name away. The namespace goes with the last process and descriptor in it.

use std::ffi::CString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use super::error::NetConfigError;

/// Where iproute2 keeps named namespaces (ip-netns(8)).
const DIRECTORY: &str = "/run/netns";
/// The calling thread's namespace (proc(5)).
const OWN: &str = "/proc/thread-self/ns/net";

/// The name of a network namespace: a file name without a path.
/// There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamespaceName(String);

/// Not the name of a namespace.
/// There is no default. Owned data only.
#[derive(Debug, thiserror::Error)]
#[error("parse name of network namespace {0:?}: not a file name")]
pub struct BadName(String);

impl NamespaceName {
    /// Checks a name.
    ///
    /// # Errors
    /// Where it could not be a file's.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let bad = name.is_empty() || matches!(name, "." | "..") || name.contains(['/', '\0']);
        if bad { Err(BadName(name.to_owned())) } else { Ok(Self(name.to_owned())) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is one of this name.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Runs `work` on a thread inside, and waits for it. A panic goes on in the caller. Needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// Where there is no such namespace, or it cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let file = File::open(self.path())?;
        let inside = || {
            move_into_link_name_space(rustix::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.0)
    }
}

/// Step 1.
pub(super) fn make(name: &NamespaceName) -> Result<(), NetConfigError> {
    let failed = |source| NetConfigError::Kernel { operation: "make", subject: subject(name), source };
    fs::create_dir_all(DIRECTORY).and_then(|()| File::create_new(name.path())).map_err(failed)?;
    let made = thread::scope(|scope| scope.spawn(|| bind_new(name)).join());
    match made.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(()) => Ok(()),
        Err(error) => {
            // The file was ours; that nothing is bound to it is the error to tell.
            let _ = fs::remove_file(name.path());
            Err(failed(error))
        }
    }
}

/// Step 3. False where there is none of this name.
pub(super) fn remove(name: &NamespaceName) -> Result<bool, NetConfigError> {
    let failed = |source| NetConfigError::Kernel { operation: "remove", subject: subject(name), source };
    let path = target(name).map_err(failed)?;
    loop {
        // SAFETY: the path is NUL-terminated and outlives the call.
        if unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) } == 0 {
            continue;
        }
        match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => break,
            error => return Err(failed(error)),
        }
    }
    match fs::remove_file(name.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true).map_err(failed),
    }
}

/// On a thread that ends afterwards.
fn bind_new(name: &NamespaceName) -> io::Result<()> {
    // SAFETY: only this thread's network namespace changes; it holds no descriptor that depends on it.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    let (source, target) = (CString::new(OWN)?, target(name)?);
    // SAFETY: both paths are NUL-terminated and outlive the call; type and data may be null for a bind mount.
    let done =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn target(name: &NamespaceName) -> io::Result<CString> {
    Ok(CString::new(format!("{DIRECTORY}/{name}"))?)
}

fn subject(name: &NamespaceName) -> String {
    format!("network namespace {name}")
}

impl fmt::Display for NamespaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for NamespaceName {
    type Error = BadName;

    fn try_from(name: String) -> Result<Self, BadName> {
        Self::new(&name)
    }
}

impl From<NamespaceName> for String {
    fn from(name: NamespaceName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_step_of_a_path() {
        for (name, good) in [
            ("shim-egress", true),
            ("a.b", true),
            ("", false),
            (".", false),
            ("..", false),
            ("a/b", false),
            ("a\0", false),
        ] {
            assert_eq!(NamespaceName::new(name).is_ok(), good, "{name:?}");
            let json = serde_json::to_string(name).unwrap();
            assert_eq!(serde_json::from_str::<NamespaceName>(&json).is_ok(), good, "{name:?}");
        }
    }

    #[test]
    fn a_namespace_is_made_entered_and_removed() {
        let name = NamespaceName::new(&format!("hawser-test-{}", std::process::id())).unwrap();
        make(&name).expect("this test needs root");
        assert!(name.exists());
        let loopback = name.run(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
        assert_eq!(loopback.lines().count(), 3, "two lines of headings, and lo: {loopback}");
        let again = make(&name).unwrap_err();
        assert_eq!(again.errno(), Some(libc::EEXIST), "{again}");
        assert!(name.exists(), "a refusal takes nothing away");
        assert!(remove(&name).unwrap());
        assert!(!remove(&name).unwrap(), "it is gone already");
        assert!(name.run(|| ()).is_err());
    }
}
