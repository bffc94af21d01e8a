//! A portal's secrets, beside its configuration.
//!
//! 1. [`load`] reads the configuration, and warns of what is written in an old way.
//! 2. [`Keys::load`] reads the key files that it names, relative to its folder, and what tokens are out.
//! 3. A peer that has our own key is refused.

use std::collections::BTreeMap;
use std::path::Path;

use hawser_config::reading::{Fault, Faults};
use hawser_config::{Config, LoadError, PeerName, PresharedKey, PrivateKey, read};

use crate::pairing::Invitations;

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
