//! What may go wrong in the lab.

use std::io;
use std::path::{Path, PathBuf};

use hawser_wire::WireError;

/// A failed experiment. Nothing that it made is left when it is returned. Plain data, may cross threads.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Namespaces need root.
    #[error("make namespaces: this needs root")]
    NotRoot,
    /// A namespace, a link or traffic failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The system refused.
    #[error("{action}")]
    System {
        /// What was being done, and to what.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program refused; a plan, an option or a file of results means nothing; or a figure cannot be had.
    #[error("{action}: {said}")]
    Refused {
        /// What was being done, and with what.
        action: String,
        /// What the program said; or what is wrong, and what would be understood.
        said: String,
    },
    /// A process under test ended, or did not come to work.
    #[error("run {process}: {fault}, it said:\n{log}")]
    Process {
        /// Which one.
        process: String,
        /// What it did instead of working.
        fault: String,
        /// The end of its standard error.
        log: String,
    },
    /// A folder for results is not ours to write to.
    #[error("keep results in {}: {reason}", dir.display())]
    Others {
        /// Which folder.
        dir: PathBuf,
        /// What it holds, or who is there.
        reason: String,
    },
    /// A program, or something of the kernel's, is not there: what needs it is skipped.
    #[error("{what} is missing")]
    Missing {
        /// What, by name.
        what: String,
        /// How it is had.
        hint: String,
    },
    /// A SCION network does not do what it should.
    #[error("run scion network {network}: {fault}")]
    Network {
        /// Its name.
        network: String,
        /// What it does instead.
        fault: String,
    },
}

impl LabError {
    /// A failed system call, with what was being done.
    pub(crate) fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }

    /// A file or folder that the system refused, with what was being done with it.
    pub(crate) fn file(action: &str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::system(format!("{action} {}", path.display()), error)
    }

    /// What is not there, and how it is had.
    pub(crate) fn missing(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), hint: hint.into() }
    }

    /// A program that did not start: missing, where it is not there.
    pub(crate) fn program(action: impl Into<String>, error: io::Error, [what, hint]: [&str; 2]) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::missing(what, hint) } else { Self::system(action, error) }
    }

    /// What was being done, and why it cannot be.
    pub(crate) fn refused(action: impl Into<String>, said: impl Into<String>) -> Self {
        Self::Refused { action: action.into(), said: said.into() }
    }

    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Missing { hint, .. } => Some(hint),
            Self::NotRoot => Some("run it with sudo"),
            Self::Others { .. } => Some("name another folder: --out DIR"),
            _ => None,
        }
    }
}
