//! From files to a configuration: [`read`] the text, that of the peers beside it (`peers.d/NAME.toml`), and parse them.

use std::io;
use std::path::{Path, PathBuf};

use super::peers::{self, PeerFile};
use super::{Config, ConfigError, KeyFileError, Peer, read_text};

/// Why a configuration was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("read configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has faults.
    #[error("read configuration {}: {} to correct", path.display(), count(errors.len()))]
    Faulty {
        /// The file.
        path: PathBuf,
        /// Its text, to show the faults in.
        text: String,
        /// The faults, in the order of the file; at least one.
        errors: Vec<ConfigError>,
    },
    /// A key file could not be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

fn count(errors: usize) -> String {
    match errors {
        1 => "1 error".to_owned(),
        n => format!("{n} errors"),
    }
}

/// Reads the configuration at `path`, without its keys. Gives its text too.
///
/// # Errors
/// [`LoadError::Read`] and [`LoadError::Faulty`].
pub fn read(path: &Path) -> Result<(Config, String), LoadError> {
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let files = PeerFile::read_all(folder)?;
    let others: Option<Vec<Peer>> = files.as_ref().map(|files| files.iter().flat_map(PeerFile::peers).collect());
    match Config::parse_beside(&text, &path.display().to_string(), others.as_deref()) {
        Ok(config) => {
            peers::distinct(path, &config, files.as_deref().unwrap_or_default())?;
            Ok((beside(config, path), text))
        }
        Err(errors) => Err(LoadError::Faulty { path: path.to_owned(), text, errors }),
    }
}

/// The key log stands beside the configuration, as key files do.
fn beside(mut config: Config, path: &Path) -> Config {
    let folder = path.parent().unwrap_or(Path::new(""));
    config.portal.keylog = config.portal.keylog.map(|file| folder.join(file));
    config
}
