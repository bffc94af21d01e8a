//! The journal of what is set in the system, one per instance and network namespace.
//!
//! 1. [`Journal::open`] makes the directory and locks it: one process at a time.
//! 2. It reads what a predecessor left, and refuses if that one still runs.
//! 3. It sweeps away what earlier boots left beside it, of namespaces that cannot be this one.
//! 4. It writes the journal anew under its own name, with the leftovers still in it.
//! 5. [`Journal::set`] appends a line before the system is touched, [`Journal::undone`] one after it was undone.
//! 6. Once most lines are of the past the journal is written anew; an empty one vanishes with its owner.

mod error;
mod format;
mod netns;
mod owner;
mod sweep;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::FlockOperation;

pub use error::{InstanceName, JournalError};
pub(super) use format::{Before, Entry};
use format::{Contents, owner_line, parse, set_line, undone_line};
pub use netns::Netns;
use owner::Owner;

use super::{
    change::{Change, Place},
    features::Feature,
};

/// File name of a journal.
const JOURNAL: &str = "journal";
/// File name of a journal being written anew; one of a killed process is overwritten.
const JOURNAL_ANEW: &str = "journal.new";
/// Only root has business here.
const DIRECTORY_MODE: u32 = 0o700;
/// Only root has business here.
const FILE_MODE: u32 = 0o600;
/// Lines of the past that are tolerated, beside one for each entry, so that an entry is written twice at most on the
/// whole, however many there are: a journal of this many short lines is a few KiB.
const STALE_LINES: usize = 64;
/// Tries to lock a directory that vanishes with its former owner at the same moment, or whose owner was killed between
/// fork and exec.
const LOCK_TRIES: usize = 16;
/// Wait between two tries: a fork of a killed owner holds its lock for a few milliseconds at most.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// An open, locked journal. A new one is empty but for its owner's name.
/// Used by one thread; the lock keeps other processes out, and ends with this one however it ends.
#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
    owner: Owner,
    file: File,
    /// By their numbers: oldest first.
    entries: BTreeMap<u64, Entry>,
    /// Which of them is about what.
    places: HashMap<Place, u64>,
    lines: usize,
    next_id: u64,
    unreadable: Vec<usize>,
    lock: File,
}

impl Journal {
    /// Takes the journal of `instance` below `directory`, in the calling thread's network namespace.
    pub fn open(directory: &Path, instance: &InstanceName) -> Result<Self, JournalError> {
        let owner = Owner::this_process().map_err(|source| JournalError::io("identify owner of", directory, source))?;
        let directory = directory.join(instance.as_str()).join(directory_name(&owner));
        let lock = lock(&directory, &owner)?;
        let contents = inherit(&directory, &owner)?;
        sweep::sweep(&directory, &owner);
        let next_id = contents.entries.iter().map(|entry| entry.id + 1).max().unwrap_or(1);
        let file = write_anew(&directory, &owner, &contents.entries)?;
        let (entries, places, lines, unreadable) =
            (BTreeMap::new(), HashMap::new(), contents.entries.len(), contents.unreadable);
        let mut journal = Self { directory, owner, file, entries, places, lines, next_id, unreadable, lock };
        contents.entries.into_iter().for_each(|entry| journal.hold(entry));
        Ok(journal)
    }

