//! What surrounds a portal: signals, and a service manager.

use std::os::fd::AsFd;

use crate::config::{Config, Keys};

/// What a portal is told to do. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Read the configuration again.
    Reload,
    /// Undo everything and end.
    Shutdown,
}

/// Who gives orders to a portal and is told about it. Its file descriptor is readable while orders wait.
/// Used by the control thread only.
pub trait Host: AsFd {
    /// The orders that came since the last call. Never blocks.
    fn orders(&mut self) -> Vec<Order>;

    /// The configuration and its keys, read anew; `None` where that failed, which was told.
    fn reload(&mut self) -> Option<(Config, Keys)>;

    /// The portal forwards packets; `status` says in a line which.
    fn ready(&mut self, status: &str);

    /// The portal is undoing what it made.
    fn stopping(&mut self);
}
