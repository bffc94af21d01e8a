//! Who gives a daemon orders: signals, and a service manager.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What a daemon is told to do. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Read the configuration again.
    Reload,
    /// Undo everything and end.
    Shutdown,
}

/// Who gives orders to a daemon with configuration `C` and is told about it. Its file descriptor is readable while
/// orders wait. Used by the control thread only.
pub trait Host<C>: AsFd {
    /// The orders that came since the last call. Never blocks.
    fn orders(&mut self) -> Vec<Order>;

    /// The configuration, read anew; `None` where that failed, which was told.
    fn reload(&mut self) -> Option<C>;

    /// The daemon does its work; `status` says in a line which.
    fn ready(&mut self, status: &str);

    /// The daemon is undoing what it made.
    fn stopping(&mut self);

    /// The program that looks for faults and prints what it found as JSON, where there is one.
    fn doctor(&self) -> Option<Command> {
        None
    }

    /// The program that measures speed for who says so with its words, and prints what it found as JSON, where there is
    /// one.
    fn speed(&self) -> Option<Command> {
        None
    }
}

/// Is readable while orders wait: a descriptor of our own, as the host is asked mutably while it is waited for.
///
/// # Errors
/// The runtime, or the system, has no room for another descriptor.
pub fn orders_of(host: &impl AsFd) -> io::Result<AsyncFd<OwnedFd>> {
    let fd = host.as_fd().try_clone_to_owned()?;
    // SAFETY: the AsyncFd owns the descriptor, which is open and the same as long as it lives.
    let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    Ok(fd?)
}
