//! Where paths come from: whoever knows them implements [`Paths`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::addr::IsdAs;
use crate::path::Path;

/// Knows the paths from this host's AS to others: a daemon's client, or a [`PathTable`].
/// Asked once for a new destination by whoever sends there first, then by the socket's own thread
/// before paths expire and after one died. May block for seconds; several threads may ask at once.
pub trait Paths: fmt::Debug + Send + Sync {
    /// The paths to an AS, the one to take first in front; none is no error.
    ///
    /// # Errors
    /// When it cannot be said now.
    fn paths(&self, destination: IsdAs) -> Result<Vec<Path>, LookupError>;
}

/// Why paths could not be looked up, with the source's own error.
#[derive(Debug, thiserror::Error)]
#[error("look up paths to {destination}")]
pub struct LookupError {
    /// Where to.
    pub destination: IsdAs,
    /// What the source of paths said.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Paths that are written down. Empty at first, which is enough inside one's own AS and for answers.
/// For several threads: what is set is found by the next who asks.
#[derive(Debug, Default)]
pub struct PathTable(Mutex<BTreeMap<IsdAs, Vec<Path>>>);

impl PathTable {
    /// Writes down all paths to an AS, the one to take first in front.
    pub fn set(&self, destination: IsdAs, paths: Vec<Path>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(destination, paths);
    }
}

impl Paths for PathTable {
    fn paths(&self, destination: IsdAs) -> Result<Vec<Path>, LookupError> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(table.get(&destination).cloned().unwrap_or_default())
    }
}

impl<P: Paths + ?Sized> Paths for Arc<P> {
    fn paths(&self, destination: IsdAs) -> Result<Vec<Path>, LookupError> {
        (**self).paths(destination)
    }
}
