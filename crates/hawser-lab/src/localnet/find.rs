//! Topologies by name: those that come with Hawser, and files on disk.
//!
//! A path (something with a slash, or ending in .toml) is read from disk, another word is an embedded topology's name.

use std::path::Path;

use super::parse;
use super::topology::Topology;
use crate::scenario::find::{FileError, is_file};
use crate::scenario::recorded::Sources;

/// Topologies that are part of the program: name and text.
const EMBEDDED: [(&str, &str); 2] = [
    ("two-cores", include_str!("../../topologies/two-cores.toml")),
    ("six-as", include_str!("../../topologies/six-as.toml")),
];

/// As errors call it.
const WHAT: &str = "topology";

impl Topology {
    /// Reads a topology; `file` is what its faults are reported under, `folder` where traces are, and `links` takes the
    /// place of every `count`.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(text: &str, file: &str, folder: Option<&Path>, links: Option<u8>) -> Result<Self, FileError> {
        let faulty = |errors| FileError::Faulty { what: WHAT, file: file.to_owned(), text: text.to_owned(), errors };
        parse::parse(text, file, links, &Sources::new(folder, None)).map_err(faulty)
    }

    /// The topology of a name or file; `links` takes the place of every `count`.
    ///
    /// # Errors
    /// Where there is none of this name, it cannot be read, or has faults.
    pub fn named(name: &str, links: Option<u8>) -> Result<Self, FileError> {
        if is_file(name) {
            let path = Path::new(name);
            let text = FileError::text_of(WHAT, path)?;
            return Self::parse(&text, name, Some(path.parent().unwrap_or(Path::new(""))), links);
        }
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, &format!("{name}.toml"), None, links),
            None => {
                let known = EMBEDDED.map(|(known, _)| known);
                let hint = format!("there are {}; a file's name ends in .toml", known.join(", "));
                Err(FileError::unknown(format!("{WHAT} {name}: there is none of this name"), name, &known, hint))
            }
        }
    }
}
