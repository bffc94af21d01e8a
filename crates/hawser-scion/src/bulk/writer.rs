//! Writes what a session receives, on a thread of its own.
//!
//! 1. [`Writer::start`] opens the files of an offer: what is there of each, or why it is not taken. 2. Blocks are
//!    written, and their memory comes back. 3. A file that is whole, and whose digest is known, gets its name.
//! 4. [`Writer::end`]: what it was told is still written; whoever drops it waits for that.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{FileInfo, OfferedFile};
use hawser_bulk::receiver::SessionId;
use hawser_bulk::wire::{Have, Verdict};
use hawser_bulk::{BLOCK_LEN, BlockId, Layout};

use super::folder::Folder;
use super::part::{Part, PartError};
use super::wake::Wake;

/// What the thread is told.
#[derive(Debug)]
enum Write {
    Block(BlockId, Vec<u8>),
    Digest(usize, Digest),
}

/// What it did.
#[derive(Debug)]
pub(super) enum Wrote {
    /// The files of the offer: what is there, or why not.
    Opened(Vec<Result<Have, PartError>>),
    Block(BlockId, Vec<u8>),
    /// A file has its name and this digest, or cannot have it.
    File(usize, Result<Digest, PartError>),
}

/// The thread that writes. Opens the files at first; its session owns it. Dropping it ends it, and waits for that.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` when it ends.
    orders: Option<Sender<Write>>,
    /// Nobody wants to know any more what is there.
    stop: Arc<AtomicBool>,
    /// Locked by whoever waits for it.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What tells of it. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    pub(super) wrote: Sender<(SessionId, Wrote)>,
    pub(super) wake: Wake,
}

impl Writer {
    /// Step 1, when those `before` it are done. Names that are none are told as such by the session itself.
    pub(super) fn start(
        session: SessionId,
        folder: Arc<Folder>,
        files: Vec<OfferedFile>,
        before: Vec<Arc<Writer>>,
        teller: Teller,
    ) -> io::Result<Writer> {
        let (orders, ordered) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (held, digests) = (Vec::new(), vec![None; files.len()]);
        let work = Work { session, folder, files, teller, stop: Arc::clone(&stop), held, digests };
        let run = move || {
            before.iter().for_each(|writer| writer.wait());
            drop(before);
            work.run(&ordered);
        };
        let thread = thread::Builder::new().name("bulk-write".to_owned()).spawn(run)?;
        Ok(Writer { orders: Some(orders), stop, thread: Mutex::new(Some(thread)) })
    }

    /// Step 2.
    pub(super) fn block(&self, block: BlockId, bytes: Vec<u8>) {
        self.order(Write::Block(block, bytes));
    }

    /// Step 3.
    pub(super) fn digest(&self, file: usize, digest: Digest) {
        self.order(Write::Digest(file, digest));
    }

