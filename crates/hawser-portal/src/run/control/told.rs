//! What the control thread tells: the status of the moment, and what is remembered (`monitor`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use serde::Serialize;
use tokio::sync::watch;

use crate::api::{Answers, Document, EventKind, Status};
use crate::monitor::{Moment, Monitor};

/// The status and the memory. A status without peers at first; the control thread writes it, whoever answers reads it.
#[derive(Debug)]
pub struct Told {
    started: Instant,
    status: watch::Sender<Status>,
    monitor: Mutex<Monitor>,
}

impl Told {
    /// Begins to remember; `after_a_kill`: the portal before this one was killed.
    pub fn new(after_a_kill: bool) -> Self {
        let started = Instant::now();
        let cause = if after_a_kill { "the one before was killed" } else { "" };
        let status = Status { version: env!("CARGO_PKG_VERSION").to_owned(), ..Status::default() };
        let monitor = Mutex::new(Monitor::new(moment(started), cause));
        Self { started, status: watch::Sender::new(status), monitor }
    }

    /// Takes in a status, and writes into it what is seen of its paths.
    pub fn look_at(&self, status: &mut Status) {
        let mut monitor = self.monitor();
        monitor.look_at(moment(self.started), status);
        status.events_latest = monitor.latest();
    }

    /// The status of the moment, from now on.
    pub fn publish(&self, status: Status) {
        self.status.send_replace(status);
    }

    /// What gives the status of the moment.
    #[cfg(feature = "metrics")]
    pub fn source(&self) -> crate::metrics::Source {
        let status = self.status.subscribe();
        std::sync::Arc::new(move || status.borrow().clone())
    }

    /// Remembers that something happened.
    pub fn note(&self, kind: EventKind, peer: &str, path: &str, cause: &str) {
        self.monitor().note(moment(self.started), kind, peer, path, cause);
    }

    /// Held for a moment by whoever reads or writes it; what a thread that panicked left is whole.
    fn monitor(&self) -> MutexGuard<'_, Monitor> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers for Told {
    fn get(&self, document: &Document) -> Result<Vec<u8>, String> {
        match document {
            Document::Status => json(&*self.status.borrow()),
            Document::Events { since } => json(&self.monitor().events(*since)),
            Document::History(question) => json(&self.monitor().history(question)),
            // The control socket asks the control thread itself.
            Document::Flows => Err("it counts no flows".to_owned()),
        }
    }
}

fn json(document: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(document).map_err(|error| error.to_string())
}

fn moment(started: Instant) -> Moment {
    Moment { uptime: started.elapsed(), wall: SystemTime::now() }
}
