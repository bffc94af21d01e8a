//! Events at their times, while a workload runs.
//!
//! 1. At the start recordings begin; then a thread waits for each event's moment, lets it happen, and notes when it
//!    began to. What happens to programs is a signal to them.
//! 2. `finish` ends it, gives what happened and what came of it, or why it could not; what was to come later does not.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use hawser_wire::Moment;

use super::Stage;
use super::halt::Halt;
use crate::contender::Offer;
use crate::error::LabError;
use crate::experiment::{Findings, Mark};
use crate::scenario::{Event, Happening};

/// Events that are happening. Runs until its last event, `finish` or drop; one owner.
#[derive(Debug)]
pub struct Timeline {
    /// Dropped, it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<Findings, LabError>>>,
}

impl Timeline {
    /// Step 1: lets events happen on a stage and to a contender's programs, their times counted from a moment.
    ///
    /// # Errors
    /// Where the thread cannot start.
    pub fn start(stage: &Arc<Stage>, offer: &Offer, events: &[Event], start: Moment) -> Result<Self, LabError> {
        let mut events = events.to_vec();
        events.sort_by_key(|event| event.at);
        let stage = Arc::clone(stage);
        let mut halt = Halt::new(offer);
        let (stop, stopped) = channel::<()>();
        let run = move || {
            let mut found = Findings::default();
            if stopped.recv_timeout(start.since(Moment::now())) != Err(RecvTimeoutError::Timeout) {
                return Ok(found);
            }
            stage.replay()?;
            for event in &events {
                let wait = (start + event.at).since(Moment::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                found.marks.push(Mark { at_s: Moment::now().since(start).as_secs_f64(), what: words(event) });
                match event.what {
                    Happening::Stop(end) => halt.stop(end)?,
                    Happening::Continue(end) => halt.go_on(end)?,
                    Happening::Kill(end) => halt.kill(end)?,
                    Happening::Start(end) => halt.start(end)?,
                    Happening::Attack(per_second) => halt.attack(&stage, per_second)?,
                    _ => stage.happen(event)?,
                }
            }
            // What was started here ends with this thread.
            let _ = stopped.recv();
            found.add(halt.finish()?);
            Ok(found)
        };
        let thread = thread::Builder::new().name("timeline".to_owned()).spawn(run);
        let thread = thread.map_err(|error| LabError::system("start thread timeline", error))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Step 2.
    ///
    /// # Errors
    /// Where an event could not happen.
    ///
    /// # Panics
    /// Where the thread did.
    pub fn finish(mut self) -> Result<Findings, LabError> {
        self.stop = None;
        let thread = self.thread.take().map_or_else(|| Ok(Ok(Findings::default())), JoinHandle::join);
        thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(Err(_panic)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the timeline's thread panicked");
        }
    }
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
        Happening::Stop(end) => format!("{} program stopped", end.name()),
        Happening::Continue(end) => format!("{} program continued", end.name()),
        Happening::Kill(end) => format!("{} program killed", end.name()),
        Happening::Start(end) => format!("{} program started", end.name()),
    }
}
