//! Where files go, and which of them got their names in this run: a sender that did not hear of it, since its paths
//! were cut just then, offers them once more.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{FileInfo, MOST_FILES};
use hawser_bulk::receiver::MOST_SESSIONS;
use rustix::fs::{AtFlags, Stat, statat};

/// Files that are remembered, the newest ones: as many as all sessions offer.
const MOST: usize = MOST_FILES * MOST_SESSIONS;

/// Which file it is, and as it was when it got its name: inode, seconds and nanoseconds of its last change. A plain
/// value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Version([i128; 3]);

/// Where files go. Nothing is finished at first; the writers of all sessions share it.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) fd: OwnedFd,
    /// Files of the same name are replaced.
    pub(super) force: bool,
    finished: Mutex<VecDeque<(FileInfo, Version, Digest)>>,
}

impl Version {
    pub(super) fn of(file: &Stat) -> Version {
        Version([file.st_ino.into(), file.st_mtime.into(), file.st_mtime_nsec.into()])
    }
}

impl Folder {
    pub(super) fn new(fd: OwnedFd, force: bool) -> Folder {
        Folder { fd, force, finished: Mutex::default() }
    }

    /// A file got its name.
    pub(super) fn finished(&self, info: FileInfo, version: Version, digest: Digest) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.len() == MOST {
            finished.pop_front();
        }
        finished.push_back((info, version, digest));
    }

    /// Forgets a file that got its name: another one is offered as it.
    pub(super) fn forget(&self, info: &FileInfo) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.retain(|(known, ..)| known != info);
    }

    /// The digest of a file that got its name in this run, and has not changed since.
    pub(super) fn digest_of(&self, info: &FileInfo) -> Option<Digest> {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, version, digest) = finished.iter().rfind(|(known, ..)| known == info)?;
        let there = statat(&self.fd, info.name.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (Version::of(&there) == *version).then_some(*digest)
    }
}
