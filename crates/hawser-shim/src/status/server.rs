//! The control socket of a shim.
//!
//! 1. [`Server::start`] opens it: whoever may not have it learns that at once.
//! 2. Its thread answers each question with a document of the moment.
//! 3. Dropping it removes the socket.

use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hawser_net::daemon::{ClientError, ControlSocket, Program, ServeError, StatusAlone};
use serde_json::json;
use tokio::sync::oneshot;

use super::build::{About, document};
use super::document::Status;
use crate::engine::Snapshot;
use crate::packet::{Order, Orders};

/// How long the packet thread may take to say what there is: it does so between two batches.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why nobody answers.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The socket cannot be had.
    #[error(transparent)]
    Socket(#[from] ServeError),
    /// No thread, or nothing to run in it.
    #[error("start the thread of the control socket")]
    Thread(#[from] io::Error),
}

/// Answers until it is dropped, and removes its socket then. For one owner.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers on the socket `path`. `ask` says what there is, `routes` how many entries the map has; both may take a
    /// moment, and are called by the server's thread.
    ///
    /// # Errors
    /// If another shim answers there, the system refuses the socket, or there is no thread.
    pub fn start(
        path: &Path,
        about: About,
        routes: impl Fn() -> usize + Send + Sync + 'static,
        ask: impl Fn() -> Option<Snapshot> + Send + Sync + 'static,
    ) -> Result<Server, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let socket = runtime.block_on(async { ControlSocket::bind(Program::Shim, path) })?;
        let (stop, stopped) = oneshot::channel();
        let began = Instant::now();
        let status = move || document(&about, began.elapsed(), routes(), &ask().unwrap_or_default());
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = socket.serve(StatusAlone(status)) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("shim-status".to_owned()).spawn(run)?;
        Ok(Server { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic of its thread was told by the thread.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the packet thread says there is; none where it has ended, or is too busy to say.
pub fn snapshot(orders: &Orders) -> Option<Snapshot> {
    let (reply, said) = sync_channel(1);
    orders.give(Order::Snapshot(reply)).ok()?;
    said.recv_timeout(PATIENCE).ok()
}

/// The status of the shim whose control socket is `path`. Blocks for at most some seconds.
///
/// # Errors
/// Where nobody listens, this user may not ask, or the answer is no status.
pub fn ask(path: &Path) -> Result<Status, ClientError> {
    hawser_net::daemon::ask(Program::Shim, path, &json!({ "get": "status" }))
}
