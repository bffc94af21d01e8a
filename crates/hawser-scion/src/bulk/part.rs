//! A file that is not whole yet: `NAME.part` and its map `NAME.part.map` (README.md of hawser-bulk, "The receiver").
//!
//! 1. [`Part::open`]: the name is free, nobody else writes it, and what an earlier transfer left is checked.
//! 2. [`Part::write`]: a block, then its hash. 3. [`Part::finish`]: the digest, then the name, which is never another
//!    file's.
//!
//! Everything is relative to the folder's descriptor, and no symbolic link is followed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};

use hawser_bulk::digest::{DIGEST_LEN, Digest};
use hawser_bulk::layout::{BLOCK_LEN, FileInfo, MAP, PART};
use hawser_bulk::wire::{Have, Verdict};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::folder::Version;

/// How a map begins; with size and time of change these are 32 bytes.
const MAGIC: &[u8; 16] = b"hawser-part-1\n\0\0";
/// Bytes before its hashes.
const HEAD: usize = MAGIC.len() + 8 + 8;
/// Times that the map may be another's that goes just now.
const TRIES: usize = 5;

/// Why a file is not taken, or not finished.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// There is one of this name.
    #[error("a file of this name exists")]
    Exists,
    /// Another transfer writes it.
    #[error("another transfer writes it")]
    Busy,
    /// The disk has less than it needs.
    #[error("it needs {needs} bytes more, and the disk has {free}")]
    Space {
        /// Bytes that are missing.
        needs: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// It is not what was sent.
    #[error("its digest is wrong: it is not what was sent")]
    Digest,
    /// One of the same name, size and time of change was finished before, with another digest: offered once more, this
    /// one is begun anew.
    #[error("it is not what was finished before with the same name, size and time: it is begun anew")]
    Another,
    /// The transfer ended before it was known what is there.
    #[error("the transfer ended")]
    Stopped,
    /// The system refused.
    #[error("{step}")]
    System {
        /// What was done.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// A file that is not whole yet. Locked while it is open; one thread owns it.
#[derive(Debug)]
pub(super) struct Part {
    name: String,
    force: bool,
    data: File,
    map: File,
    hashes: Vec<Digest>,
    missing: usize,
}

impl PartError {
    /// As the sender is told.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            PartError::Exists => Verdict::Exists,
            PartError::Busy | PartError::Another => Verdict::Busy,
            PartError::Space { .. } => Verdict::Space,
            PartError::Digest => Verdict::Digest,
            PartError::Stopped => Verdict::Stopped,
            PartError::System { source, .. } if source.kind() == io::ErrorKind::StorageFull => Verdict::Space,
            PartError::System { .. } => Verdict::Failed,
        }
    }
}

/// Names the step that failed.
fn at<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> PartError {
    move |error| PartError::System { step, source: error.into() }
}

