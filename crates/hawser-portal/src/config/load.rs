//! From files to a configuration and its keys.
//!
//! 1. [`read`] the text, that of the peers beside it (`peers.d/NAME.toml`), and parse them.
//! 2. [`Keys::load`] the key files it names, relative to its folder, and what tokens are out.
//! 3. Refuse a peer that has our own key.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Fault, Faults};
use super::peers::{self, PeerFile};
use super::{Config, ConfigError, KeyFileError, Peer, PeerName, PresharedKey, PrivateKey, read_text};
use crate::pairing::Invitations;

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

/// The secrets of a portal. Wiped when dropped.
#[derive(Debug)]
pub struct Keys {
    /// The portal's own.
    pub private: PrivateKey,
    /// Those shared with peers beforehand.
    pub preshared: BTreeMap<PeerName, PresharedKey>,
    /// Those of tokens that may be used.
    pub invitations: Invitations,
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

/// Reads the configuration at `path` and its keys.
///
/// # Errors
/// [`LoadError`] for an unreadable file, every fault of the text, a key file that is missing, open to others or no
/// key, and a peer with our own public key.
pub fn load(path: &Path) -> Result<(Config, Keys), LoadError> {
    let (config, text) = read(path)?;
    for old in Config::outdated(&text, &path.display().to_string()) {
        tracing::warn!(place = %old.place(), today = old.corrected, "configuration: {}", old.message);
    }
    let keys = Keys::load(&config, path, &text)?;
    Ok((config, keys))
}

impl Keys {
    /// Reads the keys of `config`, which was read from `path` and had `text`.
    ///
    /// # Errors
    /// [`LoadError::Key`] for a key file, [`LoadError::Faulty`] for a peer with our own public key.
    pub fn load(config: &Config, path: &Path, text: &str) -> Result<Self, LoadError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let private = PrivateKey::load(&folder.join(&config.portal.private_key_file))?;
        refuse_own_key(config, &private, path, text)?;
        let mut preshared = BTreeMap::new();
        for peer in &config.peers {
            if let Some(file) = &peer.preshared_key_file {
                preshared.insert(peer.name.clone(), PresharedKey::load(&folder.join(file))?);
            }
        }
        let known: Vec<&PeerName> = config.peers.iter().map(|peer| &peer.name).collect();
        let invitations = Invitations::load(folder, &known);
        Ok(Self { private, preshared, invitations })
    }
}

fn refuse_own_key(config: &Config, private: &PrivateKey, path: &Path, text: &str) -> Result<(), LoadError> {
    let own = private.public();
    let Some(peer) = config.peers.iter().find(|p| p.public_key == own) else { return Ok(()) };
    let file = path.display().to_string();
    let mut faults = Faults::new(&file, text);
    let key = own.to_string();
    let span = text.find(&key).map_or(0..0, |start| start..start + key.len());
    faults.add(
        span,
        Fault::new(format!("peer \"{}\" has this portal's own public key", peer.name))
            .hint("write the key the other portal prints: hawser pubkey < private.key"),
    );
    Err(LoadError::Faulty { path: path.to_owned(), text: text.to_owned(), errors: faults.into_sorted() })
}
