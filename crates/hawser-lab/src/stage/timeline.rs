//! Events at their times, while a workload runs.
//!
//! 1. At the start recordings begin; then a thread waits for each event's moment, lets it happen, and notes when it
//!    began to.
//! 2. `finish` ends it, gives what happened and what came of it, or why it could not; what was to come later does not.
//!
//! Programs that are told to stop get SIGSTOP: their sockets and devices stay, and fill up. Told to continue they get
//! SIGCONT; and on drop, if they are still stopped, for they could not end. What is killed gets SIGKILL; the contender
//! starts it again. An attack goes on to the end: what was thrown and what the portal dropped meanwhile is found.

use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_config::Keyword;
use hawser_wire::Moment;
use rustix::process::{Pid, Signal, kill_process};

use super::Stage;
use crate::attack::{self, Attack};
use crate::background::{Background, Stop};
use crate::contender::{Offer, Program, Running};
use crate::error::LabError;
use crate::experiment::{Findings, Mark};
use crate::scenario::{Event, Happening, TunnelEnd};

/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(5);

/// Events that are happening. Runs until `finish` or drop; one owner.
#[derive(Debug)]
pub struct Timeline(Background<Result<Findings, LabError>>);

impl Timeline {
    /// Step 1: lets events happen on a stage and to a contender's programs, their times counted from a moment.
    ///
    /// # Errors
    /// Where the thread cannot start.
    pub fn start(stage: &Arc<Stage>, offer: &Offer, events: &[Event], start: Moment) -> Result<Self, LabError> {
        let mut events = events.to_vec();
        events.sort_by_key(|event| event.at);
        let (on, halt) = (Arc::clone(stage), Halt::new(offer));
        let run = move |stop: Stop| Ok(run(&on, halt, &events, start, stop));
        Background::start(&stage.local, "timeline", run).map(Self)
    }

    /// Step 2.
    ///
    /// # Errors
    /// Where an event could not happen.
    pub fn finish(self) -> Result<Findings, LabError> {
        self.0.finish().map_err(|error| LabError::system("let events happen", error))?
    }
}

/// Step 1, on the thread.
fn run(stage: &Stage, mut halt: Halt, events: &[Event], start: Moment, mut stop: Stop) -> Result<Findings, LabError> {
    let mut found = Findings::default();
    if !wait(start, &mut stop) {
        return Ok(found);
    }
    stage.replay()?;
    for event in events {
        if !wait(start + event.at, &mut stop) {
            break;
        }
        found.marks.push(Mark { at_s: Moment::now().since(start).as_secs_f64(), what: words(event) });
        match &event.what {
            Happening::Attack(per_second) => halt.attack(stage, *per_second)?,
            what if event.link.is_empty() => halt.happen(what)?,
            _ => stage.happen(event)?,
        }
    }
    // What was started here ends with this thread.
    while !stop.is_told() {
        sleep(LOOK);
    }
    found.add(halt.finish()?);
    Ok(found)
}

/// Waits for a moment, unless it is told to stop before; gives whether it was not.
fn wait(moment: Moment, stop: &mut Stop) -> bool {
    while !stop.is_told() {
        let left = moment.since(Moment::now());
        if left.is_zero() {
            return true;
        }
        sleep(left.min(LOOK));
    }
    false
}

/// An event for a plot.
fn words(event: &Event) -> String {
    let link = &event.link;
    match &event.what {
        Happening::Cut => format!("{link} cut"),
        Happening::BlackHole => format!("{link} black hole"),
        Happening::Stall => format!("{link} stalls"),
        Happening::Attack(_) => "attack".to_owned(),
        Happening::Restore => format!("{link} restored"),
        Happening::Change { .. } => format!("{link} changed"),
        Happening::Handover { to } => format!("{link} to {to}"),
        Happening::Address => format!("{link} has a new address"),
        Happening::NatRebind => format!("{link} rebound"),
        Happening::Stop(end) => format!("{end} program stopped"),
        Happening::Continue(end) => format!("{end} program continued"),
        Happening::Kill(end) => format!("{end} program killed"),
        Happening::Start(end) => format!("{end} program started"),
    }
}

/// Programs, and which of them are stopped: none at first. One owner.
struct Halt {
    programs: Vec<Program>,
    portals: Option<Arc<Running>>,
    stopped: Vec<Pid>,
    attack: Option<(Attack, Instant, u64)>,
}

impl Halt {
    fn new(offer: &Offer) -> Self {
        Self { programs: offer.programs.clone(), portals: offer.portals.clone(), stopped: Vec::new(), attack: None }
    }

    /// What happens to programs; nothing else does.
    fn happen(&mut self, what: &Happening) -> Result<(), LabError> {
        match *what {
            Happening::Stop(end) => {
                let own = self.at(end, "stop")?;
                self.stopped.extend(&own);
                signal(&own, Signal::STOP, end)
            }
            Happening::Continue(end) => {
                let own = self.at(end, "continue")?;
                self.stopped.retain(|pid| !own.contains(pid));
                signal(&own, Signal::CONT, end)
            }
            Happening::Kill(end) => signal(&self.at(end, "kill")?, Signal::KILL, end),
            Happening::Start(end) => self.portals()?.start(end),
            _ => Ok(()),
        }
    }

    /// Begins an attack.
    fn attack(&mut self, stage: &Stage, per_second: u32) -> Result<(), LabError> {
        let (portals, dropped) = (self.portals()?, self.dropped()?);
        let attack = attack::portal::begin(&stage.remote, stage.endpoint, &portals.remote_key, per_second)?;
        self.attack = Some((attack, Instant::now(), dropped));
        Ok(())
    }

    /// What came of the attack.
    fn finish(&mut self) -> Result<Findings, LabError> {
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
        let own = self.programs.iter().filter(|program| program.role == end.word());
        let own: Vec<Pid> = own.map(|program| program.pid).collect();
        let nobody = || io::Error::other("this contender has none there");
        if own.is_empty() { Err(LabError::system(format!("{deed} the {end} program"), nobody())) } else { Ok(own) }
    }
}

fn signal(pids: &[Pid], signal: Signal, end: TunnelEnd) -> Result<(), LabError> {
    let failed = |error| LabError::system(format!("send {signal:?} to the {end} program"), error);
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
        let (stop, go_on) = (Happening::Stop(TunnelEnd::Local), Happening::Continue(TunnelEnd::Local));
        for (what, stopped) in [(&stop, true), (&go_on, false), (&stop, true)] {
            halt.happen(what).expect("it is there");
            becomes(&child, stopped);
        }
        drop(halt);
        becomes(&child, false);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    #[test]
    fn a_program_is_killed_and_nobody_starts_it_who_does_not_know_how() {
        let (mut child, mut halt) = waiting();
        halt.happen(&Happening::Kill(TunnelEnd::Local)).expect("it is there");
        assert!(!child.wait().expect("it ends").success());
        assert!(halt.happen(&Happening::Start(TunnelEnd::Local)).is_err());
    }

    #[test]
    fn an_end_without_a_program_is_an_error() {
        let (mut child, mut halt) = waiting();
        let end = TunnelEnd::Remote;
        let deeds = [Happening::Stop(end), Happening::Continue(end), Happening::Kill(end)];
        for (what, word) in deeds.iter().zip(["stop", "continue", "kill"]) {
            let error = halt.happen(what).expect_err("there is none").to_string();
            assert_eq!(error, format!("{word} the remote program"));
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
