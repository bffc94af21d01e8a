//! What wakes the packet thread when another has something for it, and the clock and randomness that cores are given.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_core::units::{Random, Time};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// An eventfd. Quiet at first; cheap to clone, for several threads.
#[derive(Debug, Clone)]
pub(super) struct Wake(Arc<OwnedFd>);

impl Wake {
    pub(super) fn new() -> Result<Wake, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(|fd| Wake(Arc::new(fd)))
    }

    /// Wakes whoever polls it. A counter that is full wakes as well.
    pub(super) fn wake(&self) {
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Is quiet again.
    pub(super) fn calm(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The monotonic clock, as cores take it. Begins a second after their epoch: a plain value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + Duration::from_secs(1) + self.0.elapsed()
    }
}

/// The system's randomness. Holds nothing.
#[derive(Debug)]
pub(super) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        // Without it no key would be secret: nothing may go on.
        getrandom::fill(bytes).expect("the system gives random bytes");
    }
}
