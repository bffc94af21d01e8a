//! Receives files: one socket, handshakes and sessions, until the caller ends it.
//!
//! 1. What comes is opened by the core, which learns the way back only of what proved itself. 2. Offers go to a
//!    [`Writer`] each, blocks and digests to theirs. 3. What they did goes back. 4. What happens is told.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Channel, channel};
use std::time::{Duration, Instant};

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{FileInfo, OfferedFile};
use hawser_bulk::receiver::{Event, MOST_ANSWER, Receiver, SessionId};
use hawser_bulk::trust::Trust;
use hawser_bulk::wire::{Have, Reason};
use hawser_core::handshake::PublicKey;
use hawser_core::units::Time;
use hawser_net::machine;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::ended::{Ended, share};
use super::folder::Folder;
use super::part::PartError;
use super::wake::{Clock, SystemRandom, Wake};
use super::writer::{Teller, Writer, Wrote, verdict};
use crate::addr::EndpointAddr;
use crate::conn::{Batch, ConnOpts, Finding, OpenError, PathTable, PortRange, ScionSocket, SendError};

/// Batches that are received before anything else is done: what acknowledgements can wait for.
const TURN: usize = 4;
/// How often the caller is asked whether it ends, and progress told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// How long a session must have been silent before another takes its files: a sender speaks each second.
const SILENT: Duration = Duration::from_secs(2);
/// How long sessions may still be told that it ends.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Where files are taken, and from whom. Plain data.
#[derive(Debug)]
pub struct ReceiveOrder {
    /// This end; port 0 takes a free one.
    pub local: EndpointAddr,
    /// The AS's ports that packets come to directly.
    pub dispatched: Option<PortRange>,
    /// Where files go.
    pub folder: PathBuf,
    /// Files of the same name are replaced.
    pub force: bool,
    /// From whom.
    pub trust: Trust,
}

