//! An end's process: it says `ready`, does its work, and says in a line of JSON what that was.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hawser_wire::Namespace;

use crate::cleanup::{Folder, GRACE};
use crate::error::LabError;
use crate::process::Process;
use crate::wait::until;

use super::figures::Count;

/// How often a process that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// What an end says when its peer may start.
const READY: &str = "ready";

/// A running end. Ended on drop; one owner.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Process,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts it in a namespace. Must be called from a thread that outlives it.
    pub fn start(
        name: &str,
        namespace: &Namespace,
        program: &Path,
        arguments: &[String],
        folder: &Folder,
    ) -> Result<Self, LabError> {
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(arguments);
        let mut process = Process::launch(name, command, Stdio::piped(), folder)?;
        let lines = lines(process.output());
        Ok(Self { process, lines })
    }

    /// Waits until its peer may start.
    pub fn wait_ready(&mut self, patience: Duration) -> Result<(), LabError> {
        let said = self.line(patience)?;
        if said == READY { Ok(()) } else { Err(self.process.fault(format!("it said {said:?}, not {READY:?}"))) }
    }

    /// Tells it to end.
    pub fn stop(&mut self) {
        self.process.tell_to_end();
    }

    /// Waits until it is done, and gives what it counted.
    pub fn finish(mut self, patience: Duration) -> Result<Count, LabError> {
        let said = self.line(patience)?;
        let count: Count =
            serde_json::from_str(&said).map_err(|error| self.process.fault(format!("it said {said:?}: {error}")))?;
        match until(GRACE, GLANCE, || self.process.ended())? {
            Some(status) if status.success() => Ok(count),
            Some(status) => Err(self.process.fault(format!("it ended with {status}"))),
            None => Err(self.process.fault("it does not end")),
        }
    }

    fn line(&mut self, patience: Duration) -> Result<String, LabError> {
        self.lines.recv_timeout(patience).or_else(|error| {
            if error == RecvTimeoutError::Disconnected {
                until(GRACE, GLANCE, || self.process.ended())?;
                self.process.check()?;
            }
            Err(self.process.fault(format!("it said nothing for {} s", patience.as_secs())))
        })
    }
}

/// What it says, line by line; ends with it.
fn lines(output: Option<ChildStdout>) -> Receiver<String> {
    let (said, lines) = channel();
    if let Some(output) = output {
        let mut told = BufReader::new(output).lines().map_while(Result::ok);
        thread::spawn(move || told.try_for_each(|line| said.send(line)));
    }
    lines
}
