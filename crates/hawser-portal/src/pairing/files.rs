//! Files that only their owner reads, there as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Their modes: they hold keys, or stand beside some.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Why a file was not written or removed. Owned data.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}", path.display())]
pub struct FileError {
    operation: &'static str,
    path: PathBuf,
    #[source]
    cause: io::Error,
}

/// What the system said of this path.
pub(super) fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |cause| FileError { operation, path: path.to_owned(), cause }
}

/// Writes `text` to `path`, in the place of what is there: whoever reads meanwhile finds the one or the other. It
/// outlasts a power cut from then on.
///
/// # Errors
/// [`FileError`] where the system refuses; then nothing has changed, or all where only a power cut may undo it.
pub fn write_private(path: &Path, text: &str) -> Result<(), FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // No configuration is read by such a name.
    name.push(".new");
    let beside = path.with_file_name(name);
    let write = || -> io::Result<()> {
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync_folder(path)
    };
    write().map_err(|cause| {
        let _ = fs::remove_file(&beside);
        failed("write", path)(cause)
    })
}

/// The name is on the disk, too. Not every filesystem can do that: one over a network says so.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Makes a folder, and those above it. Whether it was not there.
///
/// # Errors
/// [`FileError`] where the system refuses.
pub fn make_folder(path: &Path) -> Result<bool, FileError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(false);
    }
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
    made.map(|()| true).map_err(failed("make folder", path))
}

/// Removes a file; whether it was there.
///
/// # Errors
/// [`FileError`] where the system refuses.
pub fn remove_file(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).map_err(failed("remove", path)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.toml");
        for text in ["first", "second"] {
            write_private(&path, text).expect("it is written");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, FILE_MODE);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left beside it");
        let error = write_private(&folder.path().join("no/a.toml"), "").expect_err("no folder");
        assert!(error.to_string().starts_with("write "), "{error}");
        assert!(remove_file(&path).expect("it is removed") && !remove_file(&path).expect("it is gone"));
    }
}
