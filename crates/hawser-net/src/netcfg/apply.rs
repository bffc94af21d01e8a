//! Changes to the system's network configuration that are undone again, whatever happens.
//!
//! ```text
//!               apply                 set                       undo
//!   (absent) ----------> journalled -------> set ------------------------> (absent)
//!                            |                |  ^
//!                  set fails |        replace |  | set, or back to the earlier one if that fails
//!                            v                v  |
//!                        (absent)          journalled anew, with the oldest value to go back to
//! ```
//! A kill in any of these states leaves a line in the journal that the next start undoes.

use std::path::Path;
use std::sync::Once;

use super::{
    change::Change,
    error::NetConfigError,
    features::Feature,
    journal::{Entry, InstanceName, Journal},
    many::RouteSocket,
    nft,
    perform::Undone,
    rtnl::Rtnl,
};

/// A running portal opens the kill switch's journal after each change of routes, and the kernel stays the same.
static TOLD_WHAT_IS_LACKING: Once = Once::new();

/// What Hawser has set in the system for one instance.
/// A new one has nothing set, but may have found leftovers. Used by one thread of control, inside a tokio runtime.
#[derive(Debug)]
pub struct NetConfig {
    pub(super) rtnl: Rtnl,
    /// For many routes at once.
    pub(super) routes: RouteSocket,
    pub(super) journal: Journal,
    pub(super) leftovers: bool,
}

/// What [`NetConfig::apply`] did. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is set now and will be undone.
    Set,
    /// It was so before, by somebody else or by an earlier call; nothing more will be undone.
    AlreadySo,
}

/// What was undone, and what could not be. Initially nothing. Owned data only.
#[derive(Debug, Default)]
pub struct UndoReport {
    /// Undone now, in the order it was done.
    pub undone: Vec<Change>,
    /// Gone already, or changed by somebody else since, and left so.
    pub gone: Vec<Change>,
    /// Not undone; still in the journal, for the next try.
    pub failed: Vec<(Change, NetConfigError)>,
    /// Lines of the journal, from 1, that could not be read: what they announced was left alone.
    pub unreadable_lines: Vec<usize>,
}

impl UndoReport {
    /// True if nothing is left of what was to be undone, as far as known.
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty() && self.unreadable_lines.is_empty()
    }
}

impl NetConfig {
    /// Takes the journal of `instance` below `directory` (e.g. `/run/hawser`), in the calling thread's network
    /// namespace.
    ///
    /// Fails with [`super::JournalError::InUse`] if a running process has it.
    pub fn new(directory: &Path, instance: &InstanceName) -> Result<Self, NetConfigError> {
        let (rtnl, routes) = (Rtnl::open()?, RouteSocket::open()?);
        let journal = Journal::open(directory, instance)?;
        let leftovers = journal.entries().next().is_some();
        if let Some(feature) = journal.lacks() {
            TOLD_WHAT_IS_LACKING.call_once(|| {
                tracing::warn!(%feature, "the kernel lacks a feature: a journal of a namespace that is gone may be taken for this one's");
            });
        }
        Ok(Self { rtnl, routes, journal, leftovers })
    }

    /// What the kernel lacks to tell this network namespace from an earlier one of the same number, if it does.
    pub fn lacks(&self) -> Option<Feature> {
        self.journal.lacks()
    }

    /// The netlink connection, for questions.
    pub fn rtnl(&self) -> &Rtnl {
        &self.rtnl
    }

    /// Everything that is set now and will be undone, oldest first.
    pub fn applied(&self) -> impl Iterator<Item = &Change> {
        self.journal.entries().map(|entry| &entry.change)
    }

    /// Undoes what a killed predecessor left. What fails stays in the journal and stands in nobody's way.
    pub async fn recover(&mut self) -> UndoReport {
        let report = if self.leftovers { self.undo_all().await } else { UndoReport::default() };
        self.leftovers = false;
        UndoReport { unreadable_lines: self.journal.unreadable().to_vec(), ..report }
    }

    /// Takes over what a predecessor left as it is: it stays set, can be replaced, and is undone with all else.
    pub fn adopt(&mut self) {
        self.leftovers = false;
    }

    /// Journals `change`, then sets it.
    ///
    /// A new MTU of an interface, value of a sysctl or table of nftables takes the place of the one applied before.
    pub async fn apply(&mut self, change: Change) -> Result<Applied, NetConfigError> {
        if self.leftovers {
            return Err(NetConfigError::NotRecovered { subject: change.to_string() });
        }
        let Some(before) = self.rtnl.before(&change).await? else {
            return Ok(Applied::AlreadySo);
        };
        let earlier = self.journal.held(&change).cloned();
        if earlier.as_ref().is_some_and(|entry| entry.change == change) {
            return self.set_again(&change).await;
        }
        // What was there before the first of a row of values is what to go back to.
        let before = earlier.as_ref().map_or(before, |entry| entry.before.clone());
        let interface = self.rtnl.interface_name(&change).await?;
        let entry = self.journal.entry(change.clone(), interface, before, earlier.as_ref());
        let id = entry.id;
        self.journal.set(vec![entry])?;
        if let Err(error) = self.rtnl.set(&change, earlier.as_ref().map(|entry| &entry.change)).await {
            self.retract(id, earlier);
            return Err(error);
        }
        tracing::debug!(%change, "set");
        Ok(Applied::Set)
    }

    /// What was journalled did not come about.
    pub(super) fn retract(&mut self, id: u64, earlier: Option<Entry>) {
        let retracted = match earlier {
            Some(entry) => self.journal.set(vec![entry]),
            None => self.journal.undone(&[id]),
        };
        if let Err(error) = retracted {
            // Undoing what never came about does no harm; why it did not is the better error.
            tracing::warn!(%error, "not set, but still in the journal");
        }
    }

    /// Undoes one change, if it was applied here and still is ours.
    pub async fn undo(&mut self, change: &Change) -> Result<(), NetConfigError> {
        let held = self.journal.held(change).filter(|entry| entry.change == *change).cloned();
        if let Some(entry) = held {
            self.rtnl.undo(&entry).await?;
            self.journal.undone(&[entry.id])?;
        }
        Ok(())
    }

    /// Undoes everything, the last first; what fails is reported and the rest continued.
    pub async fn undo_all(&mut self) -> UndoReport {
        let mut report = UndoReport::default();
        let entries: Vec<Entry> = self.journal.entries().rev().cloned().collect();
        for entry in entries {
            let undone = self.rtnl.undo(&entry).await;
            let Entry { id, change, .. } = entry;
            match undone {
                Err(error) => {
                    tracing::warn!(%change, %error, "not undone");
                    report.failed.push((change, error));
                    continue;
                }
                Ok(Undone::Undone) => report.undone.push(change),
                Ok(Undone::Gone) => report.gone.push(change),
            }
            if let Err(error) = self.journal.undone(&[id]) {
                // Undoing is idempotent: the next start tries once more and finds it gone.
                tracing::warn!(%error, "undone, but still in the journal");
            }
        }
        report
    }

    /// Sets what is journalled already: the kernel drops routes and addresses of its own accord when a link
    /// goes down, and whoever flushes nftables flushes our table too.
    async fn set_again(&mut self, change: &Change) -> Result<Applied, NetConfigError> {
        if let Change::Nft(table) = change
            && nft::is_there(&table.name).await?
        {
            return Ok(Applied::AlreadySo);
        }
        match self.rtnl.set(change, None).await {
            Ok(()) => Ok(Applied::Set),
            Err(error) if error.errno() == Some(libc::EEXIST) => Ok(Applied::AlreadySo),
            Err(error) => Err(error),
        }
    }
}
