//! What a command wrote, and takes back where it did not come to its end.

use std::path::{Path, PathBuf};

use hawser_portal::pairing::{make_folder, remove_file, write_private};

use crate::failure::Failure;

/// What was written so far. Nothing at first.
#[derive(Debug, Default)]
pub struct Written {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Written {
    /// Makes a folder that is not there.
    pub fn folder(&mut self, path: &Path) -> Result<(), Failure> {
        if make_folder(path).map_err(Failure::failed)? {
            self.folders.push(path.to_owned());
        }
        Ok(())
    }

    /// Writes a file that was not there.
    pub fn file(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        write_private(path, text).map_err(Failure::failed)?;
        self.files.push(path.to_owned());
        Ok(())
    }

    /// Takes all of it back, a folder only where this made it; in these, `state` is what a portal kept meanwhile.
    pub fn undo(self, state: &Path) -> Result<(), Failure> {
        for file in self.files.iter().rev() {
            remove_file(file).map_err(Failure::failed)?;
        }
        if self.folders.iter().any(|folder| state.starts_with(std::path::absolute(folder).unwrap_or_default())) {
            let _ = std::fs::remove_dir(state);
        }
        for folder in self.folders.iter().rev() {
            // Somebody may have put something there.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
}