    /// What is to be undone, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> + ExactSizeIterator {
        self.entries.values()
    }

    /// What is held of the same place as `change`.
    pub fn held(&self, change: &Change) -> Option<&Entry> {
        self.entries.get(self.places.get(&change.place())?)
    }

    /// What the kernel lacks to tell this namespace from an earlier one.
    pub fn lacks(&self) -> Option<Feature> {
        (!self.owner.netns.is_unique()).then_some(Feature::NetnsCookie)
    }

    /// Lines of a predecessor that could not be read; what they announced stays.
    pub fn unreadable(&self) -> &[usize] {
        &self.unreadable
    }

    /// An entry for `change` on the interface of that name, in the place of `instead` if given; to be written down.
    pub fn entry(
        &mut self,
        change: Change,
        interface: Option<String>,
        before: Before,
        instead: Option<&Entry>,
    ) -> Entry {
        let (id, earlier) = instead.map_or((self.next_id, None), |old| (old.id, Some(old.change.clone())));
        self.next_id = self.next_id.max(id + 1);
        Entry { id, change, interface, before, earlier }
    }

    /// Writes down that these are about to be set; also the way back to one that was replaced in vain.
    pub fn set(&mut self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.append(entries.iter().map(set_line))?;
        entries.into_iter().for_each(|entry| self.hold(entry));
        self.compact()
    }

    /// Writes down that the entries with these numbers are undone.
    pub fn undone(&mut self, ids: &[u64]) -> Result<(), JournalError> {
        self.append(ids.iter().copied().map(undone_line))?;
        for id in ids {
            let Some(entry) = self.entries.remove(id) else { continue };
            let place = entry.change.place();
            if self.places.get(&place) == Some(id) {
                self.places.remove(&place);
            }
        }
        self.compact()
    }

    fn hold(&mut self, entry: Entry) {
        self.places.insert(entry.change.place(), entry.id);
        self.entries.insert(entry.id, entry);
    }

    /// All of these lines, with one write, or none.
    fn append(&mut self, lines: impl ExactSizeIterator<Item = io::Result<Vec<u8>>>) -> Result<(), JournalError> {
        let fail = |source| JournalError::io("append to", &self.directory.join(JOURNAL), source);
        let count = lines.len();
        let bytes = lines.collect::<io::Result<Vec<_>>>().map_err(fail)?.concat();
        let end = self.file.metadata().map_err(fail)?.len();
        if let Err(error) = self.file.write_all(&bytes) {
            // Half a line must not spoil the next one; if even this fails the reader reports one unreadable line.
            let _ = self.file.set_len(end);
            return Err(fail(error));
        }
        self.lines += count;
        Ok(())
    }

    fn compact(&mut self) -> Result<(), JournalError> {
        if self.lines >= 2 * self.entries.len() + STALE_LINES {
            self.file = write_anew(&self.directory, &self.owner, self.entries.values())?;
            self.lines = self.entries.len();
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.entries.is_empty() {
            // Best effort on tmpfs: an empty journal that stays does no harm.
            let _ = fs::remove_file(self.directory.join(JOURNAL));
            let _ = fs::remove_dir(&self.directory);
        }
        // A child process between fork and exec has the descriptor too: closing ours would not unlock.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Where the journal of a namespace lies: by its cookie, or by inode and boot, which together say less.
fn directory_name(owner: &Owner) -> String {
    match owner.netns {
        Netns::Cookie(_) => format!("netns-{}", owner.netns),
        Netns::Inode(_) => format!("netns-{}-{}", owner.netns, owner.boot),
    }
}

/// Makes the directory and locks it. Its former owner may remove it in between: then again.
fn lock(directory: &Path, now: &Owner) -> Result<File, JournalError> {
    let fail = |source| JournalError::io("lock", directory, source);
    let mut pid = None;
    for _ in 0..LOCK_TRIES {
        make_directory(directory).map_err(fail)?;
        let file = match File::open(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(fail)?,
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let held = file.metadata().map_err(fail)?.ino();
                if fs::metadata(directory).is_ok_and(|named| named.ino() == held) {
                    return Ok(file);
                }
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let owner = read(directory).unwrap_or_default().owner;
                pid = owner.as_ref().map(|owner| owner.pid);
                if owner.is_some_and(|owner| owner.is_alive(now).unwrap_or(true)) {
                    break;
                }
                thread::sleep(LOCK_PAUSE);
            }
            Err(error) => return Err(fail(error.into())),
        }
    }
    Err(JournalError::InUse { directory: directory.to_owned(), pid })
}

/// Makes the journal's own directory for root alone; those above hold the socket too, and are for all to read.
fn make_directory(directory: &Path) -> io::Result<()> {
    directory.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// What a predecessor left to be undone, unless it still runs or belongs to another namespace.
fn inherit(directory: &Path, now: &Owner) -> Result<Contents, JournalError> {
    let path = directory.join(JOURNAL);
    let mut contents = read(directory)?;
    let Some(owner) = &contents.owner else {
        if contents.entries.is_empty() && contents.unreadable.is_empty() {
            return Ok(contents);
        }
        return Err(JournalError::NoOwner { path });
    };
    if owner.is_alive(now).map_err(|source| JournalError::io("find owner of", &path, source))? && owner.pid != now.pid {
        return Err(JournalError::InUse { directory: directory.to_owned(), pid: Some(owner.pid) });
    }
    if owner.boot != now.boot {
        tracing::info!(path = %path.display(), "journal is from before the last boot, nothing of it is left");
        contents.entries.clear();
    } else if owner.netns != now.netns {
        return Err(JournalError::OtherNamespace { path, theirs: owner.netns, ours: now.netns });
    }
    Ok(contents)
}

fn read(directory: &Path) -> Result<Contents, JournalError> {
    let path = directory.join(JOURNAL);
    match fs::read(&path) {
        Ok(bytes) => parse(&bytes).map_err(|format| JournalError::Format { path, format }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Contents::default()),
        Err(source) => Err(JournalError::io("read", &path, source)),
    }
}

/// Writes a whole journal beside the old one and puts it in its place at once.
fn write_anew<'e>(
    directory: &Path,
    owner: &Owner,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Result<File, JournalError> {
    let (anew, path) = (directory.join(JOURNAL_ANEW), directory.join(JOURNAL));
    let write = || {
        let mut bytes = owner_line(owner)?;
        for entry in entries {
            bytes.extend(set_line(entry)?);
        }
        match fs::remove_file(&anew) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(&anew)?;
        file.write_all(&bytes)?;
        fs::rename(&anew, &path)?;
        Ok(file)
    };
    write().map_err(|source| JournalError::io("write", &path, source))
}
