//! Events at their times, while a workload runs.
//!
//! 1. At the start recordings begin; then a thread waits for each event's moment, lets it happen, and notes when it
//!    began to. What happens to programs is a signal to them.
//! 2. `finish` ends it, gives what happened, or why it could not; what was to come later does not.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use hawser_wire::Moment;

use super::Stage;
use super::halt::Halt;
use crate::contender::Program;
use crate::error::LabError;
use crate::experiment::Mark;
use crate::scenario::{Event, Happening};

/// Events that are happening. Runs until its last event, `finish` or drop; one owner.
#[derive(Debug)]
pub struct Timeline {
    /// Dropped, it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<Vec<Mark>, LabError>>>,
}

impl Timeline {
    /// Step 1: lets events happen on a stage and to a contender's programs, their times counted from a moment.
    ///
    /// # Errors
    /// Where the thread cannot start.
    pub fn start(stage: &Arc<Stage>, programs: &[Program], events: &[Event], start: Moment) -> Result<Self, LabError> {
        let mut events = events.to_vec();
        events.sort_by_key(|event| event.at);
        let stage = Arc::clone(stage);
        let mut halt = Halt::new(programs);
        let (stop, stopped) = channel::<()>();
        let run = move || {
            let mut marks = Vec::new();
            if stopped.recv_timeout(start.since(Moment::now())) != Err(RecvTimeoutError::Timeout) {
                return Ok(marks);
            }
            stage.replay()?;
            for event in &events {
                let wait = (start + event.at).since(Moment::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                marks.push(Mark { at_s: Moment::now().since(start).as_secs_f64(), what: words(event) });
                match event.what {
                    Happening::Stop(end) => halt.stop(end)?,
                    Happening::Continue(end) => halt.go_on(end)?,
                    _ => stage.happen(event)?,
                }
            }
            Ok(marks)
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
    pub fn finish(mut self) -> Result<Vec<Mark>, LabError> {
        self.stop = None;
        let thread = self.thread.take().map_or_else(|| Ok(Ok(Vec::new())), JoinHandle::join);
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
        Happening::Restore => format!("{link} restored"),
        Happening::Change { .. } => format!("{link} changed"),
        Happening::Handover { to } => format!("{link} to {to}"),
        Happening::Address => format!("{link} has a new address"),
        Happening::NatRebind => format!("{link} rebound"),
        Happening::Stop(end) => format!("{} program stopped", end.name()),
        Happening::Continue(end) => format!("{} program continued", end.name()),
    }
}
