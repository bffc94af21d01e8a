//! A folder of recordings, read: `drives.csv` (drive, second, Mbit/s of each link) and mahimahi traces
//! (`*.down`, `*.up`).
//!
//! 1. [`networks`]: all that is drawn of it. 2. [`some`]: as many, of drives and of traces alike.

use super::recorded::{Draw, Trace, pairs, stretches};
use crate::judge::Network;
use crate::net::Recording;
use crate::random::Seeded;
use crate::recorded;
use std::io;
use std::path::{Path, PathBuf};

/// The table of drives.
const DRIVES: &str = "drives.csv";

/// A recording that cannot be had. Plain data.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system does not give it.
    #[error("read {}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no recording in it.
    #[error("read {}: no recording in it", path.display())]
    Empty {
        /// The folder or file.
        path: PathBuf,
    },
}

impl FolderError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "a folder of recordings holds drives.csv (drive, second, Mbit/s of each link), or mahimahi traces NAME.down and NAME.up"
    }
}

/// Step 1: stretches of drives, and pairs of traces; nothing of what is not there.
///
/// # Errors
/// Where the folder or a file in it cannot be read, or a trace is none.
pub fn networks(folder: &Path, draw: Draw) -> Result<Vec<Network>, FolderError> {
    Ok([drawn_stretches(folder, draw)?, pairs(&traces(folder)?, draw)].concat())
}

/// Step 2: `draw.cases` networks, a stretch and a pair in turn, pairs in an order of the seed.
///
/// # Errors
/// As [`networks`], or where there is no recording at all.
pub fn some(folder: &Path, draw: Draw) -> Result<Vec<Network>, FolderError> {
    let mut stretches = drawn_stretches(folder, draw)?.into_iter();
    let mut pairs = pairs(&traces(folder)?, draw);
    let mut rng = Seeded::new(draw.seed);
    let mut networks = Vec::new();
    while networks.len() < draw.cases {
        let pair = (!pairs.is_empty()).then(|| pairs.swap_remove(rng.below(pairs.len() as u64) as usize));
        let both = [stretches.next(), pair];
        if both.iter().all(Option::is_none) {
            break;
        }
        networks.extend(both.into_iter().flatten());
    }
    networks.truncate(draw.cases);
    if networks.is_empty() { Err(FolderError::Empty { path: folder.to_owned() }) } else { Ok(networks) }
}

fn drawn_stretches(folder: &Path, draw: Draw) -> Result<Vec<Network>, FolderError> {
    let path = folder.join(DRIVES);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let (names, drives) = recorded::drives(&text);
            Ok(stretches(&names, &drives, draw))
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(FolderError::Read { path, source }),
    }
}

fn traces(folder: &Path) -> Result<Vec<Trace>, FolderError> {
    let failed = |source| FolderError::Read { path: folder.to_owned(), source };
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(failed)?.collect();
    let mut downs: Vec<PathBuf> = entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
    downs.retain(|path| path.extension().is_some_and(|extension| extension == "down"));
    downs.sort();
    downs.iter().map(|path| trace(path)).collect()
}

fn trace(path: &Path) -> Result<Trace, FolderError> {
    let up = path.with_extension("up");
    Ok(Trace {
        name: path.file_stem().unwrap_or_default().to_string_lossy().replace("-driving", ""),
        down: read(path)?,
        up: if up.exists() { Some(read(&up)?) } else { None },
    })
}

fn read(path: &Path) -> Result<Recording, FolderError> {
    let text = std::fs::read_to_string(path).map_err(|source| FolderError::Read { path: path.to_owned(), source })?;
    recorded::mahimahi(&text).ok_or_else(|| FolderError::Empty { path: path.to_owned() })
}
