//! Topologies by name: those that come with Hawser, and files on disk.
//!
//! A path (something with a slash, or ending in .toml) is read from disk, another word is an embedded topology's name.

use std::io;
use std::path::{Path, PathBuf};

use hawser_config::ConfigError;
use hawser_config::reading::did_you_mean;

use super::parse;
use super::topology::Topology;
use crate::scenario::recorded::Sources;

/// Topologies that are part of the program: name and text.
const EMBEDDED: [(&str, &str); 2] = [
    ("two-cores", include_str!("../../topologies/two-cores.toml")),
    ("six-as", include_str!("../../topologies/six-as.toml")),
];

/// A topology that cannot be had. Plain data.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The file cannot be read.
    #[error("read topology {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file has faults.
    #[error("read topology {file}: {} to correct", match errors.len() { 1 => "1 error".to_owned(), n => format!("{n} errors") })]
    Faulty {
        /// The file.
        file: String,
        /// Its text, to show the faults in.
        text: String,
        /// The faults in the order of the file; at least one.
        errors: Vec<ConfigError>,
    },
    /// There is no topology of this name.
    #[error("find topology {name}: there is none of this name")]
    Unknown {
        /// As it was asked for.
        name: String,
        /// The nearest one.
        meant: Option<&'static str>,
    },
}

impl TopologyError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { meant: Some(meant), .. } => Some(format!("did you mean {meant}?")),
            Self::Unknown { .. } => {
                Some(format!("there are {}; a file's name ends in .toml", EMBEDDED.map(|e| e.0).join(", ")))
            }
            Self::Read { .. } | Self::Faulty { .. } => None,
        }
    }
}

impl Topology {
    /// Reads a topology; `file` is what its faults are reported under, `folder` where traces are, and `links` takes the
    /// place of every `count`.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(text: &str, file: &str, folder: Option<&Path>, links: Option<u8>) -> Result<Self, TopologyError> {
        let faulty = |errors| TopologyError::Faulty { file: file.to_owned(), text: text.to_owned(), errors };
        parse::parse(text, file, links, &Sources::new(folder, None)).map_err(faulty)
    }

    /// The topology of a name or file; `links` takes the place of every `count`.
    ///
    /// # Errors
    /// Where there is none of this name, it cannot be read, or has faults.
    pub fn named(name: &str, links: Option<u8>) -> Result<Self, TopologyError> {
        let path = Path::new(name);
        if name.contains('/') || path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|source| TopologyError::Read { path: path.to_owned(), source })?;
            return Self::parse(&text, name, Some(path.parent().unwrap_or(Path::new(""))), links);
        }
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, &format!("{name}.toml"), None, links),
            None => {
                let meant = did_you_mean(name, &EMBEDDED.map(|(known, _)| known));
                Err(TopologyError::Unknown { name: name.to_owned(), meant })
            }
        }
    }
}
