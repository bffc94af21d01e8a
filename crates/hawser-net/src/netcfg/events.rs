//! Link events, or other messages, for a plain thread that waits for descriptors: a channel, and an eventfd that is
//! readable while it holds something.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use rustix::event::{EventfdFlags, eventfd};

use super::snapshot::LinkEvent;

/// The sending end, on the control thread. A new one has sent nothing.
/// Never blocks; the channel grows with what is not fetched, and events are few.
#[derive(Debug)]
pub struct EventSender<T = LinkEvent> {
    channel: Sender<T>,
    bell: Arc<OwnedFd>,
}

/// The receiving end, on the packet thread. A new one has nothing to fetch.
/// Wait for its descriptor to be readable, then [`EventReceiver::drain`] it.
#[derive(Debug)]
pub struct EventReceiver<T = LinkEvent> {
    channel: Receiver<T>,
    bell: Arc<OwnedFd>,
}

/// The packet thread has dropped its end. There is no more to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("send to the packet thread: nobody receives any more")]
pub struct Closed;

/// A channel with a bell. Fails if the process has no descriptor left.
pub fn event_channel<T>() -> io::Result<(EventSender<T>, EventReceiver<T>)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = channel();
    Ok((EventSender { channel: sender, bell: Arc::clone(&bell) }, EventReceiver { channel: receiver, bell }))
}

impl<T> EventSender<T> {
    /// Sends events in their order and rings the bell once.
    pub fn send(&self, events: impl IntoIterator<Item = T>) -> Result<(), Closed> {
        for event in events {
            self.channel.send(event).map_err(|_| Closed)?;
        }
        // Fails only if the counter is full, and then the bell rings already (eventfd(2)).
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        Ok(())
    }
}

impl<T> Clone for EventSender<T> {
    fn clone(&self) -> Self {
        Self { channel: self.channel.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<T> EventReceiver<T> {
    /// Silences the bell and fetches all that was sent.
    pub fn drain(&self) -> Vec<T> {
        let mut count = [0; size_of::<u64>()];
        // Silenced before the channel is emptied: what is sent in between rings anew. Nothing to read is fine.
        let _ = rustix::io::read(&*self.bell, &mut count);
        self.channel.try_iter().collect()
    }
}

impl<T> AsFd for EventReceiver<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn rings(receiver: &EventReceiver) -> bool {
        let mut descriptors = [PollFd::new(receiver, PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn the_bell_rings_until_the_channel_is_drained() {
        let (sender, receiver) = event_channel().unwrap();
        assert!(!rings(&receiver));
        assert_eq!(receiver.drain(), []);
        sender.send([LinkEvent::RoutesChanged]).unwrap();
        sender.send([LinkEvent::RoutesChanged, LinkEvent::RoutesChanged]).unwrap();
        assert!(rings(&receiver));
        assert_eq!(receiver.drain().len(), 3);
        assert!(!rings(&receiver));
    }

    #[test]
    fn sending_to_nobody_is_an_error() {
        let (sender, receiver) = event_channel().unwrap();
        drop(receiver);
        assert_eq!(sender.send([LinkEvent::RoutesChanged]), Err(Closed));
    }
}