    /// Step 4.
    pub(super) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.orders.take());
    }

    /// Whether nothing is left to do after its end.
    pub(super) fn is_done(&self) -> bool {
        self.thread.try_lock().is_ok_and(|thread| thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    /// Waits until nothing is left to do after its end.
    fn wait(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // A panic of its thread was told by the thread.
        let _ = thread.take().map(JoinHandle::join);
    }

    fn order(&self, order: Write) {
        if let Some(orders) = &self.orders {
            // It ends with this.
            let _ = orders.send(order);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
        self.wait();
    }
}

struct Work {
    session: SessionId,
    folder: Arc<Folder>,
    files: Vec<OfferedFile>,
    teller: Teller,
    stop: Arc<AtomicBool>,
    held: Vec<Held>,
    digests: Vec<Option<Digest>>,
}

/// What there is of a file.
enum Held {
    /// It is not taken, or done with.
    Nothing,
    Part(Part),
    /// It got its name in an earlier session, and has this digest.
    Finished(Digest),
}

impl Work {
    fn run(mut self, ordered: &Receiver<Write>) {
        let sizes = self.files.iter().map(|file| file.as_ref().map_or_else(|(_, size)| *size, |file| file.size));
        // Blocks do not depend on the chunk; the session has checked the sizes.
        let Ok(layout) = Layout::new(sizes, hawser_bulk::layout::CHUNKS.start) else { return };
        self.open();
        while let Ok(order) = ordered.recv() {
            match order {
                Write::Block(block, bytes) => self.write(&layout, block, bytes),
                Write::Digest(file, digest) => {
                    if let Some(known) = self.digests.get_mut(file) {
                        *known = Some(digest);
                    }
                    self.finish(file);
                }
            }
        }
    }

    fn open(&mut self) {
        let mut opened = Vec::with_capacity(self.files.len());
        for file in &self.files {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            // Of a name that is none the session tells itself.
            let held = file.as_ref().map_or(Ok((Held::Nothing, Have::default())), |info| self.hold(info));
            let (held, have) = match held {
                Ok((held, have)) => (held, Ok(have)),
                Err(error) => (Held::Nothing, Err(error)),
            };
            self.held.push(held);
            opened.push(have);
        }
        self.tell(Wrote::Opened(opened));
    }

    fn hold(&self, info: &FileInfo) -> Result<(Held, Have), PartError> {
        if let Some(digest) = self.folder.digest_of(info) {
            let blocks = info.size.div_ceil(BLOCK_LEN as u64);
            return Ok((Held::Finished(digest), Have::of((0..blocks).map(|_| true))));
        }
        let part = Part::open(&self.folder.fd, info, self.folder.force, &self.stop)?;
        let have = part.have();
        Ok((Held::Part(part), have))
    }

    fn write(&mut self, layout: &Layout, block: BlockId, bytes: Vec<u8>) {
        let Some((file, at)) = layout.place(block) else { return };
        if let Some(Held::Part(part)) = self.held.get_mut(file)
            && let Err(error) = part.write((at / BLOCK_LEN as u64) as usize, &bytes)
        {
            self.held[file] = Held::Nothing;
            self.tell(Wrote::File(file, Err(error)));
        }
        self.tell(Wrote::Block(block, bytes));
        self.finish(file);
    }

    fn finish(&mut self, file: usize) {
        let (Some(Some(digest)), Some(held)) = (self.digests.get(file).copied(), self.held.get_mut(file)) else {
            return;
        };
        let finished = match std::mem::replace(held, Held::Nothing) {
            Held::Part(part) if part.is_whole() => self.name(file, part, digest),
            Held::Finished(known) if known == digest => Ok(digest),
            Held::Finished(_) => Err(self.another(file)),
            other => {
                *held = other;
                return;
            }
        };
        self.tell(Wrote::File(file, finished));
    }

    /// It is another one than was finished after all: by force it is begun anew when it is offered once more, since the
    /// sender was told that all of it is there.
    fn another(&self, file: usize) -> PartError {
        if !self.folder.force {
            return PartError::Exists;
        }
        if let Some(Ok(info)) = self.files.get(file) {
            self.folder.forget(info);
        }
        PartError::Another
    }

    fn name(&self, file: usize, part: Part, digest: Digest) -> Result<Digest, PartError> {
        let version = part.finish(&self.folder.fd, &digest)?;
        if let Some(Ok(info)) = self.files.get(file) {
            self.folder.finished(info.clone(), version, digest);
        }
        Ok(digest)
    }

    fn tell(&self, wrote: Wrote) {
        // Nobody is left to tell where the receiver has ended.
        let _ = self.teller.wrote.send((self.session, wrote));
        self.teller.wake.wake();
    }
}

/// As the sender is told.
pub(super) fn verdict(of: &Result<Digest, PartError>) -> Verdict {
    of.as_ref().map_or_else(PartError::verdict, |_| Verdict::Good)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
