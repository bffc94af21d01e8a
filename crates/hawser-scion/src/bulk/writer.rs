//! Writes what a session receives, on a thread of its own.
//!
//! 1. [`Writer::start`] opens the files of an offer: what is there of each, or why it is not taken. 2. Blocks are
//!    written, and their memory comes back. 3. A file that is whole, and whose digest is known, gets its name.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::OfferedFile;
use hawser_bulk::receiver::SessionId;
use hawser_bulk::wire::{Have, Verdict};
use hawser_bulk::{BLOCK_LEN, BlockId, Layout};

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

/// The thread that writes. Opens the files at first; ends, with all that it was told done, when it is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` when it ends.
    orders: Option<Sender<Write>>,
    thread: Option<JoinHandle<()>>,
}

/// What tells of it. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    pub(super) wrote: Sender<(SessionId, Wrote)>,
    pub(super) wake: Wake,
}

impl Writer {
    /// Step 1. Names that are none are told as such by the session itself.
    pub(super) fn start(
        session: SessionId,
        folder: Arc<OwnedFd>,
        files: Vec<OfferedFile>,
        force: bool,
        teller: Teller,
    ) -> io::Result<Writer> {
        let (orders, ordered) = channel();
        let work = Work { session, folder, force, teller, parts: Vec::new(), digests: vec![None; files.len()] };
        let thread = thread::Builder::new().name("bulk-write".to_owned()).spawn(move || work.run(&files, &ordered))?;
        Ok(Writer { orders: Some(orders), thread: Some(thread) })
    }

    /// Step 2.
    pub(super) fn block(&self, block: BlockId, bytes: Vec<u8>) {
        self.order(Write::Block(block, bytes));
    }

    /// Step 3.
    pub(super) fn digest(&self, file: usize, digest: Digest) {
        self.order(Write::Digest(file, digest));
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
        drop(self.orders.take());
        // A panic of its thread was told by the thread.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    session: SessionId,
    folder: Arc<OwnedFd>,
    force: bool,
    teller: Teller,
    parts: Vec<Option<Part>>,
    digests: Vec<Option<Digest>>,
}

impl Work {
    fn run(mut self, files: &[OfferedFile], ordered: &Receiver<Write>) {
        let sizes = files.iter().map(|file| file.as_ref().map_or_else(|(_, size)| *size, |file| file.size));
        // Blocks do not depend on the chunk; the session has checked the sizes.
        let Ok(layout) = Layout::new(sizes, hawser_bulk::layout::CHUNKS.start) else { return };
        self.open(files);
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

    fn open(&mut self, files: &[OfferedFile]) {
        let mut opened = Vec::with_capacity(files.len());
        for file in files {
            // Of a name that is none the session tells itself.
            let part = file.as_ref().ok().map(|info| Part::open(&self.folder, info, self.force)).transpose();
            let (part, have) = match part {
                Ok(part) => {
                    let have = part.as_ref().map(Part::have).unwrap_or_default();
                    (part, Ok(have))
                }
                Err(error) => (None, Err(error)),
            };
            self.parts.push(part);
            opened.push(have);
        }
        self.tell(Wrote::Opened(opened));
    }

    fn write(&mut self, layout: &Layout, block: BlockId, bytes: Vec<u8>) {
        let Some((file, at)) = layout.place(block) else { return };
        if let Some(Some(part)) = self.parts.get_mut(file)
            && let Err(error) = part.write((at / BLOCK_LEN as u64) as usize, &bytes)
        {
            self.parts[file] = None;
            self.tell(Wrote::File(file, Err(error)));
        }
        self.tell(Wrote::Block(block, bytes));
        self.finish(file);
    }

    fn finish(&mut self, file: usize) {
        let (Some(Some(digest)), Some(part)) = (self.digests.get(file), self.parts.get_mut(file)) else { return };
        if let Some(part) = part.take_if(|part| part.is_whole()) {
            let digest = *digest;
            let finished = part.finish(&self.folder, &digest).map(|()| digest);
            self.tell(Wrote::File(file, finished));
        }
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
