//! The thread that hears and does what the book says.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hawser_net::netcfg::{EventReceiver, EventSender, NetConfigError, event_channel};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::book::{Act, Book, Places};
use crate::flow::FlowKey;
use crate::kernel::{Events, Subflows};
use crate::mptcp::Token;

/// What the manager is told. There is no default.
#[derive(Debug)]
pub enum Input {
    /// A connection may have this many more subflows.
    Room(Token, usize),
    /// A subflow's path is dead, and there is no other.
    Lost(Token, FlowKey),
    /// Another map, or other addresses.
    Places(Places),
    /// End.
    Stop,
}

/// Tells the manager; may outlive it. For one thread each.
#[derive(Debug)]
pub struct Inputs(EventSender<Input>);

/// The manager's thread. Runs until it is dropped. One owner.
#[derive(Debug)]
pub struct Manager {
    inputs: EventSender<Input>,
    thread: Option<JoinHandle<()>>,
}

impl Inputs {
    /// Tells the manager; one that has ended has no use for it.
    pub fn tell(&self, input: Input) {
        let _ = self.0.send([input]);
    }
}

impl Manager {
    /// Starts it in the calling thread's network namespace, with what tells it.
    ///
    /// # Errors
    /// [`NetConfigError`] where the kernel has no events or no such path manager.
    pub fn start(places: Places) -> Result<(Self, Inputs), NetConfigError> {
        let (events, hand) = (Events::open()?, Subflows::open()?);
        let failed =
            |source| NetConfigError::Kernel { operation: "start", subject: "manager of subflows".into(), source };
        let (inputs, inbox) = event_channel().map_err(failed)?;
        let mut book = Book::default();
        book.learn(places);
        let work = move || {
            if let Err(error) = (Work { book, events, hand, inbox }).run() {
                tracing::error!(%error, "subflows are managed no more");
            }
        };
        let thread = std::thread::Builder::new().name("hawser-manager".to_owned()).spawn(work).map_err(failed)?;
        let others = Inputs(inputs.clone());
        Ok((Self { inputs, thread: Some(thread) }, others))
    }

    /// Another map, or other addresses.
    pub fn learn(&self, places: Places) {
        // One that has ended has no use for it.
        let _ = self.inputs.send([Input::Places(places)]);
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.inputs.send([Input::Stop]);
        // A panic of its thread was told by the thread.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the thread has. It owns all of it.
struct Work {
    book: Book,
    events: Events,
    hand: Subflows,
    inbox: EventReceiver<Input>,
}

impl Work {
    fn run(mut self) -> io::Result<()> {
        loop {
            self.wait()?;
            // What the kernel says comes first: of what it has not told of nobody can be told.
            self.hear();
            if !self.take() {
                return Ok(());
            }
            self.act();
        }
    }

    /// Until something is heard or told, or due.
    fn wait(&self) -> io::Result<()> {
        let due = self.book.wakes(Instant::now()).map(|due| Timespec {
            tv_sec: i64::try_from(due.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: due.subsec_nanos().into(),
        });
        let mut fds = [PollFd::new(&self.events, PollFlags::IN), PollFd::new(&self.inbox, PollFlags::IN)];
        match poll(&mut fds, due.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// False when it is to end.
    fn take(&mut self) -> bool {
        for input in self.inbox.drain() {
            match input {
                Input::Room(token, free) => self.book.room(token, free),
                Input::Lost(token, key) => self.book.lost(token, key),
                Input::Places(places) => self.book.learn(places),
                Input::Stop => return false,
            }
        }
        true
    }

    fn hear(&mut self) {
        match self.events.next(Duration::ZERO) {
            Ok(events) => events.iter().for_each(|event| self.book.hear(event, Instant::now())),
            Err(error) => {
                tracing::warn!(%error, "events of mptcp missed: connections until now get no more subflows");
                self.book.forget();
            }
        }
    }

    fn act(&mut self) {
        for act in self.book.due(Instant::now()) {
            match act {
                Act::Create { token, id, local, remote } => match self.hand.create(token, id, local, None, remote) {
                    Ok(()) => tracing::debug!(%token, id = id.0, %local, %remote, "subflow asked for"),
                    Err(error) => {
                        tracing::debug!(%token, id = id.0, %error, "subflow not opened, it is tried again");
                        self.book.failed(token, id, Instant::now());
                    }
                },
                Act::Destroy { token, subflow } => {
                    match self.hand.destroy(token, subflow.local, subflow.remote) {
                        Ok(()) => tracing::debug!(%token, local = %subflow.local, "subflow without a path ended"),
                        // It has ended by itself.
                        Err(error) => tracing::debug!(%token, local = %subflow.local, %error, "subflow not ended"),
                    }
                }
            }
        }
    }
}
