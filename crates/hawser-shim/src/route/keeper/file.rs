//! The map's file: read again when it changed, and rests.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hawser_config::LoadError;

use crate::config::{Route, read_map};

/// What tells one version of a file from another: which file it is, its length, and when it was written and changed, in
/// nanoseconds. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    file: (u64, u64),
    length: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// A map that was read. Starts as it was then; for one thread.
#[derive(Debug)]
pub(super) struct MapFile {
    path: PathBuf,
    dns: bool,
    /// The version that was read last; none where there was no file.
    read: Option<Stamp>,
    /// The version that was looked at last.
    seen: Option<Stamp>,
}

impl MapFile {
    /// Reads it for the first time.
    pub(super) fn open(path: PathBuf, dns: bool) -> Result<(MapFile, Vec<Route>), LoadError> {
        // Before it is read: what is written meanwhile is seen the next time.
        let read = stamp(&path);
        let routes = read_map(&path, dns)?;
        Ok((MapFile { path, dns, read, seen: read }, routes))
    }

    /// Its routes, if it changed and is right, once two looks in a row and one after it was read found the same version:
    /// a file that is written in its place is empty first, and an empty map is a right one. A fault is told once, for
    /// each version of the file.
    pub(super) fn changed(&mut self) -> Option<Vec<Route>> {
        let now = stamp(&self.path);
        let rests = std::mem::replace(&mut self.seen, now) == now;
        if !rests || now == self.read {
            return None;
        }
        let routes = read_map(&self.path, self.dns);
        if stamp(&self.path) != now {
            return None;
        }
        self.read = now;
        routes.inspect_err(tell).ok()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let stamp = |data: Metadata| Stamp {
        file: (data.dev(), data.ino()),
        length: data.len(),
        written: (data.mtime(), data.mtime_nsec()),
        changed: (data.ctime(), data.ctime_nsec()),
    };
    std::fs::metadata(path).ok().map(stamp)
}

fn tell(error: &LoadError) {
    if let LoadError::Faulty { errors, .. } = error {
        errors.iter().for_each(|fault| tracing::error!(hint = fault.hint, "{fault}"));
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, cause, "map not read again, the last good one stays in force");
}
