//! Reads files for a sender, on a thread of its own: blocks in order, hashed while they are in the cache.
//!
//! 1. [`Source::open_all`]: what is to be sent, and what is said of it. 2. [`Reader::start`] reads first what the
//!    receiver lacks, then hashes what it has. 3. A file that changed meanwhile is none that can be sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{FileInfo, FileName, NameError};
use hawser_bulk::wire::Have;
use hawser_bulk::{BLOCK_LEN, BlockId, Layout};

use super::wake::Wake;

/// Blocks that wait between the threads: the sender's queue reads ahead as well.
const BETWEEN: usize = 4;

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be opened or read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a folder, a device or the like.
    #[error("send {}: it is no regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Its name cannot be sent.
    #[error("send {}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// Why.
        source: NameError,
    },
    /// The receiver has one folder: another file is to have its name there.
    #[error("send {}: {} has the same name", path.display(), other.display())]
    SameName {
        /// The file.
        path: PathBuf,
        /// The one before it.
        other: PathBuf,
    },
    /// It is not what it was when it was offered.
    #[error("send {}: it changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// A file that is to be sent, open. Plain data; shared between threads.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    file: File,
    pub(super) info: FileInfo,
}

/// What the reader found.
#[derive(Debug)]
pub(super) enum Read {
    Block(BlockId, Vec<u8>),
    Digest(usize, Digest),
    Failed(SourceError),
}

/// The thread that reads. Ends when it is done, or dropped.
#[derive(Debug)]
pub(super) struct Reader {
    reads: Receiver<Read>,
    free: Sender<Vec<u8>>,
}

impl Source {
    /// Step 1: the files of an order, no two of one name.
    pub(super) fn open_all(paths: &[PathBuf]) -> Result<Vec<Arc<Source>>, SourceError> {
        let mut sources: Vec<Arc<Source>> = Vec::with_capacity(paths.len());
        for path in paths {
            let source = Source::open(path)?;
            if let Some(other) = sources.iter().find(|other| other.info.name == source.info.name) {
                return Err(SourceError::SameName { path: path.clone(), other: other.path.clone() });
            }
            sources.push(Arc::new(source));
        }
        Ok(sources)
    }

    fn open(path: &Path) -> Result<Source, SourceError> {
        let failed = |source| SourceError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(SourceError::NotAFile { path: path.to_owned() });
        }
        let name = path.file_name().unwrap_or_default();
        let name = FileName::new(name.as_encoded_bytes());
        let name = name.map_err(|source| SourceError::Name { path: path.to_owned(), source })?;
        // Blocks are read once, in order: the kernel reads ahead more.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let info = FileInfo { name, size: meta.len(), modified: modified(&meta) };
        Ok(Source { path: path.to_owned(), file, info })
    }

    fn read(&self, at: u64, block: &mut [u8]) -> Result<(), SourceError> {
        self.file.read_exact_at(block, at).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => SourceError::Changed { path: self.path.clone() },
            _ => SourceError::Read { path: self.path.clone(), source },
        })
    }

    /// Step 3.
    fn check(&self) -> Result<(), SourceError> {
        let meta = self.file.metadata();
        let meta = meta.map_err(|source| SourceError::Read { path: self.path.clone(), source })?;
        let same = meta.len() == self.info.size && modified(&meta) == self.info.modified;
        if same { Ok(()) } else { Err(SourceError::Changed { path: self.path.clone() }) }
    }
}

/// Nanoseconds since 1970.
fn modified(meta: &std::fs::Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

impl Reader {
    /// Step 2: `have` says what is there of each file; nothing is read of one that is not taken.
    pub(super) fn start(
        sources: Vec<Arc<Source>>,
        layout: Layout,
        have: Vec<Option<Have>>,
        wake: Wake,
    ) -> io::Result<Reader> {
        let (found, reads) = sync_channel(BETWEEN);
        let (free, freed) = channel();
        let work = Work { sources, layout, have, found, freed, wake };
        thread::Builder::new().name("bulk-read".to_owned()).spawn(move || work.run())?;
        Ok(Reader { reads, free })
    }

    /// The next thing it found, if there is one now.
    pub(super) fn next(&self) -> Option<Read> {
        self.reads.try_recv().ok()
    }

    /// Memory for the next block.
    pub(super) fn give_back(&self, memory: Vec<u8>) {
        // One that is done needs none.
        let _ = self.free.send(memory);
    }
}

/// What the thread works with.
struct Work {
    sources: Vec<Arc<Source>>,
    layout: Layout,
    have: Vec<Option<Have>>,
    found: SyncSender<Read>,
    freed: Receiver<Vec<u8>>,
    wake: Wake,
}

/// Nobody wants to know any more.
struct Dropped;

impl Work {
    fn run(self) {
        // Whoever dropped the other end has ended.
        let _ = self.all();
    }

    fn all(&self) -> Result<(), Dropped> {
        let mut hashes: Vec<Vec<Digest>> =
            (0..self.layout.files()).map(|file| vec![Digest::default(); self.layout.blocks_of(file).len()]).collect();
        for (file, hashes) in hashes.iter_mut().enumerate() {
            self.pass(file, hashes, false)?;
            self.tell_digest(file, hashes)?;
        }
        for (file, hashes) in hashes.iter_mut().enumerate() {
            if hashes.iter().any(Digest::is_missing) {
                self.pass(file, hashes, true)?;
                self.tell_digest(file, hashes)?;
            }
        }
        Ok(())
    }

    /// Goes through a file's blocks: those that are there, or those that are not, which are handed on.
    fn pass(&self, file: usize, hashes: &mut [Digest], there: bool) -> Result<(), Dropped> {
        let Some(have) = self.have.get(file).and_then(Option::as_ref) else { return Ok(()) };
        for (block, hash) in self.layout.blocks_of(file).zip(hashes) {
            let Some((_, at)) = self.layout.place(BlockId(block)) else { continue };
            if have.has((at / BLOCK_LEN as u64) as u32) != there {
                continue;
            }
            let mut bytes = self.freed.try_recv().unwrap_or_default();
            bytes.resize(self.layout.block_len(BlockId(block)), 0);
            if let Err(error) = self.sources[file].read(at, &mut bytes) {
                return self.tell(Read::Failed(error));
            }
            *hash = Digest::of_block(&bytes);
            if !there {
                self.tell(Read::Block(BlockId(block), bytes))?;
            }
        }
        Ok(())
    }

    /// Tells a file's digest, if all of it was read, and it is what was offered.
    fn tell_digest(&self, file: usize, hashes: &[Digest]) -> Result<(), Dropped> {
        let taken = self.have.get(file).is_some_and(Option::is_some);
        if !taken || hashes.iter().any(Digest::is_missing) {
            return Ok(());
        }
        match self.sources[file].check() {
            Ok(()) => self.tell(Read::Digest(file, Digest::of_file(hashes))),
            Err(error) => self.tell(Read::Failed(error)),
        }
    }

    fn tell(&self, read: Read) -> Result<(), Dropped> {
        self.found.send(read).map_err(|_| Dropped)?;
        self.wake.wake();
        Ok(())
    }
}
