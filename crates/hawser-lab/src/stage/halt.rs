//! A contender's programs, stopped and continued, killed, started and attacked as events say.
//!
//! 1. What is told to stop gets SIGSTOP: its sockets and devices stay, and fill up.
//! 2. What is told to continue gets SIGCONT; so does, on drop, whatever is still stopped, for it could not end.
//! 3. What is killed gets SIGKILL; the contender starts it again.
//! 4. An attack goes on to the end: what was thrown and what the portal dropped meanwhile is found.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::Stage;
use crate::attack::{self, Attack};
use crate::contender::{Offer, Program, Running};
use crate::error::LabError;
use crate::experiment::Findings;
use crate::scenario::TunnelEnd;

/// Programs, and which of them are stopped: none at first. One owner.
pub(super) struct Halt {
    programs: Vec<Program>,
    portals: Option<Arc<Running>>,
    stopped: Vec<Pid>,
    attack: Option<(Attack, Instant, u64)>,
}

impl Halt {
    pub(super) fn new(offer: &Offer) -> Self {
        Self { programs: offer.programs.clone(), portals: offer.portals.clone(), stopped: Vec::new(), attack: None }
    }

    /// Step 1.
    pub(super) fn stop(&mut self, end: TunnelEnd) -> Result<(), LabError> {
        let own = self.at(end, "stop")?;
        self.stopped.extend(&own);
        signal(&own, Signal::STOP, end)
    }

    /// Step 2.
    pub(super) fn go_on(&mut self, end: TunnelEnd) -> Result<(), LabError> {
        let own = self.at(end, "continue")?;
        self.stopped.retain(|pid| !own.contains(pid));
        signal(&own, Signal::CONT, end)
    }

    /// Step 3.
    pub(super) fn kill(&mut self, end: TunnelEnd) -> Result<(), LabError> {
        signal(&self.at(end, "kill")?, Signal::KILL, end)
    }

    /// Step 3.
    pub(super) fn start(&self, end: TunnelEnd) -> Result<(), LabError> {
        self.portals()?.start(end)
    }

    /// Step 4.
    pub(super) fn attack(&mut self, stage: &Stage, per_second: u32) -> Result<(), LabError> {
        let (portals, dropped) = (self.portals()?, self.dropped()?);
        let attack = attack::portal::begin(&stage.remote, stage.endpoint, &portals.remote_key(), per_second)?;
        self.attack = Some((attack, Instant::now(), dropped));
        Ok(())
    }

    /// Step 4.
    pub(super) fn finish(&mut self) -> Result<Findings, LabError> {
        let Some((attack, begun, before)) = self.attack.take() else { return Ok(Findings::default()) };
        let (dropped, seconds) = (self.dropped(), begun.elapsed().as_secs_f64());
        let mut found = Findings::named([("hostile_per_s", attack.stop()?.per_second)]);
        // One that says nothing any more may be dead: what was carried says so.
        if let Ok(dropped) = dropped {
            found.metrics.insert("dropped_per_s".to_owned(), dropped.saturating_sub(before) as f64 / seconds);
        }
        Ok(found)
    }

    /// Packets that the remote portal has dropped so far.
    fn dropped(&self) -> Result<u64, LabError> {
        let [_, remote] = self.portals()?.statuses();
        let silent = || LabError::system("ask the remote portal what it dropped", io::ErrorKind::TimedOut);
        Ok(remote.ok_or_else(silent)?.drops.values().sum())
    }

    fn portals(&self) -> Result<&Running, LabError> {
        let nobody = || LabError::system("start or attack a portal", io::Error::other("this contender has none"));
        self.portals.as_deref().ok_or_else(nobody)
    }

    /// The programs at an end, to which this is done; there must be one.
    fn at(&self, end: TunnelEnd, deed: &str) -> Result<Vec<Pid>, LabError> {
        let own = self.programs.iter().filter(|program| program.role == end.name());
        let own: Vec<Pid> = own.map(|program| program.pid).collect();
        if own.is_empty() {
            let action = format!("{deed} the {} program", end.name());
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
        let programs = vec![Program { role: "local", pid: Pid::from_child(&child) }];
        (child, Halt { programs, portals: None, stopped: Vec::new(), attack: None })
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
    fn a_program_is_killed_and_nobody_starts_it_who_does_not_know_how() {
        let (mut child, mut halt) = waiting();
        halt.kill(TunnelEnd::Local).expect("it is there");
        assert!(!child.wait().expect("it ends").success());
        assert!(halt.start(TunnelEnd::Local).is_err());
    }

    #[test]
    fn an_end_without_a_program_is_an_error() {
        let (mut child, mut halt) = waiting();
        type Deed = fn(&mut Halt, TunnelEnd) -> Result<(), LabError>;
        let deeds: [(Deed, &str); 3] = [(Halt::stop, "stop"), (Halt::go_on, "continue"), (Halt::kill, "kill")];
        for (deed, word) in deeds {
            let error = deed(&mut halt, TunnelEnd::Remote).expect_err("there is none").to_string();
            assert_eq!(error, format!("{word} the remote program"));
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