/// Something that happened. Borrows what it tells.
#[derive(Debug)]
pub enum Received<'r> {
    /// It listens here.
    Listening(EndpointAddr, &'r [Finding]),
    /// A sender offers files.
    Offer(SessionId, PublicKey, &'r [OfferedFile]),
    /// What is taken of them: bytes that are there, or why not.
    Taken(SessionId, &'r [Result<u64, PartError>]),
    /// Bytes that have come so far.
    Progress(SessionId, u64),
    /// A file has its name, or cannot have it: which of the offer, after so long.
    File(SessionId, &'r FileInfo, &'r Result<Digest, PartError>, Duration),
    /// A session has ended, all well or not.
    Gone(SessionId, bool),
}

/// Why nothing is received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The folder cannot be opened.
    #[error("open {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No socket.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system refused.
    #[error("receive: {step}")]
    System {
        /// What was done.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// A session's files, and who writes them.
struct Writing {
    files: Vec<OfferedFile>,
    writer: Writer,
    began: Instant,
    /// Files whose result is not known yet.
    open: usize,
    failed: bool,
}

/// What goes on. Without a session at first; the packet thread owns it.
struct Run<T> {
    socket: ScionSocket,
    receiver: Receiver<EndpointAddr>,
    folder: Arc<Folder>,
    teller: Teller,
    wrote: Channel<(SessionId, Wrote)>,
    sessions: BTreeMap<SessionId, Writing>,
    ended: Ended,
    clock: Clock,
    told: Instant,
    /// The socket is full: an answer waits.
    full: bool,
    tell: T,
}

/// Receives files until `tell`, which hears of everything, and is asked four times a second (`None`), ends it.
///
/// # Errors
/// [`ReceiveError`]. What a sender does is none: it is told.
pub fn receive(
    order: &ReceiveOrder,
    tell: impl FnMut(Option<Received<'_>>) -> ControlFlow<()>,
) -> Result<(), ReceiveError> {
    let folder = File::options().read(true).open(&order.folder).and_then(|folder| match folder.metadata()?.is_dir() {
        true => Ok(folder),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    let folder = folder.map_err(|source| ReceiveError::Folder { path: order.folder.clone(), source })?;
    // What opens is right: the cipher's tag says more than a checksum.
    let opts = ConnOpts { dispatched: order.dispatched, verify: false, ..ConnOpts::new(order.local) };
    let socket = ScionSocket::bind(opts, Arc::new(PathTable::default()))?;
    let wake = Wake::new().map_err(|error| system("make an eventfd", error))?;
    let (teller, wrote) = channel();
    let mut run = Run {
        socket,
        receiver: Receiver::new(order.trust.clone(), machine::has_aes()),
        folder: Arc::new(Folder::new(folder.into(), order.force)),
        teller: Teller { wrote: teller, wake },
        wrote,
        sessions: BTreeMap::new(),
        ended: Ended::default(),
        clock: Clock::start(),
        told: Instant::now(),
        full: false,
        tell,
    };
    run.all()
}

impl<T> Run<T>
where
    T: FnMut(Option<Received<'_>>) -> ControlFlow<()>,
{
    fn all(&mut self) -> Result<(), ReceiveError> {
        let mut flow = (self.tell)(Some(Received::Listening(self.socket.local(), self.socket.findings())));
        while flow.is_continue() {
            let more = self.take()?;
            let now = self.clock.now();
            self.receiver.handle_timeout(now);
            flow = self.heed(now)?;
            self.answer(now)?;
            if flow.is_continue() && self.told.elapsed() >= TELL_EVERY {
                flow = self.tell_progress();
            }
            if !more {
                self.sleep(self.receiver.poll_timeout(self.clock.now()))?;
            }
        }
        self.receiver.stop(None);
        let late = Instant::now() + LAST_WORDS;
        while Instant::now() < late && self.answer(self.clock.now())? {}
        Ok(())
    }

    /// Step 1: says whether there may be more.
    fn take(&mut self) -> Result<bool, ReceiveError> {
        for _ in 0..TURN {
            let (receiver, now) = (&mut self.receiver, self.clock.now());
            let took = self.socket.try_recv_batch_if(|came| {
                receiver.handle_datagram(now, came.source, cookie_host(&came.source), came.payload, &mut SystemRandom)
            });
            if took.map_err(|error| system("receive", error))? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Steps 2 to 4.
    fn heed(&mut self, now: Time) -> Result<ControlFlow<()>, ReceiveError> {
        self.teller.wake.calm();
        while let Ok((session, wrote)) = self.wrote.try_recv() {
            if self.done(now, session, wrote).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        while let Some(event) = self.receiver.poll_event() {
            let flow = match event {
                Event::Offer(session, files) => self.offer(session, files)?,
                Event::Block(session, block, bytes) => {
                    if let Some(writing) = self.sessions.get(&session) {
                        writing.writer.block(block, bytes);
                    }
                    ControlFlow::Continue(())
                }
                Event::Digest(session, file, digest) => {
                    if let Some(writing) = self.sessions.get(&session) {
                        writing.writer.digest(file, digest);
                    }
                    ControlFlow::Continue(())
                }
                Event::Gone(session, reason) => self.gone(session, reason),
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn offer(&mut self, session: SessionId, files: Vec<OfferedFile>) -> Result<ControlFlow<()>, ReceiveError> {
        self.end_silent(&files);
        let peer = self.receiver.peer(session).unwrap_or(PublicKey([0; 32]));
        let (folder, teller) = (Arc::clone(&self.folder), self.teller.clone());
        // It finds what those before it were told to write.
        let writer = Writer::start(session, folder, files.clone(), self.ended.before(&files), teller);
        let writer = writer.map_err(|error| system("start the thread that writes", error))?;
        let flow = (self.tell)(Some(Received::Offer(session, peer, &files)));
        let open = files.len();
        self.sessions.insert(session, Writing { files, writer, began: Instant::now(), open, failed: false });
        Ok(flow)
    }

    /// A sender that was cut off and calls anew finds its files free: its old session gives way.
    fn end_silent(&mut self, files: &[OfferedFile]) {
        let now = self.clock.now();
        let silent = |session: &SessionId| self.receiver.silent_for(now, *session) >= SILENT;
        let end = self.sessions.iter().filter(|(session, writing)| silent(session) && share(&writing.files, files));
        for session in end.map(|(session, _)| *session).collect::<Vec<_>>() {
            self.receiver.stop(Some(session));
            self.retire(session);
        }
    }

    /// A session is gone: says whether all went well. Its writer may be at work for long: nobody waits for it here.
    fn retire(&mut self, session: SessionId) -> Option<bool> {
        let mut writing = self.sessions.remove(&session)?;
        writing.writer.end();
        self.ended.add(writing.files, writing.writer);
        Some(writing.open == 0 && !writing.failed)
    }

    /// A writer did something.
    fn done(&mut self, now: Time, session: SessionId, wrote: Wrote) -> ControlFlow<()> {
        match wrote {
            Wrote::Block(block, memory) => {
                self.receiver.written(now, session, block, memory);
                ControlFlow::Continue(())
            }
            Wrote::Opened(opened) => {
                let answers = opened.iter().map(|opened| match opened {
                    Ok(have) => (hawser_bulk::wire::Verdict::Good, have.clone()),
                    Err(error) => (error.verdict(), Have::default()),
                });
                self.receiver.answer(session, answers.collect());
                let Some(writing) = self.sessions.get_mut(&session) else { return ControlFlow::Continue(()) };
                let refused = opened.iter().zip(&writing.files).filter(|(taken, file)| taken.is_err() || file.is_err());
                let refused = refused.count();
                writing.open -= refused;
                writing.failed |= refused > 0;
                let blocks = |have: Have| have.0.iter().map(|(_, blocks)| u64::from(*blocks)).sum::<u64>();
                let bytes =
                    opened.into_iter().map(|opened| opened.map(|have| blocks(have) * hawser_bulk::BLOCK_LEN as u64));
                (self.tell)(Some(Received::Taken(session, &bytes.collect::<Vec<_>>())))
            }
            Wrote::File(file, result) => {
                self.receiver.result(session, file, verdict(&result));
                let Some(writing) = self.sessions.get_mut(&session) else { return ControlFlow::Continue(()) };
                writing.open -= 1;
                writing.failed |= result.is_err();
                let Some(Ok(info)) = writing.files.get(file) else { return ControlFlow::Continue(()) };
                (self.tell)(Some(Received::File(session, info, &result, writing.began.elapsed())))
            }
        }
    }

    fn gone(&mut self, session: SessionId, reason: Option<Reason>) -> ControlFlow<()> {
        match self.retire(session) {
            Some(well) if reason != Some(Reason::Rekey) => (self.tell)(Some(Received::Gone(session, well))),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Sends what is due; says whether anything was.
    fn answer(&mut self, now: Time) -> Result<bool, ReceiveError> {
        if self.full {
            self.full = !self.socket.flush().unwrap_or(true);
        }
        let (mut out, mut any) = ([0; MOST_ANSWER], false);
        while !self.full
            && let Some((to, len)) = self.receiver.poll_transmit(now, &mut out)
        {
            any = true;
            // It is never longer than a path takes.
            let fill = |batch: &mut Batch<'_>| _ = batch.copy(&out[..len]);
            match self.socket.try_send_batch_to(to, fill) {
                Ok(sent) => self.full = sent.left_over,
                Err(SendError::Socket(error)) => return Err(system("send", error)),
                // The way back is not known any more, or refused: the sender will ask again.
                Err(_) => {}
            }
        }
        Ok(any)
    }

    fn tell_progress(&mut self) -> ControlFlow<()> {
        self.told = Instant::now();
        for session in self.sessions.keys() {
            (self.tell)(Some(Received::Progress(*session, self.receiver.came(*session))))?;
        }
        (self.tell)(None)
    }

    /// Sleeps until a datagram comes, a writer did something, or it is time.
    fn sleep(&self, until: Time) -> Result<(), ReceiveError> {
        let wait = until.since(self.clock.now()).min(TELL_EVERY);
        let wait = wait.try_into().map_err(|_| system("sleep", Errno::INVAL))?;
        let events = if self.full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::new(&self.socket, events), PollFd::new(&self.teller.wake, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(system("sleep", error)),
        }
    }
}

/// Whom a cookie is for: the AS counts, since hosts of several have the same addresses.
pub(super) fn cookie_host(source: &EndpointAddr) -> SocketAddr {
    let host = match source.host.ip().to_canonical() {
        IpAddr::V4(host) => u64::from(u32::from(host)),
        IpAddr::V6(host) => {
            let bits = u128::from(host);
            (bits >> 64) as u64 ^ bits as u64
        }
    };
    let bits = u128::from(source.isd_as.to_bits()) << 64 | u128::from(host);
    SocketAddr::new(Ipv6Addr::from(bits).into(), source.host.port())
}

fn system(step: &'static str, error: impl Into<io::Error>) -> ReceiveError {
    ReceiveError::System { step, source: error.into() }
}
