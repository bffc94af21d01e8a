//! Waiting for many sockets at once, by epoll.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::clock::{SECOND_NS, timespec};

/// Events taken at once.
const EVENTS: usize = 256;

/// Sockets, each with a number, and which of them are ready. Starts without any; a closed socket leaves by itself. One
/// owner.
pub(super) struct Ready {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Ready {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS) })
    }

    /// Watches a socket for bytes to read.
    pub(super) fn watch_read(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), EventFlags::IN)?)
    }

    /// Watches a socket for room to write.
    pub(super) fn watch_write(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), EventFlags::OUT)?)
    }

    /// Watches a socket no longer.
    pub(super) fn forget(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// The numbers of those that are ready; none after `patience`, or after a signal.
    pub(super) fn wait(&mut self, patience: Duration) -> io::Result<impl Iterator<Item = u64>> {
        let nanos = u64::try_from(patience.as_nanos()).unwrap_or(SECOND_NS);
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timespec(nanos))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64()))
    }
}
