//! A thread that listens for what is measured. It asks for a real-time priority: it is an instrument.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use crate::clock::keep_time;
use crate::error::WireError;
use crate::namespace::Namespace;

/// Starts it in a namespace, and returns once it keeps time: what was sent before would be measured by how long the
/// thread took to start.
pub(super) fn start<T: Send + 'static>(
    at: &Namespace,
    name: &str,
    listen: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, WireError> {
    let (ready, is_ready) = sync_channel(1);
    let thread = at.spawn_thread(name, move || {
        keep_time();
        // Who starts it waits for this.
        let _ = ready.send(());
        listen()
    })?;
    // Fails only where the thread has ended, as whoever joins it is told.
    let _ = is_ready.recv();
    Ok(thread)
}
