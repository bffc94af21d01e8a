//! Why a journal could not be taken, and the name that it is found by.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::owner::Netns;

/// Longest instance name, in bytes: far below NAME_MAX (255, linux/limits.h).
const INSTANCE_NAME_MAX: usize = 64;

/// The name of a running portal among those of this machine; names a directory.
/// There is no default. Letters, digits, `-`, `_` and inner dots only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceName(String);

impl InstanceName {
    /// Checks a name; anything that could leave its directory is none.
    pub fn new(name: &str) -> Result<Self, JournalError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let good =
            !name.is_empty() && name.len() <= INSTANCE_NAME_MAX && !name.starts_with('.') && name.chars().all(plain);
        if good { Ok(Self(name.to_owned())) } else { Err(JournalError::BadName { name: name.to_owned() }) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a journal could not be taken, read or written.
/// There is no default. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Not a name of an instance.
    #[error("parse instance name {name:?}: only letters, digits, '-', '_' and inner '.', at most 64 bytes")]
    BadName {
        /// What was given.
        name: String,
    },
    /// Another process has it, and what it set is in use.
    #[error("take journal {}: it belongs to the running process {}", directory.display(), shown(*pid))]
    InUse {
        /// Where the journal is.
        directory: PathBuf,
        /// Who has it, if that could be read.
        pid: Option<u32>,
    },
    /// It was written in another network namespace, whose interfaces and addresses are not those here.
    #[error("take journal {}: written in network namespace {theirs}, this is {ours}", path.display())]
    OtherNamespace {
        /// Where it is.
        path: PathBuf,
        /// The namespace it was written in.
        theirs: Netns,
        /// This thread's namespace.
        ours: Netns,
    },
    /// It does not say who wrote it, so nobody knows whether it is in use.
    #[error("take journal {}: no owner in it", path.display())]
    NoOwner {
        /// Where it is.
        path: PathBuf,
    },
    /// Written by another version of Hawser.
    #[error("read journal {}: unknown format {format}", path.display())]
    Format {
        /// Where it is.
        path: PathBuf,
        /// The number found.
        format: u32,
    },
    /// The file system refused.
    #[error("{operation} journal {}: {source}", path.display())]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

fn shown(pid: Option<u32>) -> String {
    pid.map_or_else(|| "(unknown)".to_owned(), |pid| pid.to_string())
}

impl JournalError {
    pub(super) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }

    /// What a user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InUse { .. } => Some("stop that process first, or start this one as another instance"),
            Self::NoOwner { .. } | Self::Format { .. } => Some("undo by hand what it names, then delete the file"),
            Self::OtherNamespace { .. } => Some("start in the namespace it was written in to clean up there"),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Some("run as root"),
            _ => None,
        }
    }
}
