//! The thread that starts a network's processes, and lives as long as they do: a process is told to end when the thread
//! that started it ends, and whoever makes a network may be a test's thread.

use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::error::LabError;

/// Work for the thread.
type Job = Box<dyn FnOnce() + Send>;

/// The thread. Starts idle, ends on drop; may be asked from any thread.
#[derive(Debug)]
pub(super) struct Keeper {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub fn new() -> Result<Self, LabError> {
        let (jobs, asked) = channel::<Job>();
        let work = move || asked.into_iter().for_each(|job| job());
        let thread = thread::Builder::new().name("localnet".to_owned()).spawn(work);
        let thread = thread.map_err(|error| LabError::system("start thread localnet", error))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `work` there, and waits for it. None where the thread has ended, as after a panic.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (done, wait) = sync_channel(1);
        // Whoever waits is gone only where this very call has panicked.
        let job = move || drop(done.send(work()));
        self.jobs.as_ref()?.send(Box::new(job)).ok()?;
        wait.recv().ok()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(Err(_panic)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the localnet thread panicked");
        }
    }
}
