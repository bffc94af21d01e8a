//! TLS handshakes of accepted streams, on a thread of their own: each costs a signature, and strangers may ask for
//! thousands.
//!
//! 1. [`TlsAcceptor::accept`] hands a stream over; its link keeps a count of such streams, and nothing else of them.
//! 2. The thread answers the handshake. After each step it sleeps four times as long, so that it has a fifth of a
//!    processor at most.
//! 3. [`TlsAcceptor::finished`] gives the stream back with its keys agreed, or says that it failed. An eventfd tells of
//!    either.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use caps::CapSet;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::stream::Stream;
use super::tls::Party;

/// The thread's name.
const NAME: &str = "hawser-tls";
/// It sleeps this many times as long as it worked.
const SLEEP_PARTS: u32 = 4;
/// It looks for streams whose time is over this often, while there are any.
const LOOK_OVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What became of a stream: none where its handshake failed.
pub(super) type Finished = Option<Box<Stream>>;

/// The thread and the way to it. It begins with the first stream, and ends with its link, which owns it.
#[derive(Debug)]
pub(super) struct TlsAcceptor {
    to: Option<Sender<Box<Stream>>>,
    from: Receiver<Finished>,
    /// Wakes the thread.
    waker: Arc<OwnedFd>,
    /// Wakes the link.
    done: Arc<OwnedFd>,
}

impl TlsAcceptor {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where there is no descriptor or thread to be had.
    pub(super) fn start(party: Party) -> io::Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let (waker, done) = (event()?, event()?);
        let (to, accepted) = mpsc::channel();
        let (finished, from) = mpsc::channel();
        let worker = Worker { party, accepted, finished, waker: Arc::clone(&waker), done: Arc::clone(&done) };
        thread::Builder::new().name(NAME.to_owned()).spawn(move || worker.serve())?;
        Ok(TlsAcceptor { to: Some(to), from, waker, done })
    }

    /// Step 1. Whether the thread is there to take it.
    pub(super) fn accept(&self, stream: Box<Stream>) -> bool {
        let taken = self.to.as_ref().is_some_and(|to| to.send(stream).is_ok());
        notify(&self.waker);
        taken
    }

    /// Step 3: the next of them.
    pub(super) fn finished(&self) -> Option<Finished> {
        self.from.try_recv().ok()
    }

    /// The eventfd was seen.
    pub(super) fn acknowledge(&self) {
        clear(&self.done);
    }
}

impl AsFd for TlsAcceptor {
    /// Readable while a stream is finished.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

impl Drop for TlsAcceptor {
    fn drop(&mut self) {
        self.to = None;
        notify(&self.waker);
    }
}

/// The thread's own. It ends when its link is gone.
struct Worker {
    party: Party,
    accepted: Receiver<Box<Stream>>,
    finished: Sender<Finished>,
    waker: Arc<OwnedFd>,
    done: Arc<OwnedFd>,
}

impl Worker {
    fn serve(self) {
        // What strangers send is read here: with no power at all. Where that fails, there was none.
        let _ = caps::clear(None, CapSet::Effective);
        let _ = caps::clear(None, CapSet::Permitted);
        let mut streams: Vec<Stream> = Vec::new();
        loop {
            self.wait(&streams);
            clear(&self.waker);
            loop {
                match self.accepted.try_recv() {
                    Ok(mut stream) => match stream.begin_tls(&self.party) {
                        Ok(()) => streams.push(*stream),
                        Err(_) => self.finish(None),
                    },
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.step(&mut streams);
        }
    }

    /// Until a stream is handed over, or one brings something.
    fn wait(&self, streams: &[Stream]) {
        let mut watched = vec![PollFd::new(&self.waker, PollFlags::IN)];
        watched.extend(streams.iter().map(|stream| PollFd::new(stream, stream.handshake_needs())));
        let timeout = (!streams.is_empty()).then_some(&LOOK_OVER);
        // A signal, or no memory: it is looked at again.
        let _ = poll(&mut watched, timeout);
    }

    /// Step 2, for each stream.
    fn step(&self, streams: &mut Vec<Stream>) {
        let mut at = 0;
        while let Some(stream) = streams.get_mut(at) {
            let start = Instant::now();
            let done = stream.handshake_step();
            let over = stream.deadline() <= start;
            match done {
                Ok(true) => self.finish(Some(Box::new(streams.swap_remove(at)))),
                Ok(false) if !over => at += 1,
                Ok(false) | Err(_) => {
                    drop(streams.swap_remove(at));
                    self.finish(None);
                }
            }
            thread::sleep((start.elapsed() * SLEEP_PARTS).min(Duration::from_millis(100)));
        }
    }

    fn finish(&self, finished: Finished) {
        // The link may be gone: then this thread ends, too.
        let _ = self.finished.send(finished);
        notify(&self.done);
    }
}

fn notify(event: &OwnedFd) {
    // It can only be full, and is readable then.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

fn clear(event: &OwnedFd) {
    // Nothing there: nobody notified.
    let _ = rustix::io::read(event, &mut [0_u8; 8]);
}
