//! An end's process: it says `ready`, does its work, and says in a line of JSON what that was.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::cleanup::{self, Folder, GRACE};
use crate::error::LabError;

use super::figures::Count;

/// How often a process that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// What an end says when its peer may start.
const READY: &str = "ready";

/// A running end. Killed on drop; one owner.
#[derive(Debug)]
pub(crate) struct Worker {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Worker {
    /// Starts it in a namespace. Must be called from a thread that outlives it.
    pub fn start(
        name: &'static str,
        namespace: &Namespace,
        program: &Path,
        arguments: &[String],
        folder: &Folder,
    ) -> Result<Self, LabError> {
        let starting = |error| LabError::system(format!("start the {name}"), error);
        let log = folder.path().join(format!("{name}.log"));
        let errors = File::create(&log).map_err(starting)?;
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        let prepare = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from);
        // SAFETY: between fork and exec the closure makes one system call; it neither allocates nor locks.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().map_err(starting)?;
        cleanup::note_process(Pid::from_child(&child));
        let stdout = child.stdout.take();
        Ok(Self { name, child, lines: lines(stdout), log })
    }

    /// Waits until its peer may start.
    pub fn wait_ready(&mut self, patience: Duration) -> Result<(), LabError> {
        let said = self.line(patience)?;
        if said == READY { Ok(()) } else { Err(self.fault(format!("it said {said:?}, not {READY:?}"))) }
    }

    /// Tells it to end.
    pub fn stop(&self) {
        // Fails only where it has ended already.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    /// Waits until it is done, and gives what it counted.
    pub fn finish(mut self, patience: Duration) -> Result<Count, LabError> {
        let said = self.line(patience)?;
        let count: Count =
            serde_json::from_str(&said).map_err(|error| self.fault(format!("it said {said:?}: {error}")))?;
        let late = Instant::now() + GRACE;
        loop {
            let ended =
                self.child.try_wait().map_err(|e| LabError::system(format!("wait for the {}", self.name), e))?;
            match ended {
                Some(status) if status.success() => return Ok(count),
                Some(status) => return Err(self.fault(format!("it ended with {status}"))),
                None if Instant::now() > late => return Err(self.fault("it does not end".to_owned())),
                None => thread::sleep(GLANCE),
            }
        }
    }

    fn line(&mut self, patience: Duration) -> Result<String, LabError> {
        self.lines.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => self.fault(format!("it said nothing for {} s", patience.as_secs())),
            RecvTimeoutError::Disconnected => {
                let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                self.fault(format!("it ended: {status}"))
            }
        })
    }

    fn fault(&self, fault: String) -> LabError {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        LabError::Process { process: self.name.to_owned(), fault, log: log.trim_end().to_owned() }
    }
}

/// What it says, line by line; ends with it.
fn lines(stdout: Option<ChildStdout>) -> Receiver<String> {
    let (said, lines) = channel();
    if let Some(stdout) = stdout {
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Fails only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        cleanup::forget_process(Pid::from_child(&self.child));
    }
}
