//! Keeps the paths to the ASes in use, so that nobody who sends waits for a daemon.
//!
//! 1. [`PathService::start`]: a thread that asks the daemon (`watch`).
//! 2. Whoever asks for paths ([`Paths`]) gets what is known, the best first; an AS nobody asked for before is looked
//!    up.
//! 3. Paths are asked for again every minute, ahead of their expiry, and when an interface is reported dead (`book`).
//! 4. [`Subscription`]s tell what changed: new, renewed, gone (`changes`).

use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::addr::IsdAs;
use crate::conn::{DeadPart, LookupError, Paths};
use crate::daemon::{DaemonAddr, DaemonClient, DaemonError, InvalidAddr};
use crate::path::Path;
use crate::select::{Criterion, Policy};

mod book;
mod changes;
mod task;

pub use book::{EVERY, FORGET_AFTER, MARGIN};
pub use changes::{Change, Subscription, changes};

/// Which paths are told, and in which order. All, the shortest first, by default. Plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceOpts {
    /// Which may be used.
    pub policy: Policy,
    /// What makes them the best. Those across an interface that died lately come last, whatever it is.
    pub select: Criterion,
}

/// What the thread is told.
enum Order {
    /// Somebody wants paths now.
    Ask(IsdAs, mpsc::Sender<Answer>),
    /// Somebody wants to be told of changes.
    Subscribe(IsdAs, mpsc::Sender<watch::Receiver<Arc<[Path]>>>),
    /// An interface died.
    Down(DeadPart),
}

/// Paths, or why there are none.
type Answer = Result<Vec<Path>, Arc<DaemonError>>;

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No address to connect to.
    #[error("start to keep paths")]
    Address(#[from] InvalidAddr),
    /// No thread.
    #[error("start the thread that keeps paths")]
    Thread(#[from] io::Error),
}

/// Its thread ended, which it does with the service alone.
#[derive(Debug, thiserror::Error)]
#[error("the thread that keeps paths has ended")]
struct Ended;

/// A daemon's error, which several may be told of.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
struct Shared(Arc<DaemonError>);

/// Keeps paths; knows none at first. For several threads: its own one does the work, and ends with it.
pub struct PathService {
    daemon: DaemonAddr,
    /// `None` when it ends.
    orders: Option<UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl PathService {
    /// Keeps the paths that a daemon knows.
    ///
    /// # Errors
    /// If there is no such address, or no thread. A daemon that does not answer is asked again later.
    pub fn start(daemon: DaemonAddr, opts: ServiceOpts) -> Result<PathService, StartError> {
        PathService::start_with(daemon, opts, crate::daemon::REQUEST_TIMEOUT)
    }

    /// The same, with a time after which a request to the daemon is given up.
    ///
    /// # Errors
    /// As [`PathService::start`].
    pub fn start_with(daemon: DaemonAddr, opts: ServiceOpts, timeout: Duration) -> Result<PathService, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = {
            let _inside = runtime.enter();
            DaemonClient::with_timeout(daemon.clone(), timeout)?
        };
        let (orders, ordered) = unbounded_channel();
        let run = move || runtime.block_on(task::run(client, opts, ordered));
        let thread = thread::Builder::new().name("scion-service".to_owned()).spawn(run)?;
        Ok(PathService { daemon, orders: Some(orders), thread: Some(thread) })
    }

    /// Tells of changes of the paths to an AS from now on, beginning with those that are known. They are kept for so
    /// long. Returns at once; `None` if the service's thread has ended.
    pub fn subscribe(&self, destination: IsdAs) -> Option<Subscription> {
        let (answer, answered) = mpsc::channel();
        self.order(Order::Subscribe(destination, answer))?;
        answered.recv().ok().map(Subscription::new)
    }

    /// An interface died, as a router said: paths across it come last for a while, others are asked for, and the daemon
    /// is told.
    pub fn report_down(&self, part: DeadPart) {
        // A service that ends has nobody to tell.
        let _ = self.order(Order::Down(part));
    }

    fn order(&self, order: Order) -> Option<()> {
        self.orders.as_ref()?.send(order).ok()
    }
}

impl Paths for PathService {
    /// What is known, or what the daemon says where nothing fresh is: then it waits for as long as a request may take.
    fn paths(&self, destination: IsdAs) -> Result<Vec<Path>, LookupError> {
        let (answer, answered) = mpsc::channel();
        let told = self.order(Order::Ask(destination, answer)).and_then(|()| answered.recv().ok());
        match told {
            Some(Ok(paths)) => Ok(paths),
            Some(Err(error)) => Err(LookupError { destination, source: Box::new(Shared(error)) }),
            None => Err(LookupError { destination, source: Box::new(Ended) }),
        }
    }
}

impl Drop for PathService {
    fn drop(&mut self) {
        drop(self.orders.take());
        // A panic of its thread was told by the thread.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for PathService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathService").field("daemon", &self.daemon).finish_non_exhaustive()
    }
}
