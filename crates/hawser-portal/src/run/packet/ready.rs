//! Which descriptors are ready.
//!
//! poll(2), though epoll(7) is the usual choice: an epoll stays on the wait queue of each socket, and the kernel then
//! calls it for every datagram that leaves the send buffer, which costs a sender at several Gbit/s 4 % of its time. A
//! portal has few descriptors, and waits seldom when it has much to do.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use smallvec::SmallVec;

use super::socket::LinkSocket;
use hawser_net::netcfg::EventReceiver;
use hawser_net::tun::Tun;

/// Descriptors that are waited for without an allocation.
const FEW: usize = 16;

/// What was ready when the thread last looked. Nothing at first; reuses its memory.
#[derive(Debug, Default)]
pub struct Ready {
    pub tun: bool,
    /// Places of the TUN device's queues for marks.
    pub marked: Vec<usize>,
    pub commands: bool,
    /// Places among the sockets, and what is to be done there.
    pub sockets: Vec<(usize, PollFlags)>,
}

impl Ready {
    /// Waits until something is ready or the time is over.
    ///
    /// # Errors
    /// The kernel's. A signal is none: nothing is ready then.
    pub fn wait<T>(
        &mut self,
        tun: &Tun,
        commands: &EventReceiver<T>,
        sockets: &[LinkSocket],
        timeout: Option<&Timespec>,
    ) -> Result<(), Errno> {
        let mut watched = SmallVec::<[PollFd<'_>; FEW]>::new();
        watched.extend([PollFd::new(tun, PollFlags::IN), PollFd::new(commands, PollFlags::IN)]);
        watched.extend(tun.marked().map(|(_, queue)| PollFd::from_borrowed_fd(queue, PollFlags::IN)));
        watched.extend(sockets.iter().filter_map(LinkSocket::watched));
        self.marked.clear();
        self.sockets.clear();
        (self.tun, self.commands) = (false, false);
        match poll(&mut watched, timeout) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        let mut seen = watched.iter().map(PollFd::revents);
        self.tun = seen.next().is_some_and(|flags| !flags.is_empty());
        self.commands = seen.next().is_some_and(|flags| !flags.is_empty());
        let marked = (0..tun.marked().len()).zip(seen.by_ref());
        self.marked.extend(marked.filter(|(_, flags)| !flags.is_empty()).map(|(place, _)| place));
        let places = sockets.iter().enumerate().filter(|(_, socket)| socket.watched().is_some());
        self.sockets.extend(places.map(|(place, _)| place).zip(seen).filter(|(_, flags)| !flags.is_empty()));
        Ok(())
    }
}