impl Part {
    /// Step 1: what there is of a file; `force`: another of its name may go. `stop` ends it, since gigabytes take their
    /// time.
    pub(super) fn open(folder: &OwnedFd, info: &FileInfo, force: bool, stop: &AtomicBool) -> Result<Part, PartError> {
        let name = info.name.as_str().to_owned();
        match rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) if !force => return Err(PartError::Exists),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(at("look for the file")(error)),
        }
        // What can never fit is refused before anything is made for it.
        let data = format!("{name}{PART}");
        let there =
            rustix::fs::statat(folder, &data, AtFlags::SYMLINK_NOFOLLOW).map_or(0, |there| there.st_size as u64);
        check_space(folder, info.size.saturating_sub(there))?;
        let map = locked(folder, &format!("{name}{MAP}"))?;
        let data = open(folder, &data, Mode::from_raw_mode(0o666))?;
        let blocks = info.size.div_ceil(BLOCK_LEN as u64) as usize;
        let hashes = match read_map(&map, info, blocks)? {
            Some(hashes) if data.metadata().map_err(at("look at the part"))?.len() == info.size => hashes,
            _ => begin(&map, &data, info, blocks)?,
        };
        let mut part = Part { name, force, data, map, hashes, missing: 0 };
        part.check(info.size, stop)?;
        // The last block may be shorter.
        check_space(folder, (part.missing as u64 * BLOCK_LEN as u64).min(info.size))?;
        Ok(part)
    }

    /// Step 1: blocks whose hash is not that of what is there are missing.
    fn check(&mut self, size: u64, stop: &AtomicBool) -> Result<(), PartError> {
        let mut block = vec![0; BLOCK_LEN];
        for number in 0..self.hashes.len() {
            if !self.hashes[number].is_missing() {
                if stop.load(Ordering::Relaxed) {
                    return Err(PartError::Stopped);
                }
                let start = number as u64 * BLOCK_LEN as u64;
                let len = (size - start).min(BLOCK_LEN as u64) as usize;
                self.data.read_exact_at(&mut block[..len], start).map_err(at("read the part"))?;
                if Digest::of_block(&block[..len]) != self.hashes[number] {
                    self.hashes[number] = Digest::default();
                }
            }
        }
        self.missing = self.hashes.iter().filter(|hash| hash.is_missing()).count();
        Ok(())
    }

    /// What is there.
    pub(super) fn have(&self) -> Have {
        Have::of(self.hashes.iter().map(|hash| !hash.is_missing()))
    }

    /// Whether all blocks are there.
    pub(super) fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Step 2: a block of the file, by its number from 0.
    pub(super) fn write(&mut self, number: usize, block: &[u8]) -> Result<(), PartError> {
        let Some(hash) = self.hashes.get_mut(number) else { return Ok(()) };
        self.missing -= usize::from(hash.is_missing());
        *hash = Digest::of_block(block);
        self.data.write_all_at(block, number as u64 * BLOCK_LEN as u64).map_err(at("write the part"))?;
        let place = (HEAD + number * DIGEST_LEN) as u64;
        self.map.write_all_at(&hash.0, place).map_err(at("write the map"))
    }

    /// Step 3: the file gets its name, and is told apart from others by what is returned. One with a wrong digest goes,
    /// since nobody knows which block is wrong.
    pub(super) fn finish(self, folder: &OwnedFd, digest: &Digest) -> Result<Version, PartError> {
        let (part, map) = (format!("{}{PART}", self.name), format!("{}{MAP}", self.name));
        let remove = |name: &str| rustix::fs::unlinkat(folder, name, AtFlags::empty());
        if Digest::of_file(&self.hashes) != *digest {
            let gone = remove(&part).and_then(|()| remove(&map));
            return Err(gone.map_or_else(at("remove the part"), |()| PartError::Digest));
        }
        self.data.sync_data().map_err(at("sync the part"))?;
        let flags = if self.force { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(folder, &part, folder, &self.name, flags) {
            Err(Errno::EXIST) => return Err(PartError::Exists),
            // A file system without RENAME_NOREPLACE: a link does not replace either.
            Err(Errno::INVAL) if !self.force => {
                match rustix::fs::linkat(folder, &part, folder, &self.name, AtFlags::empty()) {
                    Err(Errno::EXIST) => return Err(PartError::Exists),
                    linked => linked.and_then(|()| remove(&part)).map_err(at("name the file"))?,
                }
            }
            named => named.map_err(at("name the file"))?,
        }
        remove(&map).map_err(at("remove the map"))?;
        // The name is to last as the data does.
        rustix::fs::fsync(folder.as_fd()).map_err(at("sync the folder"))?;
        rustix::fs::fstat(&self.data).map(|file| Version::of(&file)).map_err(at("look at the file"))
    }
}

fn check_space(folder: &OwnedFd, needs: u64) -> Result<(), PartError> {
    let space = rustix::fs::fstatvfs(folder).map_err(at("ask for free space"))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if needs > free { Err(PartError::Space { needs, free }) } else { Ok(()) }
}

/// A regular file of the folder, made if there is none.
fn open(folder: &OwnedFd, name: &str, mode: Mode) -> Result<File, PartError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::openat(folder, name, flags, mode).map_err(at("open the part"))?);
    let meta = file.metadata().map_err(at("look at the part"))?;
    if !meta.is_file() {
        return Err(at("open the part")(io::Error::other("it is no regular file")));
    }
    Ok(file)
}

/// The map, which nobody else has.
fn locked(folder: &OwnedFd, name: &str) -> Result<File, PartError> {
    for _ in 0..TRIES {
        let map = open(folder, name, Mode::from_raw_mode(0o600))?;
        match rustix::fs::flock(&map, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(PartError::Busy),
            locked => locked.map_err(at("lock the map"))?,
        }
        // Whoever had it may have removed it before the lock was free.
        let own = map.metadata().map_err(at("look at the map"))?;
        if rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|there| there.st_ino == own.ino()) {
            return Ok(map);
        }
    }
    Err(PartError::Busy)
}

fn head(info: &FileInfo) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..16].copy_from_slice(MAGIC);
    head[16..24].copy_from_slice(&info.size.to_be_bytes());
    head[24..].copy_from_slice(&info.modified.to_be_bytes());
    head
}

/// The hashes of a map that is this file's; none of another one's.
fn read_map(map: &File, info: &FileInfo, blocks: usize) -> Result<Option<Vec<Digest>>, PartError> {
    let len = HEAD + blocks * DIGEST_LEN;
    if map.metadata().map_err(at("look at the map"))?.len() != len as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; len];
    map.read_exact_at(&mut bytes, 0).map_err(at("read the map"))?;
    let (first, hashes) = bytes.split_at(HEAD);
    let hashes = hashes.as_chunks::<DIGEST_LEN>().0.iter().map(|hash| Digest(*hash)).collect();
    Ok((first == head(info)).then_some(hashes))
}

/// Begins anew: nothing is there.
fn begin(map: &File, data: &File, info: &FileInfo, blocks: usize) -> Result<Vec<Digest>, PartError> {
    map.set_len(0).and_then(|()| data.set_len(0)).map_err(at("empty the part"))?;
    data.set_len(info.size).map_err(at("make room in the part"))?;
    map.set_len((HEAD + blocks * DIGEST_LEN) as u64).map_err(at("make room in the map"))?;
    map.write_all_at(&head(info), 0).map_err(at("write the map"))?;
    Ok(vec![Digest::default(); blocks])
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
