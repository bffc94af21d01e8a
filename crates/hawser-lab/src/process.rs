//! A process in a namespace, under test: started, listened to, ended by its id.
//!
//! 1. `start` runs it in its namespace, with its standard error in a file, and noted for cleanup. It gets SIGTERM when
//!    the thread that started it ends, and no signal from the terminal. Its /run is a folder of ours: what it keeps
//!    there (journals, control sockets) goes with the folder, and what others keep there is not its own.
//! 2. Drop sends SIGTERM, so that what it set in the system is undone, and SIGKILL after a grace. `kill` is SIGKILL at
//!    once.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use hawser_wire::Namespace;
use hawser_wire::traffic::ProcessUsage;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::cleanup::{self, Folder, GRACE};
use crate::error::LabError;
use crate::wait::until;

/// How often a process that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// Where programs keep what lasts until the next boot. Source: Filesystem Hierarchy Standard 3.0, 3.15.
const RUN: &CStr = c"/run";
/// Lines of a log that are told when a process fails.
const LOG_LINES: usize = 30;

/// A running process. Ended on drop; one owner.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Step 1. Must be called from a thread that outlives the process.
    pub(crate) fn start(
        name: &str,
        namespace: &Namespace,
        program: &Path,
        arguments: &[&str],
        folder: &Folder,
    ) -> Result<Self, LabError> {
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(arguments);
        Self::launch(name, command, Stdio::null(), folder)
    }

    /// The same of a command of a namespace, whose standard output somebody may read.
    pub(crate) fn launch(name: &str, mut command: Command, output: Stdio, folder: &Folder) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let starting = |error| LabError::system(format!("start {name}"), error);
        let run = folder.path().join("run");
        fs::create_dir_all(&run).map_err(starting)?;
        let run = CString::new(run.into_os_string().into_encoded_bytes()).map_err(|error| starting(error.into()))?;
        let log = folder.path().join(format!("{name}.log"));
        let errors = File::options().create(true).append(true).open(&log).map_err(starting)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let prepare = move || {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            own_run(&run).map_err(io::Error::from)
        };
        // SAFETY: between fork and exec the closure makes system calls on what it owns; it neither allocates nor locks.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().map_err(starting)?;
        let process = Self { name: name.to_owned(), child, log };
        cleanup::note_process(process.pid());
        Ok(process)
    }

    /// Its standard output, where that is a pipe; once.
    pub(crate) fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its id, as the system calls take it.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its id, and those of the processes below it.
    pub(crate) fn family(&self) -> Vec<Pid> {
        family(self.pid())
    }

    /// What it has cost so far.
    pub(crate) fn usage(&self) -> Result<ProcessUsage, LabError> {
        Ok(ProcessUsage::of(self.id())?)
    }

    /// An error that tells what it did, with the end of its log.
    pub(crate) fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::Process { process: self.name.clone(), fault: fault.into(), log: self.log_end() }
    }

    /// Whether it runs still; for those that only look, and wait for nothing.
    pub(crate) fn runs(&self) -> bool {
        // A process that has ended stays a zombie until its owner waits for it.
        !hawser_wire::is_gone(self.pid())
    }

    /// Its status, where it has ended by itself.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, LabError> {
        self.child.try_wait().map_err(|error| LabError::system(format!("look at {}", self.name), error))
    }

    /// That it has not ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        self.ended()?.map_or(Ok(()), |status| Err(self.fault(format!("it ended: {status}"))))
    }

    /// Waits until it has ended by itself, and well.
    pub(crate) fn finish(&mut self, patience: Duration) -> Result<(), LabError> {
        match until(patience, GLANCE, || self.ended())? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.fault(format!("it ended: {status}"))),
            None => Err(self.fault("it did not end")),
        }
    }

    /// Step 2, as a crash would.
    pub(crate) fn kill(mut self) {
        // Fails only where it has ended already; drop waits.
        let _ = self.child.kill();
    }

    /// Step 2, without waiting for the end.
    pub(crate) fn tell_to_end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Fails only where it has ended meanwhile.
            let _ = kill_process(self.pid(), Signal::TERM);
        }
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_else(|error| format!("(no log: {error})"))
    }

    /// The end of what it said.
    pub(crate) fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

/// A process and those below it that run.
fn family(first: Pid) -> Vec<Pid> {
    let below = children(first).into_iter().flat_map(family);
    std::iter::once(first).chain(below).collect()
}

/// What a process's threads have started and not yet waited for; none of one that is gone. Source: proc_pid_task(5).
fn children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).into_iter().flatten().flatten();
    let told = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let told = told.collect::<String>();
    told.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// Gives the calling process a /run of its own. Mounts made elsewhere are still followed, so that none is held up here.
fn own_run(folder: &CStr) -> rustix::io::Result<()> {
    // SAFETY: only the mount namespace changes; the process is alone in its file system information after the fork.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    mount_bind(folder, RUN)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.tell_to_end();
        if let Ok(None) = until(GRACE, GLANCE, || self.ended()) {
            tracing::warn!(process = self.name, "killed: it did not end when told");
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        cleanup::forget_process(self.pid());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::*;

    #[test]
    fn a_process_is_told_with_those_that_it_started() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut line = String::new();
        let said = shell.stdout.take().expect("its output");
        BufReader::new(said).read_line(&mut line).expect("a line");
        let below = line.trim().parse().ok().and_then(Pid::from_raw).expect("an id");
        let found = family(Pid::from_child(&shell));
        let ended = kill_process(below, Signal::KILL).and(kill_process(Pid::from_child(&shell), Signal::KILL));
        shell.wait().expect("it ends");
        assert_eq!((found, ended), (vec![Pid::from_child(&shell), below], Ok(())));
    }
}
