//! Journals of namespaces that are no more: those of earlier boots are removed, whatever they say.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rustix::fs::FlockOperation;

use super::{JOURNAL, JOURNAL_ANEW, owner::Owner, read};

/// Removes the journals beside `own` that are of an earlier boot: nothing of what they set is left.
/// Those of this boot belong to namespaces that may live, and are left alone. What cannot be removed stays.
pub(super) fn sweep(own: &Path, now: &Owner) {
    let Some(siblings) = own.parent().and_then(|instance| fs::read_dir(instance).ok()) else { return };
    for directory in siblings.flatten().map(|entry| entry.path()).filter(|path| path != own) {
        match remove_if_stale(&directory, now) {
            Ok(true) => tracing::info!(path = %directory.display(), "removed a journal from before the last boot"),
            Ok(false) => {}
            Err(error) => tracing::debug!(path = %directory.display(), %error, "journal of another namespace stays"),
        }
    }
}

fn remove_if_stale(directory: &Path, now: &Owner) -> io::Result<bool> {
    let stale = |contents: super::Contents| contents.owner.is_some_and(|owner| owner.boot != now.boot);
    if !directory.is_dir() || !read(directory).is_ok_and(stale) {
        return Ok(false);
    }
    // Somebody may be taking it at this moment, in a namespace that got its number in this boot.
    let lock = File::open(directory)?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    if !read(directory).is_ok_and(stale) {
        return Ok(false);
    }
    for name in [JOURNAL_ANEW, JOURNAL] {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(directory)?;
    Ok(true)
}
