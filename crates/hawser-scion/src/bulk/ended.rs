//! Writers of sessions that are gone: they may be at work for long, and who writes the same files waits for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hawser_bulk::layout::{FileName, OfferedFile};

use super::writer::Writer;

/// The writers, each with its session's files. None at first; the packet thread owns it.
#[derive(Debug, Default)]
pub(super) struct Ended(Vec<(Vec<OfferedFile>, Arc<Writer>)>);

impl Ended {
    /// Adds one that was told to end.
    pub(super) fn add(&mut self, files: Vec<OfferedFile>, writer: Writer) {
        self.0.retain(|(_, writer)| !writer.is_done());
        self.0.push((files, Arc::new(writer)));
    }

    /// Those that write a file of an offer. They stay: the files of one may be offered by several sessions.
    pub(super) fn before(&self, offered: &[OfferedFile]) -> Vec<Arc<Writer>> {
        let sharing = self.0.iter().filter(|(files, _)| share(files, offered));
        sharing.map(|(_, writer)| Arc::clone(writer)).collect()
    }
}

/// Whether two offers have a name in common.
pub(super) fn share(one: &[OfferedFile], other: &[OfferedFile]) -> bool {
    let names: BTreeSet<&FileName> = one.iter().flatten().map(|file| &file.name).collect();
    other.iter().flatten().any(|file| names.contains(&file.name))
}
