//! Text files that a user names: read whole, and no more than a configuration can be.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::LoadError;

/// No configuration is larger, in bytes: 4,000 peers take 1 MB.
pub const TEXT_LIMIT: u64 = 8 << 20;

/// Reads a regular file of at most [`TEXT_LIMIT`] bytes. It waits for nobody: a FIFO without a writer is refused at once, as are devices.
///
/// # Errors
/// [`LoadError::Read`].
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    bounded(path, TEXT_LIMIT).map_err(|source| LoadError::Read { path: path.to_owned(), source })
}

fn bounded(path: &Path, limit: u64) -> io::Result<String> {
    // Else the call would wait for a FIFO's other end.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    // A file may grow while it is read.
    if file.take(limit + 1).read_to_string(&mut text)? as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {} MiB", limit >> 20)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_some_size_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        std::fs::write(&path, "1234").expect("a file");
        assert_eq!(bounded(&path, 4).expect("it fits"), "1234");
        assert_eq!(bounded(&path, 3).expect_err("it does not").kind(), io::ErrorKind::FileTooLarge);
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a fifo");
        for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
            let kind = bounded(path, 4).expect_err("no regular file").kind();
            assert!(matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory), "{path:?}: {kind:?}");
        }
    }
}
