//! What a user wants of every path.

use super::acl::Acl;
use super::sequence::Sequence;
use crate::path::Path;

/// An access list and a sequence of hops; both must let a path pass. Lets all pass by default. Plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Which interfaces may be crossed.
    pub acl: Acl,
    /// Which hops there must be.
    pub sequence: Sequence,
}

impl Policy {
    /// Whether a path may be used.
    pub fn admits(&self, path: &Path) -> bool {
        self.acl.allows(&path.interfaces) && self.sequence.matches(&path.interfaces)
    }
}
