//! The key log: the file that `[portal] keylog` names.
//!
//! 1. It is opened before privileges are given up, and refused if others can get at it. 2. The log warns of it.
//! 3. A line is appended for each set of keys, at once, so that a capture can be read while the portal runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hawser_core::handshake::secrets::KeyLogEntry;

/// The owner's alone.
const MODE: u32 = 0o600;
/// Any permission of anybody else.
const OTHERS: u32 = 0o077;

/// Why keys cannot be written where they should.
#[derive(Debug, thiserror::Error)]
pub enum KeyLogFileError {
    /// The file cannot be opened.
    #[error("open key log {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else than a file.
    #[error("open key log {}: not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Others than its owner can get at it.
    #[error("open key log {}: others can get at it (mode {mode:04o})", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl KeyLogFileError {
    /// What to do about it, where something is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!("chmod 600 {}", path.display())),
            Self::NotAFile(_) | Self::Open { .. } => Some("name another file: [portal] keylog".to_owned()),
        }
    }
}

/// An open key log. Appends to what is there; the control thread owns it.
#[derive(Debug)]
pub struct KeyLog {
    file: File,
    /// The last line was not written: told once.
    failing: bool,
}

impl KeyLog {
    /// Steps 1 and 2.
    ///
    /// # Errors
    /// [`KeyLogFileError`].
    pub fn open(path: &Path) -> Result<Self, KeyLogFileError> {
        let failed = |source| KeyLogFileError::Open { path: path.to_owned(), source };
        // Another's pipe or device must not hold the portal up (O_NONBLOCK), nor a link lead elsewhere (O_NOFOLLOW).
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let opened = OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(flags).open(path);
        let file = opened.map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(KeyLogFileError::NotAFile(path.to_owned()));
        }
        let mode = metadata.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(KeyLogFileError::Exposed { path: path.to_owned(), mode });
        }
        tracing::warn!(
            keylog = %path.display(),
            "KEYS ARE WRITTEN TO A FILE: whoever has it can read all traffic of this portal; for debugging only"
        );
        Ok(Self { file, failing: false })
    }

    /// Step 3: one write for each line, so that a reader sees none in part.
    pub fn write(&mut self, entry: KeyLogEntry) {
        let written = self.file.write_all(entry.line().as_bytes());
        if let Err(error) = &written
            && !self.failing
        {
            tracing::warn!(%error, "key log not written");
        }
        self.failing = written.is_err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const ZEROS: &str = "00000000000000000000000000000000";

    fn entry(new: &str) -> KeyLogEntry {
        let secrets = format!("{ZEROS} 000000000000000000000000 {ZEROS}{ZEROS}");
        let line = format!("hawser-keys-1 home {new} aes-128-gcm encrypt sent {secrets} received {secrets}");
        line.parse().expect("a line of a key log")
    }

    #[test]
    fn a_key_log_is_its_owners_alone_and_grows_by_a_line_for_each_set_of_keys() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        KeyLog::open(&path).expect("a new file").write(entry("new"));
        KeyLog::open(&path).expect("the same again").write(entry("next"));
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, MODE);
        let text = fs::read_to_string(&path).expect("it can be read");
        assert_eq!(text, format!("{}{}", *entry("new").line(), *entry("next").line()));
    }

    #[test]
    fn a_file_that_others_can_get_at_and_what_is_no_file_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its mode");
        let error = KeyLog::open(&path).expect_err("refused");
        assert!(error.to_string().ends_with("keys: others can get at it (mode 0640)"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.starts_with("chmod 600 ")));
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a link");
        for elsewhere in [&link, folder.path(), Path::new("/dev/null"), &folder.path().join("none/keys")] {
            let error = KeyLog::open(elsewhere).expect_err("refused");
            assert!(error.to_string().starts_with("open key log "), "{error}");
        }
    }
}
