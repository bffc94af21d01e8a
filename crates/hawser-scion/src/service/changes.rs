//! What changed between two looks at the paths to an AS.

use std::sync::Arc;

use tokio::sync::watch;

use crate::path::{Fingerprint, Path};

/// A path is not what it was. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// There was none across these interfaces.
    New(Path),
    /// Across the same interfaces, but it lasts longer, or another thing about it changed.
    Renewed(Path),
    /// There is none any more.
    Gone(Fingerprint),
}

/// Tells of changes of the paths to one AS. Has seen none at first. For one task or thread; what it does not fetch is
/// told together later, so nothing piles up.
#[derive(Debug)]
pub struct Subscription {
    known: watch::Receiver<Arc<[Path]>>,
    seen: Arc<[Path]>,
}

/// What one must be told who knows `before`: new and renewed ones in the order of `after`, then those that are gone.
pub fn changes(before: &[Path], after: &[Path]) -> Vec<Change> {
    let of = |paths: &[Path], path: &Path| paths.iter().position(|other| other.interfaces == path.interfaces);
    let changed = after.iter().filter_map(|path| match of(before, path) {
        None => Some(Change::New(path.clone())),
        Some(at) => (before[at] != *path).then(|| Change::Renewed(path.clone())),
    });
    let gone = before.iter().filter(|path| of(after, path).is_none());
    changed.chain(gone.map(|path| Change::Gone(path.interfaces.clone()))).collect()
}

impl Subscription {
    pub(super) fn new(known: watch::Receiver<Arc<[Path]>>) -> Subscription {
        Subscription { known, seen: Arc::new([]) }
    }

    /// What changed since the last call, as soon as anything has; `None` when the service has ended.
    pub async fn next(&mut self) -> Option<Vec<Change>> {
        loop {
            let changes = self.fetch();
            if !changes.is_empty() {
                return Some(changes);
            }
            self.known.changed().await.ok()?;
        }
    }

    /// What changed since the last call; nothing, mostly.
    pub fn fetch(&mut self) -> Vec<Change> {
        let after = Arc::clone(&self.known.borrow_and_update());
        let changes = changes(&self.seen, &after);
        self.seen = after;
        changes
    }

    /// The paths as of the last call, the best first.
    pub fn paths(&self) -> &[Path] {
        &self.seen
    }
}
