//! A contender's programs, stopped and continued as events say.
//!
//! 1. What is told to stop gets SIGSTOP: its sockets and devices stay, and fill up.
//! 2. What is told to continue gets SIGCONT; so does, on drop, whatever is still stopped, for it could not end.

use std::io;

use rustix::process::{Pid, Signal, kill_process};

use crate::contender::Program;
use crate::error::LabError;
use crate::scenario::TunnelEnd;

/// Programs, and which of them are stopped: none at first. One owner.
#[derive(Debug)]
pub(super) struct Halt {
    programs: Vec<Program>,
    stopped: Vec<Pid>,
}

impl Halt {
    pub(super) fn new(programs: &[Program]) -> Self {
        Self { programs: programs.to_vec(), stopped: Vec::new() }
    }

    /// Step 1.
    pub(super) fn stop(&mut self, end: TunnelEnd) -> Result<(), LabError> {
        let own = self.at(end)?;
        self.stopped.extend(&own);
        signal(&own, Signal::STOP, end)
    }

    /// Step 2.
    pub(super) fn go_on(&mut self, end: TunnelEnd) -> Result<(), LabError> {
        let own = self.at(end)?;
        self.stopped.retain(|pid| !own.contains(pid));
        signal(&own, Signal::CONT, end)
    }

    /// The programs at an end; there must be one.
    fn at(&self, end: TunnelEnd) -> Result<Vec<Pid>, LabError> {
        let own = self.programs.iter().filter(|program| program.role == end.name());
        let own: Vec<Pid> = own.map(|program| program.pid).collect();
        if own.is_empty() {
            let action = format!("stop or continue the {} program", end.name());
            return Err(LabError::system(action, io::Error::other("this contender has none there")));
        }
        Ok(own)
    }
}

fn signal(pids: &[Pid], signal: Signal, end: TunnelEnd) -> Result<(), LabError> {
    let failed =
        |error: rustix::io::Errno| LabError::system(format!("send {signal:?} to the {} program", end.name()), error);
    pids.iter().try_for_each(|pid| kill_process(*pid, signal).map_err(failed))
}

impl Drop for Halt {
    fn drop(&mut self) {
        for pid in &self.stopped {
            if let Err(error) = kill_process(*pid, Signal::CONT) {
                tracing::warn!(%error, pid = pid.as_raw_pid(), "stopped program cannot be continued");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    /// How long a signal may take on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// A program that waits, and a halt that knows it as the local one.
    fn waiting() -> (Child, Halt) {
        let child = Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let pid = Pid::from_child(&child);
        (child, Halt::new(&[Program { role: "local", pid }]))
    }

    fn becomes(child: &Child, stopped: bool) {
        let late = Instant::now() + PATIENCE;
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it is there");
        while state().contains(") T ") != stopped {
            assert!(Instant::now() < late, "{}", state());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_program_stops_and_goes_on() {
        let (mut child, mut halt) = waiting();
        halt.stop(TunnelEnd::Local).expect("it is there");
        becomes(&child, true);
        halt.go_on(TunnelEnd::Local).expect("it is there");
        becomes(&child, false);
        halt.stop(TunnelEnd::Local).expect("it is there");
        becomes(&child, true);
        drop(halt);
        becomes(&child, false);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    #[test]
    fn an_end_without_a_program_is_an_error() {
        let (mut child, mut halt) = waiting();
        let error = halt.stop(TunnelEnd::Remote).expect_err("there is none").to_string();
        assert!(error.contains("remote"), "{error}");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
