//! Nothing is left behind: no namespace, no process, no file.
//!
//! 1. [`start`] asks for root, removes what dead runs left, and catches the signals that end a program.
//! 2. What is made is made under [`making`], and each process is noted here until its owner drops it.
//! 3. Without a signal the owners' `Drop` removes everything, while a panic unwinds too.
//! 4. On a signal a thread waits until nothing is in the making, keeps that lock, ends what is noted, removes what bears
//!    our id, and exits. Whoever lives in our namespaces then (children of the processes we noted) is ended, too.
//!
//! After a `kill -9` the portals end by themselves (their parent's death signals them), and step 1 of the next run
//! removes the rest: processes that live in the dead run's namespaces first.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use hawser_wire::Whose;
use rustix::process::{Pid, Signal, WaitOptions, geteuid, getpid, kill_process, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use crate::error::LabError;

/// What the name of every folder of ours begins with; the process id and a dash follow.
const FOLDER_PREFIX: &str = "hawser-lab-";
/// How long a process may take to undo what it set, after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// How often a process that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// A shell's exit status for a program that a signal ended is this and the signal's number.
const SIGNAL_STATUS: i32 = 128;

/// Held while namespaces, processes and folders are made. The signal's thread takes it before it notes, and no thread
/// takes it while it holds [`NOTED`]: so no two wait for each other.
static MAKING: Mutex<()> = Mutex::new(());
/// Processes that the signal's thread is to end. Held for a push or a search only.
static NOTED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Step 1.
///
/// # Errors
/// [`LabError::NotRoot`] for other users, [`LabError::System`] where signals cannot be caught.
pub fn start() -> Result<(), LabError> {
    if !geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    evict(Whose::Gone)?;
    for name in hawser_wire::sweep()? {
        tracing::info!(namespace = name, "removed what a dead run left");
    }
    remove_folders(hawser_wire::is_gone);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|e| LabError::system("catch signals", e))?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            end(signal);
        }
    };
    let thread = thread::Builder::new().name("cleanup".to_owned());
    thread.spawn(wait).map_err(|e| LabError::system("start thread", e))?;
    Ok(())
}

/// Step 2: hold it while making something else than a [`Folder`] or a process. Those take it themselves: who holds it
/// makes neither.
pub(crate) fn making() -> MutexGuard<'static, ()> {
    MAKING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn noted() -> MutexGuard<'static, Vec<Pid>> {
    NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Notes a process until [`forget_process`].
pub(crate) fn note_process(pid: Pid) {
    noted().push(pid);
}

/// A process that was waited for.
pub(crate) fn forget_process(pid: Pid) {
    noted().retain(|&noted| noted != pid);
}

/// A folder for configurations, keys and logs. Removed on drop; one owner.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    /// An empty folder that only root can read.
    pub(crate) fn new() -> Result<Self, LabError> {
        let _making = making();
        let prefix = format!("{FOLDER_PREFIX}{}-", std::process::id());
        let made = tempfile::Builder::new().prefix(&prefix).tempdir();
        Ok(Self(made.map_err(|e| LabError::system("make a folder for configurations", e))?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Step 4. What cannot be removed cannot be helped either: the next run's sweep tries again.
fn end(signal: i32) -> ! {
    let _nothing_new = making();
    let processes = noted();
    crate::demo::restore_terminal();
    // Which of them run is always known.
    let _ = end_all(|| Ok(processes.iter().copied().filter(|&pid| is_running(pid)).collect()));
    if let Err(error) = evict(Whose::Own) {
        tracing::warn!(%error, "processes were left");
    }
    remove_folders(|pid| pid == getpid());
    if let Err(error) = hawser_wire::teardown() {
        tracing::warn!(%error, "namespaces were left");
    }
    std::process::exit(SIGNAL_STATUS + signal)
}

/// Ends the processes that live in namespaces.
fn evict(whose: Whose) -> Result<(), LabError> {
    for pid in hawser_wire::inhabitants(whose)? {
        tracing::info!(pid = pid.as_raw_pid(), "ends what lives in a namespace that goes");
    }
    end_all(|| Ok(hawser_wire::inhabitants(whose)?))
}

/// Ends processes until none is there: with SIGTERM, so that they undo what they set, and SIGKILL after a while.
fn end_all(there: impl Fn() -> Result<Vec<Pid>, LabError>) -> Result<(), LabError> {
    let send = |processes: &[Pid], signal| {
        for &pid in processes {
            // Fails only where it has ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    };
    send(&there()?, Signal::TERM);
    let late = Instant::now() + GRACE;
    loop {
        match there()? {
            left if left.is_empty() => return Ok(()),
            left if Instant::now() > late => send(&left, Signal::KILL),
            _ => {}
        }
        thread::sleep(GLANCE);
    }
}

/// Whether a child runs still; one that another thread has waited for does not.
fn is_running(pid: Pid) -> bool {
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

/// Removes the folders of such processes.
fn remove_folders(whose: impl Fn(Pid) -> bool) {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(owner);
        if owner.is_some_and(&whose)
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::warn!(folder = %entry.path().display(), %error, "a folder was left");
        }
    }
}

/// The process a folder belongs to; none where the name is not one of ours.
fn owner(name: &str) -> Option<Pid> {
    let (pid, _random) = name.strip_prefix(FOLDER_PREFIX)?.split_once('-')?;
    Pid::from_raw(pid.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_tells_its_process_and_a_stranger_is_left_alone() {
        let table = [
            ("hawser-lab-42-aX3", Some(42)),
            ("hawser-lab-42", None),
            ("hawser-lab-x-aX3", None),
            ("hawser-lab-0-aX3", None),
            ("hawser-42-aX3", None),
        ];
        for (name, pid) in table {
            assert_eq!(owner(name).map(Pid::as_raw_pid), pid, "{name}");
        }
    }

    #[test]
    fn a_folder_goes_with_its_owner() {
        let folder = Folder::new().expect("it is made");
        let path = folder.path().to_owned();
        assert!(path.exists() && path.file_name().and_then(|name| owner(name.to_str()?)) == Some(getpid()));
        drop(folder);
        assert!(!path.exists());
    }
}
