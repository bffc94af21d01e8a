//! Names and files of namespaces, and the removal of those whose process is gone.
//!
//! 1. A name tells the process it belongs to: `hw-<tag>-<pid>-<n>`.
//! 2. `sweep` removes the namespaces of processes that are gone (kill -9 runs no Drop).
//! 3. `teardown` removes those of this process, for a signal handler's thread before it exits.
//! 4. `inhabitants` tells the processes that live in either kind, so that they can be ended before.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::error::WireError;

/// Where iproute2 keeps named namespaces. Source: ip-netns(8).
pub(crate) const NETNS_DIRECTORY: &str = "/run/netns";

/// What every name of ours begins with.
const PREFIX: &str = "hw-";

/// Step 1: the name of a process's n-th namespace.
pub(crate) fn name(tag: &str, pid: u32, number: u32) -> String {
    format!("{PREFIX}{tag}-{pid}-{number}")
}

/// The process a namespace belongs to; None where the name is not one of ours.
fn owner(name: &str) -> Option<Pid> {
    let (rest, number) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    let (_tag, pid) = rest.rsplit_once('-')?;
    number.parse::<u32>().ok()?;
    Pid::from_raw(pid.parse().ok()?)
}

/// Step 2: removes the namespaces whose process is gone, and returns their names.
///
/// # Errors
/// Where /run/netns cannot be read or a namespace cannot be unmounted (needs root).
pub fn sweep() -> Result<Vec<String>, WireError> {
    remove_where(|pid| Whose::Gone.is(pid))
}

/// Step 3: removes every namespace that this process made. Their handles stay usable, and drop quietly.
///
/// # Errors
/// As [`sweep`].
pub fn teardown() -> Result<Vec<String>, WireError> {
    remove_where(|pid| Whose::Own.is(pid))
}

/// Whose namespaces are meant. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of processes that are gone.
    Gone,
    /// This process's.
    Own,
}

impl Whose {
    fn is(self, pid: Pid) -> bool {
        match self {
            Self::Gone => is_gone(pid),
            Self::Own => pid == rustix::process::getpid(),
        }
    }
}

/// Whether a process has ended; one that nobody has waited for yet has, too.
#[must_use]
pub fn is_gone(pid: Pid) -> bool {
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
    // Its state stands after its name, which may have brackets of its own. Source: proc_pid_stat(5).
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('Z'))
}

/// Step 4: the processes that live in such namespaces; a process that only has threads there lives elsewhere.
///
/// # Errors
/// Where /run/netns or /proc cannot be read.
pub fn inhabitants(whose: Whose) -> Result<Vec<Pid>, WireError> {
    let failed = |error| WireError::system("look for processes in namespaces", error);
    let inode = |path: String| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let namespaces = names_where(|pid| whose.is(pid))?.into_iter();
    let namespaces: Vec<_> = namespaces.filter_map(|name| inode(format!("{NETNS_DIRECTORY}/{name}"))).collect();
    let processes = fs::read_dir("/proc").map_err(failed)?.flatten();
    let processes = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    // A process that ends meanwhile has no namespace any more.
    let lives_there =
        |pid: &Pid| inode(format!("/proc/{}/ns/net", pid.as_raw_pid())).is_some_and(|its| namespaces.contains(&its));
    Ok(processes.filter(lives_there).collect())
}

fn remove_where(chosen: impl Fn(Pid) -> bool) -> Result<Vec<String>, WireError> {
    let names = names_where(chosen)?;
    for name in &names {
        remove(name).map_err(|error| WireError::system(format!("remove {name}"), error))?;
    }
    Ok(names)
}

/// The names of namespaces whose process is meant.
fn names_where(chosen: impl Fn(Pid) -> bool) -> Result<Vec<String>, WireError> {
    let entries = match fs::read_dir(NETNS_DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| WireError::system("list namespaces", error))?,
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| owner(name).is_some_and(&chosen)).collect())
}

/// Binds a thread's namespace to its file.
pub(crate) fn bind(source: &str, name: &str) -> io::Result<()> {
    let (source, target) = (CString::new(source)?, path(name)?);
    // SAFETY: both paths are NUL-terminated and outlive the call; type and data may be null for a bind mount.
    let done =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Unmounts a namespace, as often as it is mounted, and removes its file. One that is gone already is fine.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    let target = path(name)?;
    loop {
        // SAFETY: the path is NUL-terminated and outlives the call.
        if unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) } == 0 {
            continue;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOENT) => break,
            _ => return Err(error),
        }
    }
    match fs::remove_file(format!("{NETNS_DIRECTORY}/{name}")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn path(name: &str) -> io::Result<CString> {
    Ok(CString::new(format!("{NETNS_DIRECTORY}/{name}"))?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_gone_when_it_has_ended_whoever_waits_for_it() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let pid = Pid::from_child(&child);
        assert!(!is_gone(pid) && !is_gone(rustix::process::getpid()));
        child.kill().expect("it is ours");
        while !is_gone(pid) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().expect("it has ended");
        assert!(is_gone(pid));
    }

    #[test]
    fn a_name_tells_its_process_and_a_stranger_is_left_alone() {
        let table = [
            (name("demo", 42, 7), Some(42)),
            (name("two-words", 42, 7), Some(42)),
            ("hw-42-7".to_owned(), None),
            ("hw-demo-42".to_owned(), None),
            ("hw-demo-x-7".to_owned(), None),
            ("hw-demo-42-x".to_owned(), None),
            ("hw-demo-0-1".to_owned(), None),
            ("vpn-demo-42-7".to_owned(), None),
        ];
        for (name, expected) in table {
            assert_eq!(owner(&name).map(Pid::as_raw_pid), expected, "{name}");
        }
    }
}
