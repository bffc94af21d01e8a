//! A thread that carries links: one of its own for each link, or one for all links on a medium.
//!
//! 1. `start`: it runs, and carries nothing yet.
//! 2. `ask`: whoever holds a link sends a command, and waits until it has been obeyed.
//! 3. Drop, by the last link's holder: it ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use super::backend::Timekeeping;
use super::engine::{Command, Engine, LinkId, Request, Shared};
use super::medium::Medium;
use crate::error::WireError;

/// A running engine. Starts without a link; may be asked from any thread; ends on drop.
#[derive(Debug)]
pub(crate) struct Thread {
    name: String,
    requests: Sender<Request>,
    shared: Arc<Shared>,
    next: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    /// Step 1: a thread named after a link, the first on its medium where it shares one.
    pub(crate) fn start(name: &str, medium: Option<Medium>) -> Result<Arc<Self>, WireError> {
        let starting = |source| WireError::system(format!("start link {name}"), source);
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| starting(error.into()))?;
        let shared = Arc::new(Shared { wake, timekeeping: OnceLock::new() });
        let (requests, asked) = channel();
        let engine = Engine::new(medium, asked, Arc::clone(&shared));
        let thread =
            thread::Builder::new().name(format!("wire-{name}")).spawn(move || engine.run()).map_err(starting)?;
        let next = AtomicU64::default();
        Ok(Arc::new(Self { name: name.to_owned(), requests, shared, next, thread: Some(thread) }))
    }

    /// A name for one link more.
    pub(crate) fn next_id(&self) -> LinkId {
        LinkId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// How well it keeps time; None before it has begun to.
    pub(crate) fn timekeeping(&self) -> Option<Timekeeping> {
        self.shared.timekeeping.get().copied()
    }

    /// Step 2.
    pub(crate) fn ask(&self, command: Command) -> Result<(), WireError> {
        let ended = || WireError::Ended { link: self.name.clone() };
        let (done, wait) = sync_channel(1);
        self.requests.send((command, done)).map_err(|_| ended())?;
        rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes())
            .map_err(|error| WireError::system(format!("wake link {}", self.name), error))?;
        wait.recv().map_err(|_| ended())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // A thread that has ended already needs no stop.
        let _ = self.ask(Command::Stop);
        if let Some(Err(_panic)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!(link = self.name, "the link's thread panicked");
        }
    }
}
