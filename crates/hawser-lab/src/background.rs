//! A thread that works until its owner wants no more of it, perhaps asynchronously.

use std::io;
use std::thread::JoinHandle;

use hawser_wire::Namespace;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{Receiver, Sender, channel};

use crate::error::LabError;

/// The thread. Runs from the start; told to stop, and waited for, on drop. One owner.
#[derive(Debug)]
pub(crate) struct Background<T> {
    /// Dropped, it tells the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<T>>>,
}

/// What tells the thread to stop. Owned by its work.
pub(crate) struct Stop(Receiver<()>);

impl Stop {
    /// Whether it is to.
    pub fn is_told(&mut self) -> bool {
        self.0.try_recv() != Err(TryRecvError::Empty)
    }

    /// Returns when it is to.
    pub async fn told(self) {
        // An owner that is gone tells it, too.
        let _ = self.0.await;
    }
}

/// For all that is asynchronous in one thread.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl<T> Background<T> {
    /// Begins to work in a namespace.
    pub fn start(
        namespace: &Namespace,
        name: &str,
        work: impl FnOnce(Stop) -> io::Result<T> + Send + 'static,
    ) -> Result<Self, LabError>
    where
        T: Send + 'static,
    {
        let (stop, stopped) = channel();
        let thread = namespace.spawn_thread(name, move || work(Stop(stopped)))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Stops it, and gives what it came to.
    pub fn finish(mut self) -> io::Result<T> {
        self.join().expect("it is waited for once")
    }

    fn join(&mut self) -> Option<io::Result<T>> {
        drop(self.stop.take());
        let panicked = |_| Err(io::Error::other("its thread panicked"));
        self.thread.take().map(|thread| thread.join().unwrap_or_else(panicked))
    }
}

impl Background<()> {
    /// Begins work in a namespace that is asynchronous, and dropped where it is to stop.
    pub fn serve<W: Future<Output = io::Result<()>>>(
        namespace: &Namespace,
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> Result<Self, LabError> {
        Self::start(namespace, name, move |stop| {
            runtime()?.block_on(async move {
                tokio::select! {
                    ended = work() => ended,
                    () = stop.told() => Ok(()),
                }
            })
        })
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        // Who drops it has no use for its end.
        let _ = self.join();
    }
}
