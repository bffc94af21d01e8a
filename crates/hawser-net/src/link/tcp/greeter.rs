//! TLS handshakes of those who call, on a thread of their own: each costs a signature, and strangers may ask for thousands.
//!
//! 1. [`Greeter::greet`] hands a stream over; its link knows nothing of it then, but that it is away.
//! 2. The thread answers its handshake; after each step it rests four times as long, so that it has a fifth of a processor at
//!    most.
//! 3. [`Greeter::back`]: the stream is back with its keys agreed, or gone. The bell rings for either.

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
const NAME: &str = "hawser-greeter";
/// It rests so many times as long as it worked.
const REST_PARTS: u32 = 4;
/// It looks for streams whose time is over this often, while there are any.
const LOOK_OVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What became of a stream: none where it is no more.
pub(super) type Back = Option<Box<Stream>>;

/// The thread and the way to it. It begins with the first stream, and ends with its link, which owns it.
#[derive(Debug)]
pub(super) struct Greeter {
    to: Option<Sender<Box<Stream>>>,
    from: Receiver<Back>,
    /// Rings for the thread, and for the link.
    called: Arc<OwnedFd>,
    done: Arc<OwnedFd>,
}

impl Greeter {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where there is no descriptor or thread to be had.
    pub(super) fn start(party: Party) -> io::Result<Greeter> {
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let (called, done) = (bell()?, bell()?);
        let (to, guests) = mpsc::channel();
        let (greeted, from) = mpsc::channel();
        let room = Room { party, guests, greeted, called: Arc::clone(&called), done: Arc::clone(&done) };
        thread::Builder::new().name(NAME.to_owned()).spawn(move || room.serve())?;
        Ok(Greeter { to: Some(to), from, called, done })
    }

    /// Step 1. Whether the thread is there to take it.
    pub(super) fn greet(&self, stream: Box<Stream>) -> bool {
        let taken = self.to.as_ref().is_some_and(|to| to.send(stream).is_ok());
        ring(&self.called);
        taken
    }

    /// Step 3: the next of them.
    pub(super) fn back(&self) -> Option<Back> {
        self.from.try_recv().ok()
    }

    /// The bell has been heard.
    pub(super) fn heard(&self) {
        hear(&self.done);
    }
}

impl AsFd for Greeter {
    /// Readable while somebody is back.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

impl Drop for Greeter {
    fn drop(&mut self) {
        self.to = None;
        ring(&self.called);
    }
}

/// The thread's own. It ends when its link is gone.
struct Room {
    party: Party,
    guests: Receiver<Box<Stream>>,
    greeted: Sender<Back>,
    called: Arc<OwnedFd>,
    done: Arc<OwnedFd>,
}

impl Room {
    fn serve(self) {
        // What strangers send is read here: with no power at all. Where that fails, there was none.
        let _ = caps::clear(None, CapSet::Effective);
        let _ = caps::clear(None, CapSet::Permitted);
        let mut here: Vec<Stream> = Vec::new();
        loop {
            self.wait(&here);
            hear(&self.called);
            loop {
                match self.guests.try_recv() {
                    Ok(mut stream) => match stream.begin_tls(&self.party) {
                        Ok(()) => here.push(*stream),
                        Err(_) => self.leave(None),
                    },
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.step(&mut here);
        }
    }

    /// Until somebody comes, or sends something.
    fn wait(&self, here: &[Stream]) {
        let mut watched = vec![PollFd::new(&self.called, PollFlags::IN)];
        watched.extend(here.iter().map(|stream| PollFd::new(stream, stream.greeting_needs())));
        let timeout = (!here.is_empty()).then_some(&LOOK_OVER);
        // A signal, or no memory: it is looked at again.
        let _ = poll(&mut watched, timeout);
    }

    /// Step 2, for each that is here.
    fn step(&self, here: &mut Vec<Stream>) {
        let mut at = 0;
        while let Some(stream) = here.get_mut(at) {
            let start = Instant::now();
            let done = stream.greet();
            let over = stream.deadline() <= start;
            match done {
                Ok(true) => self.leave(Some(Box::new(here.swap_remove(at)))),
                Ok(false) if !over => at += 1,
                Ok(false) | Err(_) => {
                    drop(here.swap_remove(at));
                    self.leave(None);
                }
            }
            thread::sleep((start.elapsed() * REST_PARTS).min(Duration::from_millis(100)));
        }
    }

    fn leave(&self, back: Back) {
        // The link may be gone: then this thread ends, too.
        let _ = self.greeted.send(back);
        ring(&self.done);
    }
}

fn ring(bell: &OwnedFd) {
    // It can only be full, and rings then.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

fn hear(bell: &OwnedFd) {
    // Nothing there: nobody rang.
    let _ = rustix::io::read(bell, &mut [0_u8; 8]);
}
