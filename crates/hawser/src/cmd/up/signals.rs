//! Signals as events that a loop over descriptors can wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// What a signal asks for. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT: undo everything and end.
    Shutdown,
}

/// SIGTERM, SIGINT and SIGHUP, caught from [`Signals::catch`] on. Starts with none pending; used by one thread.
///
/// Its file descriptor is readable while signals are pending.
#[derive(Debug)]
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Catches the signals of the whole process.
    pub fn catch() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, [SIGTERM, SIGINT, SIGHUP])?;
        Ok(Self { delivery })
    }

    /// What was asked for since the last call, each once, `Reload` first. Never blocks.
    pub fn pending(&mut self) -> Vec<Event> {
        let event = |signal| if signal == SIGHUP { Event::Reload } else { Event::Shutdown };
        let mut events: Vec<Event> = self.delivery.pending().map(event).collect();
        events.sort_unstable();
        events.dedup();
        events
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use signal_hook::low_level::raise;

    use super::*;

    /// Whether a loop over descriptors would wake.
    fn wakes(signals: &Signals) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(signals, PollFlags::IN)];
        poll(&mut fds, Some(&now)).expect("poll works") == 1
    }

    #[test]
    fn signals_wake_a_loop_and_come_once_each() {
        let mut signals = Signals::catch().expect("signals can be caught");
        assert!(!wakes(&signals));
        assert_eq!(signals.pending(), []);
        for (raised, expect) in [
            (vec![SIGHUP, SIGHUP], vec![Event::Reload]),
            (vec![SIGTERM], vec![Event::Shutdown]),
            (vec![SIGINT, SIGTERM, SIGHUP], vec![Event::Reload, Event::Shutdown]),
        ] {
            for signal in &raised {
                raise(*signal).expect("it can be raised");
            }
            assert!(wakes(&signals), "{raised:?}");
            assert_eq!(signals.pending(), expect, "{raised:?}");
            assert!(!wakes(&signals), "{raised:?}");
        }
    }
}
